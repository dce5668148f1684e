/* How this file works: what a job holds beyond its grant is looked up on each GPU (beyond_on); overusing_job takes the
 * job with the most of it beside the one that ran out, or one that has just left (gpu.overused). Corrections of
 * reservations are decided in decide.c. */
#include "core/need/overuse.h"

#include "base/units.h"
#include "core/quantum.h"
#include "core/state.h"

int64_t overuse_granted_bytes(const struct job *job)
{
    bool declared =
        job->wants->request_source == SOURCE_DECLARED && job->wants->request_bytes > job->run->granted_bytes;

    return declared && job->run->granted_bytes >= 0 ? job->wants->request_bytes : job->run->granted_bytes;
}

bool overuse_is_beyond(int64_t bytes, int64_t most)
{
    return bytes - most >= QUANTUM_MEMORY_BYTES;
}

static int64_t beyond_granted(const struct job *job, int64_t bytes)
{
    int64_t granted = overuse_granted_bytes(job);

    return granted >= 0 && overuse_is_beyond(bytes, granted) ? bytes - granted : 0;
}

int64_t overuse_bytes(const struct job *job)
{
    return beyond_granted(job, job_peak_bytes(job));
}

/* On a GPU that it was not given, all that it holds is more. */
static int64_t beyond_on(const struct job *job, uint32_t gpu)
{
    const struct job_placement *given = job_placement_on(job, gpu);
    int64_t stray = job_stray_bytes_on(job, gpu);

    return given ? beyond_granted(job, given->observed_bytes) : overuse_is_beyond(stray, 0) ? stray : 0;
}

/* The most of it on any of the GPUs of the job. */
static int64_t beyond_beside(const struct job *other, const struct job *job)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < job->placement_count; i++) {
        int64_t here = beyond_on(other, job->placements[i].gpu);
        if (here > most)
            most = here;
    }
    return most;
}

/* A framework takes as long as this to end, after its memory ran out. An assumption. */
#define LEFT_NS (60 * NS_PER_SEC)

/* That has left the GPU since this one came. */
static void look_at_left(const struct core *core, const struct job *job, int64_t at_ns, uint64_t *overuser,
                         int64_t *most)
{
    for (uint32_t i = 0; i < job->placement_count; i++) {
        const struct record_overused *left = &core->gpus[job->placements[i].gpu]->overused;
        if (left->job && left->job != job->id && left->left_ns >= job->placed_ns && at_ns - left->left_ns <= LEFT_NS &&
            left->bytes > *most) {
            *most = left->bytes;
            *overuser = left->job;
        }
    }
}

uint64_t overusing_job(const struct core *core, const struct job *job, int64_t needed_bytes, int64_t at_ns)
{
    uint64_t overuser = 0;
    int64_t most = 0;

    if (core->config.memory_view != MEMORY_RESERVE || beyond_granted(job, needed_bytes) > 0)
        return 0;
    for (uint32_t i = 0; i < core->gpu_count; i++) /* every job that runs is on one of them */
        for (uint32_t k = 0; k < core->gpus[i]->resident_count; k++) {
            struct job *other = core->gpus[i]->residents[k];
            int64_t beyond = other == job ? 0 : beyond_beside(other, job);
            if (beyond > most) {
                most = beyond;
                overuser = other->id;
            }
        }
    if (!overuser)
        look_at_left(core, job, at_ns, &overuser, &most);
    return overuser;
}

void overuse_left(struct core *core, const struct job *job, int64_t at_ns)
{
    for (uint32_t i = 0; i < core->gpu_count && job->placement_count; i++) {
        struct gpu *gpu = core->gpus[i];
        bool others = gpu->resident_count > (job_placement_on(job, i) ? 1 : 0);
        int64_t beyond = others ? beyond_on(job, i) : 0;
        if (beyond > 0)
            gpu->overused = (struct record_overused){.job = job->id, .bytes = beyond, .left_ns = at_ns};
    }
}
