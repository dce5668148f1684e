#include <string.h>

#include "base/memory.h"
#include "estimate/program/lowering.h"

static int64_t elements_of(const struct lowering *lowering, size_t number, const struct tape_value *input)
{
    const struct layer *layer = &lowering->list->items[number];
    int64_t elements;

    if (!layer->shape_known || __builtin_mul_overflow(layer_elements(layer), lowering->batch, &elements))
        return input->elements;
    return elements < PROGRAM_MAX_BYTES ? elements : PROGRAM_MAX_BYTES;
}

static int32_t narrow(int64_t size)
{
    return size < INT32_MAX ? (int32_t)size : INT32_MAX;
}

/* The padding with which `to` places of the kernel, `stride` apart, cover `from`. */
static int32_t padding_for(int64_t from, int64_t to, int32_t kernel, int32_t stride)
{
    int64_t missing = (to - 1) * stride + kernel - from;

    return missing > 0 ? narrow((missing + 1) / 2) : 0;
}

static struct program_conv geometry(const struct lowering *lowering, size_t number)
{
    const struct layer *layer = &lowering->list->items[number];
    struct lowering_shape from = lowering_input_shape(lowering, number);
    struct program_conv conv = {.pass = CONV_FORWARD,
                                .transposed = layer->kind == LAYER_CONV_TRANSPOSE,
                                .element_bytes = FULL_BYTES,
                                .rank = layer->rank > 3   ? 3
                                        : layer->rank > 1 ? (uint8_t)(layer->rank - 1)
                                                          : 1,
                                .batch = lowering->batch,
                                .in_channels = layer->in_channels,
                                .out_channels = layer->rank ? layer->shape[0] : 0,
                                .groups = layer->groups > 0 ? layer->groups : 1};

    if (conv.in_channels <= 0 && from.rank)
        conv.in_channels = from.sizes[0];
    for (uint8_t i = 0; i < conv.rank; i++) {
        conv.out[i] = i + 1 < layer->rank ? narrow(layer->shape[i + 1]) : 1;
        conv.in[i] = i + 1 < from.rank ? narrow(from.sizes[i + 1]) : conv.out[i];
        conv.kernel[i] = layer->kernel[i] > 0 ? layer->kernel[i] : 1;
        conv.stride[i] = layer->stride[i] > 0 ? layer->stride[i] : 1;
        conv.dilation[i] = 1;
        conv.padding[i] = conv.transposed ? padding_for(conv.out[i], conv.in[i], conv.kernel[i], conv.stride[i])
                                          : padding_for(conv.in[i], conv.out[i], conv.kernel[i], conv.stride[i]);
    }
    return conv;
}

static struct tape_value lower_conv(struct lowering *lowering, size_t number, const struct tape_value *input)
{
    struct tape *tape = &lowering->tape;
    struct tape_op op = {.kind = TAPE_CONV, .inputs = input, .input_count = 1};
    struct program_conv conv = geometry(lowering, number);
    int64_t elements = elements_of(lowering, number, input);
    struct tape_value from, result;

    lowering_take_parameters(&op, &lowering->layers[number]);
    lowering_cast_parameters(lowering, &op);
    from = lowering_to_half(lowering, input);
    op.inputs = &from;
    lowering_save(&op, from.tensor);
    conv.element_bytes = lowering->autocast ? HALF_BYTES : FULL_BYTES;
    result = lowering_value(tape_alloc(tape, elements * conv.element_bytes, MEMORY_ACTIVATION), elements,
                            conv.element_bytes);
    program_conv(tape->program, &conv, tape->at);
    result.node = tape_record(tape, &op, &result);
    tape_drop(tape, from.tensor);
    return result;
}

/* The output, then the batch's mean and inverse standard deviation (native_batch_norm). */
static struct tape_value lower_batch_norm(struct lowering *lowering, size_t number, const struct tape_value *input)
{
    const struct layer *layer = &lowering->list->items[number];
    struct tape_op op = {.inputs = input, .input_count = 1};
    int64_t channels = (layer->rank ? layer->shape[0] : layer->parameters / 2) * FULL_BYTES;

    lowering_take_parameters(&op, &lowering->layers[number]);
    lowering_save(&op, input->tensor);
    return lowering_run_saving(lowering, &op, elements_of(lowering, number, input), input->element_bytes, false,
                               (int64_t[]){channels, channels}, 2);
}

