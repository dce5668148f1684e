/* Why a job waits: a code with its numbers, and the one sentence that `carma explain`, the queue and the log show. */
#ifndef CARMA_CORE_REASON_H
#define CARMA_CORE_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum reason_code {
#define REASON(code, name, sentence) REASON_##code,
#include "core/reasons.def"
    REASON_CODE_COUNT
};

#define JOB_NUMBER_TEXT 32 /* "120_7" */

struct record_submitted;

struct reason {
    uint32_t code;   /* enum reason_code */
    uint32_t wanted; /* GPUs; 0: the reason is about one GPU */
    uint32_t qualified;
    uint32_t allowed;
    uint32_t gpu;     /* the GPU that best_* speaks of */
    uint32_t share;   /* enum share_mode */
    uint32_t depends; /* enum depends_kind */
    uint64_t ahead;
    uint64_t other;
    int64_t needed_bytes;
    int64_t best_bytes;
    int64_t held_bytes;
    int64_t from_ns; /* 0: it has begun */
    int64_t until_ns;
    int64_t limit_ns; /* the longest time limit that ends by from_ns */
    int32_t best_permille;
    int32_t cap_permille;
    int64_t best_ppm, least_ppm;
    int64_t waited_ns; /* `other` has waited at least so long; 0: others have passed it */
    uint64_t resident; /* a job of the user in the way; 0: there is none */
    const char
        *why; /* borrowed from the core, until its next record: an administrator's words; UNSUITED: the node's GPUs */
    /* borrowed: it says which GPUs suit it (gpus/suits.h), `suited` of `present`; NULL: the reason is not about GPUs */
    const struct record_submitted *choice;
    uint32_t suited, present;
    const char *owner; /* borrowed: the name of that user, which the core does not know; NULL: nor does anybody */
    char number[JOB_NUMBER_TEXT]; /* of `other`, as people write it, where that is not its number; likewise */
    bool request_unknown;         /* it counts with whole GPUs, since its need is unknown */
};

#define REASON_TEXT 256

const char *reason_name(uint32_t code); /* "memory", "sm-activity", ... */
char *reason_format(const struct reason *reason, int64_t now_ns, char text[static REASON_TEXT]);

#endif
