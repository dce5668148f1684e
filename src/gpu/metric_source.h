/* A further place that metrics come from when NVML itself has none: DCGM. Used within carma-monitor only, as a backend
 * is (gpu/backend.h), after the backend has read: it fills in missing values. To add one: another `const struct
 * gpu_metric_source`, named in the chain of carma_monitor.c. */
#ifndef CARMA_GPU_METRIC_SOURCE_H
#define CARMA_GPU_METRIC_SOURCE_H

#include "base/error.h"
#include "gpu/reading.h"

struct gpu_metric_source {
    const char *name;

    /* `library`: the shared object to load; NULL: the source's own choice. `period_ns`: node time between two looks.
     * 0 and *state (for close), or a negative errno and why it cannot serve: the chain then goes on without it. */
    int (*open)(const char *library, int64_t period_ns, void **state, struct error *err);

    /* For each GPU or instance of *reading, by its UUID: sets the metrics that have GPU_SOURCE_NONE and that it has a
     * value for. Where it may not or cannot measure, says so in reading->limits if nothing is said there yet. */
    void (*read)(void *state, struct gpu_node_reading *reading);

    void (*close)(void *state); /* takes NULL */
};

#endif
