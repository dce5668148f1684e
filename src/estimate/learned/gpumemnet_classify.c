/* The classifiers on their tables. Arrays of data/models/gpumemnet.bin, F being "mlp", "cnn" or
 * "transformer", K a kind:
 *   F/classes           i32: first, count, width in MiB, 1 where the last is out of memory
 *   F/kind              i32: the kind that answers
 *   F/ensemble/members  i32 [member]: hidden layers, neurons in each
 *   F/encoder/shape     i32: width, heads, neurons of the dense layer, layers, neurons of the last hidden layer
 *   F/K/features        i32: those of enum gpumemnet_feature that it takes
 *   F/K/range           f32 [2][feature]: the least and the most of the training data
 *   F/K/scale           f32 [model][2][feature and log(1 + x) of a tuple's two sizes]: mean, inverse deviation
 *   F/K/weights         u16 [model][weight]: half-precision numbers
 *   smoothing           f32: the part of a label that was spread over all classes while training
 *
 * Models: one for each fold, then that of all rows. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "estimate/learned/gpumemnet.h"
#include "estimate/learned/model.h"
#include "estimate/learned/neural.h"

#define FOLDS       5
#define MODELS      (FOLDS + 1)
#define MAX_WIDTH   256 /* neurons of any layer */
#define MAX_MEMBERS 32
#define MAX_DEPTH   16
#define LIMIT       10.0   /* a standardised feature's largest absolute value */
#define LEAST       1e-30f /* of a probability, before its logarithm */
#define SIZES       2      /* numbers of a tuple */
#define MAX_HIDDEN  (2 * MAX_WIDTH + GPUMEMNET_FEATURE_COUNT)

struct tables {
    const int32_t *features;
    size_t feature_count;
    const float *range, *mean, *inverse;
    const int32_t *shape; /* the members', or the encoder's */
    size_t shape_count;
    const uint16_t *weights;
    size_t weight_count;
};

static struct model_array find(enum gpumemnet_family family, const char *rest, enum model_type type)
{
    char name[48];

    snprintf(name, sizeof name, "%s/%s", gpumemnet_family_names[family], rest);
    return model_array(model_find("gpumemnet"), name, type);
}

static struct model_array find_of_kind(enum gpumemnet_family family, enum gpumemnet_kind kind, const char *rest,
                                       enum model_type type)
{
    char name[32];

    snprintf(name, sizeof name, "%s/%s", gpumemnet_kind_names[kind], rest);
    return find(family, name, type);
}

/* False: an array is missing or not of the size that the others ask for. */
static bool find_tables(enum gpumemnet_family family, enum gpumemnet_kind kind, size_t index, struct tables *tables)
{
    struct model_array features = find_of_kind(family, kind, "features", MODEL_I32);
    struct model_array range = find_of_kind(family, kind, "range", MODEL_F32);
    struct model_array scale = find_of_kind(family, kind, "scale", MODEL_F32);
    struct model_array weights = find_of_kind(family, kind, "weights", MODEL_U16);
    struct model_array shape = find_of_kind(family, kind, kind == GPUMEMNET_ENSEMBLE ? "members" : "shape", MODEL_I32);
    size_t columns = features.count + SIZES;

    if (!features.data || !range.data || !scale.data || !weights.data || !shape.data || features.count < 1 ||
        features.count > GPUMEMNET_FEATURE_COUNT || range.count != 2 * features.count ||
        scale.count != MODELS * 2 * columns || weights.count % MODELS)
        return false;
    tables->features = features.data;
    tables->feature_count = features.count;
    for (size_t i = 0; i < features.count; i++)
        if (tables->features[i] < 0 || tables->features[i] >= GPUMEMNET_FEATURE_COUNT)
            return false;
    tables->range = range.data;
    tables->mean = (const float *)scale.data + index * 2 * columns;
    tables->inverse = tables->mean + columns;
    tables->shape = shape.data;
    tables->shape_count = shape.count;
    tables->weight_count = weights.count / MODELS;
    tables->weights = (const uint16_t *)weights.data + index * tables->weight_count;
    return true;
}

static float standardise(const struct tables *tables, size_t column, double value)
{
    double scaled = (value - (double)tables->mean[column]) * (double)tables->inverse[column];

    return (float)fmax(-LIMIT, fmin(LIMIT, scaled));
}

/* Features in the order that the tables name; true where one lies outside the training data's range. */
static bool select_features(const struct tables *tables, const struct gpumemnet_input *input, float *features)
{
    bool outside = false;

    for (size_t i = 0; i < tables->feature_count; i++) {
        double value = input->features[tables->features[i]];
        double slack = 1e-5 * (1 + fabs(value)); /* the range is in single precision */

        outside |= value < (double)tables->range[i] - slack ||
                   value > (double)tables->range[tables->feature_count + i] + slack;
        features[i] = standardise(tables, i, value);
    }
    return outside;
}

static bool in_bounds(int32_t value, int32_t most)
{
    return value >= 1 && value <= most;
}