/* As above, a mean and a deviation per row (native_layer_norm) or group; in full precision under autocast. */
static struct tape_value lower_norm(struct lowering *lowering, size_t number, const struct tape_value *input)
{
    const struct layer *layer = &lowering->list->items[number];
    struct tape_value from = lowering_to_full(lowering, input), result;
    struct tape_op op = {.inputs = &from, .input_count = 1};
    int64_t elements = elements_of(lowering, number, input), row = layer->rank ? layer->shape[layer->rank - 1] : 1;
    int64_t rows = layer->kind == LAYER_LAYER_NORM ? elements / (row > 0 ? row : 1) : lowering->batch * 32;

    lowering_take_parameters(&op, &lowering->layers[number]);
    lowering_save(&op, from.tensor);
    result = lowering_run_saving(lowering, &op, elements, FULL_BYTES, false,
                                 (int64_t[]){rows * FULL_BYTES, rows * FULL_BYTES}, 2);
    tape_drop(&lowering->tape, from.tensor);
    return result;
}

/* In place, backward needs the result where it can do without the input (derivatives.yaml). The others then save a copy
 * of the input, which takes as much as a result of their own. */
static bool works_in_place(const struct layer *layer)
{
    return layer->in_place &&
           (activation_saves_output((enum activation)layer->activation) || layer->activation == ACTIVATION_LEAKY_RELU ||
            layer->activation == ACTIVATION_ELU || layer->activation == ACTIVATION_SELU);
}

static struct tape_value overwrite(struct lowering *lowering, struct tape_op *op, const struct tape_value *input)
{
    struct tape_value result = lowering_alias(lowering, input);

    lowering_save(op, result.tensor);
    result.node = tape_record(&lowering->tape, op, &result);
    return result;
}

static struct tape_value activate(struct lowering *lowering, size_t number, const struct tape_value *input)
{
    const struct layer *layer = &lowering->list->items[number];
    bool saves_output = activation_saves_output((enum activation)layer->activation);
    struct tape_op op = {.inputs = input, .input_count = 1};

    lowering_take_parameters(&op, &lowering->layers[number]);
    if (works_in_place(layer))
        return overwrite(lowering, &op, input);
    if (!saves_output)
        lowering_save(&op, input->tensor);
    if (layer->activation == ACTIVATION_PRELU) /* the slope's gradient of every element, before it is summed up */
        op.late_scratch = tape_bytes(input);
    return lowering_run_saving(lowering, &op, input->elements, input->element_bytes, saves_output, NULL, 0);
}

static struct tape_value lower_activation(struct lowering *lowering, size_t number, const struct tape_value *input)
{
    struct tape_value from, result;

    switch (lowering->list->items[number].activation) {
    case ACTIVATION_NONE:
        return lowering_alias(lowering, input);
    case ACTIVATION_SOFTPLUS: /* in full precision under autocast */
        from = lowering_to_full(lowering, input);
        result = activate(lowering, number, &from);
        tape_drop(&lowering->tape, from.tensor);
        return result;
    default:
        return activate(lowering, number, input);
    }
}

static struct tape_value lower_softmax(struct lowering *lowering, const struct tape_value *input)
{
    struct tape_value from = lowering_to_full(lowering, input), result;
    struct tape_op op = {.inputs = &from, .input_count = 1};

    result = lowering_run_saving(lowering, &op, from.elements, FULL_BYTES, true, NULL, 0);
    tape_drop(&lowering->tape, from.tensor);
    return result;
}

/* native_dropout: the output, then a mask of a byte for each element. Nothing in evaluation mode. */
static struct tape_value lower_dropout(struct lowering *lowering, const struct tape_value *input)
{
    struct tape_op op = {.inputs = input, .input_count = 1};

    if (!lowering->tape.recording)
        return lowering_alias(lowering, input);
    return lowering_run_saving(lowering, &op, input->elements, input->element_bytes, false, &input->elements, 1);
}

/* With the places of the maxima, as int64. */
static struct tape_value lower_max_pool(struct lowering *lowering, size_t number, const struct tape_value *input)
{
    struct tape_op op = {.inputs = input, .input_count = 1};
    int64_t elements = elements_of(lowering, number, input), indices = elements * INDEX_BYTES;

    lowering_save(&op, input->tensor);
    return lowering_run_saving(lowering, &op, elements, input->element_bytes, false, &indices, 1);
}

/* A mean over everything, as adaptive pooling to one element and global pooling are, saves nothing; the others their
 * input. */
static bool is_mean(const struct layer *layer)
{
    for (uint8_t i = 1; i < layer->rank; i++)
        if (layer->shape[i] != 1)
            return false;
    return strncmp(layer->type, "AvgPool", 7) != 0 && strncmp(layer->type, "AveragePooling", 14) != 0;
}

