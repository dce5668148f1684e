#include "estimate/summary/read_repr.h"

#include <string.h>

#define MAX_ARGUMENTS 24

struct arguments {
    struct slice items[MAX_ARGUMENTS]; /* "3", "kernel_size=(7, 7)" */
    int count;
};

/* A product or sum that has left the range of parameters is -1 from then on. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;

    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) || product > LAYER_MAX_PARAMETERS)
        return -1;
    return product;
}

static int64_t plus(int64_t a, int64_t b)
{
    return a < 0 || b < 0 || a + b > LAYER_MAX_PARAMETERS ? -1 : a + b;
}

static void split(struct slice text, struct arguments *arguments)
{
    size_t begin = 0;
    int depth = 0;

    arguments->count = 0;
    for (size_t i = 0; i <= text.length; i++) {
        if (i < text.length && (depth > 0 || text.text[i] != ',')) {
            depth += text.text[i] == '(' || text.text[i] == '[';
            depth -= text.text[i] == ')' || text.text[i] == ']';
            continue;
        }
        if (arguments->count < MAX_ARGUMENTS && i > begin)
            arguments->items[arguments->count++] = slice_trim((struct slice){text.text + begin, i - begin});
        begin = i + 1;
    }
}

/* The value of "key=value"; empty where it is not given. */
static struct slice named(const struct arguments *arguments, const char *key)
{
    size_t length = strlen(key);

    for (int i = 0; i < arguments->count; i++) {
        struct slice item = arguments->items[i];
        if (item.length > length && item.text[length] == '=' && memcmp(item.text, key, length) == 0)
            return slice_from(item, length + 1);
    }
    return (struct slice){0};
}

static struct slice positional(const struct arguments *arguments, int place)
{
    for (int i = 0; i < arguments->count; i++)
        if (slice_find_char(arguments->items[i], '=') == arguments->items[i].length && place-- == 0)
            return arguments->items[i];
    return (struct slice){0};
}

/* A number of at least 1, or 0 where it is not one. */
static int64_t number(struct slice text)
{
    int64_t value;

    return parse_count(text, &value) && value <= LAYER_MAX_DIMENSION ? value : 0;
}

static int64_t named_number(const struct arguments *arguments, const char *key, int64_t missing)
{
    struct slice text = named(arguments, key);

    return text.length > 0 ? number(text) : missing;
}

static bool named_true(const struct arguments *arguments, const char *key, bool missing)
{
    struct slice text = named(arguments, key);

    return text.length > 0 ? slice_is(text, "True") : missing;
}

/* "Conv2d": 2 dimensions. */
static int dimensions_of(const char *type)
{
    size_t length = strlen(type);
    bool tells = length > 1 && type[length - 1] == 'd' && type[length - 2] >= '1' && type[length - 2] <= '3';

    return tells ? type[length - 2] - '0' : 1;
}

/* "(3, 3)" or "3"; returns how many, at most 3. */
static int numbers(struct slice text, int32_t values[3])
{
    int count = 0;

    if (slice_starts(text, "(") && slice_ends(text, ")"))
        text = (struct slice){text.text + 1, text.length - 2};
    while (text.length > 0 && count < 3) {
        size_t comma = slice_find_char(text, ',');
        int64_t value = number(slice_trim(slice_to(text, comma)));
        values[count++] = value <= INT32_MAX ? (int32_t)value : 0;
        text = slice_trim(slice_from(text, comma < text.length ? comma + 1 : comma));
    }
    return count;
}

/* A window's or step's sizes; one number is for all dimensions. */
static int window(const struct layer *layer, struct slice text, int32_t values[3])
{
    int count = numbers(text, values);

    for (; count > 0 && !slice_starts(text, "(") && count < dimensions_of(layer->type); count++)
        values[count] = values[0];
    return count;
}

static void set_features(struct layer *layer, int64_t features)
{
    layer->rank = features > 0;
    layer->shape[0] = features;
}

static bool conv(struct layer *layer, const struct arguments *arguments)
{
    int64_t in = number(positional(arguments, 0)), out = number(positional(arguments, 1)), weights;
    int count = window(layer, named(arguments, "kernel_size"), layer->kernel);

    window(layer, named(arguments, "stride"), layer->stride);
    layer->groups = named_number(arguments, "groups", 1);
    layer->in_channels = in;
    layer->bias_known = true;
    layer->bias = named_true(arguments, "bias", true);
    set_features(layer, out);
    if (in < 1 || out < 1 || count < 1 || layer->groups < 1)
        return false;
    weights = times(in / layer->groups, out);
    for (int i = 0; i < count; i++)
        weights = times(weights, layer->kernel[i]);
    layer->parameters = plus(weights, layer->bias ? out : 0);
    return true;
}

static bool linear(struct layer *layer, const struct arguments *arguments)
{
    const bool transposed = layer->kind == LAYER_CONV1D_LINEAR;
    int64_t in = named_number(arguments, transposed ? "nx" : "in_features", 0);
    int64_t out = named_number(arguments, transposed ? "nf" : "out_features", 0);

    layer->bias_known = true;
    layer->bias = named_true(arguments, "bias", true);
    layer->in_channels = in;
    set_features(layer, out);
    layer->parameters = plus(times(in, out), layer->bias ? out : 0);
    if (named(arguments, "in1_features").length > 0)
        layer->parameters = plus(
            times(times(named_number(arguments, "in1_features", 0), named_number(arguments, "in2_features", 0)), out),
            layer->bias ? out : 0);
    return out > 0 && (in > 0 || layer->parameters > out);
}

