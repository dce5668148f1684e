/* Shared by lower.c and its helpers: a layer list on its way to a program. Private to this module. */
#ifndef CARMA_ESTIMATE_LOWERING_H
#define CARMA_ESTIMATE_LOWERING_H

#include "estimate/program/lower.h"
#include "estimate/program/tape.h"

#define FULL_BYTES  4 /* fp32, and TF32, which only computes with fewer bits */
#define HALF_BYTES  2
#define INDEX_BYTES 8 /* int64 */

struct lowered {
    int32_t first_parameter; /* of the tape */
    uint32_t parameter_count;
    uint32_t label;
    uint32_t uses, uses_left; /* layers that take its output */
    bool alive;               /* value is held */
    struct tape_value value;
};

struct lowering {
    const struct layer_list *list;
    const struct training *training;
    struct tape tape;
    struct lowered *layers;  /* as the list's */
    struct tape_value input; /* of the model, of the pass in progress */
    uint32_t targets, loss;  /* of the training step in progress */
    int64_t batch;           /* of the pass in progress */
    bool autocast; /* the pass in progress runs under it: matrix products and convolutions in half precision */
};

/* The shape that goes into a layer: of its first input; the rank is 0 where it is not known. */
struct lowering_shape {
    const int64_t *sizes;
    uint8_t rank;
};
struct lowering_shape lowering_input_shape(const struct lowering *lowering, size_t layer);

/* Parameters and buffers of a layer, in the order in which PyTorch's module registers them (lower_parameters.c). */
void lowering_add_parameters(struct lowering *lowering, size_t layer);
int64_t lowering_weights(const struct lowering *lowering, size_t layer); /* elements of a layer's first parameter */

/* Fills the program's figures about the model (lower_count.c). */
void lowering_count(struct lowering *lowering);

/* A layer's forward pass (lower_layers.c): a value with a reference of its own. Of its inputs there is one at least. */
struct tape_value lowering_layer(struct lowering *lowering, size_t layer, const struct tape_value *inputs,
                                 uint32_t input_count);
/* The same of LAYER_ATTENTION, with a result of `elements` (lower_attention.c). */
struct tape_value lowering_attention(struct lowering *lowering, size_t layer, const struct tape_value *inputs,
                                     uint32_t input_count, int64_t elements);

/* --- Operators (lower_operators.c); one that gives a value gives a reference with it --- */

struct tape_value lowering_value(uint32_t tensor, int64_t elements,
                                 uint8_t element_bytes); /* which needs no gradient */
struct tape_value lowering_alias(struct lowering *lowering, const struct tape_value *value);
void lowering_save(struct tape_op *op, uint32_t tensor); /* adds to the tensors that op saves */
void lowering_take_parameters(struct tape_op *op, const struct lowered *lowered);
/* Autocast's copies of op's parameters, in the order in which C++ works out arguments; the weight's is saved where the
 * input needs a gradient. */
void lowering_cast_parameters(struct lowering *lowering, struct tape_op *op);

/* Runs an operator with a new tensor of `elements` as its result; inputs and saved tensors as op says. */
struct tape_value lowering_run(struct lowering *lowering, struct tape_op *op, int64_t elements, uint8_t element_bytes);
/* Also saves the result and further tensors of these sizes, which are made after it. */
struct tape_value lowering_run_saving(struct lowering *lowering, struct tape_op *op, int64_t elements,
                                      uint8_t element_bytes, bool save_result, const int64_t *more_bytes,
                                      uint32_t more);
/* The type to which autocast casts an operator's input. */
struct tape_value lowering_to_half(struct lowering *lowering, const struct tape_value *value);
struct tape_value lowering_to_full(struct lowering *lowering, const struct tape_value *value);
/* y = x W^T + b with parameters first to first + count - 1 of the tape. `apart`: the bias is added by an operator of
 * its own, as torch.nn.functional.linear does where the input is not contiguous. */
struct tape_value lowering_matmul(struct lowering *lowering, const struct tape_value *input, int32_t first,
                                  uint32_t count, int64_t elements, bool apart);

/* optimizer.c: one step; `first` of the training: its state comes to be. */
void optimizer_step(struct tape *tape, enum optimizer optimizer, bool weight_decay, bool first);

#endif
