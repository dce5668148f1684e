/* What an administrator decides about scheduling; part of the core's state (record RECONFIGURED). */
#ifndef CARMA_CORE_CONFIG_H
#define CARMA_CORE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define CORE_POLICY_NAME_SIZE 32

/* How free memory is counted. MONITOR (the thesis): what the last window showed. RESERVE: total - foreign - sum of
 * max(claim, observed) - margin, so that launches never race while a job still loads. */
enum memory_view { MEMORY_MONITOR, MEMORY_RESERVE };

struct core_config {
    char policy[CORE_POLICY_NAME_SIZE];
    uint32_t memory_view;     /* enum memory_view */
    int64_t floor_bytes;      /* free memory that a GPU with residents needs for a job without a claim (thesis 6.2.2: 5 GB) */
    int64_t margin_bytes;     /* kept free beyond a claim */
    int32_t smact_cap_permille; /* a GPU with residents must not be busier (thesis 6.2.2: 800) */
    int64_t decide_period_ns; /* at least this long between two placements */
    int64_t settle_ns;        /* a GPU stays closed until a new job's memory has been seen for this long (monitor view,
                                 and after a recovering job under both) */
    uint32_t max_recoveries;  /* out-of-memory crashes after which a job is given up */
    uint32_t max_jobs_per_gpu;
};

/* The defaults: MAGM with the thesis's preconditions on reservations. */
void core_config_default(struct core_config *config);

const char *memory_view_name(uint32_t view); /* "monitor", "reserve" */

#endif
