/* The answer of a capture's run (docs/automatic-capture.md). It has a line of JSON for each Python process that
 * imported PyTorch. Where the process recorded its training, the text of the capture follows. The job's user wrote it:
 * nothing in it is trusted.
 */
#ifndef CARMA_API_CAPTURE_ANSWER_H
#define CARMA_API_CAPTURE_ANSWER_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"

/* Of one process's line, which names the files that it read. */
#define CAPTURE_HEADER_BOUNDS                                                                                          \
    {                                                                                                                  \
        .values = 64 << 10, .depth = 8, .bytes = 4 << 20                                                               \
    }

struct capture_answer {
    char *text;     /* owned: the capture */
    char *from;     /* owned: "an automatic capture of train.py, 5 s" */
    json_t *header; /* owned: the line of the process that recorded it, or came nearest; NULL: there is none */
};

/* 0; else *answer has no capture, and err says why. The caller releases it in either case. `failure` says how the
 * command failed, NULL: it did not. It is the reason where no process has a better one. */
int capture_answer_read(const char *output, size_t length, const char *failure, struct capture_answer *answer,
                        struct error *err);
void capture_answer_release(struct capture_answer *answer);

/* Adds to the reason for no capture what its user can do about it: "...; give its files ...". */
void capture_add_remedy(struct error *err);

#endif
