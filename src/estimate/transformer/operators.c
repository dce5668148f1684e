#include "base/memory.h"
#include "estimate/transformer/model.h"

struct tape_value model_keep(struct model *model, const struct tape_value *value)
{
    return lowering_alias(&model->lowering, value);
}

void model_hold(struct model *model, const struct tape_value *value)
{
    if (!model->method->kept_output)
        return;
    array_reserve(model->held, model->held_capacity, model->held_count + 1);
    model->held[model->held_count++] = model_keep(model, value).tensor;
}

static struct tape_value run(struct model *model, struct tape_op *op, int64_t elements, uint8_t element_bytes)
{
    struct tape_value result = lowering_run(&model->lowering, op, elements, element_bytes);

    for (uint32_t i = 0; i < op->input_count; i++)
        tape_drop(&model->lowering.tape, op->inputs[i].tensor);
    return result;
}

struct tape_value model_unary(struct model *model, struct tape_value input, int keeps, int64_t elements)
{
    struct tape_op op = {.inputs = &input, .input_count = 1};
    struct tape_value result;

    if (keeps & KEEPS_INPUT)
        lowering_save(&op, input.tensor);
    result = lowering_run_saving(&model->lowering, &op, elements, input.element_bytes, keeps & KEEPS_OUTPUT, NULL, 0);
    tape_drop(&model->lowering.tape, input.tensor);
    return result;
}

struct tape_value model_cast(struct model *model, struct tape_value value, uint8_t element_bytes)
{
    struct tape_op op = {.inputs = &value, .input_count = 1};

    return value.element_bytes == element_bytes ? value : run(model, &op, value.elements, element_bytes);
}

static uint8_t wider(const struct tape_value *a, const struct tape_value *b)
{
    return a->element_bytes > b->element_bytes ? a->element_bytes : b->element_bytes;
}

struct tape_value model_add(struct model *model, struct tape_value a, struct tape_value b)
{
    struct tape_value inputs[] = {a, b};
    struct tape_op op = {.kind = TAPE_VIEW, .inputs = inputs, .input_count = 2};

    return run(model, &op, a.elements > b.elements ? a.elements : b.elements, wider(&a, &b));
}

/* Each is kept for the other's gradient. The gradient of a smaller one is made in full before it is summed up. */
struct tape_value model_multiply(struct model *model, struct tape_value a, struct tape_value b)
{
    struct tape_value inputs[] = {a, b};
    struct tape_op op = {.inputs = inputs, .input_count = 2};
    int64_t elements = a.elements > b.elements ? a.elements : b.elements;

    if (a.node != TAPE_NONE)
        lowering_save(&op, b.tensor);
    if (b.node != TAPE_NONE)
        lowering_save(&op, a.tensor);
    if (a.elements != b.elements)
        op.scratch[op.scratch_count++] = elements * wider(&a, &b);
    return run(model, &op, elements, wider(&a, &b));
}

struct tape_value model_dropout(struct model *model, struct tape_value input, bool wanted)
{
    struct tape_op op = {.inputs = &input, .input_count = 1};
    struct tape_value result;

    if (!wanted)
        return input;
    result = lowering_run_saving(&model->lowering, &op, input.elements, input.element_bytes, false, &input.elements, 1);
    tape_drop(&model->lowering.tape, input.tensor);
    return result;
}

/* A weight of 4 bits is unpacked for each product, also for the gradient of its input. */
static struct tape_value multiply_packed(struct model *model, struct tape_value input, const struct linear *linear)
{
    struct tape *tape = &model->lowering.tape;
    uint8_t bytes = input.element_bytes;
    int64_t elements = input.elements / linear->in * linear->out, weight = linear->in * linear->out * HALF_BYTES;
    struct tape_value from = model_cast(model, input, HALF_BYTES), result;
    struct tape_op op = {
        .kind = TAPE_PRODUCT, .inputs = &from, .input_count = 1, .scratch = {weight}, .scratch_count = 1};
    uint32_t unpacked = tape_alloc(tape, weight, MEMORY_TEMPORARY);

    result = lowering_run(&model->lowering, &op, elements, HALF_BYTES);
    tape_take_cublas(tape);
    tape_drop(tape, unpacked);
    tape_drop(tape, from.tensor);
    return model_cast(model, result, model->lowering.autocast ? HALF_BYTES : bytes);
}

static struct tape_value multiply(struct model *model, struct tape_value input, int32_t first, uint32_t count,
                                  int64_t in, int64_t out)
{
    struct tape_value result =
        lowering_matmul(&model->lowering, &input, first, count, input.elements / in * out, false);

    tape_drop(&model->lowering.tape, input.tensor);
    return result;
}

/* LoRA: two thin matrices multiply the input in their own precision. Their scaled result is added to the frozen
 * layer's. */
