/* The tiny training step in another process, which waits after each of its parts. */
#ifndef CARMA_CLI_ESTIMATE_CALIBRATE_STEP_H
#define CARMA_CLI_ESTIMATE_CALIBRATE_STEP_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct tiny_step {
    pid_t pid; /* 0: none */
    int fd;    /* its input and output */
};

struct tiny_step_report {
    char torch[32];
    int64_t reserved_bytes, cublas_workspace_bytes;
};

/* Starts `python3 -m carma.tiny_step`, with this installation's modules. */
int tiny_step_start(struct tiny_step *step, struct error *err);

/* Waits until it has done `part` ("linear", "convolution"); it then keeps its memory until the next call. */
int tiny_step_wait(struct tiny_step *step, const char *part, struct tiny_step_report *report, struct error *err);

void tiny_step_end(struct tiny_step *step); /* kills and reaps it, where it runs */

#endif
