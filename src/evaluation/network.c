#include "evaluation/network.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const struct network_activation activations[] = {
    {"relu", "ReLU", LAYER_ACTIVATION, ACTIVATION_RELU},
    {"leaky_relu", "LeakyReLU", LAYER_ACTIVATION, ACTIVATION_LEAKY_RELU},
    {"prelu", "PReLU", LAYER_ACTIVATION, ACTIVATION_PRELU},
    {"elu", "ELU", LAYER_ACTIVATION, ACTIVATION_ELU},
    {"selu", "SELU", LAYER_ACTIVATION, ACTIVATION_SELU},
    {"tanh", "Tanh", LAYER_ACTIVATION, ACTIVATION_TANH},
    {"softplus", "Softplus", LAYER_ACTIVATION, ACTIVATION_SOFTPLUS},
    {"swish", "SiLU", LAYER_ACTIVATION, ACTIVATION_SILU},
    {"mish", "Mish", LAYER_ACTIVATION, ACTIVATION_MISH},
    {"gelu", "GELU", LAYER_ACTIVATION, ACTIVATION_GELU},
    {"sigmoid", "Sigmoid", LAYER_ACTIVATION, ACTIVATION_SIGMOID},
    {"identity", "Identity", LAYER_IDENTITY, ACTIVATION_NONE},
};

/* The rows' lists and torchsummary's names for the same thing. */
static const struct {
    const char *listed, *type;
} listed_names[] = {
    {"linear", "Linear"},           {"batch_normalization", "BatchNorm1d"},
    {"conv2d", "Conv2d"},           {"dropout", "Dropout"},
    {"batchnorm2d", "BatchNorm2d"}, {"softmax", "Softmax"},
    {"Softmax", "Softmax"},         {"adaptive_avg_pool2d", "AdaptiveAvgPool2d"},
};

const struct network_activation *network_activation_named(const char *name)
{
    for (size_t i = 0; i < array_size(activations); i++)
        if (strcmp(activations[i].name, name) == 0)
            return &activations[i];
    return NULL;
}

int network_activation_find(const struct csv *csv, size_t column, const struct network_activation **activation,
                            struct error *err)
{
    *activation = network_activation_named(csv->values[column]);
    if (*activation)
        return 0;
    return csv_error(csv, err, "%s '%.40s' is not known: relu, gelu, ... (docs/formats/datasets.md)",
                     csv->columns[column].name, csv->values[column]);
}

void network_begin(struct network *network, struct layer_list *list, const struct csv *csv, const char *listed,
                   const int64_t *input, uint8_t rank, struct error *err)
{
    *network = (struct network){.list = list, .csv = csv, .listed = listed, .err = err};
    layer_list_init(list);
    memcpy(list->input, input, rank * sizeof *input);
    list->input_rank = rank;
    list->batch_size = -1;
    list->total_parameters = list->trainable_parameters = -1;
}

__attribute__((format(printf, 2, 3))) static void contradict(struct network *network, const char *format, ...)
{
    char text[sizeof network->err->text];
    va_list args;

    if (network->failed)
        return;
    network->failed = true;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    csv_error(network->csv, network->err, "%s", text);
}

const char *network_next_type(const struct network *network, char type[static LAYER_NAME_SIZE])
{
    size_t length = network->listed ? strcspn(network->listed, ":|") : 0;

    snprintf(type, LAYER_NAME_SIZE, "%.*s", (int)(length < LAYER_NAME_SIZE ? length : LAYER_NAME_SIZE - 1),
             network->listed ? network->listed : "");
    return type;
}

/* A number of the row's list: digits up to `end`. False: not one, or too large. */
static bool take_number(const char **text, int64_t *number)
{
    const char *digits = *text;

    *number = 0;
    while (**text >= '0' && **text <= '9' && *text - digits < 18)
        *number = *number * 10 + (*(*text)++ - '0');
    return *text > digits;
}

/* Holds the layer just added against the next of the row's list. `parameters`: as the list counts them. */
static void check_listed(struct network *network, const struct layer *layer, int64_t parameters)
{
    char type[LAYER_NAME_SIZE];
    const char *text = network->listed, *name;
    int64_t listed_activations, listed_parameters;

    network->parameters += parameters;
    if (!text || network->failed)
        return;
    name = network_next_type(network, type);
    for (size_t i = 0; i < array_size(listed_names); i++)
        if (strcmp(listed_names[i].listed, type) == 0)
            name = listed_names[i].type;
    network->listed_layers++;
    if (!*text) {
        contradict(network, "layers: the list ends before layer %zu, %s:%" PRId64 ":%" PRId64, network->listed_layers,
                   layer->type, layer_elements(layer), parameters);
        return;
    }
    text += strcspn(text, ":|");
    if (*text != ':' || (text++, !take_number(&text, &listed_activations)) || *text != ':' ||
        (text++, !take_number(&text, &listed_parameters)) || (*text && *text != '|')) {
        contradict(network, "layers: layer %zu, '%.40s', is not type:activations:parameters", network->listed_layers,
                   network->listed);
        return;
    }
    if (strcmp(name, layer->type) != 0 || listed_activations != layer_elements(layer) ||
        listed_parameters != parameters)
        contradict(network,
                   "layers: layer %zu is %s:%" PRId64 ":%" PRId64 ", but the row's columns make it %s:%" PRId64
                   ":%" PRId64,
                   network->listed_layers, name, listed_activations, listed_parameters, layer->type,
                   layer_elements(layer), parameters);
    network->listed = *text ? text + 1 : text;
}

