/* What one GPU's SM activity was over the last stretch of node time. Fixed memory and integers only.
 *
 * Samples that lie closer together than window / GPU_WINDOW_SLOTS share a slot: their sum and number are kept, only
 * their times are thinned to that of the slot's first. So nothing is lost when the sampling is denser than the slots;
 * a slot just leaves the window as a whole. Samples that lie further apart are kept, and leave, exactly. */
#ifndef CARMA_GPU_WINDOW_H
#define CARMA_GPU_WINDOW_H

#include <stdint.h>

#define GPU_WINDOW_SLOTS 256

struct gpu_window_slot {
    int64_t at_ns;
    int64_t sum_permille;
    int64_t count;
};

struct gpu_window {
    int64_t length_ns;
    uint32_t first; /* oldest slot */
    uint32_t used;
    struct gpu_window_slot slots[GPU_WINDOW_SLOTS];
};

void gpu_window_init(struct gpu_window *window, int64_t length_ns); /* length_ns > 0 */

/* One sample at a node time. activity_permille < 0: not measured, the sample does not count. Where the node's clock
 * was set back, the samples from its future are forgotten. */
void gpu_window_push(struct gpu_window *window, int64_t at_ns, int32_t activity_permille);

/* The mean, rounded to nearest, of the samples in (now_ns - length_ns, now_ns]; -1 where there are none. *count (may
 * be NULL) gets how many they are. */
int32_t gpu_window_mean(const struct gpu_window *window, int64_t now_ns, int64_t *count);

#endif
