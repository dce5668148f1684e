/* Processes of jobs on GPUs that these were not given: their identity, and their memory, which is charged to the job. A
 * job may set CUDA_VISIBLE_DEVICES itself. */
#include <inttypes.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "core/ledger.h"
#include "core/quantum.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/node/node_internal.h"
#include "store/history.h"

#define LINE_NS (60 * NS_PER_SEC) /* of node time, between two lines about a job on a GPU */

/* What was not told in the minute since the last line; then the job is forgotten. */
static void tell_rest(struct node_gpu *gpu, int64_t now_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < gpu->stray_count; i++) {
        struct node_stray stray = gpu->strays[i];

        if (now_ns - stray.told_ns >= LINE_NS) {
            if (!stray.untold)
                continue;
            daemon_log("GPU %" PRIu32 ": %" PRIu32 " more of the processes of job %" PRIu64
                       " came there, and the job was not given this GPU",
                       gpu->number, stray.untold, stray.job);
            stray = (struct node_stray){.job = stray.job, .told_ns = now_ns};
        }
        gpu->strays[kept++] = stray;
    }
    gpu->stray_count = kept;
}

/* Whether a new process of the job is to have a line: else it is counted. */
static bool is_to_be_told(struct node_gpu *gpu, uint64_t job, int64_t now_ns)
{
    for (size_t i = 0; i < gpu->stray_count; i++) {
        if (gpu->strays[i].job == job) {
            gpu->strays[i].untold++;
            return false;
        }
    }
    array_reserve(gpu->strays, gpu->stray_capacity, gpu->stray_count + 1);
    gpu->strays[gpu->stray_count++] = (struct node_stray){.job = job, .told_ns = now_ns};
    return true;
}

void node_stray_judge(const struct node *node, struct node_gpu *gpu)
{
    int64_t now_ns = nodetime_now_ns();

    tell_rest(gpu, now_ns);
    for (uint32_t i = 0; i < gpu->attribution.unmanaged_count; i++) {
        struct attribution_unmanaged *process = &gpu->attribution.unmanaged[i];
        const struct job *job = process->job ? core_find_job(node->daemon->core, process->job) : NULL;
        const struct job_view *view = job ? views_find(&node->daemon->views, job->id) : NULL;
        char text[UNITS_TEXT];

        if (!job || !job->placement_count || !view) { /* one of a job that has ended is listed for a moment longer */
            process->job = 0;
            continue;
        }
        if (process->news && is_to_be_told(gpu, job->id, now_ns))
            daemon_log("GPU %" PRIu32 ": process %" PRId32 " (%s) of job %" PRIu64 " of %s holds %s there, and the job "
                       "was not given this GPU",
                       gpu->number, process->pid, process->command, job->id, job_view_user(view),
                       process->used_bytes < 0 ? "memory" : format_bytes(process->used_bytes, text));
    }
}

/* The job's processes on a GPU that it was not given; NULL: no further one. */
static const struct attribution_unmanaged *next_of(const struct node_gpu *gpu, uint64_t job, uint32_t *i)
{
    while (gpu->there && *i < gpu->attribution.unmanaged_count) {
        const struct attribution_unmanaged *process = &gpu->attribution.unmanaged[(*i)++];
        if (process->job == job)
            return process;
    }
    return NULL;
}

static int64_t bytes_on(const struct node_gpu *gpu, uint64_t job)
{
    const struct attribution_unmanaged *process;
    int64_t bytes = 0;

    for (uint32_t i = 0; (process = next_of(gpu, job, &i));)
        if (process->used_bytes > 0)
            history_add(&bytes, process->used_bytes);
    return bytes;
}

int64_t node_stray_bytes(const struct node *node, uint64_t job)
{
    int64_t bytes = 0;

    for (uint32_t g = 0; g < node->count; g++)
        history_add(&bytes, bytes_on(node->gpus[g], job));
    return bytes;
}

json_t *node_strays_to_json(const struct node *node, uint64_t job)
{
    json_t *list = json_array();

    for (uint32_t g = 0; g < node->count; g++) {
        const struct attribution_unmanaged *process;
        for (uint32_t i = 0; (process = next_of(node->gpus[g], job, &i));)
            json_array_append_new(list,
                                  json_pack("{s:I, s:i, s:s, s:o}", "gpu", (json_int_t)node->gpus[g]->number, "pid",
                                            (int)process->pid, "command", process->command, "used_bytes",
                                            process->used_bytes < 0 ? json_null() : json_integer(process->used_bytes)));
    }
    return list;
}

void node_stray_charge(struct node *node)
{
    for (uint32_t g = 0; g < node->count; g++) {
        const struct node_gpu *gpu = node->gpus[g];

        for (uint32_t i = 0; gpu->there && i < gpu->attribution.unmanaged_count; i++) {
            uint64_t id = gpu->attribution.unmanaged[i].job;
            const struct job *job = id ? core_find_job(node->daemon->core, id) : NULL;
            struct record input = {.type = RECORD_STRAYED, .at_ns = nodetime_now_ns(), .job = id};

            if (!job || !job->placement_count || job_placement_on(job, gpu->number))
                continue; /* it has ended, or was given the GPU, since that was read */
            input.strayed = (struct record_memory){.gpu = gpu->number, .bytes = quantum_memory(bytes_on(gpu, id))};
            if (input.strayed.bytes > job_stray_bytes_on(job, gpu->number))
                engine_input(node->daemon->engine, &input, NULL);
        }
    }
}
