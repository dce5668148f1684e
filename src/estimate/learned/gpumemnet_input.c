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
    TYPE_TANH,
    TYPE_EMBEDDING /* of transformers only: the encoders of the others were trained without it */
};
_Static_assert(TYPE_EMBEDDING + 1 == GPUMEMNET_TYPE_COUNT, "one number for each type");
#define ACTIVATION_TYPES (TYPE_EMBEDDING - TYPE_IDENTITY)

const char *const gpumemnet_family_names[] = {
    [GPUMEMNET_MLP] = "mlp", [GPUMEMNET_CNN] = "cnn", [GPUMEMNET_TRANSFORMER] = "transformer"};
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

size_t gpumemnet_type_count(enum gpumemnet_family family)
{
    return family == GPUMEMNET_TRANSFORMER ? GPUMEMNET_TYPE_COUNT : TYPE_EMBEDDING;
}

/* The measured transformers have ReLU alone, and no softmax of their own: it is in their attention. */
static int type_in_transformer(int type)
{
    if (type == TYPE_SOFTMAX)
        return -1;
    return type >= TYPE_IDENTITY && type < TYPE_EMBEDDING ? TYPE_RELU : type;
}

/* The tuple's type, or -1: a layer that is not a tuple. */
static int type_of(const struct layer *layer)
{
    switch ((enum layer_kind)layer->kind) {
    case LAYER_LINEAR:
    case LAYER_CONV1D_LINEAR:
        return TYPE_LINEAR;
    case LAYER_ATTENTION: /* two linear layers, or its parts in the summary */
        return layer->parameters > 0 ? TYPE_LINEAR : -1;
    case LAYER_EMBEDDING:
        return TYPE_EMBEDDING;
    case LAYER_CONV:
    case LAYER_CONV_TRANSPOSE:
        return TYPE_CONV;
    case LAYER_BATCH_NORM:
    case LAYER_GROUP_NORM:
    case LAYER_LAYER_NORM:
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

static bool is_unmanaged(const struct layer *layer, enum gpumemnet_family family)
{
    enum layer_kind kind = layer->kind;

    if (family == GPUMEMNET_TRANSFORMER && (kind == LAYER_CONV || kind == LAYER_BATCH_NORM))
        return true;
    return kind == LAYER_UNKNOWN || kind == LAYER_GROUP_NORM || kind == LAYER_CONV_TRANSPOSE ||
           (kind == LAYER_CONV && layer->groups > 1) || !layer->shape_known;
}

/* Which family's classifiers answer for these layers: layer norms around attention, which a summary may show as its
 * linear layers between embeddings, make a transformer. */
static int find_family(const struct layer_list *layers, enum gpumemnet_family *family, struct error *err)
{
    bool has[LAYER_KIND_COUNT] = {false};
    enum layer_kind odd = LAYER_INPUT;

    for (size_t i = 0; i < layers->count; i++)
        if (!layers->items[i].container)
            has[layers->items[i].kind] = true;
    if (has[LAYER_LAYER_NORM] && (has[LAYER_ATTENTION] || has[LAYER_EMBEDDING] || has[LAYER_CONV1D_LINEAR])) {
        *family = GPUMEMNET_TRANSFORMER;
    } else {
        static const enum layer_kind others[] = {LAYER_ATTENTION, LAYER_EMBEDDING, LAYER_LAYER_NORM,
                                                 LAYER_CONV1D_LINEAR};
        for (size_t i = 0; i < array_size(others); i++)
            odd = has[others[i]] ? others[i] : odd;
        *family = has[LAYER_CONV] || has[LAYER_CONV_TRANSPOSE] ? GPUMEMNET_CNN : GPUMEMNET_MLP;
    }
    if (has[LAYER_RECURRENT])
        odd = LAYER_RECURRENT;
    if (odd != LAYER_INPUT)
        return error_set(err, ENOTSUP,
                         "gpumemnet has no data for networks with %s layers that are not transformers with layer "
                         "norms: use --estimator replay",
                         layer_kind_name(odd));
    if (*family == GPUMEMNET_MLP && !has[LAYER_LINEAR])
        return error_set(err, ENOTSUP,
                         "gpumemnet knows MLPs, CNNs and transformers, and the summary has neither a linear layer nor "
                         "a convolution");
    return 0;
}

/* As in the training data an activation has no parameters: a PReLU's one is not counted there. */
static void add_tuple(struct gpumemnet_input *input, const struct layer *layer, int type)
{
    struct gpumemnet_tuple tuple = {
        .type = (uint8_t)type,
        .activations = (double)layer_elements(layer),
        .parameters = layer->kind == LAYER_ACTIVATION ? 0 : (double)layer->parameters,
    };

    array_reserve(input->tuples, input->capacity, input->count + 2);
    if (layer->kind == LAYER_ATTENTION) { /* query, key and value, of as many parameters as the output has, in one */
        tuple.parameters /= 4;
        input->tuples[input->count++] =
            (struct gpumemnet_tuple){3 * tuple.activations, 3 * tuple.parameters, tuple.type};
    }
    input->tuples[input->count++] = tuple;
    input->unmanaged += is_unmanaged(layer, input->family);
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
    for (int type = TYPE_IDENTITY; type < TYPE_EMBEDDING; type++)
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
        if (input->family == GPUMEMNET_TRANSFORMER)
            type = type_in_transformer(type);
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