/* 0: shapes out of bounds. */
static size_t ensemble_weights(const struct tables *tables, size_t outputs)
{
    size_t members = tables->shape_count / 2, weights = 0;

    if (tables->shape_count % 2 || !in_bounds((int32_t)members, MAX_MEMBERS))
        return 0;
    for (size_t m = 0; m < members; m++) {
        int32_t depth = tables->shape[2 * m], width = tables->shape[2 * m + 1];
        size_t inputs = tables->feature_count;

        if (!in_bounds(depth, MAX_DEPTH) || !in_bounds(width, MAX_WIDTH))
            return 0;
        for (int32_t i = 0; i < depth; i++, inputs = (size_t)width)
            weights += neural_dense_weights(inputs, (size_t)width);
        weights += neural_dense_weights(inputs, outputs);
    }
    return weights;
}

/* Soft vote: the members' mean probability. */
static void run_ensemble(const struct tables *tables, const float *weights, const float *features, size_t outputs,
                         float *logits)
{
    size_t members = tables->shape_count / 2;

    memset(logits, 0, outputs * sizeof *logits);
    for (size_t m = 0; m < members; m++) {
        size_t depth = (size_t)tables->shape[2 * m], width = (size_t)tables->shape[2 * m + 1];
        size_t inputs = tables->feature_count;
        float buffers[2][MAX_WIDTH], votes[GPUMEMNET_MAX_CLASSES];
        const float *at = features;

        for (size_t i = 0; i < depth; i++, inputs = width) {
            neural_dense(&weights, 1, inputs, width, at, buffers[i % 2]);
            neural_relu(width, buffers[i % 2]);
            at = buffers[i % 2];
        }
        neural_dense(&weights, 1, inputs, outputs, at, votes);
        neural_softmax(outputs, votes);
        for (size_t c = 0; c < outputs; c++)
            logits[c] += votes[c];
    }
    for (size_t c = 0; c < outputs; c++)
        logits[c] = (float)log(fmax(logits[c] / (float)members, LEAST));
}

struct encoder_shape {
    struct neural_encoder layer;
    size_t layers, hidden;
};

static bool encoder_shape(const struct tables *tables, struct encoder_shape *shape)
{
    const int32_t *of = tables->shape;

    if (tables->shape_count != 5 || !in_bounds(of[0], MAX_WIDTH) || !in_bounds(of[1], of[0]) || of[0] % of[1] ||
        !in_bounds(of[2], MAX_WIDTH) || !in_bounds(of[3], MAX_DEPTH) || !in_bounds(of[4], MAX_WIDTH))
        return false;
    *shape = (struct encoder_shape){
        .layer = {.width = (size_t)of[0], .heads = (size_t)of[1], .forward = (size_t)of[2]},
        .layers = (size_t)of[3],
        .hidden = (size_t)of[4],
    };
    return true;
}

static size_t encoder_weights(const struct tables *tables, enum gpumemnet_family family, size_t outputs)
{
    struct encoder_shape shape;
    size_t width;

    if (!encoder_shape(tables, &shape))
        return 0;
    width = shape.layer.width;
    return gpumemnet_type_count(family) * width + neural_dense_weights(SIZES, width) +
           neural_dense_weights(tables->feature_count, width) + shape.layers * neural_encoder_weights(&shape.layer) +
           neural_dense_weights(2 * width + tables->feature_count, shape.hidden) +
           neural_dense_weights(shape.hidden, outputs);
}

/* A token for each tuple: its type, its sizes and the network's features, each mapped to the encoder's width. */
static void make_tokens(const struct tables *tables, const struct gpumemnet_input *input, size_t width,
                        const float **weights, const float *features, float *tokens)
{
    const float *types = *weights, *at;
    float sizes[SIZES], summary[MAX_WIDTH], mapped[MAX_WIDTH];
    const float *size_weights = types + gpumemnet_type_count(input->family) * width;

    *weights = size_weights + neural_dense_weights(SIZES, width);
    neural_dense(weights, 1, tables->feature_count, width, features, summary);
    for (size_t i = 0; i < input->count; i++, tokens += width) {
        const struct gpumemnet_tuple *tuple = &input->tuples[i];

        sizes[0] = standardise(tables, tables->feature_count, log1p(tuple->activations));
        sizes[1] = standardise(tables, tables->feature_count + 1, log1p(tuple->parameters));
        at = size_weights;
        neural_dense(&at, 1, SIZES, width, sizes, mapped);
        for (size_t k = 0; k < width; k++)
            tokens[k] = types[tuple->type * width + k] + mapped[k] + summary[k];
    }
}

