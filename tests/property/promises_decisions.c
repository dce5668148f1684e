/* The promises about each decision, by the world's knowledge of its job and of others. */
#include <string.h>

#include "promises.h"
#include "core/need/fence.h"
#include "core/guess/program_history.h"

/* The rules of src/core/share/sharing.h, from the world's knowledge of residents. */
static void check_sharing(const struct world *world, uint64_t id, const struct record_placed *placed, uint32_t number)
{
    const struct world_job *job = &world->jobs[id];
    const struct core_config *config = core_configuration(world->core);
    const struct gpu *gpu = core_gpu(world->core, number);
    bool all_by_mps = true, joins, serves = gpu->share == SHARE_MPS || gpu->share == SHARE_AUTO;
    bool mixes = gpu->share == SHARE_AUTO && config->mps_domain != MPS_DOMAIN_GPU;
    uint32_t residents = 0;

    for (uint32_t g = 0; g < core_gpu_count(world->core); g++)
        all_by_mps &= core_gpu(world->core, g)->share == SHARE_MPS || core_gpu(world->core, g)->share == SHARE_AUTO;
    joins = config->mps_domain != MPS_DOMAIN_GPU && (all_by_mps || job->wants.share == SHARE_MPS);
    if (placed->share == SHARE_MPS && (!serves || gpu->share_faulted || job->wants.exclusive ||
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
        if ((there->share != placed->share && !mixes) || placed->share == SHARE_EXCLUSIVE ||
            there->share == SHARE_EXCLUSIVE)
            fail(world, "jobs %" PRIu64 " and %" PRIu64 " use GPU %" PRIu32 " in different ways", other, id, number);
        if (placed->share == SHARE_MPS && there->wants.uid != job->wants.uid && !mixes && !config->mps_multiuser &&
            config->mps_domain != MPS_DOMAIN_NODE)
            fail(world, "jobs %" PRIu64 " and %" PRIu64 " of two users share an MPS server", other, id);
    }
    if (residents &&
        (gpu->share == SHARE_EXCLUSIVE || (placed->share == SHARE_MPS && placed->count > 1 && !joins && !mixes)))
        fail(world, "job %" PRIu64 " was to be the first on GPU %" PRIu32, id, number);
    if (placed->share == SHARE_MPS && residents >= config->mps_max_clients)
        fail(world, "GPU %" PRIu32 " has too many MPS clients", number);
}

/* Even GPUs are A100, odd ones H100 (world_inputs.c: choose_gpus). */
static bool suits(const struct record_submitted *wants, uint32_t number)
{
    return !(wants->excluded_gpus >> number & 1) &&
           (!*wants->gpu_type || (strchr("aA", *wants->gpu_type) != NULL) == (number % 2 == 0));
}

/* Whether it was asked for, and has not been done too often. */
static bool is_to_be_requeued(const struct world *world, const struct world_job *job)
{
    const struct core_config *config = core_configuration(world->core);

    if (job->wants.attached)
        return false;
    if (job->cause == EXIT_TIMEOUT)
        return job->wants.requeue && job->timeouts <= config->max_requeues;
    return (job->wants.requeue || config->requeue_lost) && job->losses <= config->max_retries;
}

/* At most once, if it takes that, for a job of its own user beside it. */
static void check_moved(struct world *world, const struct record *record)
{
    struct world_job *job = &world->jobs[record->job];
    const struct world_job *slowed = &world->jobs[record->moved.slowed];
    bool beside = false;

    for (uint32_t i = 0; i < job->gpu_count; i++)
        for (uint32_t k = 0; k < slowed->gpu_count; k++)
            beside |= job->gpus[i] == slowed->gpus[k];
    if (!job->running || job->asked_to_stop || job->asked_to_wait_again || job->suspended || !job->wants.requeue ||
        !job->wants.signal || job->wants.external || job->moved++ || !slowed->running || !beside ||
        slowed->wants.uid != job->wants.uid || record->moved.slowed_permille <= record->moved.bound_permille)
        fail(world, "job %" PRIu64 " was moved off for job %" PRIu64, record->job, record->moved.slowed);
    job->moves = true;
}

/* Warned twice, each time with the time that it has then, and ended only after that. */
static void check_idle(struct world *world, const struct record *record)
{
    struct world_job *job = &world->jobs[record->job];
    int64_t limit_ns = job->wants.idle_limit_ns, left_ns = record->idle.ends_ns - record->at_ns;
    bool first = ++job->idle_step == IDLE_WARNED, last = job->idle_step == IDLE_ENDED;
    int64_t since_ns = record->at_ns - job->unused_ns;

    if (!job->runs_now || job->suspended || job->asked_to_stop || job->asked_to_wait_again || !job->unused_ns ||
        record->idle.step != job->idle_step ||
        since_ns < (first  ? limit_ns / 2
                    : last ? limit_ns
                           : limit_ns / 10 * 9) ||
        (last ? record->at_ns < job->idle_ends_ns : left_ns < limit_ns / (first ? 2 : 10)))
        fail(world, "job %" PRIu64 " is at step %" PRIu32 " of its idle limit", record->job, record->idle.step);
    job->idle_ends_ns = record->idle.ends_ns;
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
            there |= overuser->was_on[job->gpus[i]];
        if (!oom || !there || record->requeued.overuser == record->job)
            fail(world, "job %" PRIu64 " is not a victim of job %" PRIu64, record->job, record->requeued.overuser);
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
        fail(world, "the fence of job %" PRIu64 " is %" PRId64 ", below its promise", id, placed->fence_bytes);
}

/* A job of unknown need may use unreserved memory. Unfenced, it joins only where nearly every job would fit. */
static void check_guess(const struct world *world, uint64_t id, const struct record_placed *placed)
{
    const struct core_config *config = core_configuration(world->core);
    const struct world_job *job = &world->jobs[id];

    if (placed->reservation_source != SOURCE_PRIOR)
        return;
    if (job->wants.request_bytes >= 0 || job->wants.exclusive || config->memory_view != MEMORY_RESERVE ||
        (!job->oom_charged && (!config->learn || !config->prior_quantile_permille)))
        fail(world, "the need of job %" PRIu64 " is not to be guessed", id);
    for (uint32_t i = 0; i < placed->count; i++) {
        int64_t total = core_gpu(world->core, placed->gpus[i])->total_bytes, room = total;
        for (uint64_t other = 1; other < world->next_job; other++)
            if (other != id && is_on(&world->jobs[other], placed->gpus[i]))
                room -= world->jobs[other].counted_bytes;
        if (placed->fence_bytes > room && placed->fence_bytes > fence_around(placed->reserved_bytes) &&
            !job->oom_charged)
            fail(world, "job %" PRIu64 " may use %" PRId64 " of the %" PRId64 " that others leave", id,
                 placed->fence_bytes, room);
        if (placed->fence_bytes < 0 && room < total && room < program_careful_bytes(core_find_job(world->core, id)) &&
            fence_around(placed->reserved_bytes) < total)
            fail(world, "job %" PRIu64 " has no fence, and joins others where %" PRId64 " are free", id, room);
    }
}

/* Before it was tried: nothing is left of everybody's dead starts, and all but one of a user's. */
static bool was_closed(const struct record_closing *closing)
{
    bool left = closing->count == 0;

    for (uint32_t i = 0; i < closing->count / CLOSING_NUMBERS; i++)
        left |= closing->users[i].workloads[CLOSING_STARTS - 2] && !closing->users[i].workloads[CLOSING_STARTS - 1];
    return left;
}

/* Nobody else comes to GPUs that are reserved for users, or stays there into that time. */
static void check_allotments(const struct world *world, const struct world_job *job, const struct record *record)
{
    int64_t limit_ns = job->wants.time_limit_ns;

    for (size_t i = 0; i < MAX_ALLOTMENTS; i++) {
        const struct record_allotted *allotted = &world->allotments[i];
        bool is_his = false;
        if (allotted->until_ns <= record->at_ns || (limit_ns && record->at_ns + limit_ns <= allotted->from_ns))
            continue;
        for (uint32_t k = 0; k < allotted->user_count; k++)
            is_his |= allotted->users[k] == job->wants.uid;
        for (uint32_t k = 0; k < record->placed.count && !is_his; k++)
            for (uint32_t g = 0; g < allotted->gpu_count; g++)
                if (allotted->gpus[g] == record->placed.gpus[k])
                    fail(world, "job %" PRIu64 " was placed on GPU %" PRIu32 ", which is reserved for others",
                         record->job, allotted->gpus[g]);
    }
}

bool is_among_reserved(const struct world *world, const struct world_job *job)
{
    for (size_t i = 0; i < MAX_ALLOTMENTS && !job->wants.external; i++) {
        const struct record_allotted *allotted = &world->allotments[i];
        bool is_his = allotted->until_ns <= world->now_ns || allotted->from_ns > world->now_ns;
        for (uint32_t k = 0; k < allotted->user_count; k++)
            is_his |= allotted->users[k] == job->wants.uid;
        for (uint32_t k = 0; k < job->gpu_count && !is_his; k++)
            for (uint32_t g = 0; g < allotted->gpu_count; g++)
                if (allotted->gpus[g] == job->gpus[k])
                    return true;
    }
    return false;
}

/* One is over, has begun since the last step, or comes nearer while a job may wait. */
static bool are_due(const struct world *world, int64_t at_ns)
{
    for (size_t i = 0; i < MAX_ALLOTMENTS; i++) {
        const struct record_allotted *allotted = &world->allotments[i];
        if (allotted->until_ns && allotted->from_ns <= at_ns)
            return true;
        for (uint64_t id = 1; allotted->until_ns && id < world->next_job; id++)
            if (!world->jobs[id].ended)
                return true;
    }
    return false;
}

/* It would end after its deadline. */
static bool is_late(const struct world_job *job, int64_t at_ns)
{
    return job->wants.deadline_ns && at_ns + job->wants.time_limit_ns > job->wants.deadline_ns;
}

void on_decision(struct world *world, const struct record *record)
{
    struct world_job *job = &world->jobs[record->job];

    switch (record->type) {
    case RECORD_PLACED:
        if (!job->submitted || job->ended)
            fail(world, "job %" PRIu64 " was placed though it is not there", record->job);
        if (job->running)
            fail(world, "job %" PRIu64 " was placed twice at once", record->job);
        if (is_late(job, record->at_ns))
            fail(world, "job %" PRIu64 " was placed too late for its deadline", record->job);
        job->moves = false;
        job->idle_step = IDLE_NOT_TOLD;
        job->unused_ns = 0;
        if (job->runs == 0 && !is_met(world, record->job))
            fail(world, "job %" PRIu64 " was placed before the jobs on which it depends", record->job);
        if (record->placed.count != job->wants.gpus)
            fail(world, "job %" PRIu64 " got %" PRIu32 " GPUs", record->job, record->placed.count);
        for (uint32_t i = 0; i < record->placed.count; i++)
            check_sharing(world, record->job, &record->placed, record->placed.gpus[i]);
        for (uint32_t i = 0; i < record->placed.count; i++)
            if (!suits(&job->wants, record->placed.gpus[i]))
                fail(world, "job %" PRIu64 " did not ask for GPU %" PRIu32, record->job, record->placed.gpus[i]);
        for (uint32_t i = 0; i < record->placed.count; i++) {
            const struct record_closing *closing = &world->core->gpus[record->placed.gpus[i]]->closing;
            /* to everybody, unless it is to these alone */
            bool closed = closing->count == CLOSING_USERS * CLOSING_NUMBERS &&
                          !closing->users[CLOSING_USERS - 1].workloads[CLOSING_STARTS - 1];
            for (uint32_t k = 0; k < closing->count / CLOSING_NUMBERS; k++)
                closed |= closing->users[k].uid == job->wants.uid && closing->users[k].workloads[CLOSING_STARTS - 1];
            if (closed)
                fail(world, "job %" PRIu64 " was placed on a GPU on which programs do not start", record->job);
        }
        check_allotments(world, job, record);
        check_fence(world, record->job, &record->placed);
        check_guess(world, record->job, &record->placed);
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
        check_limits(world, &job->wants);
        memcpy(job->gpus, record->placed.gpus, sizeof job->gpus);
        for (uint32_t i = 0; i < job->gpu_count; i++)
            job->was_on[job->gpus[i]] = true;
        memset(job->seen_bytes, 0, sizeof job->seen_bytes);
        break;
    case RECORD_REFUSED:
    case RECORD_GAVE_UP:
        if (job->ended || job->running)
            fail(world, "job %" PRIu64 " was given up while it runs", record->job);
        if (record->type == RECORD_REFUSED)
            check_refused(world, record);
        if (record->type == RECORD_GAVE_UP && (job->cause == EXIT_TIMEOUT || job->cause == EXIT_LOST) &&
            (is_to_be_requeued(world, job) || record->gave_up.cause != job->cause))
            fail(world, "job %" PRIu64 " asked to be retried", record->job);
        if (record->type == RECORD_GAVE_UP && job->charged && record->gave_up.cause != EXIT_FAILED)
            fail(world, "job %" PRIu64 " is not charged with the GPUs that it failed", record->job);
        job->ended = true;
        job->ended_ns = world->now_ns;
        break;
    case RECORD_EXPIRED:
        if (job->ended || job->running ||
            (job->wants.external ? !job->wants.max_wait_ns : !job->wants.deadline_ns || !is_late(job, record->at_ns)) ||
            core_find_job(world->core, record->job))
            fail(world, "job %" PRIu64 " had no time to expire", record->job);
        job->ended = true;
        job->ended_ns = world->now_ns;
        break;
    case RECORD_RETURNED:
        if (job->ended || job->running || !job->wants.external || !may_be_tried_again(job->cause))
            fail(world, "job %" PRIu64 " was handed back", record->job);
        if (record->returned.reserved_bytes < 0 && job->wants.request_bytes >= 0)
            fail(world, "job %" PRIu64 " lost its request on its way back", record->job);
        job->ended = true;
        job->ended_ns = world->now_ns;
        break;
    case RECORD_REQUEUED:
        if (job->wants.external)
            fail(world, "lease %" PRIu64 " was started again here", record->job);
        if (job->wants.attached)
            fail(world, "job %" PRIu64 " is to be started again, though somebody typed into it", record->job);
        if (job->charged)
            fail(world, "job %" PRIu64 " may fail a third GPU", record->job);
        if (job->cause == EXIT_IDLE)
            fail(world, "job %" PRIu64 " is to be idle again", record->job);
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
        job->last = job->cause == EXIT_TIMEOUT && !job->moves;
        check_requeued_for_memory(world, record);
        if (record->requeued.retry)
            count_retry(world, job->wants.uid, record->at_ns);
        break;
    case RECORD_SIGNALLED:
        if (!job->running || !(job->asked_to_stop || job->asked_to_wait_again))
            fail(world, "job %" PRIu64 " was signalled though nobody asked", record->job);
        break;
    case RECORD_MOVED:
        check_moved(world, record);
        break;
    case RECORD_IDLE:
        check_idle(world, record);
        break;
    case RECORD_SHRUNK:
        for (uint32_t i = 0; i < job->gpu_count; i++)
            if (!job->running || (job->suspended && record->shrunk.reservation_source == SOURCE_OBSERVED) ||
                record->shrunk.reserved_bytes < job->seen_bytes[i])
                fail(world, "job %" PRIu64 " was shrunk below its use", record->job);
        job->reserved_bytes = job->counted_bytes = record->shrunk.reserved_bytes;
        break;
    case RECORD_GROWN:
        if (!job->running || record->grown.reserved_bytes <= job->counted_bytes)
            fail(world, "the reservation of job %" PRIu64 " was to grow, to %" PRId64, record->job,
                 record->grown.reserved_bytes);
        job->counted_bytes = record->grown.reserved_bytes;
        break;
    case RECORD_RESERVED:
        if (job->ended || job->running ||
            (record->reserved.count != job->wants.gpus &&
             (record->reserved.count || world->core->config.order == ORDER_FIFO)))
            fail(world, "GPUs were reserved for job %" PRIu64 ", which does not wait for them", record->job);
        world->reservation = (struct reservation){
            .job = record->reserved.count ? record->job : 0, .count = record->reserved.count, .at_ns = record->at_ns};
        memcpy(world->reservation.gpus, record->reserved.gpus, sizeof world->reservation.gpus);
        break;
    case RECORD_GPU_TRIED:
        if (!was_closed(&world->core->gpus[record->gpu.gpu]->closing))
            fail(world, "GPU %" PRIu32 " was opened, which was not closed", record->gpu.gpu);
        break;
    case RECORD_ALLOTMENTS_DUE:
        if (!are_due(world, record->at_ns))
            fail(world, "no reservation was due");
        break;
    case RECORD_DUE:
        if (job->ended || job->running)
            fail(world, "the time of job %" PRIu64 " came, which does not wait for it", record->job);
        break;
    case RECORD_TOLD:
        break; /* whom it tells goes on, as check_depends sees */
    case RECORD_WAITED:
        if (record->waited.until_ns <= world->now_ns)
            fail(world, "a wait that is over");
        break;
    default:
        fail(world, "'%s' is not a decision", record_type_name(record->type));
    }
}
