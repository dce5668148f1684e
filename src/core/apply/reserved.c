/* How this file works: a reservation is what core.reserved_job and each of its GPUs say. It ends with the job's wait,
 * with another's, or where a GPU comes to be closed to its job; a GPU that was kept opens then. waiting/reserve.c
 * decides for whom GPUs are kept. */
#include "core/apply/reserved.h"

#include "core/gpus/allotment.h"
#include "core/gpus/closing.h"
#include "core/state.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/eligible.h"

void end_reservation(struct core *core, struct job *job, int64_t at_ns)
{
    if (core->reserved_job != job->id)
        return;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        if (core->gpus[i]->reserved_for == job->id) {
            core->gpus[i]->reserved_for = 0;
            gpu_opens(core, core->gpus[i]);
        }
    core->reserved_job = 0;
    job->user->kept_ns = at_ns;
}

/* A GPU to which its job cannot come, since its starts die there or since it is allotted to others, would be kept free
 * for nothing: others are chosen. */
void end_reservation_of_closed(struct core *core, int64_t at_ns)
{
    struct job *job = core->reserved_job ? core_job_by_id(core, core->reserved_job) : NULL;

    for (uint32_t i = 0; job && i < core->gpu_count; i++)
        if (core->gpus[i]->reserved_for == job->id &&
            (closing_until_ns(core->gpus[i], job->wants->uid) || allotment_against(core, job, core->gpus[i]))) {
            end_reservation(core, job, at_ns);
            return;
        }
}

/* One job at a time has GPUs reserved; of no GPUs: it has none any more. */
void apply_reserved(struct core *core, struct job *job, const struct record_reserved *reserved, int64_t at_ns)
{
    struct job *before = core->reserved_job ? core_job_by_id(core, core->reserved_job) : NULL;

    if (before) {
        end_reservation(core, before, at_ns);
        if (core->config.order == ORDER_FAIR)
            before->gave_way_ns = at_ns;
        autocluster_set_examined(core, before->autocluster, 0);
    }
    if (reserved->count == 0)
        return;
    for (uint32_t i = 0; i < reserved->count; i++) {
        struct gpu *gpu = core->gpus[reserved->gpus[i]];
        gpu->reserved_for = job->id;
        gpu->reserved_ns = at_ns;
    }
    core->reserved_job = job->id;
    /* On these GPUs it is placed even where sharing gains little: it is looked at again. */
    autocluster_set_examined(core, job->autocluster, 0);
}

/* A job that is not eligible reserves no GPUs meanwhile. */
void step_aside(struct core *core, uint64_t id, int64_t at_ns)
{
    struct job *job = id ? core_job_by_id(core, id) : NULL;

    if (job && job->state == JOB_QUEUED && !job_is_eligible(core, job, NULL))
        end_reservation(core, job, at_ns);
}
