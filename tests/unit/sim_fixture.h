/* Small simulations: nodes of one GPU and of two, jobs, a core that shares at once. */
#ifndef CARMA_TESTS_SIM_FIXTURE_H
#define CARMA_TESTS_SIM_FIXTURE_H

#include "unit.h"

#include "sim/sim.h"

#define SECONDS(n) ((int64_t)((n)*1e9))

static const struct sim_node two_gpus = {.gpu_count = 2, .total_bytes = 40 * GIB, .idle_w = 50, .full_w = 250};
static const struct sim_node one_gpu = {.gpu_count = 1, .total_bytes = 40 * GIB, .idle_w = 50, .full_w = 250};
static const struct sim_use half = {.activity = 0.5, .resident_bytes = 10 * GIB, .need_bytes = 10 * GIB};
static const struct sim_use large = {.activity = 0.5, .resident_bytes = 25 * GIB, .need_bytes = 30 * GIB};

static inline struct sim_job job_of(const struct sim_use *use, double arrival_s, double work_s)
{
    return (struct sim_job){.arrival_ns = SECONDS(arrival_s),
                            .work_ns = SECONDS(work_s),
                            .gpus = 1,
                            .use_count = 1,
                            .uses = use,
                            .workload = "",
                            .request_bytes = -1};
}

/* A core that shares at once: no periods, no cap, no floor. */
static inline struct sim_options eager(const char *policy)
{
    struct sim_options options;

    sim_options_default(&options);
    strcpy(options.core.policy, policy);
    options.core.memory_view = MEMORY_MONITOR;
    options.core.floor_bytes = 0;
    options.core.smact_cap_permille = 1000;
    options.core.decide_period_ns = 0;
    options.core.settle_ns = 0;
    return options;
}

#endif
