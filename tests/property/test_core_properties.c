/* Random worlds drive the core through its contract, and its promises are checked after every step:
 *
 *   - under `reserve` no GPU is over-committed by reservations
 *   - no job is lost or run twice: what the world knows of each job and what the core knows agree
 *   - an exclusive job is alone on its GPUs until it ends, under every policy
 *   - the residents of a GPU use it in one way, its MPS clients are one user's and as few as allowed, a job of several
 *     GPUs begins its MPS server where nobody is, nobody is put on a server that has failed, a MIG instance gets no
 * part of a job of several GPUs
 *   - who was the victim of a fault goes before the main queue, as long as its user has a budget for it
 *   - no user is given more GPUs, GPU memory or running jobs than allowed, and nobody else waits for whom that keeps
 * waiting
 *   - a lost job, or one that its time limit ended, is retried where that was asked for, and only so many times
 *   - a reservation covers what was observed of its job, and is never larger than its GPUs
 *   - who was run out of memory by a neighbour is not charged with it, keeps its request, and is not a victim for ever
 *   - a fence is for MPS alone, and never below the request; a job runs out at a guessed one once, and is not charged
 * with it
 *   - every waiting job has a reason with a sentence; no other job has one
 *   - a head for which GPUs are reserved starts at the latest when those have ended who ran there at that moment
 *   - the same inputs give the same decisions, and applying the stored records gives the same state
 *
 * The world is a mock driver: it launches what is placed, sees memory, ends jobs in every way, restarts. The seed of a
 * failing run is printed; give it as an argument to repeat that run alone, and a number as the second to try that many
 * from there on. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "core/core_internal.h"
#include "core/quantum.h"
#include "core/snapshot.h"
#include "random.h"

#define MAX_JOBS 4096

/* The world's knowledge of a job, kept without asking the core. */
struct world_job {
    bool submitted;
    bool ended;
    bool running; /* holds GPUs: from its placement to its exit */
    bool asked_to_stop;
    uint32_t runs; /* placements, each matched by one end */
    uint32_t gpu_count;
    uint32_t gpus[RECORD_MAX_GPUS];
    uint32_t share; /* how it uses them */
    uint32_t cause; /* of its last exit */
    uint32_t timeouts;
    int64_t stray_bytes[RECORD_MAX_GPUS]; /* by number, on GPUs that it was not given */
    bool last;                            /* its time was up: all jobs that waited then go before it */
    uint32_t losses;
    bool charged; /* its last exit: a GPU failed, as another did under its workload */
    int64_t placed_ns;
    struct record_failure failure; /* of one without a workload */
    uint32_t oom_charged;          /* crashes out of GPU memory of its own */
    uint32_t harmed;               /* those that were a neighbour's */
    int64_t fence_bytes;
    bool unfenced;
    int64_t reserved_bytes; /* as promised to others: at its start, or since it was shrunk */
    int64_t counted_bytes;  /* as counted for its user: with its growth */
    struct record_submitted wants;
    int64_t seen_bytes[RECORD_MAX_GPUS];
};

struct world_user {
    bool share_faulted;
    uint32_t retries;
    int64_t since_ns;
};

/* A reservation, and the jobs in its way when it was made. */
struct reservation {
    uint64_t job; /* 0: none */
    uint32_t count;
    uint32_t gpus[RECORD_MAX_GPUS];
    int64_t at_ns;
};

#define WORKLOADS 7 /* "w0" to "w5", and "w" */

struct world {
    struct reservation reservation;
    bool reconfigured;
    bool lax; /* users shared MPS servers at some time */
    struct random random;
    uint64_t seed;
    struct core *core;
    struct record_list log;
    struct record_list decisions_of_step;
    int64_t now_ns;
    uint64_t next_job;
    struct world_user users[2]; /* 1000 and 1001 */
    struct world_job jobs[MAX_JOBS];
    struct record_failure failures[WORKLOADS];
};