static struct tape_value adapt(struct model *model, struct tape_value base, struct tape_value input,
                               const struct linear *linear)
{
    uint8_t bytes = base.element_bytes;
    int64_t rank = model->method->rank;
    struct tape_value part = model_cast(model, input, adapter_bytes(model));

    part = model_dropout(model, part, model->method->adapter_dropout);
    part = multiply(model, part, linear->adapter, 1, linear->in, rank);
    part = multiply(model, part, linear->adapter + 1, 1, rank, linear->out);
    part = model_unary(model, part, 0, part.elements);
    return model_cast(model, model_add(model, base, part), bytes);
}

struct tape_value model_linear(struct model *model, struct tape_value input, const struct linear *linear)
{
    struct tape_value base, extra = {0};

    model->lowering.tape.at.label = linear->label;
    if (linear->adapter != TAPE_NONE)
        extra = model_keep(model, &input);
    base = linear->packed ? multiply_packed(model, input, linear)
                          : multiply(model, input, linear->first, linear->count, linear->in, linear->out);
    return linear->adapter == TAPE_NONE ? base : adapt(model, base, extra, linear);
}

/* By PyTorch's kernel: in full precision under autocast; it keeps its input and two numbers for each row. */
static struct tape_value normalise_layer(struct model *model, struct tape_value input, const struct norm *norm)
{
    int64_t rows = input.elements / norm->width * FULL_BYTES;
    struct tape_value from = model->lowering.autocast ? model_cast(model, input, FULL_BYTES) : input, result;
    struct tape_op op = {.inputs = &from,
                         .input_count = 1,
                         .parameters = {norm->first, norm->first + 1},
                         .parameter_count = norm->count};

    lowering_save(&op, from.tensor);
    result = lowering_run_saving(&model->lowering, &op, from.elements, from.element_bytes, false,
                                 (int64_t[]){rows, rows}, 2);
    tape_drop(&model->lowering.tape, from.tensor);
    return result;
}

/* The weight times a tensor, which is kept where the weight is trained. */
static struct tape_value weigh(struct model *model, struct tape_value value, const struct norm *norm)
{
    const struct tape_parameter *weight = &model->lowering.tape.parameters[norm->first];
    struct tape_op op = {.inputs = &value, .input_count = 1, .parameters = {norm->first}, .parameter_count = 1};

    if (!weight->frozen) {
        lowering_save(&op, value.tensor);
        op.scratch[op.scratch_count++] = tape_bytes(&value);
    }
    return run(model, &op, value.elements,
               weight->element_bytes > value.element_bytes ? weight->element_bytes : value.element_bytes);
}

/* Operator by operator, as the models of Transformers compute it: x * rsqrt(mean(x^2)) in full precision, times the
 * weight in the input's. */
static struct tape_value normalise_rms(struct model *model, struct tape_value input, const struct norm *norm)
{
    uint8_t bytes = input.element_bytes;
    int64_t rows = input.elements / norm->width;
    struct tape_value full = model_cast(model, input, FULL_BYTES), scale;

    scale = model_unary(model, model_keep(model, &full), KEEPS_INPUT, full.elements);
    scale = model_unary(model, scale, 0, rows);
    scale = model_unary(model, scale, KEEPS_OUTPUT, rows);
    full = model_multiply(model, full, scale);
    if (model->transformer->traits & TRAIT_RMS_FULL)
        return model_cast(model, weigh(model, full, norm), bytes);
    return weigh(model, model_cast(model, full, bytes), norm);
}

struct tape_value model_normalise(struct model *model, struct tape_value input, const struct norm *norm)
{
    if (!norm->count)
        return input;
    model->lowering.tape.at.label = norm->label;
    return norm->count == 1 ? normalise_rms(model, input, norm) : normalise_layer(model, input, norm);
}

/* 0.5 x (1 + tanh(c (x + 0.044715 x^3))), a tensor for each operator; the power is in full precision under autocast. */
static struct tape_value activate_new(struct model *model, struct tape_value input)
{
    struct tape_value half = model_unary(model, model_keep(model, &input), 0, input.elements), cube;

    cube = model_keep(model, &input);
    cube = model_cast(model, cube, model->lowering.autocast ? FULL_BYTES : cube.element_bytes);
    cube = model_unary(model, cube, KEEPS_INPUT, cube.elements);
    cube = model_unary(model, cube, 0, cube.elements);
    cube = model_add(model, input, cube);
    cube = model_unary(model, cube, 0, cube.elements);
    cube = model_unary(model, cube, KEEPS_OUTPUT, cube.elements);
    cube = model_unary(model, cube, 0, cube.elements);
    return model_multiply(model, half, cube);
}

struct tape_value model_activate(struct model *model, struct tape_value input)
{
    uint8_t kind = model->transformer->activation;

    if (kind == TRANSFORMER_GELU_NEW)
        return activate_new(model, input);
    return model_unary(model, input, activation_saves_output((enum activation)kind) ? KEEPS_OUTPUT : KEEPS_INPUT,
                       input.elements);
}
