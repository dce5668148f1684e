#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/stats/stats.h"
#include "core/job.h"
#include "sim/sim_internal.h"

static struct sim_times times_of(double *seconds, size_t count)
{
    if (!count)
        return (struct sim_times){NAN, NAN};
    return (struct sim_times){.mean_s = stats_mean(seconds, count), .p95_s = stats_percentile(seconds, count, 95)};
}

static void fill_times(const struct sim *sim, struct sim_result *result)
{
    CLEANUP(free_ptr) double *wait = xcalloc(sim->count + 1, sizeof *wait);
    CLEANUP(free_ptr) double *execution = xcalloc(sim->count + 1, sizeof *execution);
    CLEANUP(free_ptr) double *completion = xcalloc(sim->count + 1, sizeof *completion);
    size_t launched = 0;

    for (size_t i = 0; i < sim->count; i++) {
        const struct sim_row *row = &sim->rows[i];
        if (row->first_launch_ns < 0 || row->ended_ns < 0)
            continue;
        wait[launched] = (double)(row->first_launch_ns - sim->jobs[i].arrival_ns) / 1e9;
        execution[launched] = (double)(row->ended_ns - row->last_launch_ns) / 1e9;
        completion[launched++] = (double)(row->ended_ns - sim->jobs[i].arrival_ns) / 1e9;
    }
    result->wait = times_of(wait, launched);
    result->execution = times_of(execution, launched);
    result->completion = times_of(completion, launched);
}

static void count_ends(const struct sim *sim, struct sim_result *result)
{
    int64_t last_ns = sim->begin_ns;

    for (size_t i = 0; i < sim->count; i++) {
        last_ns = sim->rows[i].ended_ns > last_ns ? sim->rows[i].ended_ns : last_ns;
        result->completed += sim->rows[i].state == JOB_COMPLETED;
        result->refused += sim->rows[i].state == JOB_REFUSED;
        result->given_up += sim->rows[i].state == JOB_GPU_OOM;
        result->never_ended += sim->rows[i].ended_ns < 0;
        result->moved += sim->rows[i].moved;
    }
    result->makespan_s = (double)(last_ns - sim->begin_ns) / 1e9;
    memcpy(result->never_ended_why, sim->never_ended_why, sizeof result->never_ended_why);
}

static void fill_measures(const struct sim *sim, struct sim_result *result)
{
    CLEANUP(free_ptr) struct measured_job *jobs = xcalloc(sim->count, sizeof *jobs);
    size_t count = 0;

    for (size_t i = 0; i < sim->count; i++) {
        const struct sim_row *row = &sim->rows[i];
        if (row->state == JOB_COMPLETED)
            jobs[count++] = (struct measured_job){
                .uid = sim->jobs[i].uid,
                .run_s = (double)(row->ended_ns - row->last_launch_ns + row->ran_ns) / 1e9,
                .jct_s = (double)(row->ended_ns - sim->jobs[i].arrival_ns) / 1e9,
                .alone_s = (double)row->work_ns / 1e9,
            };
    }
    measures_of(jobs, count, &result->measures);
}

void result_fill(const struct sim *sim, struct sim_result *result)
{
    double gpu_seconds;

    *result = (struct sim_result){.jobs = sim->count,
                                  .oom = sim->oom,
                                  .inputs = sim->inputs,
                                  .decisions = sim->decision_count,
                                  .rows = sim->rows,
                                  .predicted_slowdown_max = sim->predicted_permille / 1000.0};
    fill_times(sim, result);
    count_ends(sim, result);
    fill_measures(sim, result);
    for (uint32_t i = 0; i < sim->node->gpu_count; i++) {
        result->energy_j += sim->boards[i].energy_j;
        result->held_s += sim->boards[i].held_s;
        result->activity_mean += sim->boards[i].activity_ns / 1e9;
        result->memory_mean_bytes += sim->boards[i].byte_seconds;
    }
    gpu_seconds = result->makespan_s * sim->node->gpu_count;
    if (gpu_seconds > 0) {
        result->activity_mean /= gpu_seconds;
        result->memory_mean_bytes /= gpu_seconds;
    }
}

void sim_result_release(struct sim_result *result)
{
    free(result->rows);
    *result = (struct sim_result){0};
}