static void fail(const struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
static void fail(const struct world *world, const char *format, ...)
{
    CLEANUP(free_ptr) char *dump = core_dump(world->core);
    va_list args;

    fprintf(stderr, "seed %" PRIu64 ", after %zu records: ", world->seed, world->log.count);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n%s", dump);
    abort(); /* so that sanitizers and debuggers show where */
}

/* ---- The world's side of decisions ---- */

static bool is_on(const struct world_job *job, uint32_t gpu)
{
    for (uint32_t i = 0; job->running && i < job->gpu_count; i++)
        if (job->gpus[i] == gpu)
            return true;
    return false;
}

/* The rules of src/core/sharing.h, from the world's knowledge of residents. */
static void check_sharing(const struct world *world, uint64_t id, const struct record_placed *placed, uint32_t number)
{
    const struct world_job *job = &world->jobs[id];
    const struct core_config *config = core_configuration(world->core);
    const struct gpu *gpu = core_gpu(world->core, number);
    bool all_by_mps = true, joins;
    uint32_t residents = 0;

    for (uint32_t g = 0; g < core_gpu_count(world->core); g++)
        all_by_mps &= core_gpu(world->core, g)->share == SHARE_MPS;
    joins = config->mps_domain != MPS_DOMAIN_GPU && (all_by_mps || job->wants.share == SHARE_MPS);
    if (placed->share == SHARE_MPS && (gpu->share != SHARE_MPS || gpu->share_faulted || job->wants.exclusive ||
                                       (world->users[job->wants.uid - 1000].share_faulted && !gpu->instance)))
        fail(world, "job %" PRIu64 " cannot use MPS on GPU %" PRIu32, id, number);
    if (job->wants.share != SHARE_ANY && placed->share != job->wants.share && placed->share != SHARE_EXCLUSIVE)
        fail(world, "job %" PRIu64 " runs in a way that it does not accept", id);
    if (job->wants.share == SHARE_MPS && !job->wants.exclusive && placed->share != SHARE_MPS)
        fail(world, "job %" PRIu64 " asked for MPS in vain", id);
    if (job->wants.exclusive && placed->share != SHARE_EXCLUSIVE)
        fail(world, "exclusive job %" PRIu64 " is said to share", id);
    if (gpu->instance && placed->count > 1)
        fail(world, "job %" PRIu64 " of several GPUs got MIG instance %" PRIu32, id, number);
    for (uint64_t other = 1; other < world->next_job; other++) {
        const struct world_job *there = &world->jobs[other];
        if (!is_on(there, number))
            continue;
        residents++;
        if (there->share != placed->share || placed->share == SHARE_EXCLUSIVE)
            fail(world, "jobs %" PRIu64 " and %" PRIu64 " use GPU %" PRIu32 " in different ways", other, id, number);
        if (placed->share == SHARE_MPS && there->wants.uid != job->wants.uid && !config->mps_multiuser &&
            config->mps_domain != MPS_DOMAIN_NODE)
            fail(world, "jobs %" PRIu64 " and %" PRIu64 " of two users share an MPS server", other, id);
    }
    if (residents && (gpu->share == SHARE_EXCLUSIVE || (placed->share == SHARE_MPS && placed->count > 1 && !joins)))
        fail(world, "job %" PRIu64 " was to be the first on GPU %" PRIu32, id, number);
    if (placed->share == SHARE_MPS && residents >= config->mps_max_clients)
        fail(world, "GPU %" PRIu32 " has too many MPS clients", number);
}

/* From the world's knowledge of running jobs. */
struct usages {
    uint32_t running, gpus;
    int64_t memory_bytes;
};

/* Its user's request counts in whole, and a larger reservation, or one that has grown with its use. */
static int64_t counting(const struct world_job *job, int64_t reserved_bytes)
{
    int64_t request = job->wants.request_source == SOURCE_DECLARED ? job->wants.request_bytes : 0;

    return reserved_bytes < request ? request : reserved_bytes;
}

static struct usages usages_of(const struct world *world, uint32_t uid)
{
    struct usages has = {0};

    for (uint64_t id = 1; id < world->next_job; id++) {
        const struct world_job *job = &world->jobs[id];
        if (!job->running || job->wants.uid != uid)
            continue;
        has.running++;
        has.gpus += job->gpu_count;
        has.memory_bytes += counting(job, job->counted_bytes) * job->gpu_count;
        for (uint32_t g = 0; g < RECORD_MAX_GPUS; g++)
            has.memory_bytes += job->stray_bytes[g];
    }
    return has;
}

static bool is_beyond(const struct world *world, const struct usages *has)
{
    const struct core_limits *limits = &core_configuration(world->core)->per_user;

    return (limits->max_running && has->running > limits->max_running) ||
           (limits->max_gpus && has->gpus > limits->max_gpus) ||
           (limits->max_memory_bytes && has->memory_bytes > limits->max_memory_bytes);
}

/* At a placement: running jobs may grow beyond a limit, which nobody can prevent; no decision takes a user there. */
static void check_limits(const struct world *world, uint32_t uid)
{
    struct usages has = usages_of(world, uid);

    if (is_beyond(world, &has))
        fail(world, "user %" PRIu32 " has %" PRIu32 " jobs on %" PRIu32 " GPUs with %" PRId64 " bytes", uid,
             has.running, has.gpus, has.memory_bytes);
}

/* Whether a limit of its user's, and nothing else, keeps the job waiting. */
static void check_limited(const struct world *world, const struct job *job, uint32_t code)
{
    struct usages has = usages_of(world, job->wants->uid);
    int64_t reservation = core_reservation(world->core, job, NULL);

    has.running++;
    has.gpus += job->wants->gpus;
    has.memory_bytes += job->wants->gpus *
                        counting(&world->jobs[job->id], reservation < 0 ? world->core->largest_gpu_bytes : reservation);
    if (is_beyond(world, &has) != (code == REASON_USER_JOBS || code == REASON_USER_GPUS || code == REASON_USER_MEMORY))
        fail(world,
             "job %" PRIu64 " waits for '%s', its user has %" PRIu32 " jobs on %" PRIu32 " GPUs with %" PRId64 " bytes",
             job->id, reason_name(code), has.running - 1, has.gpus - job->wants->gpus, has.memory_bytes);
}

/* How many of the user's jobs were put before the queue in the hour to which this one belongs: a new one begins with
 * the first after the last is over. */
static void count_retry(struct world *world, uint32_t uid, int64_t at_ns)
{
    struct world_user *user = &world->users[uid - 1000];
    uint32_t most = core_configuration(world->core)->per_user.max_retries;

    if (user->retries == 0 || at_ns - user->since_ns >= 3600 * NS_PER_SEC)
        *user = (struct world_user){.since_ns = at_ns};
    if (++user->retries > most && most)
        fail(world, "user %" PRIu32 " recovers for the %" PRIu32 "th time within an hour", uid, user->retries);
}

static bool has_retries_left(const struct world *world, uint32_t uid, int64_t at_ns)
{
    const struct world_user *user = &world->users[uid - 1000];
    uint32_t most = core_configuration(world->core)->per_user.max_retries;

    return most == 0 || user->retries < most || at_ns - user->since_ns >= 3600 * NS_PER_SEC;
}

/* Whether it was asked for, and has not been done too often. */
static bool is_to_be_requeued(const struct world *world, const struct world_job *job)
{
    const struct core_config *config = core_configuration(world->core);

    if (job->cause == EXIT_TIMEOUT)
        return job->wants.requeue && job->timeouts <= config->max_requeues;
    return (job->wants.requeue || config->requeue_lost) && job->losses <= config->max_retries;
}

/* Each crash out of GPU memory is charged to its job, or is a neighbour's doing. */
static void check_requeued_for_memory(struct world *world, const struct record *record)
{
    struct world_job *job = &world->jobs[record->job];
    const struct world_job *overuser = &world->jobs[record->requeued.overuser];
    bool oom = job->cause == EXIT_GPU_OOM || job->cause == EXIT_GPU_HANDLE;

    if (record->requeued.overuser) {
        bool there = false;
        for (uint32_t i = 0; i < job->gpu_count; i++)
            there |= is_on(overuser, job->gpus[i]) || overuser->stray_bytes[job->gpus[i]];
        if (!oom || !there || record->requeued.overuser == record->job)
            fail(world, "job %" PRIu64 " is no victim of job %" PRIu64, record->job, record->requeued.overuser);
        if (++job->harmed > core_configuration(world->core)->max_retries && !world->reconfigured)
            fail(world, "job %" PRIu64 " is a victim for the %" PRIu32 "th time", record->job, job->harmed);
        if (record->requeued.reserved_bytes < job->wants.request_bytes &&
            !core_configuration(world->core)->per_user.max_memory_bytes)
            fail(world, "victim %" PRIu64 " has lost its request", record->job);
        if (!record->requeued.retry && has_retries_left(world, job->wants.uid, record->at_ns))
            fail(world, "victim %" PRIu64 " waits behind others", record->job);
    } else if (record->requeued.unfenced) {
        if (!oom || job->unfenced || job->fence_bytes < 0 || job->wants.request_source == SOURCE_DECLARED)
            fail(world, "job %" PRIu64 " is excused by a fence that it did not have", record->job);
        job->unfenced = true;
    } else {
        job->oom_charged += oom;
    }
    if (oom && record->requeued.crashes != job->oom_charged)
        fail(world, "job %" PRIu64 " is charged with %" PRIu32 " crashes, not %" PRIu32, record->job,
             record->requeued.crashes, job->oom_charged);
}

/* No larger than a GPU of the job's, and no less than its observed memory, as far as a GPU has that. */
static void check_reservation(const struct world *world, const struct job *job)
{
    int64_t least = INT64_MAX, peak = 0;

    for (uint32_t i = 0; i < job->placement_count; i++) {
        int64_t total = core_gpu(world->core, job->placements[i].gpu)->total_bytes;
        least = total < least ? total : least;
        peak = job->placements[i].observed_bytes > peak ? job->placements[i].observed_bytes : peak;
    }
    peak = peak < least ? peak : least;
    if (job->placement_count && job->reserved_bytes >= 0 &&
        (job->reserved_bytes > least || job->reserved_bytes <= peak - QUANTUM_MEMORY_BYTES))
        fail(world, "job %" PRIu64 " has %" PRId64 " reserved, and is observed to use %" PRId64, job->id,
             job->reserved_bytes, peak);
}

/* It must never keep a job from its request, or from its reservation. */
static void check_fence(const struct world *world, uint64_t id, const struct record_placed *placed)
{
    const struct world_job *job = &world->jobs[id];

    if (placed->fence_bytes < 0)
        return;
    if (placed->share != SHARE_MPS || !core_configuration(world->core)->memory_fence || job->unfenced ||
        placed->reserved_bytes < 0)
        fail(world, "job %" PRIu64 " is not to be fenced", id);
    if (placed->fence_bytes <= job->wants.request_bytes || placed->fence_bytes <= placed->reserved_bytes)
        fail(world, "the fence of job %" PRIu64 " is %" PRId64 ", below what it was promised", id, placed->fence_bytes);
}

static void on_decision(struct world *world, const struct record *record)
{
    struct world_job *job = &world->jobs[record->job];

    switch (record->type) {
    case RECORD_PLACED:
        if (!job->submitted || job->ended)
            fail(world, "job %" PRIu64 " was placed though it is not there", record->job);
        if (job->running)
            fail(world, "job %" PRIu64 " was placed twice at once", record->job);
        if (record->placed.count != job->wants.gpus)
            fail(world, "job %" PRIu64 " got %" PRIu32 " GPUs", record->job, record->placed.count);
        for (uint32_t i = 0; i < record->placed.count; i++)
            check_sharing(world, record->job, &record->placed, record->placed.gpus[i]);
        check_fence(world, record->job, &record->placed);
        job->fence_bytes = record->placed.fence_bytes;
        job->running = true;
        memset(job->stray_bytes, 0, sizeof job->stray_bytes);
        job->placed_ns = record->at_ns;
        job->share = record->placed.share;
        job->runs++;
        job->gpu_count = record->placed.count;
        job->reserved_bytes = record->placed.reserved_bytes;
        if (job->reserved_bytes < 0)
            job->reserved_bytes = world->core->largest_gpu_bytes;
        job->counted_bytes = job->reserved_bytes;
        check_limits(world, job->wants.uid);
        memcpy(job->gpus, record->placed.gpus, sizeof job->gpus);
        memset(job->seen_bytes, 0, sizeof job->seen_bytes);
        break;
    case RECORD_REFUSED:
    case RECORD_GAVE_UP:
        if (job->ended || job->running)
            fail(world, "job %" PRIu64 " was given up while it runs", record->job);
        if (record->type == RECORD_GAVE_UP && (job->cause == EXIT_TIMEOUT || job->cause == EXIT_LOST) &&
            (is_to_be_requeued(world, job) || record->gave_up.cause != job->cause))
            fail(world, "job %" PRIu64 " asked to be retried", record->job);
        if (record->type == RECORD_GAVE_UP && job->charged && record->gave_up.cause != EXIT_FAILED)
            fail(world, "job %" PRIu64 " is not charged with the GPUs that it failed", record->job);
        job->ended = true;
        break;
    case RECORD_REQUEUED:
        if (job->charged)
            fail(world, "job %" PRIu64 " may fail a third GPU", record->job);
        if ((job->cause == EXIT_MPS_FAULT || job->cause == EXIT_GPU_ERROR) &&
            job->losses > core_configuration(world->core)->max_retries)
            fail(world, "job %" PRIu64 " is retried without end", record->job);
        if (job->ended || job->running)
            fail(world, "job %" PRIu64 " was requeued while it runs or after its end", record->job);
        if ((job->cause == EXIT_MPS_FAULT || job->cause == EXIT_GPU_ERROR) && !record->requeued.retry &&
            has_retries_left(world, job->wants.uid, record->at_ns))
            fail(world, "job %" PRIu64 " waits longer for a fault that was not its own", record->job);
        if ((job->cause == EXIT_TIMEOUT || job->cause == EXIT_LOST) &&
            (!is_to_be_requeued(world, job) || record->requeued.retry))
            fail(world, "job %" PRIu64 " was not to be retried, or not before others", record->job);
        job->last = job->cause == EXIT_TIMEOUT;
        check_requeued_for_memory(world, record);
        if (record->requeued.retry)
            count_retry(world, job->wants.uid, record->at_ns);
        break;
    case RECORD_SIGNALLED:
        if (!job->running || !job->asked_to_stop)
            fail(world, "job %" PRIu64 " was signalled though nobody asked", record->job);
        break;
    case RECORD_SHRUNK:
        for (uint32_t i = 0; i < job->gpu_count; i++)
            if (!job->running || record->shrunk.reserved_bytes < job->seen_bytes[i])
                fail(world, "job %" PRIu64 " was shrunk below what it holds", record->job);
        job->reserved_bytes = job->counted_bytes = record->shrunk.reserved_bytes;
        break;
    case RECORD_GROWN:
        if (!job->running || record->grown.reserved_bytes <= job->counted_bytes)
            fail(world, "the reservation of job %" PRIu64 " was to grow, to %" PRId64, record->job,
                 record->grown.reserved_bytes);
        job->counted_bytes = record->grown.reserved_bytes;
        break;
    case RECORD_RESERVED:
        if (job->ended || job->running || record->reserved.count != job->wants.gpus)
            fail(world, "GPUs were reserved for job %" PRIu64 ", which does not wait for them", record->job);
        world->reservation =
            (struct reservation){.job = record->job, .count = record->reserved.count, .at_ns = record->at_ns};
        memcpy(world->reservation.gpus, record->reserved.gpus, sizeof world->reservation.gpus);
        break;
    case RECORD_WAITED:
        if (record->waited.until_ns <= world->now_ns)
            fail(world, "a wait that is over");
        break;
    default:
        fail(world, "'%s' is no decision", record_type_name(record->type));
    }
}

/* ---- Promises ---- */

static void check_gpus(const struct world *world)
{
    const struct core *core = world->core;

    for (uint32_t g = 0; g < core_gpu_count(core); g++) {
        const struct gpu *gpu = core_gpu(core, g);
        uint32_t residents = 0, exclusive = 0;
        int64_t reservations = 0;
        for (uint64_t id = 1; id < world->next_job; id++) {
            const struct world_job *job = &world->jobs[id];
            for (uint32_t i = 0; job->running && i < job->gpu_count; i++) {
                if (job->gpus[i] != g)
                    continue;
                residents++;
                exclusive += job->wants.exclusive;
                reservations += core_find_job(core, id)->reserved_bytes < 0 ? gpu->total_bytes : job->reserved_bytes;
            }
        }
        if (residents != gpu->resident_count)
            fail(world, "GPU %" PRIu32 " has %" PRIu32 " residents, the ledger says %" PRIu32, g, residents,
                 gpu->resident_count);
        if (exclusive && residents != 1)
            fail(world, "an exclusive job is not alone on GPU %" PRIu32, g);
        if (core_configuration(core)->memory_view == MEMORY_RESERVE && reservations > gpu->total_bytes)
            fail(world, "GPU %" PRIu32 " is over-committed: %" PRId64 " of %" PRId64, g, reservations,
                 gpu->total_bytes);
        if (strcmp(core_configuration(core)->policy, "exclusive") == 0 && residents > 1)
            fail(world, "policy exclusive shares GPU %" PRIu32, g);
    }
}

/* An MPS server lives as long as its clients, and they are one user's, on any of its GPUs. */
static void check_servers(const struct world *world)
{
    const struct core *core = world->core;

    for (uint32_t g = 0; g < core_gpu_count(core); g++) {
        const struct gpu *gpu = core_gpu(core, g);
        uint32_t clients = 0;
        for (uint64_t id = 1; id < world->next_job && gpu->server; id++) {
            const struct world_job *job = &world->jobs[id];
            if (!job->running || job->share != SHARE_MPS || core_gpu(core, job->gpus[0])->server != gpu->server)
                continue;
            clients++;
            if (!world->lax && job->wants.uid != gpu->server_uid)
                fail(world, "job %" PRIu64 " is a client of user %" PRIu32 "'s MPS server", id, gpu->server_uid);
        }
        if (gpu->server && clients == 0)
            fail(world, "GPU %" PRIu32 " has an MPS server without clients", g);
    }
}

static void check_jobs(struct world *world)
{
    uint64_t unfinished = 0, waiting = 0;

    for (uint64_t id = 1; id < world->next_job; id++) {
        const struct world_job *expected = &world->jobs[id];
        const struct job *job = core_find_job(world->core, id);
        struct reason reason = core_reason(world->core, id, world->now_ns);
        char text[REASON_TEXT];
        bool waits;
        if (!expected->submitted)
            continue;
        if ((job == NULL) != expected->ended)
            fail(world, "job %" PRIu64 " is %s", id, job ? "still there after its end" : "lost");
        if (!job)
            continue;
        unfinished++;
        waits = job->state == JOB_QUEUED || job->state == JOB_HELD;
        waiting += job->state == JOB_QUEUED;
        if (waits == expected->running)
            fail(world, "job %" PRIu64 " is %s but the world says otherwise", id, job_state_name(job->state));
        if (waits != (reason.code != REASON_NONE))
            fail(world, "job %" PRIu64 " (%s) has reason '%s'", id, job_state_name(job->state),
                 reason_name(reason.code));
        if (expected->last && job->state == JOB_QUEUED && job->next)
            fail(world, "job %" PRIu64 " is before job %" PRIu64 ", though its time was up", id, job->next->id);
        world->jobs[id].last = false;
        if (job->state == JOB_QUEUED)
            check_limited(world, job, reason.code);
        if (strlen(reason_format(&reason, world->now_ns, text)) == 0)
            fail(world, "job %" PRIu64 " has a reason without a sentence", id);
        check_reservation(world, job);
        if (job->state == JOB_CRASHED)
            fail(world, "job %" PRIu64 " was left without a verdict", id);
        if (job->state == JOB_STOPPING && !job->signalled && job->signal_retry_ns <= world->now_ns)
            fail(world, "job %" PRIu64 " was not signalled", id);
    }
    if (unfinished != core_job_count(world->core) || waiting != core_waiting_count(world->core))
        fail(world, "the core counts %" PRIu64 " jobs, %" PRIu64 " waiting", core_job_count(world->core),
             core_waiting_count(world->core));
}

/* Work conservation: a job that is looked at is placed in the very decision in which enough GPUs are idle; and the
 * shortcut by which decisions skip jobs (decide.c, worth_another_look) never skips one that fits. */
static void check_nobody_waits_in_vain(const struct world *world)
{
    const struct core *core = world->core;
    const struct job *job = core_head(core);

    if (!job || world->now_ns < core->next_decision_ns)
        return;
    for (uint64_t reach = core_reach(core); reach && job; reach--, job = core_behind(core, job)) {
        uint32_t idle = 0, open = 0;
        for (uint32_t g = 0; g < core_gpu_count(core); g++) {
            idle += gpu_fits_idle(core, job, core_gpu(core, g));
            open += gpu_verdict(core, job, core_gpu(core, g), world->now_ns) == REASON_NONE;
        }
        if (idle >= job->wants->gpus || (!job_wants_idle(core, job) && open >= job->wants->gpus))
            fail(world, "job %" PRIu64 " waits though %" PRIu32 " GPUs are idle and %" PRIu32 " open", job->id, idle,
                 open);
    }
}

/* A shared placement slows no job, by the core's estimate, beyond the limit of any job on that GPU. */
static void check_slowdowns(const struct world *world)
{
    const struct core *core = world->core;

    for (size_t i = 0; i < world->decisions_of_step.count && core->policy->predicts; i++) {
        const struct record *record = &world->decisions_of_step.items[i];
        for (uint32_t k = 0; record->type == RECORD_PLACED && k < record->placed.count; k++) {
            const struct gpu *gpu = core_gpu(core, record->placed.gpus[k]);
            int32_t slowdown = predicted_slowdown_permille(gpu, NULL);
            for (uint32_t j = 0; j < gpu->resident_count && gpu->resident_count > 1; j++) {
                int32_t own = gpu->residents[j]->wants->max_slowdown_permille;
                int32_t bound = own ? own : core_configuration(core)->max_slowdown_permille;
                if (bound && slowdown > bound)
                    fail(world, "job %" PRIu64 " accepts %d, is at %d", gpu->residents[j]->id, bound, slowdown);
            }
        }
    }
}

/* The conditions of the promise to the head: a GPU that is there and measured, has no unmanaged memory, and has jobs
 * that hold no more than their reservations. */
static bool keeps_its_word(const struct world *world, const struct gpu *gpu)
{
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct job *job = gpu->residents[i];
        if (job_placement_on(job, gpu->number)->observed_bytes > job->reserved_bytes ||
            job->reserved_bytes > world->jobs[job->id].reserved_bytes)
            return false;
    }
    return !gpu->lost && gpu->measured && gpu->unmanaged_bytes == 0;
}

