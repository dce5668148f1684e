/* Finds the cause of a job's failure in its output. Pure: text in, verdict out.
 *
 * messages.c lists the rules, and texts that only look like a message, with their origin; tests/golden/failures holds a
 * message of each kind. A program may have survived what it tells of: core/verdict.h weighs that. */
#ifndef CARMA_LAUNCH_CLASSIFY_H
#define CARMA_LAUNCH_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/messages.h"
#include "launch/sizes.h"

struct classify_verdict {
    enum output_kind kind;
    int64_t requested_bytes; /* of the latest message of GPU memory that says it; -1: none does */
    int64_t free_bytes;      /* of the same message; -1: it does not say */
    uint32_t steps;          /* that followed the latest message of memory or of the GPU, as far as lines look like
                                steps (launch/steps.h); many where the message says that the program goes on */
    bool own_error;          /* NOTHING: and the program ended with an error of its own */
    bool outlived;           /* NOTHING: an error that ended it came later than a message of memory */
    uint32_t tenant_count;   /* of the same message */
    struct classify_tenant tenants[CLASSIFY_MAX_TENANTS];
    char line[200]; /* the latest message of this kind: its beginning, as written */
};

const char *output_kind_name(uint32_t kind); /* "nothing", "gpu_oom", ...; "unknown" out of range */

void classify_init(struct classify_verdict *verdict); /* says nothing */

/* Any bytes are allowed, NULs included, and lines of any length; time is linear in `length`. The latest message counts,
 * but one that tells less does not displace one that tells more. "Maybe" displaces nothing else, and a library's handle
 * does not displace the framework's own error. A later error that ended the program (a traceback's last line, a panic,
 * an abort) shows that the program survived a message of memory. Then the verdict is NOTHING. The error may still be a
 * consequence: where it is chained to the message, or where it tells of other processes or of CUDA. The same holds
 * where it follows at once and is not a plain bug. A GPU's failure is survived where steps followed it.
 * Colours of a terminal are no part of the text, and lines of other logs say nothing of this run. */
void classify_output(const char *text, size_t length, struct classify_verdict *verdict);

#endif
