/* The promises about the core's state after its decisions. */
#include <string.h>

#include "promises.h"
#include "core/waiting/eligible.h"
#include "core/gpus/closing.h"
#include "core/idle.h"
#include "core/learn/learn.h"
#include "core/need/need.h"
#include "core/waiting/order.h"
#include "core/qualify.h"
#include "core/quantum.h"
#include "core/share/slowdown.h"
#include "core/waiting/backfill.h"

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
            bool client = job->running && job->share == SHARE_MPS;
            for (uint32_t i = 0; i < job->gpu_count; i++)
                client &= core_gpu(core, job->gpus[i])->server == gpu->server;
            if (!client)
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
        if (!expected->submitted)
            continue;
        if ((job == NULL) != expected->ended)
            fail(world, "job %" PRIu64 " is %s", id, job ? "still there after its end" : "lost");
        if (!job)
            continue;
        unfinished++;
        if (idle_due_ns(job) <= world->now_ns)
            fail(world, "job %" PRIu64 " is idle, and not told so", id);
        bool waits = job->state == JOB_QUEUED || job->state == JOB_HELD;
        waiting += job->state == JOB_QUEUED;
        if (waits == expected->running)
            fail(world, "job %" PRIu64 " is %s but the world says otherwise", id, job_state_name(job->state));
        bool reserved = job->state == JOB_SUSPENDED && is_among_reserved(world, expected);
        if (waits      ? reason.code == REASON_NONE
            : reserved ? reason.code != REASON_ALLOTTED
                       : reason.code != REASON_NONE && reason.code != REASON_SLOWED)
            fail(world, "job %" PRIu64 " (%s) has reason '%s'", id, job_state_name(job->state),
                 reason_name(reason.code));
        if (expected->last && job->state == JOB_QUEUED && job->next && job->next->turn.class == job->turn.class &&
            job->next->turn.behind == job->turn.behind)
            fail(world, "job %" PRIu64 " is before job %" PRIu64 ", though its time was up", id, job->next->id);
        world->jobs[id].last = false;
        if (job->state == JOB_QUEUED)
            check_depends(world, job, reason.code);
        check_array(world, job);
        if (job->state == JOB_QUEUED && is_met(world, id) && reason.code != REASON_ARRAY)
            check_limited(world, job, reason.code);
        if (strlen(reason_format(&reason, world->now_ns, text)) == 0)
            fail(world, "job %" PRIu64 " has a reason without a sentence", id);
        /* No larger than a GPU of the job's, and no less than its observed memory, as far as a GPU has that. */
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
        if (job->state == JOB_CRASHED)
            fail(world, "job %" PRIu64 " was left without a verdict", id);
        if ((job->state == JOB_SUSPENDED) != expected->suspended || (expected->suspended && learned_activity(job) != 0))
            fail(world, "job %" PRIu64 " is %s", id, job_state_name(job->state));
        if (job_state_stops(job->state) && !job->signalled && job->run->signal_retry_ns <= world->now_ns)
            fail(world, "job %" PRIu64 " was not signalled", id);
    }
    if (unfinished != core_job_count(world->core) || waiting != core_waiting_count(world->core))
        fail(world, "the core counts %" PRIu64 " jobs, %" PRIu64 " waiting", core_job_count(world->core),
             core_waiting_count(world->core));
}

/* Work conservation: a job that others do not keep waiting is placed in the very decision in which it fits. The
 * shortcuts by which decisions skip jobs (decide.c, worth_another_look; autocluster.c) never skip one that fits. */