static struct tape_value lower_avg_pool(struct lowering *lowering, size_t number, const struct tape_value *input)
{
    struct tape_op op = {.inputs = input, .input_count = 1};

    if (!is_mean(&lowering->list->items[number]))
        lowering_save(&op, input->tensor);
    return lowering_run(lowering, &op, elements_of(lowering, number, input), input->element_bytes);
}

/* Backward of more than 3,072 tokens sorts them. It sums up runs of up to 10 equal ones before it writes the gradient
 * (ATen's Embedding.cu and EmbeddingBackwardKernel.cu). */
static void embed_backward(const struct lowering *lowering, size_t number, const struct tape_value *tokens,
                           struct tape_op *op)
{
    const struct layer *layer = &lowering->list->items[number];
    int64_t width = layer->rank ? layer->shape[layer->rank - 1] : 1, words, runs;

    if (tokens->elements <= 3072 || width < 1)
        return;
    words = lowering_weights(lowering, number) / width;
    runs = tokens->elements / 10 + (words < tokens->elements ? words : tokens->elements);
    for (int i = 0; i < 2; i++) /* sorted, and where they stood */
        op->scratch[op->scratch_count++] = tokens->elements * INDEX_BYTES;
    if (__builtin_mul_overflow(runs, width * FULL_BYTES, &op->late_scratch))
        op->late_scratch = PROGRAM_MAX_BYTES;
}

static struct tape_value lower_embedding(struct lowering *lowering, size_t number, const struct tape_value *input)
{
    struct tape_op op = {.inputs = input, .input_count = 1};

    lowering_take_parameters(&op, &lowering->layers[number]);
    lowering_save(&op, input->tensor);
    embed_backward(lowering, number, input, &op);
    return lowering_run(lowering, &op, elements_of(lowering, number, input), FULL_BYTES);
}

/* cuDNN keeps the gates of every step besides the output: its reserve space. The size is not published; four times the
 * output is the size of an LSTM's gates. */
static struct tape_value lower_recurrent(struct lowering *lowering, size_t number, const struct tape_value *input)
{
    struct tape_op op = {.inputs = input, .input_count = 1};
    int64_t elements = elements_of(lowering, number, input), reserve = 4 * elements * FULL_BYTES;

    lowering_take_parameters(&op, &lowering->layers[number]);
    lowering_save(&op, input->tensor);
    return lowering_run_saving(lowering, &op, elements, FULL_BYTES, true, &reserve, 1);
}

/* Bare parameters among the inputs become the operator's own. */
static uint32_t split_inputs(struct tape_op *op, const struct tape_value *inputs, uint32_t count,
                             struct tape_value *left)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (inputs[i].parameter == TAPE_NONE)
            left[kept++] = inputs[i];
        else if (op->parameter_count < TAPE_OP_OWN)
            op->parameters[op->parameter_count++] = inputs[i].parameter;
    }
    return kept;
}

static uint8_t widest(const struct tape_value *inputs, uint32_t count)
{
    uint8_t bytes = HALF_BYTES;

    for (uint32_t i = 0; i < count; i++)
        if (inputs[i].element_bytes != HALF_BYTES)
            bytes = FULL_BYTES;
    return bytes;
}

/* ADD, MULTIPLY, CONCAT and unknown layers with several inputs. */
static struct tape_value lower_joint(struct lowering *lowering, size_t number, const struct tape_value *inputs,
                                     uint32_t count)
{
    const struct layer *layer = &lowering->list->items[number];
    CLEANUP(free_ptr) struct tape_value *left = xcalloc(count, sizeof *left);
    struct tape_op op = {.inputs = left};
    struct tape_value result;
    uint8_t element_bytes = widest(inputs, count);
    int64_t elements = elements_of(lowering, number, &inputs[0]);

    op.input_count = split_inputs(&op, inputs, count, left);
    op.kind = layer->kind == LAYER_ADD ? TAPE_VIEW : layer->kind == LAYER_CONCAT ? TAPE_JOIN : TAPE_OP;
    if (layer->kind == LAYER_MULTIPLY) {
        for (uint32_t i = 0; i < op.input_count && op.saved_count < TAPE_OP_SAVED; i++) {
            lowering_save(&op, left[i].tensor);
            if (left[i].elements != elements && op.scratch_count < TAPE_OP_SCRATCH) /* before it is summed up */
                op.scratch[op.scratch_count++] = elements * element_bytes;
        }
    }
    if (layer->kind == LAYER_ADD && layer->in_place && op.input_count && left[0].elements == elements) {
        result = lowering_alias(lowering, &left[0]);
        result.node = tape_record(&lowering->tape, &op, &result);
        return result;
    }
    return lowering_run_saving(lowering, &op, elements, element_bytes, layer->kind == LAYER_UNKNOWN, NULL, 0);
}