static void run_encoder(const struct tables *tables, const float *weights, const struct gpumemnet_input *input,
                        const float *features, size_t outputs, float *logits)
{
    CLEANUP(free_ptr) float *tokens = NULL;
    float pooled[MAX_HIDDEN], hidden[MAX_WIDTH], *mean = pooled, *most, *scratch;
    struct encoder_shape shape;
    size_t width;

    encoder_shape(tables, &shape);
    width = shape.layer.width;
    tokens = xmalloc((input->count * width + neural_encoder_scratch(&shape.layer, input->count)) * sizeof *tokens);
    scratch = tokens + input->count * width;
    make_tokens(tables, input, width, &weights, features, tokens);
    for (size_t i = 0; i < shape.layers; i++)
        neural_encoder_layer(&shape.layer, &weights, input->count, tokens, scratch);
    most = mean + width;
    for (size_t k = 0; k < width; k++) {
        mean[k] = 0;
        most[k] = tokens[k];
        for (size_t i = 0; i < input->count; i++) {
            mean[k] += tokens[i * width + k];
            if (tokens[i * width + k] > most[k])
                most[k] = tokens[i * width + k];
        }
        mean[k] /= (float)input->count;
    }
    memcpy(most + width, features, tables->feature_count * sizeof *features);
    neural_dense(&weights, 1, 2 * width + tables->feature_count, shape.hidden, pooled, hidden);
    neural_relu(shape.hidden, hidden);
    neural_dense(&weights, 1, shape.hidden, outputs, hidden, logits);
}

static bool find_classes(enum gpumemnet_family family, struct gpumemnet_classes *classes)
{
    struct model_array array = find(family, "classes", MODEL_I32);
    const int32_t *of = array.data;

    if (!of || array.count != 4 || of[0] < 0 || of[0] > 1000 || !in_bounds(of[1], GPUMEMNET_MAX_CLASSES) ||
        !in_bounds(of[2], 1 << 20))
        return false;
    *classes = (struct gpumemnet_classes){
        .first = of[0],
        .count = (uint32_t)of[1],
        .width_bytes = of[2] * MIB,
        .out_of_memory_last = of[3],
    };
    return true;
}

/* Takes off the share that label smoothing gave every class: a net trained with it settles on (1 - s) * p + s /
 * count. */
static bool sharpen(uint32_t count, float *probabilities)
{
    struct model_array array = model_array(model_find("gpumemnet"), "smoothing", MODEL_F32);
    float smoothing, sum = 0;

    if (!array.data || array.count != 1)
        return false;
    smoothing = *(const float *)array.data;
    if (!(smoothing >= 0 && smoothing < 1))
        return false;
    for (uint32_t c = 0; c < count; c++) {
        probabilities[c] = (float)fmax(probabilities[c] - smoothing / (float)count, 0);
        sum += probabilities[c];
    }
    for (uint32_t c = 0; c < count; c++)
        probabilities[c] /= sum;
    return true;
}

static int refuse_tables(enum gpumemnet_family family, struct error *err)
{
    return error_set(err, EINVAL, "gpumemnet's tables for %s are damaged: train data/models/gpumemnet.bin again",
                     gpumemnet_family_names[family]);
}

int gpumemnet_classify(const struct gpumemnet_input *input, enum gpumemnet_kind kind, int32_t fold,
                       struct gpumemnet_classes *classes, struct error *err)
{
    CLEANUP(free_ptr) float *weights = NULL;
    float features[GPUMEMNET_FEATURE_COUNT];
    struct tables tables;
    size_t wanted;

    if (fold < -1 || fold >= FOLDS)
        return error_set(err, EINVAL, "fold %" PRId32 " does not exist: 0 to %d, or -1 for the model of all rows", fold,
                         FOLDS - 1);
    if (kind == GPUMEMNET_ENCODER && (input->count < 1 || input->count > GPUMEMNET_MAX_TUPLES))
        return error_set(err, ENOTSUP, "gpumemnet's transformer takes 1 to %d layers, and the summary has %zu",
                         GPUMEMNET_MAX_TUPLES, input->count);
    if (!find_classes(input->family, classes) ||
        !find_tables(input->family, kind, fold < 0 ? FOLDS : (size_t)fold, &tables))
        wanted = 0;
    else
        wanted = kind == GPUMEMNET_ENSEMBLE ? ensemble_weights(&tables, classes->count)
                                            : encoder_weights(&tables, input->family, classes->count);
    if (wanted == 0 || wanted != tables.weight_count)
        return refuse_tables(input->family, err);
    weights = xmalloc(wanted * sizeof *weights);
    neural_from_halves(tables.weights, wanted, weights);
    classes->outside = select_features(&tables, input, features);
    if (kind == GPUMEMNET_ENSEMBLE)
        run_ensemble(&tables, weights, features, classes->count, classes->logits);
    else
        run_encoder(&tables, weights, input, features, classes->count, classes->logits);
    memcpy(classes->probabilities, classes->logits, sizeof classes->logits);
    neural_softmax(classes->count, classes->probabilities);
    if (!sharpen(classes->count, classes->probabilities))
        return refuse_tables(input->family, err);
    for (uint32_t c = 1; c < classes->count; c++)
        if (classes->logits[c] > classes->logits[classes->best])
            classes->best = c;
    return 0;
}

enum gpumemnet_kind gpumemnet_answering_kind(enum gpumemnet_family family)
{
    struct model_array array = find(family, "kind", MODEL_I32);

    return array.data && array.count == 1 && *(const int32_t *)array.data == GPUMEMNET_ENCODER ? GPUMEMNET_ENCODER
                                                                                               : GPUMEMNET_ENSEMBLE;
}
