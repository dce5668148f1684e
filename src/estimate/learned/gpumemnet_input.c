/* Tuples and features of a layer list, as python/carma_train/gpumemnet_data.py makes them of the measured runs. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/learned/gpumemnet.h"
#include "estimate/learned/model.h"

/* In the order of TYPES there. */
enum type {
    TYPE_LINEAR,
    TYPE_CONV,
    TYPE_NORM,
    TYPE_DROPOUT,
    TYPE_SOFTMAX,
    TYPE_IDENTITY,
    TYPE_RELU,
    TYPE_LEAKY_RELU,
    TYPE_PRELU,
    TYPE_ELU,
    TYPE_SELU,
    TYPE_GELU,
    TYPE_SILU,
    TYPE_MISH,
    TYPE_SOFTPLUS,
    TYPE_TANH
};
_Static_assert(TYPE_TANH + 1 == GPUMEMNET_TYPE_COUNT, "one number for each type");
#define ACTIVATION_TYPES (GPUMEMNET_TYPE_COUNT - TYPE_IDENTITY)

const char *const gpumemnet_family_names[] = {[GPUMEMNET_MLP] = "mlp", [GPUMEMNET_CNN] = "cnn"};
const char *const gpumemnet_kind_names[] = {[GPUMEMNET_ENSEMBLE] = "ensemble", [GPUMEMNET_ENCODER] = "encoder"};

/* Activations that the training data do not have (or hardly) stand with the nearest that they have. */
static const uint8_t activation_types[ACTIVATION_COUNT] = {
    [ACTIVATION_NONE] = TYPE_IDENTITY,     [ACTIVATION_RELU] = TYPE_RELU,
    [ACTIVATION_RELU6] = TYPE_RELU,        [ACTIVATION_LEAKY_RELU] = TYPE_LEAKY_RELU,
    [ACTIVATION_PRELU] = TYPE_PRELU,       [ACTIVATION_ELU] = TYPE_ELU,
    [ACTIVATION_SELU] = TYPE_SELU,         [ACTIVATION_GELU] = TYPE_GELU,
    [ACTIVATION_SILU] = TYPE_SILU,         [ACTIVATION_MISH] = TYPE_MISH,
    [ACTIVATION_SOFTPLUS] = TYPE_SOFTPLUS, [ACTIVATION_TANH] = TYPE_TANH,
    [ACTIVATION_SIGMOID] = TYPE_TANH,      [ACTIVATION_HARDSWISH] = TYPE_SILU,
    [ACTIVATION_HARDSIGMOID] = TYPE_TANH,
};

/* The tuple's type, or -1: a layer that is not a tuple. */
static int type_of(const struct layer *layer)
{
    switch ((enum layer_kind)layer->kind) {
    case LAYER_LINEAR:
        return TYPE_LINEAR;
    case LAYER_CONV:
    case LAYER_CONV_TRANSPOSE:
        return TYPE_CONV;
    case LAYER_BATCH_NORM:
    case LAYER_GROUP_NORM:
        return TYPE_NORM;
    case LAYER_DROPOUT:
        return TYPE_DROPOUT;
    case LAYER_SOFTMAX:
        return TYPE_SOFTMAX;
    case LAYER_IDENTITY:
    case LAYER_UNKNOWN:
        return TYPE_IDENTITY;
    case LAYER_ACTIVATION:
        return layer->activation < ACTIVATION_COUNT ? activation_types[layer->activation] : TYPE_IDENTITY;
    default:
        return -1;
    }
}

static bool is_unmanaged(const struct layer *layer)
{
    return layer->kind == LAYER_UNKNOWN || layer->kind == LAYER_GROUP_NORM || layer->kind == LAYER_CONV_TRANSPOSE ||
           (layer->kind == LAYER_CONV && layer->groups > 1) || !layer->shape_known;
}

