/* The values of GRACT, SMACT and SMOCC as a kernel's blocks and threads grow (the thesis's Figure 3.1). The kernel
 * keeps its threads busy for a given time, through the CUDA driver's library (gpu/cuda.h). */
#ifndef CARMA_BENCH_KERNEL_H
#define CARMA_BENCH_KERNEL_H

#include <jansson.h>

#include "base/strbuf.h"
#include "bench/run.h"
#include "gpu/cuda.h"

struct bench_kernel {
    struct bench_setup setup;
    struct cuda_gpu gpu;
    int64_t point_ns; /* node time */
    struct bench_point {
        unsigned int blocks, threads;     /* the latter of a block */
        int64_t begun_ns, ended_ns;       /* node time */
        double metrics[GPU_METRIC_COUNT]; /* means; -1: none */
        uint32_t sources[GPU_METRIC_COUNT];
        double utilization; /* NVML's; -1: none */
    } * points;             /* owned */
    size_t point_count;
};

/* Runs every size and reads the metrics from any source. -ENOENT, -ENODEV: no GPU; -EINTR: interrupted. */
int bench_kernel_measure(struct bench_kernel *bench, struct error *err);
void bench_kernel_release(struct bench_kernel *bench);

json_t *bench_kernel_json(const struct bench_kernel *bench); /* docs/formats/cli.md */
void bench_kernel_table(const struct bench_kernel *bench, int width, bool colour, struct strbuf *out);

/* One epoch of a built-in load: a fixed amount of arithmetic in many short kernels, on a few SMs or on all of them. */
int bench_kernel_load(bool heavy, struct error *err);

#endif
