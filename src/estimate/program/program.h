/* The effect of a training run on the caching allocator: a list of allocations and frees in order. Between them stand
 * the convolutions that take and free a cuDNN workspace. Made from a layer list (lower.h) or read from an operator
 * trace (capture.h); replayed by replay.h. */
#ifndef CARMA_ESTIMATE_PROGRAM_H
#define CARMA_ESTIMATE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "estimate/program/allocator_settings.h"

enum memory_category {
    MEMORY_PARAMETER,
    MEMORY_GRADIENT, /* of parameters */
    MEMORY_OPTIMIZER,
    MEMORY_ACTIVATION, /* outputs and tensors saved for backward */
    MEMORY_TEMPORARY,  /* gradients of activations, scratch of operators */
    MEMORY_INPUT,
    MEMORY_BUFFER,    /* running statistics and the like */
    MEMORY_WORKSPACE, /* cuDNN's and cuBLAS's */
    MEMORY_CATEGORY_COUNT
};

enum program_op {
    PROGRAM_ALLOC, /* tensor = a new number; bytes */
    PROGRAM_FREE,  /* tensor */
    PROGRAM_CONV,  /* tensor = index into convs: its workspace is taken and given back here */
    PROGRAM_EMPTY  /* cached segments that are free go back to the GPU (torch.cuda.empty_cache()) */
};

enum program_phase { PHASE_SETUP, PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_COUNT };

struct program_event {
    uint8_t op, category, phase;
    uint8_t step;    /* 0 = before the first */
    uint32_t tensor; /* numbered from 0 in order of allocation; each is freed once at most */
    uint32_t label;  /* index into labels */
    int64_t bytes;
};

enum conv_pass { CONV_FORWARD, CONV_BACKWARD_DATA, CONV_BACKWARD_WEIGHT };

struct program_conv {
    uint8_t pass; /* enum conv_pass */
    uint8_t transposed;
    uint8_t element_bytes; /* 4 fp32, 2 half */
    uint8_t rank;          /* spatial dimensions, 1 to 3 */
    uint8_t step;          /* as program_event's */
    int64_t batch, in_channels, out_channels, groups;
    int32_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

struct program {
    struct program_event *events; /* owned */
    size_t event_count, event_capacity;
    struct program_conv *convs; /* owned */
    size_t conv_count, conv_capacity;
    char **labels; /* owned; [0] = "" */
    size_t label_count, label_capacity;
    uint32_t *label_slots; /* owned: a hash table of numbers of labels, 0 = free; a power of two of them */
    size_t label_slot_count;
    uint32_t tensor_count;
    int64_t batch_size;
    int64_t parameter_bytes;
    struct allocator_settings allocator; /* what PyTorch's is told */
    uint64_t flops; /* multiply-adds times two of one forward pass's convolutions and matrix products; 0 = not known */
    /* Of the model, for the corrections and for SM activity. */
    uint32_t layers, convolutions, linears, norms, dropouts, activations, attentions;
    int64_t activation_elements; /* outputs of all layers, per sample */
};

#define PROGRAM_MAX_EVENTS 4000000
#define PROGRAM_MAX_BYTES                                                                                              \
    (INT64_C(1) << 40) /* of a tensor; program_alloc() makes larger ones this large, negative ones 0 */

/* A program is built with the functions below alone. They never fail, and every program built with them can be
 * replayed: references to a missing tensor or convolution are left out. A builder that uses data of unknown origin
 * compares event_count with PROGRAM_MAX_EVENTS. */
void program_init(struct program *program);
void program_release(struct program *program);
uint32_t program_label(struct program *program, const char *text); /* the same number for the same text */
uint32_t program_alloc(struct program *program,
                       struct program_event event); /* fills op and tensor; returns the tensor */
void program_free(struct program *program, uint32_t tensor,
                  struct program_event event); /* of event: phase, step, label */
/* After the allocation of the pass's result, as PyTorch does it. Of event: phase, step, label. */
void program_conv(struct program *program, const struct program_conv *conv, struct program_event event);
void program_empty_cache(struct program *program, struct program_event event); /* of event: phase, step */

/* The second step, since in the first the optimizer's states come to be; else the last. */
uint8_t program_steady_step(const struct program *program);

#endif