struct layer *network_layer(struct network *network, enum layer_kind kind, const char *type, int32_t from)
{
    struct layer_list *list = network->list;
    size_t index = list->count;
    struct layer *layer = layer_list_add(list, kind);

    snprintf(layer->type, sizeof layer->type, "%s", type);
    snprintf(layer->name, sizeof layer->name, "%s-%zu", type, index + 1);
    if (from == NETWORK_INPUT) {
        memcpy(layer->shape, list->input, sizeof layer->shape);
        layer->rank = list->input_rank;
    } else {
        memcpy(layer->shape, list->items[from].shape, sizeof layer->shape);
        layer->rank = list->items[from].rank;
    }
    layer->shape_known = true;
    layer_add_input(layer, from);
    return layer;
}

static int32_t last(const struct network *network)
{
    return (int32_t)network->list->count - 1;
}

int32_t network_linear(struct network *network, int32_t from, int64_t out)
{
    struct layer *layer = network_layer(network, LAYER_LINEAR, "Linear", from);

    layer->in_channels = layer->shape[layer->rank - 1];
    layer->shape[layer->rank - 1] = out;
    layer->bias_known = layer->bias = true;
    layer->parameters = (layer->in_channels + 1) * out;
    check_listed(network, layer, layer->parameters);
    return last(network);
}

/* Padded by kernel / 2, with bias. */
int32_t network_conv(struct network *network, int32_t from, int64_t out, int32_t kernel, int32_t stride)
{
    struct layer *layer = network_layer(network, LAYER_CONV, "Conv2d", from);

    layer->in_channels = layer->shape[0];
    layer->shape[0] = out;
    for (int i = 0; i < 2; i++) {
        layer->shape[1 + i] = (layer->shape[1 + i] + 2 * (kernel / 2) - kernel) / stride + 1;
        layer->kernel[i] = kernel;
        layer->stride[i] = stride;
    }
    layer->groups = 1;
    layer->bias_known = layer->bias = true;
    layer->parameters = (layer->in_channels * kernel * kernel + 1) * out;
    check_listed(network, layer, layer->parameters);
    return last(network);
}

int32_t network_batch_norm(struct network *network, int32_t from)
{
    struct layer *layer = network_layer(network, LAYER_BATCH_NORM, "BatchNorm1d", from);

    if (layer->rank > 1)
        snprintf(layer->type, sizeof layer->type, "BatchNorm2d");
    layer->parameters = 2 * layer->shape[0];
    check_listed(network, layer, layer->parameters);
    return last(network);
}

int32_t network_layer_norm(struct network *network, int32_t from)
{
    struct layer *layer = network_layer(network, LAYER_LAYER_NORM, "LayerNorm", from);

    layer->parameters = 2 * layer->shape[layer->rank - 1];
    check_listed(network, layer, layer->parameters);
    return last(network);
}

int32_t network_activation(struct network *network, int32_t from, const struct network_activation *activation)
{
    struct layer *layer = network_layer(network, activation->kind, activation->type, from);

    layer->activation = (uint8_t)activation->activation;
    layer->parameters = activation->activation == ACTIVATION_PRELU;
    check_listed(network, layer, 0);
    return last(network);
}

int32_t network_dropout(struct network *network, int32_t from)
{
    check_listed(network, network_layer(network, LAYER_DROPOUT, "Dropout", from), 0);
    return last(network);
}

int32_t network_softmax(struct network *network, int32_t from)
{
    check_listed(network, network_layer(network, LAYER_SOFTMAX, "Softmax", from), 0);
    return last(network);
}

int32_t network_global_pool(struct network *network, int32_t from)
{
    struct layer *layer = network_layer(network, LAYER_AVG_POOL, "AdaptiveAvgPool2d", from);

    for (uint8_t i = 1; i < layer->rank; i++)
        layer->shape[i] = 0;
    layer->rank = 1;
    check_listed(network, layer, 0);
    return last(network);
}

int32_t network_halve(struct network *network, int32_t from)
{
    struct layer *layer = network_layer(network, LAYER_AVG_POOL, "AvgPool2d", from);

    for (uint8_t i = 1; i < layer->rank; i++) {
        layer->shape[i] /= 2;
        layer->kernel[i - 1] = layer->stride[i - 1] = 2;
    }
    return last(network);
}

int32_t network_add(struct network *network, int32_t a, int32_t b)
{
    layer_add_input(network_layer(network, LAYER_ADD, "Add", a), b);
    return last(network);
}

int32_t network_concat(struct network *network, const int32_t *from, size_t count)
{
    struct layer *layer = network_layer(network, LAYER_CONCAT, "Concat", from[0]);

    for (size_t i = 1; i < count; i++) {
        layer_add_input(layer, from[i]);
        layer->shape[0] += from[i] == NETWORK_INPUT ? network->list->input[0] : network->list->items[from[i]].shape[0];
    }
    return last(network);
}

int network_finish(struct network *network, int64_t parameters)
{
    if (network->listed && *network->listed)
        contradict(network, "layers: the list has more than the %zu that the row's columns make: '%.40s'",
                   network->listed_layers, network->listed);
    if (parameters >= 0 && network->parameters != parameters)
        contradict(network, "total_params %" PRId64 ", but the row's columns make %" PRId64, parameters,
                   network->parameters);
    if (network->failed) {
        layer_list_release(network->list);
        return -EINVAL;
    }
    network->list->connected = true;
    return 0;
}
