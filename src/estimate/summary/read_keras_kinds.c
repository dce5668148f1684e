/* Keras' layer types and conventions in terms of the list's. */
#include <string.h>

#include "base/memory.h"
#include "estimate/summary/read_keras.h"

/* The name of a function, in the name of a layer that applies it: "conv1_relu (Activation)", "tf.nn.gelu_3
 * (TFOpLambda)". The first that is found counts. */
static const struct {
    const char *word;
    uint8_t kind, activation;
} functions[] = {
    {"relu6", LAYER_ACTIVATION, ACTIVATION_RELU6},
    {"leaky_relu", LAYER_ACTIVATION, ACTIVATION_LEAKY_RELU},
    {"relu", LAYER_ACTIVATION, ACTIVATION_RELU},
    {"gelu", LAYER_ACTIVATION, ACTIVATION_GELU},
    {"selu", LAYER_ACTIVATION, ACTIVATION_SELU},
    {"elu", LAYER_ACTIVATION, ACTIVATION_ELU},
    {"hard_sigmoid", LAYER_ACTIVATION, ACTIVATION_HARDSIGMOID},
    {"sigmoid", LAYER_ACTIVATION, ACTIVATION_SIGMOID},
    {"hard_swish", LAYER_ACTIVATION, ACTIVATION_HARDSWISH},
    {"swish", LAYER_ACTIVATION, ACTIVATION_SILU},
    {"silu", LAYER_ACTIVATION, ACTIVATION_SILU},
    {"tanh", LAYER_ACTIVATION, ACTIVATION_TANH},
    {"softplus", LAYER_ACTIVATION, ACTIVATION_SOFTPLUS},
    {"mish", LAYER_ACTIVATION, ACTIVATION_MISH},
    {"softmax", LAYER_SOFTMAX, ACTIVATION_NONE},
    {"__add__", LAYER_ADD, ACTIVATION_NONE},
    {".add", LAYER_ADD, ACTIVATION_NONE},
    {"subtract", LAYER_ADD, ACTIVATION_NONE},
    {"divide", LAYER_ADD, ACTIVATION_NONE},
    {"multiply", LAYER_MULTIPLY, ACTIVATION_NONE},
    {".mul", LAYER_MULTIPLY, ACTIVATION_NONE},
    {"matmul", LAYER_MULTIPLY, ACTIVATION_NONE},
    {"concat", LAYER_CONCAT, ACTIVATION_NONE},
    {"reshape", LAYER_RESHAPE, ACTIVATION_NONE},
    {"transpose", LAYER_RESHAPE, ACTIVATION_NONE},
    {"getitem", LAYER_RESHAPE, ACTIVATION_NONE},
    {"expand_dims", LAYER_RESHAPE, ACTIVATION_NONE},
    {"squeeze", LAYER_RESHAPE, ACTIVATION_NONE},
    {"split", LAYER_RESHAPE, ACTIVATION_NONE},
};

/* Types with another kind than PyTorch's type of the same name. */
static const struct {
    const char *type;
    uint8_t kind;
} own_types[] = {
    {"Conv1D", LAYER_CONV},
    {"Attention", LAYER_ATTENTION},
    {"AdditiveAttention", LAYER_ATTENTION},
    {"Mean", LAYER_AVG_POOL},
};

static bool set_from_name(struct layer *layer)
{
    for (size_t i = 0; i < array_size(functions); i++)
        if (strstr(layer->name, functions[i].word)) {
            layer->kind = functions[i].kind;
            layer->activation = functions[i].activation;
            return true;
        }
    return false;
}

static bool begins(const char *whole, const char *type, bool cut)
{
    return cut ? strlen(type) >= 5 && strncmp(whole, type, strlen(type)) == 0 : strcmp(whole, type) == 0;
}

/* A layer that was not given a name has its type's: "global_average_pooling2d_1". */
static enum layer_kind kind_of_default_name(const char *name, enum activation *activation)
{
    char type[LAYER_NAME_SIZE];
    size_t length = strlen(name);

    while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9')
        length--;
    if (length == 0 || name[length - 1] != '_')
        length = strlen(name);
    memcpy(type, name, length);
    type[length] = '\0';
    return layer_kind_of_type(type, activation);
}