static void check_reserved_head_starts(const struct world *world)
{
    const struct core *core = world->core;
    const struct reservation *reservation = &world->reservation;
    const struct job *head = core_head(core);

    if (!head || head->id != reservation->job || core->reserved_job != head->id || core->config.learn ||
        world->now_ns < core->next_decision_ns || core->config.memory_view != MEMORY_RESERVE)
        return;
    for (uint32_t i = 0; i < reservation->count; i++) {
        const struct gpu *gpu = core_gpu(core, reservation->gpus[i]);
        if (!keeps_its_word(world, gpu) || gpu->share_faulted || head->user->share_faulted || gpu->server ||
            gpu_settling(core, gpu, world->now_ns) || gpu->total_bytes < head->reserved_bytes)
            return;
        for (uint32_t k = 0; k < gpu->resident_count; k++)
            if (gpu->residents[k]->placed_ns <= reservation->at_ns || gpu->residents[k]->wants->exclusive)
                return; /* was there before */
        if (gpu->resident_count && gpu->resident_count >= core->config.max_jobs_per_gpu)
            return;
        if (gpu->resident_count && !core->policy->waives_load && !core->policy->predicts)
            return; /* by measured load the GPU may be closed to anybody */
    }
    fail(world, "the GPUs reserved for job %" PRIu64 " at %" PRId64 " are free of those who were there, and it waits",
         head->id, reservation->at_ns);
}

