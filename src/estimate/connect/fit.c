/* Requirements on a layer, from its output's shape, its parameters, and the shape of its input. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/connect/connect.h"

/* The reasons that make a fit odd. The order matters, not the numbers. */
enum { COST_EVEN = 2, COST_GROUPS = 3, COST_NARROW = 3, COST_LARGE = 4, COST_POINT_GROUPS = 6 };

#define LARGE_KERNEL 11

struct shape layer_shape(const struct layer *layer)
{
    struct shape shape = {.rank = layer->shape_known ? layer->rank : 0};

    memcpy(shape.size, layer->shape, sizeof shape.size);
    return shape;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank && memcmp(a->size, b->size, a->rank * sizeof *a->size) == 0;
}

int64_t shape_elements(const struct shape *shape)
{
    int64_t elements = 1;

    for (int i = 0; i < shape->rank; i++)
        if (__builtin_mul_overflow(elements, shape->size[i], &elements))
            return INT64_MAX;
    return elements;
}

/* The whole root of `value` for this power; 0 where there is none up to 64. */
static int32_t whole_root(int64_t value, int power)
{
    for (int32_t root = 1; root <= 64; root++) {
        int64_t product = 1;
        for (int i = 0; i < power; i++)
            product *= root;
        if (product >= value)
            return product == value ? root : 0;
    }
    return 0;
}

/* A kernel of `volume` elements over `rank` dimensions: all sides alike, or (1, n) and (1, n, n), (n, 1, 1). Returns
 * its cost. */
static int split_kernel(int64_t volume, int rank, int32_t kernel[static 3])
{
    int32_t side = whole_root(volume, rank);

    for (int i = 0; i < 3; i++)
        kernel[i] = i < rank ? side : 0;
    if (side)
        return side % 2 ? 0 : COST_EVEN;
    if (rank == 1 || volume < 1)
        return FIT_NONE;
    kernel[0] = 1;
    side = whole_root(volume, rank - 1);
    if (side && (rank == 3 || side <= 31)) {
        for (int i = 1; i < rank; i++)
            kernel[i] = side;
        return side % 2 ? COST_NARROW : COST_NARROW + COST_EVEN;
    }
    if (rank == 3 && volume <= 31) {
        kernel[0] = (int32_t)volume;
        kernel[1] = kernel[2] = 1;
        return COST_NARROW;
    }
    return FIT_NONE;
}

/* The stride by which a kernel takes `in` elements to `out`, padded on either side by `least` to `most`. Of several,
 * the one nearest to their ratio. 0: none does. */
static int64_t padded_stride(int64_t in, int64_t out, int64_t kernel, int64_t least, int64_t most)
{
    int64_t low = in > kernel ? (in - kernel) / out : 1, best = 0;

    for (int64_t stride = low > 1 ? low : 1; stride <= in / out + 1; stride++) {
        int64_t missing = (out - 1) * stride + kernel - in; /* without padding */
        int64_t padding = missing > 2 * least ? (missing + 1) / 2 : least;

        if (padding <= most && 2 * padding - missing < stride &&
            (best == 0 || llabs(stride * out - in) < llabs(best * out - in)))
            best = stride;
    }
    return best;
}

static int32_t stride_of(int64_t in, int64_t out, int32_t kernel)
{
    /* most often so that it would keep the size, or not at all */
    const int64_t paddings[][2] = {{kernel / 2, kernel / 2}, {0, 0}, {0, kernel / 2}, {kernel / 2 + 1, kernel - 1}};

    if (out < 1 || in < 1)
        return 0;
    for (size_t i = kernel % 2 ? 0 : 1; i < array_size(paddings); i++) {
        int64_t stride = padded_stride(in, out, kernel, paddings[i][0], paddings[i][1]);
        if (stride)
            return stride <= INT32_MAX ? (int32_t)stride : 0;
    }
    return in >= out && in - out <= 8 * (int64_t)(kernel - 1) ? 1 : 0; /* dilated */
}

static bool find_strides(const struct shape *in, const struct shape *out, bool transposed, struct fit *fit)
{
    for (int i = 0; i + 1 < out->rank; i++) {
        int64_t from = in->size[1 + i], to = out->size[1 + i];
        fit->stride[i] = transposed ? stride_of(to, from, fit->kernel[i]) : stride_of(from, to, fit->kernel[i]);
        if (fit->stride[i] == 0 || (fit->stride[i] > 2 && fit->stride[i] > fit->kernel[i]))
            return false; /* it would pass by most of its input: a pooling stands before it */
        fit->skips |= fit->stride[i] > fit->kernel[i];
    }
    return true;
}

