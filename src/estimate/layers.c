#include "estimate/layers.h"

#include <string.h>

#include "base/memory.h"

void layer_list_init(struct layer_list *list)
{
    *list = (struct layer_list){.batch_size = -1, .total_parameters = -1, .trainable_parameters = -1};
}

void layer_list_release(struct layer_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].inputs);
    free(list->items);
    layer_list_init(list);
}

struct layer *layer_list_add(struct layer_list *list, enum layer_kind kind)
{
    struct layer *layer;

    array_reserve(list->items, list->capacity, list->count + 1);
    layer = &list->items[list->count++];
    *layer = (struct layer){.kind = (uint8_t)kind};
    return layer;
}

void layer_add_input(struct layer *layer, int32_t from)
{
    uint32_t count = layer->input_count;

    /* full at every power of two: its capacity follows from its count */
    if ((count & (count - 1)) == 0)
        layer->inputs = xrealloc(layer->inputs, count ? (size_t)count * 2 : 1, sizeof *layer->inputs);
    layer->inputs[layer->input_count++] = from;
}

int64_t layer_elements(const struct layer *layer)
{
    int64_t elements = 1;

    if (!layer->shape_known)
        return 0;
    for (int i = 0; i < layer->rank; i++)
        if (__builtin_mul_overflow(elements, layer->shape[i], &elements))
            return INT64_MAX;
    return elements;
}

const char *layer_kind_name(enum layer_kind kind)
{
    static const char *const names[LAYER_KIND_COUNT] = {
        [LAYER_INPUT] = "input",
        [LAYER_CONV] = "conv",
        [LAYER_CONV_TRANSPOSE] = "conv_transpose",
        [LAYER_LINEAR] = "linear",
        [LAYER_CONV1D_LINEAR] = "conv1d_linear",
        [LAYER_BATCH_NORM] = "batch_norm",
        [LAYER_LAYER_NORM] = "layer_norm",
        [LAYER_GROUP_NORM] = "group_norm",
        [LAYER_ACTIVATION] = "activation",
        [LAYER_SOFTMAX] = "softmax",
        [LAYER_DROPOUT] = "dropout",
        [LAYER_MAX_POOL] = "max_pool",
        [LAYER_AVG_POOL] = "avg_pool",
        [LAYER_EMBEDDING] = "embedding",
        [LAYER_ATTENTION] = "attention",
        [LAYER_RECURRENT] = "recurrent",
        [LAYER_ADD] = "add",
        [LAYER_MULTIPLY] = "multiply",
        [LAYER_CONCAT] = "concat",
        [LAYER_RESHAPE] = "reshape",
        [LAYER_UPSAMPLE] = "upsample",
        [LAYER_PADDING] = "padding",
        [LAYER_IDENTITY] = "identity",
        [LAYER_PARAMETER] = "parameter",
        [LAYER_UNKNOWN] = "unknown",
    };

    return (unsigned)kind < LAYER_KIND_COUNT ? names[kind] : "unknown";
}

bool activation_saves_output(enum activation activation)
{
    return activation == ACTIVATION_RELU || activation == ACTIVATION_TANH || activation == ACTIVATION_SIGMOID;
}
