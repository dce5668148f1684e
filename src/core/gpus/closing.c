#include "core/gpus/closing.h"

#include <string.h>

#include "base/digest.h"
#include "core/core_internal.h"
#include "core/crash.h"

/* Of a start: its workload and its user. */
struct start {
    uint32_t workload, uid;
};

/* Half a digest tells three workloads apart well enough. A job without a workload is like no other. */
static struct start start_of(const struct job *job)
{
    uint64_t digest = job->profile ? digest_of_text(job->profile->workload) : job->id;

    return (struct start){.workload = (uint32_t)digest, .uid = job->wants->uid};
}

static struct start start_at(const struct record_closing *closing, uint32_t i)
{
    return (struct start){.workload = closing->starts[2 * i], .uid = closing->starts[2 * i + 1]};
}

static bool is_like(struct start a, struct start b)
{
    return a.workload == b.workload && a.uid == b.uid;
}

static uint32_t count_of(const struct record_closing *closing)
{
    return closing->count / 2;
}

/* The oldest makes room. */
static void add_start(struct record_closing *closing, struct start start)
{
    for (uint32_t i = 0; i < count_of(closing); i++)
        if (is_like(start_at(closing, i), start))
            return;
    if (count_of(closing) == CLOSING_STARTS)
        memmove(closing->starts, closing->starts + 2, sizeof closing->starts - 2 * sizeof closing->starts[0]);
    else
        closing->count += 2;
    closing->starts[closing->count - 2] = start.workload;
    closing->starts[closing->count - 1] = start.uid;
}

static void note_dead(struct core *core, const struct job *job, const struct record *ended)
{
    struct record_closing *closing = &core->gpus[ended->exited.failed_gpu]->closing;

    if (ended->at_ns - closing->last_ns > 2 * CLOSING_NS)
        *closing = (struct record_closing){0};
    add_start(closing, start_of(job));
    closing->last_ns = ended->at_ns;
    if (count_of(closing) < CLOSING_STARTS)
        return;
    closing->until_ns = ended->at_ns + CLOSING_NS;
    closing->uid = closing->starts[1];
    for (uint32_t i = 1; i < CLOSING_STARTS; i++)
        if (start_at(closing, i).uid != closing->uid)
            closing->uid = CLOSING_EVERYBODY;
}

void closing_note_end(struct core *core, const struct job *job, const struct record *ended)
{
    bool lasted = ended->at_ns - job->placed_ns > CLOSING_START_NS;

    if (ended->exited.cause == EXIT_GPU_ERROR) {
        if (!lasted && ended->exited.failed_gpu != RECORD_NO_GPU)
            note_dead(core, job, ended);
        return;
    }
    for (uint32_t i = 0; i < job->placement_count && lasted; i++)
        if (job->placements[i].observed_bytes > 0) /* it used the GPU */
            closing_open(core, core->gpus[job->placements[i].gpu], false);
}

void closing_open(struct core *core, struct gpu *gpu, bool keeps_starts)
{
    if (gpu->closing.until_ns)
        gpu_opens(core, gpu);
    if (keeps_starts)
        gpu->closing.until_ns = 0;
    else
        gpu->closing = (struct record_closing){0};
}

bool closing_is_suspect(const struct gpu *gpu, const struct job *job)
{
    uint32_t others = 0;

    for (uint32_t i = 0; i < count_of(&gpu->closing); i++)
        others += !is_like(start_at(&gpu->closing, i), start_of(job));
    return others >= CLOSING_STARTS - 1;
}

static bool is_closed(const struct job *job, const struct gpu *gpu)
{
    return gpu->closing.until_ns && (gpu->closing.uid == CLOSING_EVERYBODY || gpu->closing.uid == job->wants->uid);
}

bool closing_is_closed_to(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    uint32_t others = 0;

    if (is_closed(job, gpu))
        return true;
    if (crash_failed_gpu(job) != gpu->number)
        return false;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        others += i != gpu->number && !is_closed(job, core->gpus[i]) && gpu_could_take(job, core->gpus[i]);
    return others >= job->wants->gpus;
}