/* A kernel as large as its stride cuts the input into patches: then an even one is not unusual. */
static bool is_patch(const struct fit *fit, int rank)
{
    for (int i = 0; i < rank; i++)
        if (fit->kernel[i] != fit->stride[i])
            return false;
    return true;
}

/* The convolution with `per_output` weights for each output channel; `fit` gets it. Returns its cost. */
static int fit_weights(const struct layer *layer, const struct shape *in, const struct shape *out, int64_t per_output,
                       int64_t groups, struct fit *fit)
{
    int64_t channels = in->size[0] / groups, volume;
    int cost, rank = out->rank - 1;

    /* a transposed one's weights count from its input's side */
    if (layer->kind == LAYER_CONV_TRANSPOSE && out->size[0] % groups)
        return FIT_NONE;
    if (in->size[0] % groups || out->size[0] % groups || channels == 0 || per_output % channels)
        return FIT_NONE;
    volume = per_output / channels;
    fit->skips = false;
    fit->groups = groups;
    fit->in_channels = in->size[0];
    if (layer->kernel[0]) {
        int64_t product = 1;
        for (int i = 0; i < rank; i++) {
            fit->kernel[i] = layer->kernel[i];
            product *= layer->kernel[i] < 1 || layer->kernel[i] > 4096 ? 0 : layer->kernel[i];
        }
        cost = product == volume ? 0 : FIT_NONE;
    } else {
        cost = split_kernel(volume, rank, fit->kernel);
    }
    if (cost >= FIT_NONE || !find_strides(in, out, layer->kind == LAYER_CONV_TRANSPOSE, fit))
        return FIT_NONE;
    if (cost == COST_EVEN && is_patch(fit, rank))
        cost = 0;
    else if (cost && groups > 1)
        cost += COST_EVEN;
    if (fit->kernel[0] > LARGE_KERNEL && !is_patch(fit, rank))
        cost += COST_LARGE;
    if (fit->skips)
        cost += COST_SKIPS;
    if (groups == 1 || groups == in->size[0])
        return cost;
    return cost + (volume == 1 ? COST_POINT_GROUPS : COST_GROUPS);
}

static int fit_groups(const struct layer *layer, const struct shape *in, const struct shape *out, int64_t per_output,
                      struct fit *fit)
{
    int64_t channels = in->size[0];
    int best = FIT_NONE;

    if (layer->groups > 0)
        return fit_weights(layer, in, out, per_output, layer->groups, fit);
    best = fit_weights(layer, in, out, per_output, 1, fit);
    if (best == 0)
        return best;
    /* Depthwise, then the group sizes that a square kernel leaves. */
    for (int32_t side = 0; side <= 11; side++) {
        int64_t volume = side ? (out->rank == 2 ? side : (int64_t)side * side) : per_output;
        int64_t in_group = per_output / volume;
        struct fit other = *fit;
        int cost;

        if (per_output % volume || in_group == 0 || in_group > channels || channels % in_group)
            continue;
        if (channels / in_group == 1)
            continue;
        cost = fit_weights(layer, in, out, per_output, channels / in_group, &other);
        if (cost < best) {
            best = cost;
            *fit = other;
        }
    }
    return best;
}

static int fit_conv(const struct layer *layer, const struct shape *in, struct fit *fit)
{
    struct shape out = layer_shape(layer);
    int64_t channels = out.size[0], per_output;
    int best = FIT_NONE;

    if (out.rank < 2 || out.rank > 4 || in->rank != out.rank || in->size[0] < 1 || channels < 1)
        return FIT_NONE;
    for (int bias = 0; bias < 2; bias++) {
        struct fit other = {.bias_known = true, .bias = bias};
        int64_t weights = layer->parameters - bias * channels;
        int cost;

        if ((layer->bias_known && layer->bias != bias) || weights <= 0 || weights % channels)
            continue;
        per_output = weights / channels;
        cost = fit_groups(layer, in, &out, per_output, &other);
        if (cost < best || (cost == best && fit->groups > 1 && other.groups == 1)) {
            best = cost;
            *fit = other;
        }
    }
    return best;
}