/* ---- Inputs ---- */

/* Feeds one input and decides; a refused input must change nothing. Returns whether it was taken. */
static bool feed(struct world *world, struct record *input)
{
    struct error err;

    input->at_ns = world->now_ns;
    if (core_apply(world->core, input, &err) != 0)
        return false;
    record_list_add(&world->log, input);
    return true;
}

static void decide(struct world *world)
{
    world->decisions_of_step.count = 0;
    core_decide(world->core, world->now_ns, &world->decisions_of_step);
    for (size_t i = 0; i < world->decisions_of_step.count; i++) {
        record_list_add(&world->log, &world->decisions_of_step.items[i]);
        on_decision(world, &world->decisions_of_step.items[i]);
    }
}

static void submit(struct world *world)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_SUBMITTED, .job = world->next_job};
    struct record_submitted *wants = &input.submitted;

    if (world->next_job == MAX_JOBS)
        return;
    wants->gpus = (uint32_t)(random_range(r, 0, 3) ? 1 : random_range(r, 1, 4));
    wants->request_bytes = random_range(r, 0, 3) ? random_range(r, 1, 44) * GIB : -1;
    wants->request_source =
        wants->request_bytes < 0 ? SOURCE_UNKNOWN : (uint32_t)random_range(r, SOURCE_DECLARED, SOURCE_ESTIMATED);
    wants->smact_permille = random_range(r, 0, 1) ? -1 : (int32_t)random_range(r, 0, 1000);
    wants->max_slowdown_permille = random_range(r, 0, 3) ? 0 : (int32_t)random_range(r, 1000, 3000);
    snprintf(wants->workload, sizeof wants->workload, "%s", random_range(r, 0, 4) ? "" : "w");
    if (random_range(r, 0, 3))
        snprintf(wants->workload, sizeof wants->workload, "w%d", (int)random_range(r, 0, 5));
    wants->exclusive = random_range(r, 0, 5) == 0;
    wants->uid = (uint32_t)random_range(r, 1000, 1001);
    wants->share = (uint32_t)random_range(r, SHARE_ANY, SHARE_MPS);
    wants->held = random_range(r, 0, 9) == 0;
    if (random_range(r, 0, 1)) {
        wants->time_limit_ns = random_range(r, 1, 100) * NS_PER_SEC;
        wants->signal = (uint32_t)random_range(r, 0, 2);
        wants->signal_before_ns = wants->signal ? random_range(r, 0, wants->time_limit_ns - 1) : 0;
    }
    wants->requeue = random_range(r, 0, 1);
    if (!feed(world, &input))
        fail(world, "a good submission was refused");
    world->jobs[world->next_job++] = (struct world_job){.submitted = true, .wants = *wants};
}

