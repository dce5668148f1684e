/* layers_complete(): the parts that a summary leaves open. */
#include <string.h>

#include "base/memory.h"
#include "estimate/connect/connect.h"
#include "estimate/program/lower.h"

static bool needs_input(const struct layer *layer)
{
    return !layer->container && layer->kind != LAYER_INPUT && layer->kind != LAYER_PARAMETER;
}

static bool is_torchsummary(const struct layer_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].depth > 0 || list->items[i].input_count > 0)
            return false;
    return true;
}

/* torchsummary shows a module when it has run. One that is made of others but is called as a layer is then known by
 * having no parameters of its own ("SeparableConv2d"). One that norms first and then runs its activation is known by
 * standing behind the activation ("BatchNormAct2d"): they change places. */
static void order_rows(struct layer_list *list)
{
    for (size_t i = 1; i < list->count; i++) {
        struct layer *layer = &list->items[i], norm = *layer;
        bool has_weights = layer->kind == LAYER_CONV || layer->kind == LAYER_CONV_TRANSPOSE ||
                           layer->kind == LAYER_LINEAR || layer->kind == LAYER_CONV1D_LINEAR;
        size_t first = i;

        if (has_weights && layer->parameters == 0)
            layer->container = true;
        if (!strstr(layer->type, "NormAct"))
            continue;
        while (first > 0 &&
               (list->items[first - 1].kind == LAYER_ACTIVATION || list->items[first - 1].kind == LAYER_IDENTITY) &&
               i - first < 2)
            first--;
        memmove(list->items + first + 1, list->items + first, (i - first) * sizeof *list->items);
        list->items[first] = norm;
    }
}

static struct shape input_shape(const struct layer_list *list, const struct layer *layer)
{
    struct shape shape = {.rank = list->input_rank};

    memcpy(shape.size, list->input, sizeof shape.size);
    if (layer->input_count == 0)
        return (struct shape){0};
    if (layer->inputs[0] >= 0)
        return layer_shape(&list->items[layer->inputs[0]]);
    return shape;
}

/* The model's input is not known: most often images, in colour or not. */
static void guess_first(struct layer *layer)
{
    static const int64_t channels[] = {3, 1};
    struct shape out = layer_shape(layer), in = out;
    struct fit fit;

    for (size_t i = 0; i < array_size(channels) && out.rank >= 2; i++) {
        in.size[0] = channels[i];
        if (layer_fit(layer, &in, &fit) == 0) {
            memset(fit.stride, 0, sizeof fit.stride);
            fit_apply(layer, &fit);
            return;
        }
    }
}

static void fill_in(struct layer_list *list)
{
    list->unknown = list->shapeless = 0;
    list->connected = true;
    for (size_t i = 0; i < list->count; i++) {
        struct layer *layer = &list->items[i];
        struct shape in;
        struct fit fit;

        if (layer->container)
            continue;
        list->unknown += layer->kind == LAYER_UNKNOWN;
        list->shapeless += !layer->shape_known && layer->kind != LAYER_PARAMETER;
        list->connected &= layer->input_count > 0 || !needs_input(layer);
        in = input_shape(list, layer);
        if (layer_fit(layer, &in, &fit) < FIT_NONE)
            fit_apply(layer, &fit);
        else if (in.rank == 0 && layer->kind == LAYER_CONV && layer->in_channels == 0)
            guess_first(layer);
    }
}

void layers_complete(struct layer_list *list)
{
    bool open = false;

    if (list->count == 0)
        return;
    if (is_torchsummary(list))
        order_rows(list);
    for (size_t i = 0; i < list->count && !open; i++)
        open = needs_input(&list->items[i]) && list->items[i].input_count == 0;
    if (open)
        layers_connect(list);
    fill_in(list);
}
