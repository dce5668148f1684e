/* A layer list -> the program of a few training steps: PyTorch's eager autograd and the optimizer's states. Each
 * layer's tensors are saved for backward; gradients come and go as in PyTorch. */
#ifndef CARMA_ESTIMATE_LOWER_H
#define CARMA_ESTIMATE_LOWER_H

#include "base/error.h"
#include "estimate/layers.h"
#include "estimate/program/program.h"

enum optimizer {
    OPTIMIZER_SGD,
    OPTIMIZER_MOMENTUM,
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_ADAFACTOR,
    OPTIMIZER_ADAMW_FUSED, /* one kernel for each tensor: no temporaries */
    OPTIMIZER_ADAMW_8BIT,  /* bitsandbytes */
    OPTIMIZER_COUNT
};
/* AMP: autocast, with parameters in fp32. BF16: all tensors in it, without autocast; for transformers by configuration
 * (transformer.h) alone. */
enum precision { PRECISION_FP32, PRECISION_TF32, PRECISION_AMP, PRECISION_BF16, PRECISION_COUNT };
const char *optimizer_name(enum optimizer optimizer); /* "sgd", "adamw_8bit", ... */
const char *precision_name(enum precision precision); /* "fp32", "tf32", "amp", "bf16" */
int optimizer_parse(const char *text, enum optimizer *optimizer, struct error *err);
int precision_parse(const char *text, enum precision *precision, struct error *err);

struct training {
    int64_t batch_size; /* >= 1 */
    enum optimizer optimizer;
    bool weight_decay; /* of SGD, momentum and Adam: a copy of the gradients for as long as the optimizer's step */
    enum precision precision;
    int64_t samples; /* of the data set: the last batch of an epoch is samples % batch_size; <= 0: not known, no last
                        batch */
    /* The model's summary was made on the GPU before the training: a forward pass over its own batch. Its blocks stay
     * cached. With torchsummary it takes 2 samples, in training mode; torchinfo the whole batch, in evaluation mode
     * without gradients. */
    bool summary_pass, summary_gradients;
    int64_t summary_batch;
    struct allocator_settings allocator;
    int64_t cublas_workspace_bytes; /* taken at the first matrix product, and at the first of a backward pass; kept */
};

#define CUBLAS_WORKSPACE_BYTES   INT64_C(8519680)   /* of Ampere: 8.125 MiB (a machine profile knows better) */
#define CUBLASLT_WORKSPACE_BYTES (INT64_C(1) << 20) /* PyTorch's default before Hopper (CUBLASLT_WORKSPACE_SIZE) */

/* Adam without weight decay, fp32 (TF32 takes the same), batch 32, no summary, CUBLAS_WORKSPACE_BYTES. */
void training_default(struct training *training);

/* Works out the attributes that the list leaves open, where it is certain enough: in_channels, kernels, strides and
 * groups from shapes and parameter counts. Also the layers' inputs when the summary does not name them (chains,
 * shortcuts, concatenations). */
void layers_complete(struct layer_list *list);

/* The training steps are: two whole batches, the last of an epoch where samples says it is smaller, and a whole one
 * again. Of fewer samples than a batch, all of them three times. An input and its targets go before the next come; then
 * gradients go (set_to_none); an output and a loss go when the next is there.
 *
 * Layers in order of execution. A container stands before its children, with `depth` smaller than theirs. It holds its
 * input until all of them have run, as Python's call of a module does. The last layer that is not a container gives the
 * output; its loss is the cross entropy. LAYER_ADD with in_place is `x += y`. LAYER_ATTENTION without parameters is
 * scaled_dot_product_attention alone: its inputs are queries, keys and values, or one tensor that holds all three.
 *
 * The list must be complete. Inits *program. -EINVAL when nothing can be built (no layer with a shape): one line;
 * *program is then empty. */
int program_lower(struct program *program, const struct layer_list *list, const struct training *training,
                  struct error *err);

#endif
