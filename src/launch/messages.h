/* Messages of failures: the rules by framework, as data (messages.c). */
#ifndef CARMA_LAUNCH_MESSAGES_H
#define CARMA_LAUNCH_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum output_kind {
    OUTPUT_NOTHING,          /* no known message: its own bug, as far as the text goes */
    OUTPUT_GPU_OOM,          /* a framework's, or CUDA's, out-of-memory error */
    OUTPUT_GPU_HANDLE,       /* a GPU library could not allocate its handle or workspace */
    OUTPUT_GPU_HANDLE_MAYBE, /* a GPU library failed as it does when memory is gone, and for other causes */
    OUTPUT_HOST_OOM,         /* the host's memory ran out */
    OUTPUT_GPU_FAULT,        /* a kernel faulted: its own, or under MPS that of any client */
    OUTPUT_MPS,              /* MPS itself failed it: CUDA's errors 805 to 810 */
    OUTPUT_GPU_ERROR,        /* the GPU failed: uncorrectable memory or NVLink error, fallen off the bus */
    OUTPUT_KIND_COUNT
};

/* A message contains all of `all` and none of `none`, in any case; the first rule that matches decides. */
struct message_rule {
    enum output_kind kind;
    const char *all[3];
    const char *none[3];
    uint32_t sets, no_sets; /* bits of the sets of which a word is there, or none is */
    bool exception;         /* all[0] is an exception's name, and counts only where a message begins with it */
};

extern const struct message_rule message_rules[];
extern const size_t message_rule_count;

/* Words of the general rules: any one of a set will do. */
enum message_set {
    MESSAGE_GPU,       /* it is about a GPU */
    MESSAGE_SHORTAGE,  /* memory ran out */
    MESSAGE_REFUSED,   /* something could not be allocated */
    MESSAGE_AMOUNT,    /* ... and it was memory */
    MESSAGE_ELSEWHERE, /* it is about other memory, or nothing that anybody failed for */
    MESSAGE_SET_COUNT
};
extern const char *const *const message_sets[MESSAGE_SET_COUNT]; /* each ends with NULL */

/* Before words of a shortage: it is only talked about ("may run out of memory"). */
extern const char *const message_hedges[];

/* In a message of a shortage: the program goes on after it. */
extern const char *const message_handled[];

#endif