void keras_set_kind(struct layer *layer, bool cut)
{
    const char *type = layer->type;
    enum activation activation = ACTIVATION_NONE;

    for (size_t i = 0; i < array_size(own_types); i++)
        if (!cut && strcmp(own_types[i].type, type) == 0) {
            layer->kind = own_types[i].kind;
            return;
        }
    if (begins("Activation", type, cut)) {
        layer->kind = LAYER_ACTIVATION;
        layer->activation = ACTIVATION_RELU; /* the most usual, where its name does not tell */
        set_from_name(layer);
        return;
    }
    if ((begins("TFOpLambda", type, cut) || begins("TensorFlowOpLayer", type, cut)) && set_from_name(layer))
        return;
    layer->kind = (uint8_t)(cut ? layer_kind_of_cut_type(type, &activation) : layer_kind_of_type(type, &activation));
    if (cut && layer->kind == LAYER_UNKNOWN)
        layer->kind = (uint8_t)kind_of_default_name(layer->name, &activation);
    layer->activation = (uint8_t)activation;
}

static bool has_dimension(const char *type, char dimensions)
{
    const char *digit = strrchr(type, dimensions);

    return digit && (digit[1] == 'D' || digit[1] == 'd');
}

/* Layers that keep their input's shape, so that the order of their dimensions is that of the layer before. */
static bool passes_shape(enum layer_kind kind)
{
    return kind == LAYER_BATCH_NORM || kind == LAYER_ACTIVATION || kind == LAYER_DROPOUT || kind == LAYER_ADD ||
           kind == LAYER_MULTIPLY || kind == LAYER_CONCAT || kind == LAYER_IDENTITY || kind == LAYER_GROUP_NORM;
}

/* Are the channels first already? So they are where the model's input says so, or else not (Keras' default). */
static bool channels_first(const struct layer_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct layer *layer = &list->items[i];
        if (layer->kind == LAYER_INPUT && layer->shape_known && layer->rank >= 3)
            return (layer->shape[0] == 1 || layer->shape[0] == 3) && layer->shape[layer->rank - 1] > 4;
    }
    return false;
}

static void last_to_first(struct layer *layer)
{
    int64_t channels = layer->shape[layer->rank - 1];

    memmove(layer->shape + 1, layer->shape, (size_t)(layer->rank - 1) * sizeof *layer->shape);
    layer->shape[0] = channels;
}

/* Batch normalisation: Keras counts the running mean and variance, two to four numbers a channel in all. */
static int64_t take_statistics(struct layer *layer, int64_t channels)
{
    int64_t statistics = 0;

    if (strcmp(layer->type, "Normalization") == 0)
        statistics = layer->parameters;
    else if (layer->kind == LAYER_BATCH_NORM && channels > 0 && layer->parameters % channels == 0 &&
             layer->parameters / channels >= 2 && layer->parameters / channels <= 4)
        statistics = 2 * channels;
    layer->parameters -= statistics;
    return statistics;
}

int64_t keras_convert(struct layer_list *list)
{
    const bool first = channels_first(list);
    bool series = false; /* in a stretch of one-dimensional convolutions: T,C becomes C,T */
    int64_t statistics = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct layer *layer = &list->items[i];
        bool swap;
        if (layer->container)
            continue;
        if (!layer->shape_known) {
            statistics += take_statistics(layer, layer->rank > 0 ? layer->shape[0] : 0);
            continue;
        }
        series = has_dimension(layer->type, '1') ? layer->kind != LAYER_DROPOUT || series
                                                 : series && passes_shape(layer->kind);
        swap = !first && (layer->rank >= 3 || (layer->rank == 2 && series)) && layer->kind != LAYER_ATTENTION;
        if (swap)
            last_to_first(layer);
        statistics += take_statistics(layer, swap || first ? layer->shape[0] : layer->shape[layer->rank - 1]);
        if (strncmp(layer->type, "Depthwise", 9) == 0 && layer->rank > 1)
            layer->groups = layer->in_channels = layer->shape[0];
    }
    return statistics;
}
