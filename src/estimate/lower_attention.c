#include "base/memory.h"
#include "estimate/lowering.h"

/* nn.MultiheadAttention in training, as torch.nn.functional.multi_head_attention_forward computes it, with the
 * scaled_dot_product_attention of torch 2 that keeps no matrix of scores. */

#define ROWS_TOGETHER 32 /* the kernel's rows of log-sum-exp are padded to it */

struct attention {
    int64_t tokens, length; /* of the batch, of a sample */
    int64_t width, heads;
};

/* A copy in another order of dimensions; on the way back the gradient is only looked at in the other order. */
static struct tape_value copy(struct lowering *lowering, struct tape_value input, enum tape_kind kind)
{
    struct tape_op op = {.kind = kind, .inputs = &input, .input_count = 1};
    struct tape_value result = lowering_run(lowering, &op, input.elements, input.element_bytes);

    tape_drop(&lowering->tape, input.tensor);
    return result;
}

/* q, k and v are taken out of one tensor: on the way back each gradient is put into zeros of the whole tensor's size,
 * and the three are summed up. */
static struct tape_value take_apart(struct lowering *lowering, struct tape_value input)
{
    struct tape_op op = {.inputs = &input, .input_count = 1};
    int64_t bytes = tape_bytes(&input);
    const int64_t scratch[] = {bytes, bytes, bytes, -1, -2, bytes};
    struct tape_value result = input;

    for (size_t i = 0; i < array_size(scratch); i++)
        op.scratch[op.scratch_count++] = scratch[i];
    result.node = tape_record(&lowering->tape, &op, &result); /* shares input's tensor, and takes its reference over */
    return result;
}

/* Keeps q, k, v, its output and a log-sum-exp for each row and head. */
static struct tape_value attend(struct lowering *lowering, struct tape_value qkv, const struct attention *attention)
{
    struct tape *tape = &lowering->tape;
    struct tape_op op = {.inputs = &qkv, .input_count = 1};
    int64_t rows = lowering->batch * attention->heads;
    int64_t padded = (attention->length + ROWS_TOGETHER - 1) / ROWS_TOGETHER * ROWS_TOGETHER;
    struct tape_value result = {.tensor = tape_alloc(tape, attention->tokens * attention->width * qkv.element_bytes,
                                                     MEMORY_ACTIVATION),
                                .node = TAPE_NONE,
                                .parameter = TAPE_NONE,
                                .element_bytes = qkv.element_bytes,
                                .elements = attention->tokens * attention->width};
    uint32_t log_sums = tape_alloc(tape, rows * padded * FULL_BYTES, MEMORY_ACTIVATION);

    op.scratch[op.scratch_count++] = rows * attention->length * FULL_BYTES;
    lowering_save(&op, qkv.tensor);
    lowering_save(&op, result.tensor);
    lowering_save(&op, log_sums);
    result.node = tape_record(tape, &op, &result);
    tape_drop(tape, log_sums);
    tape_drop(tape, qkv.tensor);
    return result;
}

struct tape_value lowering_attention(struct lowering *lowering, size_t number, struct tape_value input)
{
    const struct layer *layer = &lowering->list->items[number];
    const struct lowered *lowered = &lowering->layers[number];
    uint32_t in_count = lowered->parameter_count > 2 ? 2 : lowered->parameter_count ? 1 : 0;
    struct attention attention = {.width = layer->rank ? layer->shape[layer->rank - 1] : 1,
                                  .heads = layer->heads > 0 ? layer->heads : 1};
    struct tape_value value, projected;

    if (attention.width < 1)
        attention.width = 1;
    attention.tokens = input.elements / attention.width;
    attention.length = attention.tokens / lowering->batch;
    tape_hold(&lowering->tape, input.tensor);
    value = copy(lowering, input, TAPE_VIEW); /* batch_first: to (length, batch, width) */
    projected = lowering_matmul(lowering, &value, lowered->first_parameter, in_count, 3 * value.elements);
    tape_drop(&lowering->tape, value.tensor);
    value = take_apart(lowering, copy(lowering, projected, TAPE_OP));
    value = copy(lowering, attend(lowering, value, &attention), TAPE_VIEW);
    projected = lowering_matmul(lowering, &value, lowered->first_parameter + (int32_t)in_count,
                                lowered->parameter_count - in_count, value.elements);
    tape_drop(&lowering->tape, value.tensor);
    return projected;
}
