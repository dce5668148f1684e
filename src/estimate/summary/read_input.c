#include "estimate/summary/read_input.h"

#include <math.h>
#include <string.h>

struct range {
    double low, high; /* elements of one sample's input */
};

static bool inside(struct range range, double value)
{
    return value >= range.low && value <= range.high;
}

static void set_input(struct layer_list *list, const int64_t *dims, int rank)
{
    memcpy(list->input, dims, (size_t)rank * sizeof *dims);
    list->input_rank = (uint8_t)rank;
}

/* The width of a linear layer's input: its weight has width times outputs elements, its bias as many as outputs. */
static int64_t linear_width(const struct layer *layer)
{
    int64_t outputs = layer->shape[layer->rank - 1];

    if (layer->parameters % outputs != 0 || layer->parameters <= outputs)
        return 0;
    return layer->parameters / outputs; /* one more with a bias */
}

static void from_linear(struct layer_list *list, const struct layer *layer, struct range range)
{
    int64_t width = linear_width(layer), others = 1, dims[LAYER_MAX_RANK];

    if (width < 1)
        return;
    for (int i = 0; i + 1 < layer->rank; i++)
        others *= layer->shape[i];
    /* nearly all have a bias */
    for (int64_t bias = 1; bias >= 0; bias--)
        if (width > bias && inside(range, (double)(width - bias) * (double)others)) {
            memcpy(dims, layer->shape, sizeof dims);
            dims[layer->rank - 1] = width - bias;
            set_input(list, dims, layer->rank);
            return;
        }
}

/* Input channels times the window's area, from the parameters; 0: it does not come out even. */
static int64_t weights_per_output(const struct layer *layer, bool bias)
{
    int64_t outputs = layer->shape[0], weights = layer->parameters - (bias ? outputs : 0);

    return weights > 0 && weights % outputs == 0 ? weights / outputs : 0;
}

/* How well a side of the input suits a side of the output: does some common step and padding lead to it? Less is
 * better; -1: none does. */
static int side_cost(int64_t in, int64_t out, int64_t window)
{
    const int64_t paddings[] = {window / 2, 0, 1, 2, 3};

    if (window > 1 && in / window == out && in % window == 0)
        return 0; /* patches side by side */
    for (int64_t step = 1; step <= 4; step++)
        for (int i = 0; i < 5; i++)
            if (in + 2 * paddings[i] >= window && (in + 2 * paddings[i] - window) / step + 1 == out)
                return i * 4 + (in % step != 0 ? 2 : 0) + (in % 32 != 0);
    return -1;
}

struct guess {
    int cost;
    int64_t dims[3];
};

static void try_sides(const struct layer *layer, int64_t channels, int64_t window, struct range range,
                      struct guess *best)
{
    const double ratio = (double)layer->shape[2] / (double)layer->shape[1];
    int64_t low = (int64_t)floor(sqrt(fmax(range.low, 1) / (double)channels / ratio));
    int64_t high = (int64_t)ceil(sqrt(range.high / (double)channels / ratio));

    if (high > low + 256)
        high = low + 256;
    for (int64_t rows = low < 1 ? 1 : low; rows <= high; rows++) {
        int64_t columns = (int64_t)round((double)rows * ratio);
        int row_cost = side_cost(rows, layer->shape[1], window);
        int column_cost = side_cost(columns, layer->shape[2], window);
        int cost = row_cost + column_cost + (channels == 3 ? 0 : channels == 1 ? 1 : channels <= 4 ? 4 : 40);
        if (row_cost < 0 || column_cost < 0 || !inside(range, (double)channels * (double)rows * (double)columns))
            continue;
        if (best->cost < 0 || cost < best->cost)
            *best = (struct guess){cost, {channels, rows, columns}};
    }
}

static void from_conv(struct layer_list *list, const struct layer *layer, struct range range)
{
    static const int64_t windows[] = {3, 7, 5, 11, 1, 4, 2, 16, 14, 32, 8, 12, 9, 6, 10};
    struct guess best = {.cost = -1};

    if (layer->rank != 3 || !isfinite(range.high))
        return;
    for (int bias = 0; bias < 2; bias++)
        for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
            int64_t per_output = weights_per_output(layer, bias), area = windows[i] * windows[i];
            if (per_output > 0 && per_output % area == 0 && per_output / area <= 1024)
                try_sides(layer, per_output / area, windows[i], range, &best);
        }
    if (best.cost >= 0)
        set_input(list, best.dims, 3);
}

/* Token numbers: their count is the output's size without its last dimension. */
static void from_embedding(struct layer_list *list, const struct layer *layer)
{
    if (layer->rank < 2)
        return;
    list->input_is_index = true;
    set_input(list, layer->shape, layer->rank - 1);
}

static bool keeps_size(enum layer_kind kind)
{
    return kind == LAYER_BATCH_NORM || kind == LAYER_LAYER_NORM || kind == LAYER_ACTIVATION || kind == LAYER_DROPOUT ||
           kind == LAYER_RESHAPE || kind == LAYER_IDENTITY;
}

void input_from_bytes(struct layer_list *list, double bytes, double slack)
{
    const double batch = list->batch_size > 0 ? (double)list->batch_size : 1;
    const struct range range = {(bytes - slack) / 4 / batch, (bytes + slack) / 4 / batch};
    const struct layer *layer = NULL;

    for (size_t i = 0; i < list->count && !layer; i++)
        if (!list->items[i].container && list->items[i].kind != LAYER_PARAMETER)
            layer = &list->items[i];
    if (!layer || !layer->shape_known || list->input_rank > 0)
        return;
    if (layer->kind == LAYER_LINEAR || layer->kind == LAYER_CONV1D_LINEAR)
        from_linear(list, layer, range);
    else if (layer->kind == LAYER_CONV)
        from_conv(list, layer, range);
    else if (layer->kind == LAYER_EMBEDDING)
        from_embedding(list, layer);
    else if (keeps_size(layer->kind) && inside(range, (double)layer_elements(layer)))
        set_input(list, layer->shape, layer->rank); /* flattened, padded, normalised: as many elements */
}