static uint64_t any_job(struct world *world)
{
    return world->next_job == 1 ? 0 : (uint64_t)random_range(&world->random, 1, (int64_t)world->next_job - 1);
}

static uint64_t any_running(struct world *world)
{
    uint64_t start = any_job(world);

    for (uint64_t i = 0; i + 1 < world->next_job; i++) {
        uint64_t id = (start + i) % (world->next_job - 1) + 1;
        if (world->jobs[id].running)
            return id;
    }
    return 0;
}

static void person_acts(struct world *world)
{
    static const uint32_t types[] = {RECORD_CANCELLED, RECORD_HELD, RECORD_RELEASED};
    struct record input = {.type = types[random_range(&world->random, 0, 2)], .job = any_job(world)};
    struct world_job *job = &world->jobs[input.job];

    if (!feed(world, &input) || input.type != RECORD_CANCELLED)
        return;
    if (job->running)
        job->asked_to_stop = true;
    else
        job->ended = true;
}

static bool may_be_tried_again(uint32_t cause)
{
    return cause == EXIT_GPU_OOM || cause == EXIT_GPU_HANDLE || cause == EXIT_MPS_FAULT || cause == EXIT_GPU_ERROR ||
           cause == EXIT_TIMEOUT || cause == EXIT_LOST;
}