/* Which family's classifiers answer for these layers. */
static int find_family(const struct layer_list *layers, enum gpumemnet_family *family, struct error *err)
{
    bool conv = false, linear = false;

    for (size_t i = 0; i < layers->count; i++) {
        const struct layer *layer = &layers->items[i];
        enum layer_kind kind = layer->kind;

        if (layer->container)
            continue;
        if (kind == LAYER_ATTENTION || kind == LAYER_EMBEDDING || kind == LAYER_LAYER_NORM ||
            kind == LAYER_CONV1D_LINEAR || kind == LAYER_RECURRENT)
            return error_set(err, ENOTSUP,
                             "gpumemnet has not enough data for networks with %s layers: the 45 measured transformers "
                             "cannot train a classifier; use --estimator replay",
                             layer_kind_name(kind));
        conv |= kind == LAYER_CONV || kind == LAYER_CONV_TRANSPOSE;
        linear |= kind == LAYER_LINEAR;
    }
    if (!conv && !linear)
        return error_set(err, ENOTSUP,
                         "gpumemnet knows MLPs and CNNs, and the summary has neither a linear layer nor a convolution");
    *family = conv ? GPUMEMNET_CNN : GPUMEMNET_MLP;
    return 0;
}

/* As in the training data an activation has no parameters: a PReLU's one is not counted there. */
static void add_tuple(struct gpumemnet_input *input, const struct layer *layer, int type)
{
    array_reserve(input->tuples, input->capacity, input->count + 1);
    input->tuples[input->count++] = (struct gpumemnet_tuple){
        .type = (uint8_t)type,
        .activations = (double)layer_elements(layer),
        .parameters = layer->kind == LAYER_ACTIVATION ? 0 : (double)layer->parameters,
    };
    input->unmanaged += is_unmanaged(layer);
}

static int fill_features(struct gpumemnet_input *input, int64_t batch_size, struct error *err)
{
    struct model_array circle = model_array(model_find("gpumemnet"), "activations", MODEL_F32);
    double activations = 0, parameters = 0, *features = input->features;
    uint32_t counts[GPUMEMNET_TYPE_COUNT] = {0};
    int most = TYPE_IDENTITY;

    if (!circle.data || circle.count != 2 * ACTIVATION_TYPES)
        return error_set(err, ENOTSUP,
                         "gpumemnet has no trained tables in this build: train data/models/gpumemnet.bin");
    for (size_t i = 0; i < input->count; i++) {
        counts[input->tuples[i].type]++;
        activations += input->tuples[i].activations;
        parameters += input->tuples[i].parameters;
    }
    for (int type = TYPE_IDENTITY; type < GPUMEMNET_TYPE_COUNT; type++)
        if (counts[type] > counts[most])
            most = type;
    activations = fmax(activations, 1);
    features[GPUMEMNET_DEPTH] = (double)input->count;
    features[GPUMEMNET_LINEAR] = counts[TYPE_LINEAR];
    features[GPUMEMNET_CONV] = counts[TYPE_CONV];
    features[GPUMEMNET_NORM] = counts[TYPE_NORM];
    features[GPUMEMNET_DROPOUT] = counts[TYPE_DROPOUT];
    features[GPUMEMNET_BATCH] = log((double)batch_size);
    features[GPUMEMNET_PARAMETERS] = log(fmax(parameters, 1));
    features[GPUMEMNET_ACTIVATIONS] = log(activations);
    features[GPUMEMNET_COS] = ((const float *)circle.data)[2 * (most - TYPE_IDENTITY)];
    features[GPUMEMNET_SIN] = ((const float *)circle.data)[2 * (most - TYPE_IDENTITY) + 1];
    features[GPUMEMNET_ACTIVATIONS_BATCH] = log(activations * (double)batch_size);
    return 0;
}

int gpumemnet_input_read(struct gpumemnet_input *input, const struct layer_list *layers, int64_t batch_size,
                         struct error *err)
{
    int rc;

    *input = (struct gpumemnet_input){0};
    if (batch_size < 1)
        return error_set(err, EINVAL, "batch size %" PRId64 " is not valid: give one of at least 1", batch_size);
    rc = find_family(layers, &input->family, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < layers->count; i++) {
        int type = layers->items[i].container ? -1 : type_of(&layers->items[i]);
        if (type >= 0)
            add_tuple(input, &layers->items[i], type);
    }
    rc = fill_features(input, batch_size, err);
    if (rc)
        gpumemnet_input_release(input);
    return rc;
}

void gpumemnet_input_release(struct gpumemnet_input *input)
{
    free(input->tuples);
    *input = (struct gpumemnet_input){0};
}
