/* Eager execution with PyTorch's autograd, in sizes only. Operators allocate their results, and a tape holds the
 * tensors for their backward. Running it backwards brings and frees gradients in autograd's order (the latest recorded
 * first; torch/csrc/autograd/engine.cpp). Allocations and frees are written into a program. */
#ifndef CARMA_ESTIMATE_TAPE_H
#define CARMA_ESTIMATE_TAPE_H

#include <stdbool.h>

#include "estimate/program/program.h"

#define TAPE_NONE       (-1)
#define TAPE_OP_SAVED   6
#define TAPE_OP_OWN     4
#define TAPE_OP_SCRATCH 8

/* A tensor with where its gradient goes. */
struct tape_value {
    uint32_t tensor;
    int32_t node;      /* TAPE_NONE: needs no gradient */
    int32_t parameter; /* TAPE_NONE, or it is that parameter itself */
    uint8_t element_bytes;
    int64_t elements;
};

struct tape_parameter {
    uint32_t tensor, label;
    int32_t gradient; /* a tensor, or TAPE_NONE */
    int32_t half;     /* autocast's copy of it in half precision, or TAPE_NONE */
    int32_t cast;     /* the node that made the copy, with a gradient in half precision; or TAPE_NONE */
    int64_t elements;
    int64_t last, second_last; /* its last two dimensions; 0 where it has fewer than two */
    uint8_t element_bytes;
    bool frozen;
};

enum tape_kind {
    TAPE_OP,
    TAPE_VIEW,    /* its gradient passes through: no new tensor, but where an input is smaller or of another width */
    TAPE_JOIN,    /* of its inputs: each gets a part of the gradient, which is not a tensor of its own */
    TAPE_CONV,    /* the program's last convolution is its forward pass */
    TAPE_PRODUCT, /* of matrices */
    TAPE_CAST,    /* of a parameter, by autocast; the tape's own */
    TAPE_SEGMENT  /* of a checkpointed model: only its input was kept, and backward runs it again */
};

struct tape_op {
    enum tape_kind kind;
    const struct tape_value *inputs; /* borrowed */
    uint32_t input_count;
    uint32_t saved[TAPE_OP_SAVED]; /* tensors, which the tape then holds too */
    uint32_t saved_count;
    int32_t parameters[TAPE_OP_OWN];
    uint32_t parameter_count;
    bool parameters_first; /* backward makes their gradients before those of the inputs */
    /* Allocations of backward before the gradients, freed after them; a negative number n frees the entry -n - 1. */
    int64_t scratch[TAPE_OP_SCRATCH];
    uint32_t scratch_count;
    int64_t late_scratch; /* a last one, allocated after the gradients; 0 = none */
};

struct tape {
    struct program *program; /* borrowed */
    struct program_event at; /* step, phase and label of the next events */
    bool recording;          /* gradients are wanted: training mode */
    /* Runs a segment again, recorded: a result with a reference of its own. */
    struct tape_value (*run_segment)(void *context, size_t segment, const struct tape_value *input);
    void *segment_context;
    int64_t parameter_shards, gradient_shards, state_shards; /* how many GPUs share these; 0 = 1 */
    uint8_t state_bytes;  /* of an element of the optimizer's states; 0 = as the parameter's */
    int64_t cublas_bytes; /* of a workspace */
    bool
        cublas_taken[2]; /* by the program's own thread, by autograd's: each has a handle with a workspace of its own */
    uint32_t *references; /* owned; by tensor */
    size_t reference_capacity;
    struct tape_parameter *parameters; /* owned */
    size_t parameter_count, parameter_capacity;
    struct tape_node *nodes; /* owned */
    size_t node_count, node_capacity;
    struct tape_edge *edges; /* owned; the nodes' inputs */
    size_t edge_count, edge_capacity;
    int64_t *numbers; /* owned; the nodes' saved tensors, their parameters and scratch */
    size_t number_count, number_capacity;
};

void tape_init(struct tape *tape, struct program *program);
void tape_release(struct tape *tape);

/* A new tensor with one reference; it is freed when the last one goes. */
uint32_t tape_alloc(struct tape *tape, int64_t bytes, enum memory_category category);
void tape_hold(struct tape *tape, uint32_t tensor);
void tape_drop(struct tape *tape, uint32_t tensor);

int32_t tape_add_parameter(struct tape *tape, struct tape_parameter parameter); /* fills tensor and the members after
                                                                                   it */

static inline int64_t tape_shards(int64_t shards)
{
    return shards > 1 ? shards : 1;
}

static inline int64_t tape_bytes(const struct tape_value *value)
{
    return value->elements * value->element_bytes;
}

/* At a matrix product of the program's own thread, which has its result already. */
void tape_take_cublas(struct tape *tape);

/* Whether the operator would be recorded: anything that goes into it needs a gradient. */
bool tape_needs_gradient(const struct tape *tape, const struct tape_op *op);

/* Records it, if it needs a gradient, and returns its result's node. */
int32_t tape_record(struct tape *tape, const struct tape_op *op, const struct tape_value *result);

/* One segment as one operator: its input is kept, and run_segment() makes the rest again. */
int32_t tape_record_segment(struct tape *tape, size_t segment, const struct tape_value *input,
                            const struct tape_value *result);

/* Runs the tape backwards from `node`, with a gradient of this many bytes, and empties it. */
void tape_backward(struct tape *tape, int32_t node, int64_t gradient_bytes);
void tape_forget(struct tape *tape); /* empties it: the graph is freed */

void tape_zero_gradients(struct tape *tape);                        /* optimizer.zero_grad(set_to_none=True) */
uint32_t tape_cast_parameter(struct tape *tape, int32_t parameter); /* autocast's copy: one until the end of autocast */
void tape_end_autocast(struct tape *tape);                          /* its copies of parameters are let go */

#endif
