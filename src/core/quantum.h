/* How finely measurements reach the core: rounded, so that noise makes no records. For drivers; both use these, so that
 * the simulated core is told the same as the real one. */
#ifndef CARMA_CORE_QUANTUM_H
#define CARMA_CORE_QUANTUM_H

#include <stdint.h>

#define QUANTUM_MEMORY_BYTES      (INT64_C(16) << 20)
#define QUANTUM_ACTIVITY_PERMILLE 5

/* Rounded up: held memory must not look smaller than it is. Negative (not known) stays. */
static inline int64_t quantum_memory(int64_t bytes)
{
    return bytes < 0 ? bytes : (bytes + QUANTUM_MEMORY_BYTES - 1) / QUANTUM_MEMORY_BYTES * QUANTUM_MEMORY_BYTES;
}

/* Rounded down. Negative (not measured) stays. */
static inline int32_t quantum_activity(int32_t permille)
{
    return permille < 0 ? permille : permille / QUANTUM_ACTIVITY_PERMILLE * QUANTUM_ACTIVITY_PERMILLE;
}

#endif