/* "(768,)", "64" and, of groups, "32, 64": the last number of those without a name. */
static bool normalisation(struct layer *layer, const struct arguments *arguments)
{
    const bool groups = layer->kind == LAYER_GROUP_NORM && strncmp(layer->type, "Instance", 8) != 0;
    struct slice text = positional(arguments, groups ? 1 : 0);
    int32_t sizes[3] = {0};
    int count = numbers(text, sizes);
    int64_t elements = 1;
    bool affine = named_true(arguments, "affine", strncmp(layer->type, "Instance", 8) != 0) &&
                  named_true(arguments, "elementwise_affine", true);
    bool scale_only =
        strstr(layer->type, "RMS") || strstr(layer->type, "Rms") || strcmp(layer->type, "T5LayerNorm") == 0;

    for (int i = 0; i < count; i++)
        elements = times(elements, sizes[i]);
    if (count < 1 || elements < 1)
        return false;
    set_features(layer, sizes[count - 1]);
    layer->bias_known = true;
    layer->bias = affine && !scale_only && named_true(arguments, "bias", true);
    layer->parameters = affine ? times(elements, layer->bias ? 2 : 1) : 0;
    return true;
}

static bool embedding(struct layer *layer, const struct arguments *arguments)
{
    int64_t words = number(positional(arguments, 0)), width = number(positional(arguments, 1));

    layer->in_channels = words;
    set_features(layer, width);
    layer->parameters = times(words, width);
    return words > 0 && width > 0;
}

/* Per layer and direction: `gates` blocks of width (input + output), and two biases. */
static bool recurrent(struct layer *layer, const struct arguments *arguments)
{
    const int64_t gates = strncmp(layer->type, "LSTM", 4) == 0 ? 4 : strncmp(layer->type, "GRU", 3) == 0 ? 3 : 1;
    int64_t in = number(positional(arguments, 0)), hidden = number(positional(arguments, 1));
    int64_t layers = named_number(arguments, "num_layers", 1);
    int64_t directions = named_true(arguments, "bidirectional", false) ? 2 : 1;
    int64_t out = named_number(arguments, "proj_size", 0), biases, first, later;

    layer->in_channels = in;
    layer->bias_known = true;
    layer->bias = named_true(arguments, "bias", true);
    if (in < 1 || hidden < 1 || layers < 1)
        return false;
    biases = layer->bias ? 2 : 0;
    first = times(times(gates, hidden), in + (out > 0 ? out : hidden) + biases);
    later = times(times(gates, hidden), directions * (out > 0 ? out : hidden) + (out > 0 ? out : hidden) + biases);
    if (out > 0) {
        first = plus(first, times(hidden, out));
        later = plus(later, times(hidden, out));
    }
    layer->parameters = times(directions, plus(first, times(layers - 1, later)));
    set_features(layer, directions * (out > 0 ? out : hidden));
    return true;
}

static bool is_zero(struct slice text)
{
    double value;

    return parse_decimal(text, &value) && value == 0;
}

static bool has_parameters(struct layer *layer, const struct arguments *arguments)
{
    switch (layer->kind) {
    case LAYER_CONV:
    case LAYER_CONV_TRANSPOSE:
        return conv(layer, arguments);
    case LAYER_LINEAR:
    case LAYER_CONV1D_LINEAR:
        return linear(layer, arguments);
    case LAYER_BATCH_NORM:
    case LAYER_LAYER_NORM:
    case LAYER_GROUP_NORM:
        return normalisation(layer, arguments);
    case LAYER_EMBEDDING:
        return embedding(layer, arguments);
    case LAYER_RECURRENT:
        return recurrent(layer, arguments);
    default:
        return false;
    }
}

int read_repr(const struct reader *reader, struct layer *layer, struct slice text, bool *exact)
{
    struct arguments arguments;

    split(text, &arguments);
    *exact = has_parameters(layer, &arguments);
    if (layer->parameters < 0)
        return reader_error(reader, "%s has more than %lld parameters", layer->type, (long long)LAYER_MAX_PARAMETERS);
    layer->in_place = named_true(&arguments, "inplace", false);
    if (layer->activation == ACTIVATION_PRELU)
        layer->parameters = named_number(&arguments, "num_parameters", 1);
    if (layer->kind == LAYER_MAX_POOL || layer->kind == LAYER_AVG_POOL) {
        window(layer, named(&arguments, "kernel_size"), layer->kernel);
        window(layer, named(&arguments, "stride"), layer->stride);
    }
    /* a dropout of nothing hands its input on */
    if (layer->kind == LAYER_DROPOUT && (is_zero(named(&arguments, "p")) || is_zero(named(&arguments, "drop_prob"))))
        layer->kind = LAYER_IDENTITY;
    return 0;
}
