/* How finely what is measured reaches the core: rounded, so that noise makes no records. For drivers; both use these, so
 * that the simulated core is told what the real one would be. */
#ifndef CARMA_CORE_QUANTUM_H
#define CARMA_CORE_QUANTUM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/ledger.h"
#include "core/record.h"

#define QUANTUM_MEMORY_BYTES (INT64_C(16) << 20)
#define QUANTUM_ACTIVITY_PERMILLE 5

/* Rounded up: what is held must not look smaller than it is. Negative (not known) stays. */
static inline int64_t quantum_memory(int64_t bytes)
{
    return bytes < 0 ? bytes : (bytes + QUANTUM_MEMORY_BYTES - 1) / QUANTUM_MEMORY_BYTES * QUANTUM_MEMORY_BYTES;
}

/* Rounded down. Negative (not measured) stays. */
static inline int32_t quantum_activity(int32_t permille)
{
    return permille < 0 ? permille : permille / QUANTUM_ACTIVITY_PERMILLE * QUANTUM_ACTIVITY_PERMILLE;
}

/* Whether a sample would tell the core anything. It is compared with what the core has now, not with what it was last
 * told: the core itself takes the memory of a job that has ended off what is used. */
static inline bool sample_is_news(const struct gpu *gpu, const struct record_sample *sample)
{
    return !gpu->measured || gpu->used_bytes != sample->used_bytes || gpu->foreign_bytes != sample->foreign_bytes ||
           gpu->smact_permille != sample->smact_permille;
}

#endif