static void check_nobody_waits_in_vain(const struct world *world)
{
    const struct core *core = world->core;
    const struct job *job = order_head(core, world->now_ns);

    if (!job || world->now_ns < core->next_decision_ns)
        return;
    for (; job && backfill_reaches(core, job, world->now_ns); job = job->next) {
        uint32_t idle = 0, open = 0;
        if (!job_is_eligible(core, job, NULL))
            continue;
        for (uint32_t g = 0; g < core_gpu_count(core); g++) {
            idle += gpu_fits_idle(core, job, core_gpu(core, g));
            open += gpu_verdict(core, job, core_gpu(core, g), world->now_ns) == REASON_NONE;
            if (closing_is_closed_to(core, job, core_gpu(core, g)) &&
                world->now_ns >= job->run->crashed_ns + CLOSING_NS &&
                !closing_until_ns(core_gpu(core, g), job->wants->uid))
                fail(world, "job %" PRIu64 " avoids GPU %" PRIu32 " without end", job->id, g);
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

    for (size_t i = 0; i < world->decisions_of_step.count && core_gates_slowdown(core); i++) {
        const struct record *record = &world->decisions_of_step.items[i];
        for (uint32_t k = 0; record->type == RECORD_PLACED && k < record->placed.count; k++) {
            const struct gpu *gpu = core_gpu(core, record->placed.gpus[k]);
            const struct slowdown there = slowdown_predict(core, gpu, NULL);
            int32_t slowdown = there.worst_permille;
            for (uint32_t j = 0; j < gpu->resident_count && gpu->resident_count > 1; j++) {
                int32_t own = gpu->residents[j]->wants->max_slowdown_permille;
                int32_t bound = own ? own : core_configuration(core)->max_slowdown_permille;
                bound = slowdown_most_predicted(&there, bound);
                if (bound && slowdown > bound)
                    fail(world, "job %" PRIu64 " accepts %d, is at %d", gpu->residents[j]->id, bound, slowdown);
            }
        }
    }
}

/* The promise to the reserved job needs a GPU that is measured, has no unmanaged memory, and jobs within their
 * reservations. */
static bool keeps_its_word(const struct world *world, const struct gpu *gpu)
{
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct job *job = gpu->residents[i];
        if (job_placement_on(job, gpu->number)->observed_bytes > job->reserved_bytes ||
            job->reserved_bytes > world->jobs[job->id].reserved_bytes)
            return false;
    }
    return gpu_is_open(gpu) && gpu->measured && gpu->unmanaged_bytes == 0;
}

static void check_reserved_job_starts(const struct world *world)
{
    const struct core *core = world->core;
    const struct reservation *reservation = &world->reservation;
    const struct job *job = core->reserved_job ? core_job_by_id(core, core->reserved_job) : NULL;

    if (!job || job->id != reservation->job || !job_is_eligible(core, job, NULL) || core->config.learn ||
        world->now_ns < core->next_decision_ns || core->config.memory_view != MEMORY_RESERVE)
        return;
    for (uint32_t i = 0; i < reservation->count; i++) {
        const struct gpu *gpu = core_gpu(core, reservation->gpus[i]);
        if (!keeps_its_word(world, gpu) || gpu->share_faulted || job->user->share_faulted || gpu->server ||
            gpu_settling(core, gpu, world->now_ns) || gpu->total_bytes < job->reserved_bytes)
            return;
        for (uint32_t k = 0; k < gpu->resident_count; k++)
            if (gpu->residents[k]->placed_ns <= reservation->at_ns || gpu->residents[k]->wants->exclusive)
                return; /* was there before */
        if (gpu->resident_count && gpu->resident_count >= core->config.max_jobs_per_gpu)
            return;
        if (gpu->resident_count && !core->policy->waives_load && !core->policy->predicts)
            return; /* by measured load the GPU may be closed to anybody */
    }
    fail(world, "the GPUs reserved for job %" PRIu64 " at %" PRId64 " are free of the earlier jobs, and it waits",
         job->id, reservation->at_ns);
}

void check_state(struct world *world)
{
    check_gpus(world);
    check_servers(world);
    check_jobs(world);
    check_host(world);
    check_nobody_waits_in_vain(world);
    check_slowdowns(world);
    check_reserved_job_starts(world);
}
