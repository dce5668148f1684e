/* A trace's rows as jobs of the simulator. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/install.h"
#include "base/memory.h"
#include "cli/simulate/simulate.h"
#include "sim/past.h"
#include "sim/random.h"

/* An unmeasured value counts as nothing. */
static double known_part(int32_t permille)
{
    return permille > 0 ? permille / 1000.0 : 0;
}

static void fill_uses(struct simulate_jobs *jobs)
{
    jobs->uses = xcalloc(jobs->workloads.count * WORKLOAD_PROFILED_GPUS, sizeof *jobs->uses);
    for (size_t i = 0; i < jobs->workloads.count; i++)
        for (uint32_t k = 0; k < WORKLOAD_PROFILED_GPUS; k++)
            jobs->uses[i * WORKLOAD_PROFILED_GPUS + k] =
                (struct sim_use){.activity = workload_smact_permille(&jobs->workloads.items[i], k) / 1000.0,
                                 .occupancy = known_part(jobs->workloads.items[i].smocc_permille),
                                 .dram = known_part(jobs->workloads.items[i].dram_permille),
                                 .resident_bytes = workload_resident_bytes(&jobs->workloads.items[i], k),
                                 .need_bytes = workload_need_bytes(&jobs->workloads.items[i], k)};
}

/* A trace that names no workloads gets one of one GPU for each row: the same for the same row, under every seed. */
#define DRAW_SEED 1

static const struct workload *draw_workload(const struct workloads *workloads, size_t row)
{
    uint64_t state = DRAW_SEED + row;
    size_t singles = 0, drawn;

    for (size_t i = 0; i < workloads->count; i++)
        singles += workloads->items[i].gpus == 1;
    if (singles == 0)
        return NULL;
    drawn = (size_t)(random_next(&state) % singles);
    for (size_t i = 0;; i++)
        if (workloads->items[i].gpus == 1 && drawn-- == 0)
            return &workloads->items[i];
}

static int fill_job(struct simulate_jobs *jobs, const char *path, size_t row, struct error *err)
{
    const struct trace_job *from = &jobs->trace.items[row];
    const struct workload *workload = from->workload ? from->workload : draw_workload(&jobs->workloads, row);
    struct sim_job *job = &jobs->items[row];

    if (!workload)
        return error_set(err, EINVAL,
                         "%s:%u: names no workload, and no workload of one GPU is there to draw from: give "
                         "--workloads",
                         path, from->line);
    *job = (struct sim_job){
        .arrival_ns = from->arrival_ns,
        .work_ns = from->duration_ns >= 0 ? from->duration_ns : workload->solo_runtime_ns,
        .gpus = from->gpus,
        .use_count = from->gpus < WORKLOAD_PROFILED_GPUS ? from->gpus : WORKLOAD_PROFILED_GPUS,
        .uses = &jobs->uses[(size_t)(workload - jobs->workloads.items) * WORKLOAD_PROFILED_GPUS],
        .workload = workload->id,
        .uid = from->uid,
    };
    jobs->origins[row] = (struct simulate_origin){.workload = workload, .request_bytes = -1, .line = from->line};
    if (job->work_ns <= 0)
        return error_set(err, EINVAL, "%s:%u: a job runs for no time at all: remove the row", path, from->line);
    return 0;
}

static int load_trace(struct simulate_jobs *jobs, const struct simulate_source *source, struct error *err)
{
    struct trace_load_options options = {.workloads = &jobs->workloads, .vc = source->vc};
    int rc;

    jobs->workloads_path = source->workloads ? xstrdup(source->workloads) : install_path("share/carma/workloads.csv");
    rc = workloads_read(&jobs->workloads, jobs->workloads_path, err);
    if (rc == 0)
        rc = trace_load(&jobs->trace, source->trace, &options, err);
    if (rc)
        return rc;
    fill_uses(jobs);
    jobs->count = jobs->trace.count;
    jobs->items = xcalloc(jobs->count, sizeof *jobs->items);
    jobs->origins = xcalloc(jobs->count, sizeof *jobs->origins);
    for (size_t i = 0; rc == 0 && i < jobs->count; i++)
        rc = fill_job(jobs, source->trace, i, err);
    return rc;
}

static bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int simulate_jobs_load(struct simulate_jobs *jobs, const struct simulate_source *source, enum share_mode share,
                       const struct contention_params *contention, struct error *err)
{
    int rc;

    *jobs = (struct simulate_jobs){0};
    if (is_directory(source->trace))
        rc = simulate_jobs_load_store(jobs, source, share, contention, err);
    else
        rc = load_trace(jobs, source, err);
    if (rc)
        simulate_jobs_release(jobs);
    return rc;
}

int simulate_jobs_check(const struct simulate_jobs *jobs, const char *path, uint32_t gpu_count, struct error *err)
{
    for (size_t i = 0; i < jobs->count; i++) {
        uint32_t gpus = jobs->items[i].gpus;
        if (gpus > gpu_count)
            return error_set(err, EINVAL,
                             "%s:%" PRIu64 ": a job needs %" PRIu32 " GPUs, the node has %" PRIu32
                             ": give --gpus or a larger --node",
                             path, jobs->origins[i].line, gpus, gpu_count);
        if (gpus > RECORD_MAX_GPUS)
            return error_set(err, EINVAL,
                             "%s:%" PRIu64 ": a job needs %" PRIu32
                             " GPUs, carma gives a job at most %d: leave the row "
                             "out",
                             path, jobs->origins[i].line, gpus, RECORD_MAX_GPUS);
    }
    return 0;
}

void simulate_jobs_release(struct simulate_jobs *jobs)
{
    free(jobs->items);
    free(jobs->origins);
    free(jobs->uses);
    free(jobs->workloads_path);
    past_free(jobs->past);
    trace_release(&jobs->trace);
    workloads_release(&jobs->workloads);
    *jobs = (struct simulate_jobs){0};
}
