#include "base/memory.h"
#include "estimate/transformer/model.h"

/* Rows of the kernels' results and scratch are padded. These are the memory-efficient kernel's log-sum-exp, and flash
 * attention's gradient of the queries, which is summed up in full precision (flash_api.cpp, attention_backward.cu). */
#define EFFICIENT_ROWS 32
#define FLASH_ROWS     128
#define FLASH_WIDTH    32

static int64_t padded(int64_t number, int64_t to)
{
    return (number + to - 1) / to * to;
}

/* A part of a tensor with a gradient of its own size. Takes over the reference. */
static struct tape_value part_of(struct model *model, struct tape_value whole, int64_t elements)
{
    struct tape_op op = {.kind = TAPE_VIEW, .inputs = &whole, .input_count = 1};

    whole.elements = elements;
    whole.node = tape_record(&model->lowering.tape, &op, &whole);
    return whole;
}

/* Views of parts of a tensor. Backward, their gradients are copied into one tensor of the whole size. */
static struct tape_value split(struct model *model, struct tape_value whole)
{
    struct tape_op op = {.inputs = &whole, .input_count = 1};
    struct tape_value result = whole;

    result.node = tape_record(&model->lowering.tape, &op, &result);
    return result;
}

/* q cos + rotate_half(q) sin: only the sums stay. */
static struct tape_value rotate(struct model *model, struct tape_value value)
{
    struct tape_value turned, straight;

    if (!(model->transformer->traits & TRAIT_ROTARY))
        return value;
    straight = model_unary(model, model_keep(model, &value), 0, value.elements);
    turned = model_unary(model, value, 0, value.elements);
    turned = model_unary(model, turned, 0, turned.elements);
    return model_add(model, straight, turned);
}

/* The keys and values of a group of heads, copied for each of its heads. */
static struct tape_value repeat(struct model *model, struct tape_value value, int64_t elements)
{
    return value.elements == elements ? value : model_unary(model, value, 0, elements);
}

/* The heads stand side by side in memory; a batched product wants one after the other. */
static struct tape_value copy_heads(struct model *model, struct tape_value value)
{
    return model_unary(model, value, 0, value.elements);
}

/* The fused kernels keep no scores. Flash attention (half precision) takes groups of heads as they are. */
static struct tape_value attend_fused(struct model *model, struct tape_value inputs[3], int64_t rows)
{
    const struct transformer *t = model->transformer;
    struct tape *tape = &model->lowering.tape;
    int64_t elements = inputs[0].elements, batch = model->lowering.batch, length = rows / batch / t->heads;
    bool flash = inputs->element_bytes == HALF_BYTES && model->bias.elements == 0;
    struct tape_op op = {.inputs = inputs, .input_count = 3};
    struct tape_value result;
    uint32_t sums;

    for (int i = 0; i < 3 && model->method->contiguous; i++)
        inputs[i] = copy_heads(model, inputs[i]);
    if (flash) {
        int64_t wide = batch * t->heads * padded(length, FLASH_ROWS);
        op.scratch[op.scratch_count++] = wide * padded(t->head_width, FLASH_WIDTH) * FULL_BYTES;
        op.scratch[op.scratch_count++] = wide * FULL_BYTES;
        for (int i = 1; i < 3 && inputs[i].elements != elements;
             i++) /* gradients for each head, before they are summed up */
            op.scratch[op.scratch_count++] = inputs[i].elements / t->kv_heads * t->heads * HALF_BYTES;
    } else {
        op.scratch[op.scratch_count++] = elements * FULL_BYTES;
        op.scratch[op.scratch_count++] = rows * FULL_BYTES;
    }
    result = lowering_value(tape_alloc(tape, elements * inputs->element_bytes, MEMORY_ACTIVATION), elements,
                            inputs->element_bytes);
    sums = tape_alloc(tape, (flash ? rows : rows / length * padded(length, EFFICIENT_ROWS)) * FULL_BYTES,
                      MEMORY_ACTIVATION);
    for (int i = 0; i < 3; i++)
        lowering_save(&op, inputs[i].tensor);
    lowering_save(&op, result.tensor);
    lowering_save(&op, sums);
    result.node = tape_record(tape, &op, &result);
    tape_drop(tape, sums);
    for (int i = 0; i < 3; i++)
        tape_drop(tape, inputs[i].tensor);
    return result;
}

/* A batched product of two tensors. */
static struct tape_value product(struct model *model, struct tape_value a, struct tape_value b, int64_t elements)
{
    struct tape_value inputs[] = {a, b};
    struct tape_op op = {.kind = TAPE_PRODUCT, .inputs = inputs, .input_count = 2};
    struct tape_value result;

