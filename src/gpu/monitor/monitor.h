/* The daemon's side of carma-monitor: starts it and delivers its readings. It starts it again when it dies, sends
 * nonsense or falls silent (a driver call that hangs, hangs only that child). A child that does not end though it was
 * killed, since the driver holds it in the kernel, is left behind and replaced. At most three are. Where two children
 * in a row hang in calls on one GPU, the next one does not touch it: so the others are read. The GPU's reading has an
 * error and no UUID. Nothing here blocks the loop. */
#ifndef CARMA_GPU_MONITOR_MONITOR_H
#define CARMA_GPU_MONITOR_MONITOR_H

#include <stdint.h>
#include <uv.h>

#include "gpu/reading.h"

struct gpu_monitor;

struct gpu_monitor_options {
    const char *program;      /* NULL: lib/carma/carma-monitor of this installation */
    const char *library;      /* NVML to load; NULL: carma-monitor's own choice */
    const char *dcgm_library; /* DCGM to load where NVML lacks a metric; likewise */
    int64_t period_ns;        /* node time between two looks, at least 1 ms */

    /* Wall clock. A child that sends no frame for this time is killed. After its start it has six times as long, since
     * a driver may have to wake its GPUs first. One that has not ended this long after that is left behind. 0: 10 s, or
     * three periods where that is more. */
    int64_t silence_wall_ns;
    /* Wall clock, before the child is started again; doubles up to 64 times while no frame comes. 0: 1 s. */
    int64_t restart_wall_ns;

    void (*on_reading)(void *user, const struct gpu_node_reading *reading);
    /* One line on why no readings come, or that a child was left behind. Each is said once, not at each new try, until
     * a reading has come. */
    void (*on_problem)(void *user, const char *text);
    void *user;
};

/* Strings are copied. The first child is started before this returns. An error with it is a problem like any later one
 * (also told before this returns, where it could not be started at all). The child ends with the thread that runs the
 * loop. */
struct gpu_monitor *gpu_monitor_new(uv_loop_t *loop, const struct gpu_monitor_options *options);

/* No callback comes after this; it may be called from one. The child is killed and the memory freed while the loop
 * runs on, within 2 s, whether the child ends or not. Takes NULL. */
void gpu_monitor_free(struct gpu_monitor *monitor);

#endif
