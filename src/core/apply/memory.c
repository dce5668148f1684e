/* How this file works: what is observed of a job raises what it is counted with; its reservation is set as it settles,
 * is corrected, or has proved too small. Each goes to the ledger of its GPUs. */
#include "core/apply/memory.h"

#include <errno.h>
#include <inttypes.h>

#include "core/need/overuse.h"
#include "core/state.h"
#include "core/use.h"

static bool seen_everywhere(const struct job *job)
{
    for (uint32_t i = 0; i < job->placement_count; i++)
        if (job->placements[i].observed_bytes == 0)
            return false;
    return true;
}

int apply_memory(struct core *core, struct job *job, const struct record *record, struct error *err)
{
    struct job_placement *placement = job_placement_on(job, record->memory.gpu);
    struct gpu *gpu;

    if (!placement || record->memory.bytes < 0)
        return error_set(err, EINVAL, "job %" PRIu64 " holds no memory on GPU %" PRIu32, job->id, record->memory.gpu);
    gpu = core->gpus[record->memory.gpu];
    if (record->memory.bytes > placement->observed_bytes) {
        placement->observed_bytes = record->memory.bytes;
        gpu_rebook(gpu);
        if (job->reserved_bytes >= 0 && record->memory.bytes > job->reserved_bytes)
            use_grows(core, job, record->at_ns);
        core->corrections_due |=
            job->reserved_bytes >= 0 && overuse_is_beyond(record->memory.bytes, job->reserved_bytes);
    }
    if (record->type == RECORD_FIRST_USE && gpu->settling_job == job->id)
        gpu->closed_until_ns = record->at_ns + core->config.settle_ns;
    if (job->run->first_use_ns == 0 && seen_everywhere(job)) {
        job_run(job)->first_use_ns = record->at_ns;
        if (core->config.shrink_after_ns > 0 && !job->wants->exclusive && !job->queue)
            queue_push(&core->shrinking, job);
    }
    return 0;
}

int apply_strayed(const struct core *core, struct job *job, const struct record_memory *strayed, struct error *err)
{
    int64_t in_all = strayed->bytes;

    if (strayed->bytes < 0)
        return error_set(err, EINVAL, "job %" PRIu64 " cannot hold %" PRId64 " bytes", job->id, strayed->bytes);
    if (strayed->gpu != RECORD_NO_GPU && (strayed->gpu >= core->gpu_count || job_placement_on(job, strayed->gpu)))
        return error_set(err, EINVAL, "job %" PRIu64 " cannot stray to GPU %" PRIu32, job->id, strayed->gpu);
    if (strayed->gpu != RECORD_NO_GPU)
        in_all = job_strays(job, strayed->gpu, strayed->bytes);
    if (in_all > job->run->stray_bytes)
        user_strays(job, in_all);
    return 0;
}

/* Of a job that has GPUs. A job that had its GPUs whole is granted its first figure. */
static void set_reservation(struct core *core, struct job *job, const struct record_shrunk *reservation)
{
    job->reserved_bytes = reservation->reserved_bytes;
    job->reservation_source = reservation->reservation_source;
    if (job->run->granted_bytes < 0)
        job_run(job)->granted_bytes = job->reserved_bytes;
    user_recharge(core, job);
    for (uint32_t i = 0; i < job->placement_count; i++)
        gpu_rebook(core->gpus[job->placements[i].gpu]);
}

/* Where only its unknown need kept others away until its memory was observed, they may come now. */
static void end_settling(struct core *core, const struct job *job)
{
    for (uint32_t i = 0; i < job->placement_count; i++) {
        struct gpu *gpu = core->gpus[job->placements[i].gpu];
        if (gpu->settling_job != job->id || core->config.memory_view == MEMORY_MONITOR ||
            (job->retry && job->oom_crashes))
            continue;
        gpu_set_settling(core, gpu, 0);
        gpu_opens(core, gpu);
    }
}

void apply_reservation(struct core *core, struct job *job, const struct record_shrunk *reservation)
{
    set_reservation(core, job, reservation);
    if (reservation->reservation_source == SOURCE_ESTIMATED)
        end_settling(core, job);
}