    lowering_save(&op, a.tensor);
    lowering_save(&op, b.tensor);
    result = lowering_run(&model->lowering, &op, elements, a.element_bytes);
    tape_take_cublas(&model->lowering.tape);
    tape_drop(&model->lowering.tape, a.tensor);
    tape_drop(&model->lowering.tape, b.tensor);
    return result;
}

/* Scores, scaled, with the mask or bias, their softmax; in Python in full precision. torch.matmul copies what it
 * multiplies (reshape in _matmul_impl, LinearAlgebra.cpp); heads that were repeated are copies already. So keys and
 * values that the training loop holds are there twice. `math`: by PyTorch, which scales queries and keys instead. */
static struct tape_value attend_eager(struct model *model, struct tape_value inputs[3], int64_t rows, int64_t keys,
                                      bool causal, bool math)
{
    const struct transformer *t = model->transformer;
    int64_t elements = inputs[0].elements;
    uint8_t bytes = inputs->element_bytes;
    bool alike = inputs[1].elements == elements;
    struct tape_value scores;

    for (int i = 1; i < 3; i++)
        inputs[i] = repeat(model, inputs[i], inputs[i].elements / t->kv_heads * t->heads);
    for (int i = 0; i < 2 && math; i++)
        inputs[i] = model_unary(model, inputs[i], 0, inputs[i].elements);
    for (int i = 0; i <= alike && !math; i++)
        inputs[i] = copy_heads(model, inputs[i]);
    scores = product(model, inputs[0], inputs[1], rows * keys);
    if (model->bias.elements)
        scores = model_add(model, scores, model_keep(model, &model->bias));
    else if (!math)
        scores = model_unary(model, scores, 0, scores.elements);
    if (causal)
        scores = model_unary(model, scores, 0, scores.elements);
    scores = model_cast(model, scores, math ? bytes : FULL_BYTES);
    scores = model_unary(model, scores, KEEPS_OUTPUT, scores.elements);
    scores = model_dropout(model, model_cast(model, scores, bytes), t->attention_dropout);
    if (alike && !math)
        inputs[2] = copy_heads(model, inputs[2]);
    return model_unary(model, product(model, scores, inputs[2], elements), 0, elements);
}

static void project(struct model *model, struct tape_value input, struct tape_value of,
                    const struct attention_module *attention, struct tape_value parts[3])
{
    const struct transformer *t = model->transformer;
    struct tape_value whole;

    if (!attention->key.out) {
        int64_t row = input.elements / t->width * t->head_width;
        tape_drop(&model->lowering.tape, of.tensor);
        whole = split(model, model_linear(model, input, &attention->query));
        parts[1] = part_of(model, model_keep(model, &whole), row * t->kv_heads);
        parts[2] = part_of(model, model_keep(model, &whole), row * t->kv_heads);
        parts[0] = part_of(model, whole, row * t->heads);
        return;
    }
    parts[0] = model_linear(model, input, &attention->query);
    parts[1] = model_linear(model, model_keep(model, &of), &attention->key);
    parts[2] = model_linear(model, of, &attention->value);
}

struct tape_value model_attend(struct model *model, struct tape_value input, struct tape_value of,
                               const struct attention_module *attention, bool causal)
{
    const struct transformer *t = model->transformer;
    int64_t rows = input.elements / t->width * t->heads, keys = of.elements / t->width / model->lowering.batch;
    struct tape_value parts[3], result;
    bool decodes = causal || input.tensor != of.tensor;
    bool math; /* no fused kernel takes groups of heads in full precision */

    project(model, input, of, attention, parts);
    for (int i = 0; i < 2; i++) {
        parts[i] = model_normalise(model, parts[i], i ? &attention->key_norm : &attention->query_norm);
        parts[i] = rotate(model, parts[i]);
    }
    if (model->lowering.autocast)
        for (int i = 0; i < 3; i++)
            parts[i] = model_cast(model, parts[i], HALF_BYTES);
    if (decodes && !model->method->checkpointing)
        for (int i = 1; i < 3; i++) /* a part of the result, for generation: use_cache */
            model_hold(model, &parts[i]);
    for (int i = 1; i < 3 && model->method->repeated_heads; i++)
        parts[i] = repeat(model, parts[i], parts[i].elements / t->kv_heads * t->heads);
    math = !model->method->eager && parts[1].elements != parts[0].elements && parts->element_bytes == FULL_BYTES;
    if (model->method->eager || math)
        result = attend_eager(model, parts, rows, keys, causal, math);
    else
        result = attend_fused(model, parts, rows);
    return model_linear(model, result, &attention->out);
}
