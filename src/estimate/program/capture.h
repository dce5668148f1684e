/* Reads an operator trace (docs/formats/capture.md; python/carma writes it) into a program. Pure: text in memory. */
#ifndef CARMA_ESTIMATE_CAPTURE_H
#define CARMA_ESTIMATE_CAPTURE_H

#include "base/error.h"
#include "estimate/program/lower.h"
#include "estimate/program/program.h"

#define CAPTURE_MAX_BYTES ((size_t)64 << 20)

struct capture {
    struct program program;
    char torch[32];       /* version */
    char model[128];      /* "" = not said */
    int64_t batch_size;   /* the program's */
    bool scales;          /* the batch size may be chosen: each size was recorded as base + slope * batch */
    enum optimizer optimizer;
    bool optimizer_known; /* false: one that has no name here */
    enum precision precision;
    char mapping[64];     /* "cuda" as recorded, or "cpu": which CPU operators were mapped to CUDA's */
};

/* Inits *capture, which capture_release() ends. batch_size <= 0: the recorded one. -EINVAL with one line
 * "FILE:LINE: ..."; *capture is then empty. */
int capture_read(struct capture *capture, const char *name, const char *text, size_t length, int64_t batch_size,
                 struct error *err);
void capture_release(struct capture *capture);

/* The same training with another optimizer: what the recorded one did in its steps is left out, and what the other does
 * (PyTorch's foreach implementations) stands there instead. weight_decay: as of struct training. Nothing changes where it
 * was recorded with that optimizer and there is no weight decay. One line and the capture as it was: -ENOTSUP for
 * Adafactor, whose states depend on the parameters' shapes, and where nothing is trained; -EINVAL where it becomes too
 * large. */
int capture_set_optimizer(struct capture *capture, enum optimizer optimizer, bool weight_decay, struct error *err);

/* cuBLAS takes another workspace on this GPU than the recording says (a machine profile's; 0: none). One of that size for
 * each thread that calls it, the script's and autograd's. */
void capture_set_cublas_workspace(struct capture *capture, int64_t bytes);

#endif
