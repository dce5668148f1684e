/* Zeros that are not trusted. After a critical Xid some sources go on answering, with zero for ever (DCGM's profiling
 * does so until its host engine is restarted). So a source is taken not to measure where it has shown only zero on a
 * GPU since its latest Xid, though that GPU works. Used within carma-monitor only. */
#ifndef CARMA_GPU_MONITOR_STUCK_H
#define CARMA_GPU_MONITOR_STUCK_H

#include <stdbool.h>

#include "gpu/reading.h"

/* Zero-initialise. */
struct gpu_stuck {
    struct gpu_stuck_device {
        char uuid[GPU_UUID_SIZE];
        uint32_t xid_count;
        uint32_t moved;  /* a bit for each source and metric that was above zero since the latest Xid */
        int64_t look_ns; /* the look that showed the latest Xid: its intervals began before it */
    } devices[GPU_MAX_DEVICES];
};

/* Sets GPU_SOURCE_NONE for the metrics that are stuck at zero. Utilisation, or processes on it, show that a GPU works.
 * A process may idle, but then utilisation, which stands in, is zero as well. A metric counts as measured once it, or
 * the SM activity of its source, was above zero. Whether one was dropped. May be called more than once for one look, as
 * further sources fill it. */
bool gpu_stuck_drop(struct gpu_stuck *stuck, struct gpu_node_reading *reading);

#endif
