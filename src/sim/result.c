#include <math.h>

#include "base/memory.h"
#include "base/stats.h"
#include "core/job.h"
#include "sim/sim_internal.h"

static struct sim_times times_of(double *seconds, size_t count)
{
    struct sim_times times = {.mean_s = stats_mean(seconds, count)};

    times.p95_s = stats_percentile(seconds, count, 95);
    return times;
}

static void fill_times(const struct sim *sim, struct sim_result *result)
{
    CLEANUP(free_ptr) double *wait = xcalloc(sim->count + 1, sizeof *wait);
    CLEANUP(free_ptr) double *execution = xcalloc(sim->count + 1, sizeof *execution);
    CLEANUP(free_ptr) double *completion = xcalloc(sim->count + 1, sizeof *completion);
    size_t launched = 0;

    for (size_t i = 0; i < sim->count; i++) {
        const struct sim_row *row = &sim->rows[i];
        if (row->first_launch_ns < 0)
            continue;
        wait[launched] = (double)(row->first_launch_ns - sim->jobs[i].arrival_ns) / 1e9;
        execution[launched] = (double)(row->ended_ns - row->last_launch_ns) / 1e9;
        completion[launched++] = (double)(row->ended_ns - sim->jobs[i].arrival_ns) / 1e9;
    }
    result->wait = times_of(wait, launched);
    result->execution = times_of(execution, launched);
    result->completion = times_of(completion, launched);
}

static void fill_slowdowns(const struct sim *sim, struct sim_result *result)
{
    double sum = 0;

    for (size_t i = 0; i < sim->count; i++) {
        const struct sim_row *row = &sim->rows[i];
        double slowdown = (double)(row->ended_ns - row->last_launch_ns) / (double)row->work_ns;
        if (row->state != JOB_COMPLETED)
            continue;
        result->completed++;
        sum += slowdown;
        result->slowdown_max = fmax(result->slowdown_max, slowdown);
    }
    result->slowdown_mean = result->completed ? sum / (double)result->completed : 0;
}

void result_fill(const struct sim *sim, struct sim_result *result)
{
    double gpu_seconds;

    *result = (struct sim_result){.jobs = sim->count,
                                  .oom = sim->oom,
                                  .inputs = sim->inputs,
                                  .decisions = sim->decisions,
                                  .rows = sim->rows,
                                  .predicted_slowdown_max = sim->predicted_permille / 1000.0,
                                  .makespan_s = (double)(sim->now_ns - sim->begin_ns) / 1e9};
    fill_times(sim, result);
    fill_slowdowns(sim, result);
    for (uint32_t i = 0; i < sim->node->gpu_count; i++) {
        result->energy_j += sim->boards[i].energy_j;
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
