/* One metric of one GPU over the last stretch of node time, and the statistics that the caps and people go by. Fixed
 * memory.
 *
 * Samples that lie closer together than window / GPU_WINDOW_SLOTS share a slot. Their sum and number are kept; only
 * their times are thinned to that of the slot's first. So nothing is lost when the sampling is denser than the slots. A
 * slot just leaves the window as a whole, and counts as that many samples of its mean. Samples that lie further apart
 * (the default: 90 in 90 s) are kept, and leave, exactly. */
#ifndef CARMA_GPU_WINDOW_H
#define CARMA_GPU_WINDOW_H

#include <stdint.h>

#include "core/config.h"

#define GPU_WINDOW_SLOTS 256

struct gpu_window_slot {
    int64_t at_ns;
    int32_t sum_permille;
    int32_t count;
};

struct gpu_window {
    int64_t length_ns;
    int64_t period_ns;
    uint32_t first; /* oldest slot */
    uint32_t used;
    struct gpu_window_slot slots[GPU_WINDOW_SLOTS];
};

/* All > 0. period_ns: between two samples, as configured; EMA goes by it. */
void gpu_window_init(struct gpu_window *window, int64_t length_ns, int64_t period_ns);

/* One sample at a node time. permille < 0: not measured, the sample does not count. Where the node's clock
 * was set back, the samples from its future are forgotten. */
void gpu_window_push(struct gpu_window *window, int64_t at_ns, int32_t permille);

/* The mean, rounded to nearest, of the samples in (now_ns - length_ns, now_ns]; -1 where there are none. *count (may
 * be NULL) gets how many they are. */
int32_t gpu_window_mean(const struct gpu_window *window, int64_t now_ns, int64_t *count);

/* Any statistic of the same samples, permille, rounded to nearest; -1 where there are none (base/stats/window_stats.h).
 * While the window fills, it is that of the samples that there are. */
int32_t gpu_window_statistic(const struct gpu_window *window, enum window_statistic statistic, int64_t now_ns);

#endif
