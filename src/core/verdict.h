/* Whether a run ran out of GPU memory, from its end and the evidence that was recorded with it; and what it teaches of
 * its workload's need. One table (verdict.c), the same when records are replayed. A record without evidence has the
 * meaning that it had for an earlier carma. */
#ifndef CARMA_CORE_VERDICT_H
#define CARMA_CORE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

struct record_exited;

enum verdict_teaches {
    TEACHES_NOTHING, /* it did not come to its end, or its end is doubtful */
    TEACHES_THIS,    /* the need is what was observed */
    TEACHES_MORE     /* ... is more than that: it ran out, or met its fence */
};

struct verdict {
    uint32_t cause; /* enum exit_cause */
    enum verdict_teaches teaches;
    bool caught; /* it ran out, and went on to its end */
};

struct verdict verdict_of(const struct record_exited *exited);

#endif
