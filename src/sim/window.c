/* The monitor's window over signals that change now and then: exact, from the changes alone. */
#include <string.h>

#include "base/memory.h"
#include "base/stats/window_stats.h"
#include "sim/sim_internal.h"

static const struct sim_change *change_at(const struct sim_gpu *gpu, size_t i)
{
    return &gpu->changes[gpu->change_first + i];
}

static double integral_at(const struct sim_change *change, enum sim_signal signal, int64_t at_ns)
{
    return change->integrals_ns[signal] + change->levels[signal] * (double)(at_ns - change->at_ns);
}

static void make_room(struct sim_gpu *gpu)
{
    if (gpu->change_first + gpu->change_count < gpu->change_capacity)
        return;
    if (gpu->change_first > 0 && gpu->change_first >= gpu->change_count) { /* half is past: move instead of growing */
        memmove(gpu->changes, gpu->changes + gpu->change_first, gpu->change_count * sizeof *gpu->changes);
        gpu->change_first = 0;
    } else {
        array_reserve(gpu->changes, gpu->change_capacity, gpu->change_capacity + 1);
    }
}

void window_note(const struct sim *sim, struct sim_gpu *gpu)
{
    struct sim_change change = {.at_ns = sim->now_ns};
    struct sim_change *last = gpu->change_count ? &gpu->changes[gpu->change_first + gpu->change_count - 1] : NULL;

    memcpy(change.levels, gpu->levels, sizeof change.levels);
    if (last && last->at_ns == sim->now_ns) {
        memcpy(last->levels, gpu->levels, sizeof last->levels);
        return;
    }
    for (enum sim_signal s = 0; last && s < SIGNAL_COUNT; s++)
        change.integrals_ns[s] = integral_at(last, s, sim->now_ns);
    make_room(gpu);
    gpu->changes[gpu->change_first + gpu->change_count++] = change;
}

/* Forgets the changes before the window, except the last of them: its levels reach into the window. */
static int64_t trim(const struct sim *sim, struct sim_gpu *gpu)
{
    int64_t from_ns = sim->now_ns - sim->options->core.window_ns;

    while (gpu->change_count > 1 && change_at(gpu, 1)->at_ns <= from_ns) {
        gpu->change_first++;
        gpu->change_count--;
    }
    return from_ns;
}

static double mean(const struct sim *sim, const struct sim_gpu *gpu, enum sim_signal signal, int64_t from_ns)
{
    const struct sim_change *first = change_at(gpu, 0), *last = change_at(gpu, gpu->change_count - 1);
    double before = from_ns >= first->at_ns ? integral_at(first, signal, from_ns) : 0;

    return (integral_at(last, signal, sim->now_ns) - before) / (double)sim->options->core.window_ns;
}

/* The window as stretches of one level each, in order; the time before the first change is idle. */
static size_t cut(struct sim *sim, const struct sim_gpu *gpu, enum sim_signal signal, int64_t from_ns)
{
    int64_t at_ns = from_ns;
    size_t count = 0;
    double level = 0;

    array_reserve(sim->parts, sim->part_capacity, gpu->change_count + 1);
    for (size_t i = 0; i <= gpu->change_count; i++) {
        int64_t until_ns = i < gpu->change_count ? change_at(gpu, i)->at_ns : sim->now_ns;
        if (until_ns > at_ns) {
            sim->parts[count++] = (struct window_part){
                .level = level, .samples = (double)(until_ns - at_ns) / (double)sim->options->sample_period_ns};
            at_ns = until_ns;
        }
        level = i < gpu->change_count ? change_at(gpu, i)->levels[signal] : 0;
    }
    return count;
}

double window_statistic(struct sim *sim, struct sim_gpu *gpu, enum sim_signal signal)
{
    uint32_t statistic = sim->options->core.statistic;
    double capacity = (double)sim->options->core.window_ns / (double)sim->options->sample_period_ns;
    double average, median, p95;
    int64_t from_ns;
    size_t count;

    if (gpu->change_count == 0)
        return 0;
    from_ns = trim(sim, gpu);
    if (statistic == STATISTIC_MEAN)
        return mean(sim, gpu, signal, from_ns);
    count = cut(sim, gpu, signal, from_ns);
    average = window_ema(sim->parts, count, capacity);
    if (statistic == STATISTIC_EMA)
        return average;
    window_sort(sim->parts, count);
    median = window_percentile(sim->parts, count, capacity, 0.5);
    p95 = window_percentile(sim->parts, count, capacity, 0.95);
    if (statistic == STATISTIC_MEDIAN)
        return median;
    if (statistic == STATISTIC_P95)
        return p95;
    return window_risk(mean(sim, gpu, signal, from_ns), median, p95, average); /* STATISTIC_RISK */
}

bool window_settled(const struct sim *sim, const struct sim_gpu *gpu)
{
    return gpu->change_count == 0 ||
           change_at(gpu, gpu->change_count - 1)->at_ns <= sim->now_ns - sim->options->core.window_ns;
}
