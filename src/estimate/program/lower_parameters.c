#include "estimate/program/lowering.h"

static void add(struct lowering *lowering, size_t layer, int64_t elements, int64_t last, int64_t second_last)
{
    struct lowered *lowered = &lowering->layers[layer];
    int32_t number;

    if (elements <= 0)
        return;
    number =
        tape_add_parameter(&lowering->tape, (struct tape_parameter){.elements = elements,
                                                                    .last = last,
                                                                    .second_last = second_last,
                                                                    .element_bytes = FULL_BYTES,
                                                                    .frozen = lowering->list->items[layer].frozen});
    if (!lowered->parameter_count++)
        lowered->first_parameter = number;
}

static int64_t last_size(const struct layer *layer)
{
    return layer->rank ? layer->shape[layer->rank - 1] : 0;
}

/* 0 where that is more than a number holds. */
static int64_t kernel_elements(const struct layer *layer)
{
    int64_t product = 1;

    for (int i = 0; i < 3; i++)
        if (layer->kernel[i] > 0 && __builtin_mul_overflow(product, layer->kernel[i], &product))
            return 0;
    return product;
}

/* Where the summary does not say it: there is a bias if the parameters beyond the weights make one. */
static bool has_bias(const struct layer *layer, int64_t out, int64_t weights)
{
    if (layer->bias_known)
        return layer->bias;
    if (weights > 0)
        return layer->parameters != weights;
    return layer->parameters > out;
}

static void add_weights(struct lowering *lowering, size_t number, int64_t out, int64_t weights, int64_t last,
                        int64_t second_last)
{
    const struct layer *layer = &lowering->list->items[number];
    int64_t bias = has_bias(layer, out, weights) && layer->parameters > out ? out : 0;

    add(lowering, number, layer->parameters - bias, last, second_last);
    add(lowering, number, bias, 0, 0);
}

static void add_conv(struct lowering *lowering, size_t number)
{
    const struct layer *layer = &lowering->list->items[number];
    int64_t out = layer->rank ? layer->shape[0] : 0, groups = layer->groups > 1 ? layer->groups : 1, weights = 0;
    int last = layer->kernel[2] > 0 ? 2 : layer->kernel[1] > 0 ? 1 : 0;

    if (layer->kernel[0] > 0 && layer->in_channels > 0 &&
        (__builtin_mul_overflow(out, layer->in_channels / groups, &weights) ||
         __builtin_mul_overflow(weights, kernel_elements(layer), &weights)))
        weights = 0;
    add_weights(lowering, number, out, weights, layer->kernel[last],
                last ? layer->kernel[last - 1] : layer->in_channels / groups);
}

static void add_linear(struct lowering *lowering, size_t number)
{
    const struct layer *layer = &lowering->list->items[number];
    struct lowering_shape from = lowering_input_shape(lowering, number);
    int64_t out = last_size(layer), in = from.rank ? from.sizes[from.rank - 1] : 0, weights = 0;

    if (__builtin_mul_overflow(in, out, &weights) || weights > layer->parameters)
        weights = 0;
    add_weights(lowering, number, out, weights, in, out);
}

/* Keras counts the running statistics as parameters. */
static void add_batch_norm(struct lowering *lowering, size_t number)
{
    const struct layer *layer = &lowering->list->items[number];
    int64_t channels = layer->rank ? layer->shape[0] : layer->parameters / 2;
    int64_t affine = layer->parameters >= 4 * channels ? 2 * channels : layer->parameters;

    if (affine > 0 && affine <= channels) {
        add(lowering, number, affine, 0, 0);
    } else {
        add(lowering, number, affine / 2, 0, 0);
        add(lowering, number, affine - affine / 2, 0, 0);
    }
    tape_alloc(&lowering->tape, channels * FULL_BYTES, MEMORY_BUFFER); /* running_mean */
    tape_alloc(&lowering->tape, channels * FULL_BYTES, MEMORY_BUFFER); /* running_var */
    tape_alloc(&lowering->tape, INDEX_BYTES, MEMORY_BUFFER);           /* num_batches_tracked */
}

/* Weight and bias; RMSNorm has the weight alone. */
static void add_norm(struct lowering *lowering, size_t number)
{
    const struct layer *layer = &lowering->list->items[number];
    bool alone = layer->bias_known ? !layer->bias : layer->parameters == last_size(layer);

    add(lowering, number, alone ? layer->parameters : layer->parameters / 2, 0, 0);
    add(lowering, number, alone ? 0 : layer->parameters - layer->parameters / 2, 0, 0);
}

/* nn.MultiheadAttention: in_proj_weight [3E, E], in_proj_bias [3E], out_proj.weight [E, E], out_proj.bias [E]. */
static void add_attention(struct lowering *lowering, size_t number)
{
    const struct layer *layer = &lowering->list->items[number];
    int64_t width = last_size(layer), square;

    if (__builtin_mul_overflow(width, width, &square) || square > LAYER_MAX_PARAMETERS)
        square = 0;
    if (square && layer->parameters == 4 * square + 4 * width) {
        add(lowering, number, 3 * square, width, 3 * width);
        add(lowering, number, 3 * width, 0, 0);
        add(lowering, number, square, width, width);
        add(lowering, number, width, 0, 0);
    } else if (square && layer->parameters > square) { /* other projections than these: as many numbers */
        add(lowering, number, layer->parameters - square, width, (layer->parameters - square) / width);
        add(lowering, number, square, width, width);
    } else {
        add(lowering, number, layer->parameters, 0, 0);
    }
}

void lowering_add_parameters(struct lowering *lowering, size_t number)
{
    const struct layer *layer = &lowering->list->items[number];

    switch (layer->kind) {
    case LAYER_CONV:
    case LAYER_CONV_TRANSPOSE:
        add_conv(lowering, number);
        break;
    case LAYER_LINEAR:
    case LAYER_CONV1D_LINEAR:
        add_linear(lowering, number);
        break;
    case LAYER_BATCH_NORM:
        add_batch_norm(lowering, number);
        break;
    case LAYER_LAYER_NORM:
    case LAYER_GROUP_NORM:
        add_norm(lowering, number);
        break;
    case LAYER_ATTENTION:
        add_attention(lowering, number);
        break;
    case LAYER_EMBEDDING:
        add(lowering, number, layer->parameters, last_size(layer),
            last_size(layer) ? layer->parameters / last_size(layer) : 0);
        break;
    default:
        add(lowering, number, layer->parameters, 0, 0);
        break;
    }
}

int64_t lowering_weights(const struct lowering *lowering, size_t layer)
{
    const struct lowered *lowered = &lowering->layers[layer];

    return lowered->parameter_count ? lowering->tape.parameters[lowered->first_parameter].elements : 0;
}
