/* GPU memory that a job holds, integrated over node time: pure accounting in integers.
 *
 * Its memory at a moment is the sum over its GPUs of its processes' last observed use. On a GPU whose driver does not
 * tell owners, its reservation counts. In MiB times milliseconds: bytes times nanoseconds would not fit. */
#ifndef CARMA_DAEMON_VIEW_HOLDING_H
#define CARMA_DAEMON_VIEW_HOLDING_H

#include <stdint.h>

struct memory_usage {
    int64_t at_ns;           /* counted until then; 0: it holds nothing, and nothing is counted */
    int64_t bytes;           /* held since then */
    int64_t measured_bytes;  /* of them, those that were measured */
    int64_t mib_ms;          /* counted, at most INT64_MAX */
    int64_t measured_mib_ms; /* of that, the measured part */
};

void memory_usage_begin(struct memory_usage *memory_usage,
                        int64_t at_ns); /* it runs from now on; its memory is not known yet */

/* Holds `bytes` from now on. Nothing happens where it does not run. */
void memory_usage_set(struct memory_usage *memory_usage, int64_t at_ns, int64_t bytes, int64_t measured_bytes);

void memory_usage_end(struct memory_usage *memory_usage, int64_t at_ns);

/* Its sum until now. */
int64_t memory_usage_mib_ms(const struct memory_usage *memory_usage, int64_t now_ns);

#endif
