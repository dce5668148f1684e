/* For tests of carma's own policy: its configuration, and jobs of workloads. */
#ifndef CARMA_TESTS_PLACEMENT_FIXTURE_H
#define CARMA_TESTS_PLACEMENT_FIXTURE_H

#include "core_fixture.h"

static inline struct core_config carma_config(void)
{
    struct core_config config;

    core_config_default(&config);
    snprintf(config.policy, sizeof config.policy, "carma");
    config.memory_view = MEMORY_RESERVE;
    config.margin_bytes = GIB;
    config.decide_period_ns = 0;
    config.oom_retry = OOM_RETRY_INFORMED;
    config.backfill = 4;
    config.starvation_timeout_ns = SECONDS(3600);
    config.max_slowdown_permille = 2000;
    config.learn = true;
    config.shrink_after_ns = SECONDS(60);
    return config;
}

static inline void use_carma(struct fixture *f)
{
    struct core_config config = carma_config();

    reconfigure(f, &config);
}

#define CARMA_TEST(name) CORE_TEST_AFTER(use_carma, name)

/* use_carma() on a node of `gpus` GPUs. */
static inline void use_carma_on(struct fixture *f, uint32_t gpus)
{
    use_carma(f);
    keep_gpus(f, gpus);
}

static inline uint64_t submit_workload(struct fixture *f, const char *workload, uint32_t gpus, int64_t reservation,
                                       int32_t activity)
{
    struct record record = wants(gpus, reservation);

    if (reservation >= 0)
        record.submitted.request_source = SOURCE_RECORDED;
    record.submitted.smact_permille = activity;
    snprintf(record.submitted.workload, sizeof record.submitted.workload, "%s", workload);
    return submit_record(f, record);
}

static inline const struct record *decision(const struct fixture *f, uint32_t type)
{
    for (size_t i = 0; i < f->decisions.count; i++)
        if (f->decisions.items[i].type == type)
            return &f->decisions.items[i];
    return NULL;
}

#endif