/* Takes the last dimension; or all of them, where it comes after a flattening that is not a layer. */
static int fit_linear(const struct layer *layer, const struct shape *in, struct fit *fit)
{
    struct shape out = layer_shape(layer);
    int64_t features = out.rank ? out.size[out.rank - 1] : 0, have;

    if (features < 1 || in->rank == 0)
        return FIT_NONE;
    have = in->size[in->rank - 1];
    if (in->rank != out.rank)
        have = out.rank == 1 ? shape_elements(in) : -1;
    else if (memcmp(in->size, out.size, (out.rank - 1u) * sizeof *out.size) != 0)
        return FIT_NONE;
    for (int bias = 1; bias >= 0; bias--) {
        int64_t weights = layer->parameters - bias * features;
        if ((layer->bias_known && layer->bias != bias) || weights <= 0 || weights % features)
            continue;
        if (weights / features == have) {
            *fit = (struct fit){.in_channels = have, .bias_known = true, .bias = bias};
            return 0;
        }
    }
    return FIT_NONE;
}

/* Same channels; each other side grows (from > 0) or shrinks (from < 0). */
static int fit_resized(const struct layer *layer, const struct shape *in, bool grows, struct fit *fit)
{
    struct shape out = layer_shape(layer);

    /* a global pooling may drop the sides that it leaves at 1 */
    if (!grows && in->rank > out.rank && out.rank == 1)
        return in->size[0] == out.size[0] || in->size[in->rank - 1] == out.size[0] ? 0 : FIT_NONE;
    if (in->rank != out.rank || in->size[0] != out.size[0])
        return FIT_NONE;
    for (int i = 1; i < out.rank; i++) {
        if (grows ? out.size[i] < in->size[i] : out.size[i] > in->size[i] + 1)
            return FIT_NONE;
        if (i <= 3 && out.size[i] > 0 && !grows)
            fit->stride[i - 1] = (int32_t)((in->size[i] + out.size[i] / 2) / out.size[i] & INT32_MAX);
    }
    return 0;
}

static int fit_same(const struct layer *layer, const struct shape *in)
{
    struct shape out = layer_shape(layer);

    return shape_equal(in, &out) ? 0 : FIT_NONE;
}

static int fit_elements(const struct layer *layer, const struct shape *in)
{
    struct shape out = layer_shape(layer);
    int64_t have = shape_elements(in), wanted = shape_elements(&out);

    if (have == wanted)
        return 0;
    return have > wanted ? COST_GROUPS : FIT_NONE; /* a piece of it */
}

int layer_fit(const struct layer *layer, const struct shape *in, struct fit *fit)
{
    *fit = (struct fit){0};
    if (!layer->shape_known || in->rank == 0)
        return FIT_NONE;
    switch ((enum layer_kind)layer->kind) {
    case LAYER_CONV:
    case LAYER_CONV_TRANSPOSE:
        return fit_conv(layer, in, fit);
    case LAYER_LINEAR:
    case LAYER_CONV1D_LINEAR:
        return fit_linear(layer, in, fit);
    case LAYER_MAX_POOL:
    case LAYER_AVG_POOL:
        return fit_resized(layer, in, false, fit);
    case LAYER_UPSAMPLE:
        return fit_resized(layer, in, true, fit) == 0 ? 0 : fit_elements(layer, in);
    case LAYER_PADDING:
        return fit_resized(layer, in, true, fit);
    case LAYER_RESHAPE:
        return fit_elements(layer, in);
    case LAYER_BATCH_NORM:
    case LAYER_LAYER_NORM:
    case LAYER_GROUP_NORM:
    case LAYER_ACTIVATION:
    case LAYER_SOFTMAX:
    case LAYER_DROPOUT:
    case LAYER_IDENTITY:
    case LAYER_MULTIPLY:
    case LAYER_ADD:
        return fit_same(layer, in);
    case LAYER_ATTENTION:
        return fit_same(layer, in);
    case LAYER_RECURRENT:
        return in->rank == layer->rank ? 0 : FIT_NONE;
    default: /* an embedding, an unknown layer: any input fits */
        return 0;
    }
}

void fit_apply(struct layer *layer, const struct fit *fit)
{
    for (int i = 0; i < 3; i++) {
        if (layer->kernel[i] == 0)
            layer->kernel[i] = fit->kernel[i];
        if (layer->stride[i] == 0)
            layer->stride[i] = fit->stride[i];
    }
    if (layer->groups == 0)
        layer->groups = fit->groups;
    if (layer->in_channels == 0)
        layer->in_channels = fit->in_channels;
    if (!layer->bias_known && fit->bias_known) {
        layer->bias_known = true;
        layer->bias = fit->bias;
    }
}