/* A layer of an unknown kind: a result of its shape, saved where `saves`. */
static struct tape_value lower_plain(struct lowering *lowering, size_t number, const struct tape_value *input,
                                     bool saves)
{
    struct tape_op op = {.inputs = input, .input_count = 1};

    lowering_take_parameters(&op, &lowering->layers[number]);
    return lowering_run_saving(lowering, &op, elements_of(lowering, number, input),
                               input->element_bytes == HALF_BYTES ? HALF_BYTES : FULL_BYTES, saves, NULL, 0);
}

static struct tape_value lower_reshape(struct lowering *lowering, const struct tape_value *input)
{
    struct tape_op op = {.kind = TAPE_VIEW, .inputs = input, .input_count = 1};
    struct tape_value result = lowering_alias(lowering, input);

    result.parameter = TAPE_NONE;
    result.node = tape_record(&lowering->tape, &op, &result);
    return result;
}

static struct tape_value lower_parameter(struct lowering *lowering, size_t number)
{
    const struct lowered *lowered = &lowering->layers[number];
    const struct tape_parameter *parameter = &lowering->tape.parameters[lowered->first_parameter];
    struct tape_value result = lowering_value(parameter->tensor, parameter->elements, FULL_BYTES);

    tape_hold(&lowering->tape, result.tensor);
    result.parameter = lowered->first_parameter;
    return result;
}

/* The model's first input; further ones are tensors of their own. */
static struct tape_value lower_input(struct lowering *lowering, size_t number)
{
    const struct layer *layer = &lowering->list->items[number];
    int64_t elements = elements_of(lowering, number, &lowering->input);

    for (size_t i = 0; i < number; i++)
        if (lowering->list->items[i].kind == LAYER_INPUT && !lowering->list->items[i].container && layer->shape_known)
            return lowering_value(tape_alloc(&lowering->tape, elements * FULL_BYTES, MEMORY_INPUT), elements,
                                  FULL_BYTES);
    return lowering_alias(lowering, &lowering->input);
}

struct tape_value lowering_layer(struct lowering *lowering, size_t number, const struct tape_value *inputs,
                                 uint32_t input_count)
{
    const struct layer *layer = &lowering->list->items[number];

    switch (layer->kind) {
    case LAYER_INPUT:
        return lower_input(lowering, number);
    case LAYER_CONV:
    case LAYER_CONV_TRANSPOSE:
        return lower_conv(lowering, number, inputs);
    case LAYER_LINEAR:
    case LAYER_CONV1D_LINEAR:
        return lowering_matmul(lowering, inputs, lowering->layers[number].first_parameter,
                               lowering->layers[number].parameter_count, elements_of(lowering, number, inputs), false);
    case LAYER_BATCH_NORM:
        return lower_batch_norm(lowering, number, inputs);
    case LAYER_LAYER_NORM:
    case LAYER_GROUP_NORM:
        return lower_norm(lowering, number, inputs);
    case LAYER_ACTIVATION:
        return lower_activation(lowering, number, inputs);
    case LAYER_SOFTMAX:
        return lower_softmax(lowering, inputs);
    case LAYER_DROPOUT:
        return lower_dropout(lowering, inputs);
    case LAYER_MAX_POOL:
        return lower_max_pool(lowering, number, inputs);
    case LAYER_AVG_POOL:
        return lower_avg_pool(lowering, number, inputs);
    case LAYER_EMBEDDING:
        return lower_embedding(lowering, number, inputs);
    case LAYER_ATTENTION:
        return lowering_attention(lowering, number, inputs, input_count, elements_of(lowering, number, inputs));
    case LAYER_RECURRENT:
        return lower_recurrent(lowering, number, inputs);
    case LAYER_ADD:
    case LAYER_MULTIPLY:
    case LAYER_CONCAT:
        return lower_joint(lowering, number, inputs, input_count);
    case LAYER_RESHAPE:
        return lower_reshape(lowering, inputs);
    case LAYER_UPSAMPLE:
    case LAYER_PADDING:
        return lower_plain(lowering, number, inputs, false);
    case LAYER_IDENTITY:
        return lowering_alias(lowering, inputs);
    case LAYER_PARAMETER:
        if (lowering->layers[number].parameter_count)
            return lower_parameter(lowering, number);
        return lowering_alias(lowering, inputs);
    default:
        if (input_count > 1)
            return lower_joint(lowering, number, inputs, input_count);
        return lower_plain(lowering, number, inputs, true);
    }
}