static struct record_failure *failure_of(struct world *world, struct world_job *job)
{
    const char *workload = job->wants.workload;

    return !*workload ? &job->failure : &world->failures[workload[1] ? workload[1] - '0' : WORKLOADS - 1];
}

/* Two GPUs, one after the other, and nothing that went well in between. The world counts GPUs from 1: 0 is none. */
static void note_failed_gpu(struct world *world, struct world_job *job, const struct record_exited *exited)
{
    struct record_failure *before = failure_of(world, job);

    if (exited->cause == EXIT_COMPLETED)
        *before = (struct record_failure){0};
    if (exited->cause != EXIT_GPU_ERROR || exited->failed_gpu == RECORD_NO_GPU)
        return;
    job->charged = before->gpu && before->gpu != exited->failed_gpu + 1 && job->placed_ns >= before->at_ns;
    *before = (struct record_failure){.gpu = exited->failed_gpu + 1, .at_ns = world->now_ns};
}

static void job_ends(struct world *world)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_EXITED, .job = any_running(world)};
    struct world_job *job = &world->jobs[input.job];

    if (!input.job)
        return;
    switch (random_range(r, 0, 9)) {
    case 0:
        input.type = RECORD_LOST;
        input.lost.final = random_range(r, 0, 3) == 0;
        break;
    case 1:
        input.type = RECORD_LAUNCH_FAILED; /* refused where it has started already */
        break;
    default:
        input.exited.cause = (uint32_t)random_range(r, 0, EXIT_CAUSE_COUNT - 1);
        input.exited.status = input.exited.cause != EXIT_COMPLETED;
        input.exited.requested_bytes = random_range(r, 0, 1) ? random_range(r, 0, 8) * GIB : -1;
        input.exited.free_bytes = -1;
        input.exited.used_bytes = random_range(r, -1, 80) * GIB;
        input.exited.used_bytes = input.exited.used_bytes < 0 ? -1 : input.exited.used_bytes;
        input.exited.failed_gpu = job->runs % 3 ? job->gpus[job->runs % job->gpu_count] : RECORD_NO_GPU;
        break;
    }
    if (!feed(world, &input)) {
        if (input.type != RECORD_LAUNCH_FAILED)
            fail(world, "the end of job %" PRIu64 " was refused", input.job);
        return;
    }
    job->running = false;
    job->cause = input.type == RECORD_LOST ? EXIT_LOST : input.exited.cause;
    job->charged = false;
    if (input.type == RECORD_EXITED && !job->asked_to_stop)
        note_failed_gpu(world, job, &input.exited);
    job->timeouts += job->cause == EXIT_TIMEOUT;
    job->losses += job->cause == EXIT_LOST || job->cause == EXIT_MPS_FAULT || job->cause == EXIT_GPU_ERROR;
    if (input.type == RECORD_LAUNCH_FAILED || (input.type == RECORD_LOST && input.lost.final) ||
        !may_be_tried_again(job->cause) || job->asked_to_stop)
        job->ended = true;
}

static void job_moves(struct world *world)
{
    struct random *r = &world->random;
    struct record input = {.job = any_running(world)};
    struct world_job *job = &world->jobs[input.job];
    uint32_t at;

    if (!input.job)
        return;
    if (random_range(r, 0, 2) == 0) {
        input.type = random_range(r, 0, 4) ? RECORD_STARTED : RECORD_ADOPTED;
    } else if (random_range(r, 0, 15) == 0 &&
               !is_on(job, at = (uint32_t)random_range(r, 0, core_gpu_count(world->core) - 1))) {
        job->stray_bytes[at] += random_range(r, 0, 2) * GIB;
        input.type = RECORD_STRAYED;
        input.strayed = (struct record_memory){.gpu = at, .bytes = job->stray_bytes[at]};
    } else {
        at = (uint32_t)random_range(r, 0, job->gpu_count - 1);
        job->seen_bytes[at] += random_range(r, 0, 2) * GIB / 2;
        input.type = job->seen_bytes[at] ? RECORD_OBSERVED : RECORD_FIRST_USE;
        input.memory = (struct record_memory){.gpu = job->gpus[at], .bytes = job->seen_bytes[at]};
    }
    feed(world, &input);
}

static void sample_gpu(struct world *world, uint32_t g)
{
    struct random *r = &world->random;
    struct record input = {.type = RECORD_SAMPLE};
    int64_t total = core_gpu(world->core, g)->total_bytes;

    input.sample.gpu = g;
    input.sample.unmanaged_bytes = random_range(r, 0, 9)   ? 0
                                   : random_range(r, 0, 3) ? random_range(r, 1, 12) * GIB
                                                           : -1;
    input.sample.used_bytes = random_range(r, 0, total);
    if (core_gpu(world->core, g)->resident_count == 0 && random_range(r, 0, 3))
        input.sample.used_bytes = 0;
    input.sample.smact_permille = (int32_t)random_range(r, -1, 1000);
    input.sample.smocc_permille = (int32_t)random_range(r, -1, 1000);
    input.sample.dram_permille = (int32_t)random_range(r, -1, 1000);
    if (!feed(world, &input))
        fail(world, "a good sample was refused");
}

static void gpu_comes_or_goes(struct world *world)
{
    uint32_t g = (uint32_t)random_range(&world->random, 0, core_gpu_count(world->core) - 1);
    const struct gpu *gpu = core_gpu(world->core, g);
    struct record input = {.type = gpu->lost ? RECORD_GPU_BACK : RECORD_GPU_LOST};

    input.gpu.gpu = g;
    input.gpu.total_bytes = gpu->total_bytes;
    input.gpu.share = gpu->share;
    input.gpu.instance = gpu->instance;
    if (input.type == RECORD_GPU_BACK && !world->core->reserved_job) /* the job with a promise that goes by the present
                                                                        state */
        input.gpu.share = (uint32_t)random_range(&world->random, SHARE_ANY, SHARE_EXCLUSIVE);
    memcpy(input.gpu.uuid, gpu->uuid, sizeof input.gpu.uuid);
    if (!feed(world, &input))
        fail(world, "a GPU could not come or go");
}

