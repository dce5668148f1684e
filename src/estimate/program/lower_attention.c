#include "base/memory.h"
#include "estimate/program/lowering.h"

/* nn.MultiheadAttention in training, as torch.nn.functional.multi_head_attention_forward computes it, with the
 * scaled_dot_product_attention of torch 2 that keeps no matrix of scores. Also that alone, for models with projections
 * as layers of their own. It is then a layer without parameters, of queries, keys and values, or of one tensor with all
 * three. */

#define ROWS_TOGETHER 32 /* the kernel's rows of log-sum-exp are padded to it */

/* Bytes of this many numbers for each row and head; the largest tensor where that is too large. */
static int64_t row_bytes(const struct lowering *lowering, int64_t heads, int64_t rows)
{
    int64_t bytes;

    if (__builtin_mul_overflow(lowering->batch * FULL_BYTES, heads, &bytes) ||
        __builtin_mul_overflow(bytes, rows, &bytes))
        return PROGRAM_MAX_BYTES;
    return bytes;
}

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

/* Another view of the same tensor (elements of it) with a new gradient: in another order, or within zeros. Takes over
 * the input's reference. */
static struct tape_value look(struct lowering *lowering, struct tape_value input, int64_t elements)
{
    struct tape_op op = {.inputs = &input, .input_count = 1};
    struct tape_value result = input;

    result.elements = elements;
    result.node = tape_record(&lowering->tape, &op, &result);
    return result;
}

/* Keeps its inputs, its output and a log-sum-exp for each row and head. */
static struct tape_value attend(struct lowering *lowering, const struct tape_value *inputs, uint32_t count,
                                const struct attention *attention)
{
    struct tape *tape = &lowering->tape;
    struct tape_op op = {.inputs = inputs, .input_count = count};
    int64_t elements = attention->tokens * attention->width, length = attention->length;
    int64_t padded = (length + ROWS_TOGETHER - 1) / ROWS_TOGETHER * ROWS_TOGETHER;
    struct tape_value result = lowering_value(tape_alloc(tape, elements * inputs->element_bytes, MEMORY_ACTIVATION),
                                              elements, inputs->element_bytes);
    uint32_t log_sums = tape_alloc(tape, row_bytes(lowering, attention->heads, padded), MEMORY_ACTIVATION);

    op.scratch[op.scratch_count++] = tape_bytes(&result); /* the gradient in the kernel's order */
    op.scratch[op.scratch_count++] = row_bytes(lowering, attention->heads, length);
    for (uint32_t i = 0; i < count; i++)
        lowering_save(&op, inputs[i].tensor);
    lowering_save(&op, result.tensor);
    lowering_save(&op, log_sums);
    result.node = tape_record(tape, &op, &result);
    tape_drop(tape, log_sums);
    return result;
}

static struct tape_value attend_alone(struct lowering *lowering, const struct tape_value *inputs, uint32_t count,
                                      const struct attention *attention)
{
    struct tape_value parts[3] = {0}, result;

    count = count < array_size(parts) ? count : array_size(parts);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = lowering_to_half(lowering, &inputs[i]);
    if (count == 1)
        parts[0] = look(lowering, parts[0], parts[0].elements); /* the parts' gradients are put together */
    result = attend(lowering, parts, count, attention);
    for (uint32_t i = 0; i < count; i++)
        tape_drop(&lowering->tape, parts[i].tensor);
    return result;
}

/* Queries, keys and values are taken out of one tensor. On the way back each gradient is copied twice into the other
 * order of dimensions. It is put into zeros of the whole tensor's size, which are summed up. */
static struct tape_value attend_packed(struct lowering *lowering, struct tape_value packed,
                                       const struct attention *attention)
{
    struct tape_value parts[3], result;
    int64_t elements = attention->tokens * attention->width;

    for (size_t i = 0; i < array_size(parts); i++)
        parts[i] = look(lowering, lowering_alias(lowering, &packed), elements);
    for (size_t i = 0; i < 2 * array_size(parts); i++)
        parts[i % array_size(parts)] = look(lowering, parts[i % array_size(parts)], elements);
    tape_drop(&lowering->tape, packed.tensor);
    result = attend(lowering, parts, array_size(parts), attention);
    for (size_t i = 0; i < array_size(parts); i++)
        tape_drop(&lowering->tape, parts[i].tensor);
    return result;
}

static struct attention attention_of(const struct lowering *lowering, const struct layer *layer, int64_t elements)
{
    struct attention attention = {.width = layer->rank ? layer->shape[layer->rank - 1] : 1,
                                  .heads = layer->heads > 0 ? layer->heads : 1};

    if (attention.width < 1)
        attention.width = 1;
    attention.tokens = elements / attention.width;
    attention.length = attention.tokens / lowering->batch;
    return attention;
}

struct tape_value lowering_attention(struct lowering *lowering, size_t number, const struct tape_value *inputs,
                                     uint32_t count, int64_t elements)
{
    const struct layer *layer = &lowering->list->items[number];
    const struct lowered *lowered = &lowering->layers[number];
    uint32_t in_count = lowered->parameter_count > 2 ? 2 : 1;
    struct attention attention = attention_of(lowering, layer, elements);
    struct tape_value value, projected;

    if (!lowered->parameter_count)
        return attend_alone(lowering, inputs, count, &attention);
    tape_hold(&lowering->tape, inputs->tensor);
    value = copy(lowering, *inputs, TAPE_VIEW); /* batch_first: to (length, batch, width) */
    projected = lowering_matmul(lowering, &value, lowered->first_parameter, in_count, 3 * value.elements, true);
    tape_drop(&lowering->tape, value.tensor);
    value = attend_packed(lowering, copy(lowering, projected, TAPE_OP), &attention);
    value = copy(lowering, value, TAPE_VIEW);
    projected = lowering_matmul(lowering, &value, lowered->first_parameter + (int32_t)in_count,
                                lowered->parameter_count - in_count, value.elements, false);
    tape_drop(&lowering->tape, value.tensor);
    return look(lowering, projected, projected.elements); /* back to (batch, length, width) */
}
