/* How this file works: the defaults of the core's settings, in one place. The presets (src/config/presets.c) and the
 * tests begin with them; a store's first record has what the driver made of them. */
#include "core/config.h"

#include "base/units.h"

void core_config_default(struct core_config *config)
{
    *config = (struct core_config){
        .policy = "magm",
        .memory_view = MEMORY_RESERVE,
        .floor_bytes = 5 * GIB,
        .margin_bytes = 1 * GIB,
        .smact_cap_permille = 800,
        .smocc_cap_permille = 1000,
        .dram_cap_permille = 1000,
        .statistic = STATISTIC_MEAN,
        .window_ns = 90 * NS_PER_SEC,
        .decide_period_ns = 1 * NS_PER_SEC,
        .settle_ns = 30 * NS_PER_SEC,
        .oom_retry = OOM_RETRY_EXCLUSIVE,
        .max_retries = 3,
        .max_without_gpu = CORE_MAX_WITHOUT_GPU,
        .max_requeues = CORE_MAX_REQUEUES,
        .max_jobs_per_gpu = 16,
        .mps_threads_percent = 100,
        .mps_max_clients = 48,
        .starvation_timeout_ns = 3600 * NS_PER_SEC,
    };
}

const char *memory_view_name(uint32_t view)
{
    return view == MEMORY_RESERVE ? "reserve" : "monitor";
}