static void mps_fails_or_serves(struct world *world)
{
    uint32_t g = (uint32_t)random_range(&world->random, 0, core_gpu_count(world->core) - 1);
    struct world_user *user = &world->users[g % 2];
    struct record input = {.type = RECORD_SHARE_FAULT};

    input.share_fault = (struct record_share_fault){.gpu = g, .faulted = !core_gpu(world->core, g)->share_faulted};
    if (random_range(&world->random, 0, 1)) {
        user->share_faulted = !user->share_faulted;
        input.share_fault =
            (struct record_share_fault){.of_user = true, .uid = 1000 + g % 2, .faulted = user->share_faulted};
    }
    if (!feed(world, &input))
        fail(world, "an MPS server could not fail or serve");
}

static void garbage(struct world *world)
{
    CLEANUP(free_ptr) char *before = core_dump(world->core);
    CLEANUP(free_ptr) char *after = NULL;
    struct record input = {0};
    struct error err;

    for (size_t i = 0; i < sizeof input; i++)
        ((unsigned char *)&input)[i] =
            (unsigned char)(random_range(&world->random, 0, 2) ? 0 : random_next(&world->random));
    input.type = (uint32_t)random_range(&world->random, 0, RECORD_TYPE_COUNT + 2);
    input.job = (uint64_t)random_range(&world->random, 0, (int64_t)world->next_job + 3);
    if (input.type == RECORD_SUBMITTED || input.type == RECORD_GPU_BACK || input.type == RECORD_TIMER ||
        input.type == RECORD_SHARE_FAULT || input.type == RECORD_SAMPLE || input.type == RECORD_GPU_LOST ||
        input.type == RECORD_WAITED || (record_is_state(input.type) && world->core->restoring) ||
        world->jobs[input.job].submitted)
        return; /* might make sense */
    if (core_apply(world->core, &input, &err) == 0)
        fail(world, "garbage was taken for '%s'", record_type_name(input.type));
    after = core_dump(world->core);
    if (strcmp(before, after) != 0)
        fail(world, "a refused record changed the state");
}

static struct core_config random_config(struct random *r)
{
    struct core_config config;
    size_t count = 0;

    while (policies[count])
        count++;
    core_config_default(&config);
    snprintf(config.policy, sizeof config.policy, "%s", policies[random_range(r, 0, (int64_t)count - 1)]->name);
    config.memory_view = (uint32_t)random_range(r, 0, 1);
    config.floor_bytes = random_range(r, 0, 6) * GIB;
    config.margin_bytes = random_range(r, 0, 2) * GIB;
    config.smact_cap_permille = (int32_t)random_range(r, 0, 10) * 100;
    config.decide_period_ns = random_range(r, 0, 1) * 30 * NS_PER_SEC;
    config.settle_ns = random_range(r, 0, 1) * 30 * NS_PER_SEC;
    config.max_retries = (uint32_t)random_range(r, 0, 4);
    config.max_requeues = (uint32_t)random_range(r, 0, 3);
    config.requeue_lost = random_range(r, 0, 3) == 0;
    config.per_user.max_running = random_range(r, 0, 2) ? 0 : (uint32_t)random_range(r, 1, 6);
    config.per_user.max_gpus = random_range(r, 0, 2) ? 0 : (uint32_t)random_range(r, 1, 6);
    config.per_user.max_memory_bytes = random_range(r, 0, 2) ? 0 : random_range(r, 1, 160) * GIB;
    config.per_user.max_retries = random_range(r, 0, 1) ? 0 : (uint32_t)random_range(r, 1, 5);
    config.max_jobs_per_gpu = (uint32_t)random_range(r, 1, 8);
    config.smocc_cap_permille = random_range(r, 0, 1) ? 1000 : (int32_t)random_range(r, 0, 1000);
    config.dram_cap_permille = random_range(r, 0, 1) ? 1000 : (int32_t)random_range(r, 0, 1000);
    config.caps_together = random_range(r, 0, 1);
    config.window_ns = random_range(r, 0, 30) * NS_PER_SEC;
    config.paced = random_range(r, 0, 3) == 0;
    config.decide_period_ns += config.paced ? NS_PER_SEC : 0;
    config.collocate_extra_ns = random_range(r, 0, 1) * 30 * NS_PER_SEC;
    config.oom_retry = (uint32_t)random_range(r, 0, OOM_RETRY_INFORMED);
    config.mps_multiuser = random_range(r, 0, 3) == 0;
    config.mps_domain = (uint32_t)random_range(r, 0, MPS_DOMAIN_COUNT - 1);
    config.mps_max_clients = (uint32_t)random_range(r, 1, 4);
    config.backfill = random_range(r, 0, 1) ? 0 : (uint32_t)random_range(r, 1, 8);
    config.starvation_timeout_ns = random_range(r, 0, 1000) * NS_PER_SEC;
    config.max_slowdown_permille = random_range(r, 0, 1) ? 0 : (int32_t)random_range(r, 1000, 4000);
    config.learn = random_range(r, 0, 1);
    config.memory_fence = (uint32_t)random_range(r, 0, 1);
    config.shrink_after_ns = random_range(r, 0, 1) * random_range(r, 1, 100) * NS_PER_SEC;
    return config;
}

static void reconfigure(struct world *world)
{
    struct record input = {.type = RECORD_RECONFIGURED};

    input.config = random_config(&world->random);
    /* A change of view while jobs run could only be checked against reservations made under another: keep it. */
    if (core_job_count(world->core))
        input.config.memory_view = core_configuration(world->core)->memory_view;
    if (core_job_count(world->core) && strcmp(input.config.policy, "exclusive") == 0)
        snprintf(input.config.policy, sizeof input.config.policy, "lug");
    if (!feed(world, &input))
        fail(world, "a good configuration was refused");
    world->reconfigured |= core_gpu_count(world->core) > 0;
    world->lax |= input.config.mps_multiuser || input.config.mps_domain == MPS_DOMAIN_NODE;
    world->reservation.job = 0; /* was made under the other */
}

