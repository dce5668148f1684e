#include "gpu/window.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/stats/window_stats.h"

void gpu_window_init(struct gpu_window *window, int64_t length_ns, int64_t period_ns)
{
    assert(length_ns > 0 && period_ns > 0);
    memset(window, 0, sizeof *window);
    window->length_ns = length_ns;
    window->period_ns = period_ns;
}

/* Where the slot lies that is the place-th from the oldest. */
static uint32_t place_index(const struct gpu_window *window, uint32_t place)
{
    return (window->first + place) % GPU_WINDOW_SLOTS;
}

void gpu_window_push(struct gpu_window *window, int64_t at_ns, int32_t permille)
{
    /* Rounded up, so that never more slots than there are have their time within the window. */
    int64_t spacing_ns = (window->length_ns + GPU_WINDOW_SLOTS - 1) / GPU_WINDOW_SLOTS;
    struct gpu_window_slot *slot = NULL;

    while (window->used && window->slots[place_index(window, window->used - 1)].at_ns > at_ns)
        window->used--;
    if (permille < 0)
        return;
    if (window->used)
        slot = &window->slots[place_index(window, window->used - 1)];
    if (!slot || at_ns - slot->at_ns >= spacing_ns) {
        if (window->used == GPU_WINDOW_SLOTS) {
            window->first = place_index(window, 1);
            window->used--;
        }
        slot = &window->slots[place_index(window, window->used++)];
        *slot = (struct gpu_window_slot){.at_ns = at_ns};
    }
    slot->sum_permille += permille;
    slot->count++;
}

static bool within(const struct gpu_window *window, const struct gpu_window_slot *slot, int64_t now_ns)
{
    return slot->at_ns > now_ns - window->length_ns && slot->at_ns <= now_ns;
}

int32_t gpu_window_mean(const struct gpu_window *window, int64_t now_ns, int64_t *count)
{
    int64_t sum = 0, samples = 0;

    for (uint32_t place = 0; place < window->used; place++) {
        const struct gpu_window_slot *slot = &window->slots[place_index(window, place)];
        if (within(window, slot, now_ns)) {
            sum += slot->sum_permille;
            samples += slot->count;
        }
    }
    if (count)
        *count = samples;
    return samples ? (int32_t)((sum + samples / 2) / samples) : -1;
}

int32_t gpu_window_statistic(const struct gpu_window *window, enum window_statistic statistic, int64_t now_ns)
{
    struct window_part parts[GPU_WINDOW_SLOTS];
    double sum = 0, samples = 0, ema, median, p95;
    size_t count = 0;

    if (statistic == STATISTIC_MEAN)
        return gpu_window_mean(window, now_ns, NULL);
    for (uint32_t place = 0; place < window->used; place++) {
        const struct gpu_window_slot *slot = &window->slots[place_index(window, place)];
        if (!within(window, slot, now_ns))
            continue;
        parts[count++] =
            (struct window_part){.level = (double)slot->sum_permille / slot->count, .samples = slot->count};
        sum += slot->sum_permille;
        samples += slot->count;
    }
    if (count == 0)
        return -1;
    ema = window_ema(parts, count, (double)window->length_ns / (double)window->period_ns);
    window_sort(parts, count);
    median = window_percentile(parts, count, samples, 0.5);
    p95 = window_percentile(parts, count, samples, 0.95);
    switch (statistic) {
    case STATISTIC_MEDIAN:
        return (int32_t)lround(median);
    case STATISTIC_P95:
        return (int32_t)lround(p95);
    case STATISTIC_EMA:
        return (int32_t)lround(ema);
    default:
        return (int32_t)lround(window_risk(sum / samples, median, p95, ema));
    }
}
