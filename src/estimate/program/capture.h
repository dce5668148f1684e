/* Reads an operator trace (docs/formats/capture.md; python/carma writes it) into a program. Pure: text in memory. */
#ifndef CARMA_ESTIMATE_CAPTURE_H
#define CARMA_ESTIMATE_CAPTURE_H

#include "base/error.h"
#include "estimate/program/lower.h"
#include "estimate/program/program.h"

#define CAPTURE_MAX_BYTES ((size_t)64 << 20)

/* Beyond the tensors' peak the allocator holds these shares of the tensors that stay and of those that come and go, and
 * so many bytes. Not known: as it is replayed. */
struct reserve {
    bool known;
    double of_held, of_passing, bytes;
};

struct capture {
    struct program program;
    char torch[32];     /* version */
    char model[128];    /* "" = not said */
    int64_t batch_size; /* the program's */
    bool scales;        /* the batch size may be chosen: each size was recorded as base + slope * batch */
    enum optimizer optimizer;
    bool optimizer_known; /* false: one that has no name here */
    enum precision precision;
    int32_t doubt_permille;    /* of confidence, that the recording takes away */
    char doubts[512];          /* why; "" = none */
    int32_t spread_permille;   /* by how much more the 98th percentile lies above the median than of recorded steps */
    struct reserve reserve[2]; /* [1] with expandable segments */
    char mapping[64];          /* "cuda" as recorded, or "cpu": which CPU operators were mapped to CUDA's */
};

/* Inits *capture, which capture_release() ends. batch_size <= 0: the recorded one. -EINVAL with one line
 * "FILE:LINE: ..."; *capture is then empty. */
int capture_read(struct capture *capture, const char *name, const char *text, size_t length, int64_t batch_size,
                 struct error *err);
void capture_release(struct capture *capture);

/* How a training differs from the recorded one. */
struct capture_changes {
    enum optimizer optimizer;
    bool weight_decay; /* as of struct training */
    /* torch.backends.cudnn.benchmark: once a kind of convolution was tried out, at its first call, PyTorch empties the
     * allocator's cache (ATen/native/cudnn/Conv_v8.cpp). The memory of the trials themselves is unknown. */
    bool cudnn_benchmark;
    /* A loader brings images to the GPU ahead, as timm's does. Beside the step's images there are the next, the ones
     * after these, and the bytes of which these are made. */
    bool prefetch;
};

/* The same training with these changes. The recorded optimizer's steps are replaced by those of the other (PyTorch's
 * foreach implementations), unless it was recorded with that one and without weight decay. One line and the capture
 * unchanged: -ENOTSUP for Adafactor, because its states depend on the parameters' shapes, and where nothing is trained;
 * -EINVAL where it becomes too large. To be called once, after capture_read(). */
int capture_change(struct capture *capture, const struct capture_changes *changes, struct error *err);

#endif