static void wake_up(struct world *world)
{
    int64_t wake_ns = core_next_wake_ns(world->core, world->now_ns);
    struct record input = {.type = RECORD_TIMER};

    if (wake_ns <= world->now_ns)
        fail(world, "the next wake is not in the future");
    if (wake_ns != INT64_MAX)
        world->now_ns = wake_ns;
    feed(world, &input);
}

/* ---- A run ---- */

static void apply_all(struct core *core, const struct record_list *log, size_t from, size_t to)
{
    struct error err;

    for (size_t i = from; i < to; i++)
        if (core_apply(core, &log->items[i], &err) != 0) {
            fprintf(stderr, "record %zu (%s) does not apply: %s\n", i, record_type_name(log->items[i].type), err.text);
            abort();
        }
}

static void check_replay(const struct world *world)
{
    CLEANUP(free_ptr) char *decided = core_dump(world->core);
    CLEANUP(free_ptr) char *applied = NULL;
    struct core *other = core_new();

    apply_all(other, &world->log, 0, world->log.count);
    applied = core_dump(other);
    if (strcmp(decided, applied) != 0) {
        fprintf(stderr, "applied:\n%s", applied);
        fail(world, "applying the records gives another state than deciding them");
    }
    core_free(other);
}

static void step(struct world *world)
{
    struct random *r = &world->random;

    world->now_ns += random_range(r, 0, 20) * NS_PER_SEC;
    switch (random_range(r, 0, 19)) {
    case 0 ... 4:
        submit(world);
        break;
    case 5 ... 6:
        person_acts(world);
        break;
    case 7 ... 9:
        job_ends(world);
        break;
    case 10 ... 12:
        job_moves(world);
        break;
    case 13 ... 16:
        sample_gpu(world, (uint32_t)random_range(r, 0, core_gpu_count(world->core) - 1));
        break;
    case 17:
        if (random_range(r, 0, 9) == 0)
            gpu_comes_or_goes(world);
        else if (random_range(r, 0, 4) == 0)
            mps_fails_or_serves(world);
        else
            wake_up(world);
        break;
    case 18:
        if (random_range(r, 0, 19) == 0)
            reconfigure(world);
        break;
    default:
        garbage(world);
        break;
    }
    decide(world);
    check_gpus(world);
    check_servers(world);
    check_jobs(world);
    check_nobody_waits_in_vain(world);
    check_slowdowns(world);
    check_reserved_head_starts(world);
}

static struct world *world_new(uint64_t seed)
{
    struct world *world = xcalloc(1, sizeof *world);
    uint32_t gpus;
    bool by_mps;

    world->seed = seed;
    world->random.state = seed;
    world->core = core_new();
    world->next_job = 1;
    world->now_ns = NS_PER_SEC;
    reconfigure(world);
    gpus = (uint32_t)random_range(&world->random, 1, 6);
    by_mps = random_range(&world->random, 0, 3) == 0;
    for (uint32_t g = 0; g < gpus; g++) {
        struct record input = {.type = RECORD_GPU_BACK};
        input.gpu = (struct record_gpu){.gpu = g, .total_bytes = random_range(&world->random, 1, 2) * 40 * GIB};
        input.gpu.share = (uint32_t)random_range(&world->random, SHARE_ANY, SHARE_EXCLUSIVE);
        if (by_mps || random_range(&world->random, 0, 2))
            input.gpu.share = SHARE_MPS;
        input.gpu.instance = random_range(&world->random, 0, 5) == 0;
        snprintf(input.gpu.uuid, sizeof input.gpu.uuid, "GPU-%u", g);
        feed(world, &input);
    }
    decide(world);
    return world;
}

static void world_free(struct world *world)
{
    core_free(world->core);
    record_list_release(&world->log);
    record_list_release(&world->decisions_of_step);
    free(world);
}

/* The world goes on with a core that was restored from a snapshot of its own. */
static void restore(struct world *world)
{
    CLEANUP(free_ptr) char *before = core_dump(world->core);
    CLEANUP(free_ptr) char *after = NULL;
    struct record_list snapshot = {0};
    struct error err;

    core_snapshot(world->core, world->now_ns, &snapshot);
    core_free(world->core);
    world->core = core_new();
    apply_all(world->core, &snapshot, 0, snapshot.count);
    record_list_release(&snapshot);
    if (core_check(world->core, &err) != 0)
        fail(world, "a snapshot is refused: %s", err.text);
    after = core_dump(world->core);
    if (strcmp(before, after) != 0) {
        fprintf(stderr, "before:\n%s", before);
        fail(world, "a snapshot gives another state than it was made of");
    }
}

/* every `restore_every` steps; 0: never. */
static uint64_t run(uint64_t seed, int steps, int restore_every, size_t *records)
{
    struct world *world = world_new(seed);
    uint64_t placements = 0, hash = UINT64_C(1469598103934665603);

    for (int i = 0; i < steps; i++) {
        step(world);
        if (restore_every && i % restore_every == 0)
            restore(world);
        if (i % 64 == 63)
            check_replay(world);
    }
    check_replay(world);
    for (uint64_t id = 1; id < world->next_job; id++)
        placements += world->jobs[id].runs;
    for (size_t i = 0; i < world->log.count; i++) {
        hash = (hash ^ world->log.items[i].type) * UINT64_C(1099511628211);
        hash = (hash ^ world->log.items[i].job) * UINT64_C(1099511628211);
    }
    *records += world->log.count;
    world_free(world);
    return hash + placements;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, runs = argc > 1 ? 1 : 300;
    size_t records = 0;

    if (argc > 2)
        runs = strtoull(argv[2], NULL, 10);
    for (uint64_t seed = first; seed < first + runs; seed++) {
        uint64_t one = run(seed, 600, 0, &records);
        if (seed % 4 == 2 && one != run(seed, 600, 5, &records)) {
            fprintf(stderr, "seed %" PRIu64 ": restored from snapshots, other decisions were made\n", seed);
            return 1;
        }
        if (seed % 16 == 1 && one != run(seed, 600, 0, &records)) {
            fprintf(stderr, "seed %" PRIu64 ": the same inputs gave other decisions\n", seed);
            return 1;
        }
    }
    printf("%" PRIu64 " random worlds, %zu records: every promise held\n", runs, records);
    return 0;
}
