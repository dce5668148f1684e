/* How this file works: a report is kept with its time in the job. It tells of the present neighbours while no GPU of
 * the job has changed since. qualify.c asks for a job beyond its bound, reason.c names it, and decide.c asks whom to
 * move off its GPUs (seen_to_move). */
#include "core/share/seen.h"

#include "core/learn/pairs.h"
#include "core/learn/learn.h"
#include "core/share/slowdown.h"
#include "core/state.h"

/* Whether somebody else is on its GPUs, who have all been there since. */
static bool is_collocated_since(const struct core *core, const struct job *job, int64_t since_ns)
{
    bool collocated = false;

    for (uint32_t i = 0; i < job->placement_count; i++) {
        const struct gpu *gpu = core->gpus[job->placements[i].gpu];
        if (gpu->changed_ns > since_ns)
            return false;
        collocated |= gpu->resident_count > 1;
    }
    return collocated;
}

int32_t seen_slowdown(const struct core *core, const struct job *job)
{
    return job->run->slowed_permille && is_collocated_since(core, job, job->run->slowed_ns) ? job->run->slowed_permille
                                                                                            : 0;
}

bool seen_is_beyond_bound(const struct core *core, const struct job *job)
{
    int32_t bound = job_slowdown_bound(core, job);

    return bound && seen_slowdown(core, job) > bound;
}

void seen_note(struct core *core, struct job *job, const struct record *record)
{
    bool was_beyond = seen_is_beyond_bound(core, job);
    int64_t since_ns = record->at_ns - record->progressed.span_ns - LEARN_LOADING_NS;
    struct job_run *run = job_run(job);

    if (run->fastest_of != record->progressed.total || run->fastest < record->progressed.micro_steps_per_s) {
        run->fastest = record->progressed.micro_steps_per_s;
        run->fastest_of = record->progressed.total;
    }
    if (!core->config.learn || !job->profile || !is_collocated_since(core, job, since_ns))
        return;
    run->slowed_permille =
        pairs_slowed(core, core->gpus[job->placements[0].gpu], job->profile, &record->progressed, run->fastest);
    run->slowed_ns = record->at_ns;
    if (!seen_is_beyond_bound(core, job))
        run->beyond_ns = 0;
    else if (!run->beyond_ns || !is_collocated_since(core, job, run->beyond_ns))
        run->beyond_ns = record->at_ns;
    core->moves_due |= run->beyond_ns != 0;
    for (uint32_t i = 0; i < job->placement_count && was_beyond && !seen_is_beyond_bound(core, job); i++)
        gpu_opens(core, core->gpus[job->placements[i].gpu]);
}

const struct job *seen_beyond_bound(const struct core *core, const struct gpu *gpu)
{
    const struct job *worst = NULL;

    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct job *job = gpu->residents[i];
        if (seen_is_beyond_bound(core, job) && (!worst || job->run->slowed_permille > worst->run->slowed_permille))
            worst = job;
    }
    return worst;
}

/* ---- Who has to leave ---- */

static const struct job *younger(const struct job *one, const struct job *other)
{
    bool is_one = one->placed_ns == other->placed_ns ? one->id > other->id : one->placed_ns > other->placed_ns;

    return is_one ? one : other;
}

static const struct job *youngest_with(const struct core *core, const struct job *job)
{
    const struct job *youngest = job;

    for (uint32_t i = 0; i < job->placement_count; i++) {
        const struct gpu *gpu = core->gpus[job->placements[i].gpu];
        for (uint32_t k = 0; k < gpu->resident_count; k++)
            youngest = younger(gpu->residents[k], youngest);
    }
    return youngest;
}

static bool takes_it(const struct job *job, const struct job *slowed)
{
    return (job->state == JOB_PLACED || job->state == JOB_RUNNING) && job->wants->requeue && job->wants->signal &&
           !job->wants->external && !job->wants->attached && !job->run->moved_ns && job->user == slowed->user &&
           slowed->run->slowed_ns - job->placed_ns >= SEEN_LEAST_RUN_NS;
}

const struct job *seen_to_move(const struct core *core, const struct job *slowed)
{
    const struct job *job;

    if (!slowed->run->beyond_ns || slowed->run->slowed_ns - slowed->run->beyond_ns < SEEN_MOVES_NS ||
        !seen_is_beyond_bound(core, slowed))
        return NULL;
    job = youngest_with(core, slowed);
    return takes_it(job, slowed) ? job : NULL;
}
