/* The plan of a run of carma-train, and the parts of it that print. */
#ifndef CARMA_VNODE_TRAIN_H
#define CARMA_VNODE_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "vnode/attach.h"

struct train_plan {
    char id[64]; /* of the workload; "" where it was given by options */
    uint32_t gpus;
    int64_t resident_bytes[NODE_MAX_GPUS];
    int64_t peak_bytes[NODE_MAX_GPUS]; /* at least resident_bytes */
    double activity[NODE_MAX_GPUS];
    double work_ns; /* solo run time, jitter included */
    bool checkpoint;
    bool progress; /* it tells its steps, each a second of its work alone, to CARMA_PROGRESS_FILE */
    const struct train_failure *failure; /* NULL: none but those that happen to it */
    int64_t fail_at_ns;                  /* node time after the start at which it strikes */
};

/* A failure on request. */
struct train_failure {
    const char *name, *help;
    void (*begin)(struct train_plan *plan); /* before the process takes a GPU; NULL: nothing */

    /* At its time; NULL: nothing. 0: the job goes on; -EIO: it ends with status 1, and the message has been printed. */
    int (*strike)(struct attachment *attachment, struct train_plan *plan, struct error *err);
};

const struct train_failure *train_failure_find(const char *name); /* NULL: no such one */

/* "  name description", a line per failure; for --help. The caller frees it. */
char *train_failure_help(void);

/* Reads the command line; exits with status 2 on one that is wrong, and for --help. */
int train_options(int argc, char **argv, struct train_plan *plan, struct error *err);

/* PyTorch's message, as its current releases print it, on stderr. */
void train_print_out_of_memory(const struct shortage *shortage);

/* PyTorch's message for a CUDA error (enum cuda_fault), on stderr. */
void train_print_cuda_error(uint32_t error);

/* A checkpoint: how much of the work is done, in $CARMA_CHECKPOINT_DIR or the working directory. Its name has
 * CARMA_JOB_ID where that is set, so that jobs which share a directory keep apart. */
int checkpoint_write(const struct train_plan *plan, double done_ns, struct error *err);

/* A checkpoint's progress of the same work, 0 where there is none. */
int checkpoint_read(const struct train_plan *plan, double *done_ns, struct error *err);
void checkpoint_remove(void);

#endif
