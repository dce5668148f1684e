/* What a capture's run says: for each Python process that imported PyTorch a line of JSON and, where it recorded its
 * training, the text of the capture (docs/automatic-capture.md). The job's user wrote it: nothing in it is trusted. */
#ifndef CARMA_DAEMON_CAPTURE_ANSWER_H
#define CARMA_DAEMON_CAPTURE_ANSWER_H

#include <stddef.h>

#include "base/error.h"

struct capture_answer {
    char *text; /* owned: the capture */
    char *from; /* owned: "an automatic capture of train.py, 5 s" */
};

/* 0; else *answer is empty, and err says why there is no capture. */
int capture_answer_read(const char *output, size_t length, struct capture_answer *answer, struct error *err);
void capture_answer_release(struct capture_answer *answer);

#endif
