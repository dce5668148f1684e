/* Convolutional networks (thesis 5.4.2): seven architectures of convolutions with bias, then a global average pool, a
 * linear layer and a softmax. The growth of channels follows the published rows' parameter counts. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "evaluation/collected.h"
#include "evaluation/network.h"
#include "evaluation/rows.h"

#define COLUMNS(COLUMN)                                                                                                \
    COLUMN(ARCH, "arch", true)                                                                                         \
    COLUMN(INPUT_CHANNELS, "input_channels", true)                                                                     \
    COLUMN(NUM_CLASSES, "num_classes", true)                                                                           \
    COLUMN(DEPTH_ARG, "depth_arg", true)                                                                               \
    COLUMN(BASE_FILTERS, "base_filters", true)                                                                         \
    COLUMN(BATCH_SIZE, "batch_size", true)                                                                             \
    COLUMN(INPUT_SIZE, "input_size", true)                                                                             \
    COLUMN(ACTIVATION, "activation", true)                                                                             \
    COLUMN(DROPOUT_RATE, "dropout_rate", false)                                                                        \
    COLUMN(USE_DROPOUT, "use_dropout", true)                                                                           \
    COLUMN(USE_BATCHNORM, "use_batchnorm", true)                                                                       \
    COLUMN(DENSE_POOL_INTERVAL, "dense_pool_interval", false)                                                          \
    COLUMN(KERNEL_SIZE, "kernel_size", false)                                                                          \
    COLUMN(CONV_LAYERS, "conv_layers", false)                                                                          \
    COLUMN(BATCHNORM_LAYERS, "batchnorm_layers", false)                                                                \
    COLUMN(DROPOUT_LAYERS, "dropout_layers", false)                                                                    \
    COLUMN(TOTAL_ACTIVATIONS, "total_activations", false)                                                              \
    COLUMN(TOTAL_PARAMS, "total_params", true)                                                                         \
    COLUMN(LAYERS, "layers", true)                                                                                     \
    COLUMN(STATUS, "status", true)                                                                                     \
    COLUMN(MEASURED, "max_gpu_memory_mib", true)                                                                       \
    COLUMN(GPUTL, "avg_gputl", false)                                                                                  \
    COLUMN(GRACT, "avg_gract", false)                                                                                  \
    COLUMN(SMACT, "avg_smact", false)                                                                                  \
    COLUMN(SMOCC, "avg_smocc", false)                                                                                  \
    COLUMN(FP32A, "avg_fp32a", false)

enum { COLUMNS(CSV_COLUMN_PLACE) COLLECTED /* from here on */ };

static const struct csv_column columns[] = {COLUMNS(CSV_COLUMN_ROW) COLLECTED_COLUMNS(COLLECTED)};

#define MAX_CHANNELS 2048 /* to which the generator lets them grow */
#define SMALLEST     7    /* pixels: a residual network ends at this size */
#define GROWTH       32   /* channels that a convolution of a dense block adds ... */
#define DENSE_CONVS  4    /* ... and how many it has */
#define KERNEL       3    /* where no column says, as in all published rows */
#define MAX_DEPTH    1000
/* torchsummary's own. Several passes before the training were tried (none, this, a whole batch). Only this one makes
 * runs of one convolution come out as measured. */
#define SUMMARY_BATCH 2
#define MAX_SIZE      8192
#define MAX_KERNEL    15

struct cnn {
    int64_t channels, classes, depth, base, batch, size, pool_interval;
    int32_t kernel;
    const struct network_activation *activation;
    bool dropout, batch_norm;
};

/* Channels after `step` of `steps` steps that lead from the first ones to the most, each by the same factor. */
static int64_t grown(const struct cnn *cnn, double steps, double step)
{
    double factor = pow((double)MAX_CHANNELS / (double)cnn->base, 1 / steps);
    double channels = (double)cnn->base * pow(factor, step);

    return channels < MAX_CHANNELS ? (int64_t)channels : MAX_CHANNELS;
}

static int32_t add_normed(struct network *network, const struct cnn *cnn, int32_t from, int64_t out, int32_t kernel,
                          int32_t stride)
{
    from = network_conv(network, from, out, kernel, stride);
    return cnn->batch_norm ? network_batch_norm(network, from) : from;
}

static int32_t add_conv(struct network *network, const struct cnn *cnn, int32_t from, int64_t out, int32_t stride)
{
    from = add_normed(network, cnn, from, out, cnn->kernel, stride);
    from = network_activation(network, from, cnn->activation);
    return cnn->dropout ? network_dropout(network, from) : from;
}

static int64_t hourglass(const struct cnn *cnn, int64_t i)
{
    int64_t first = cnn->depth / 2, back;

    if (i < first)
        return grown(cnn, (double)first, (double)i);
    back = grown(cnn, (double)(cnn->depth - first), (double)(cnn->depth - 1 - i));
    return back > cnn->base ? back : cnn->base;
}

static int64_t bottleneck(const struct cnn *cnn, int64_t i)
{
    if (i == 0)
        return 2 * cnn->base;
    if (cnn->depth <= 2)
        return cnn->base;
    return grown(cnn, (double)(cnn->depth - 1), (double)(i - 1));
}

static int64_t pyramid(const struct cnn *cnn, int64_t i)
{
    return grown(cnn, (double)cnn->depth, (double)i);
}

static int64_t gradual(const struct cnn *cnn, int64_t i)
{
    return grown(cnn, 2 * (double)cnn->depth, (double)i);
}

static int64_t uniform(const struct cnn *cnn, int64_t i)
{
    return cnn->base;
}

static int64_t channels_of(const struct network *network, int32_t layer)
{
    return layer == NETWORK_INPUT ? network->list->input[0] : network->list->items[layer].shape[0];
}

/* Blocks of two convolutions, every second of stride 2, with a shortcut: a 1x1 convolution where the shape changes. */
static int32_t add_residual(struct network *network, const struct cnn *cnn)
{
    int32_t at = NETWORK_INPUT, shortcut;
    int64_t size = cnn->size;

    for (int64_t i = 0; i < cnn->depth / 2; i++) {
        int64_t out = grown(cnn, (double)cnn->depth, (double)i);
        int32_t stride = i % 2 == 1 && size > SMALLEST ? 2 : 1;

        shortcut = at;
        if (stride != 1 || channels_of(network, at) != out)
            shortcut = add_normed(network, cnn, at, out, 1, stride);
        at = add_conv(network, cnn, at, out, stride);
        at = add_conv(network, cnn, at, out, 1);
        at = network_add(network, at, shortcut);
        size /= stride;
        if (size <= SMALLEST)
            break;
    }
    return at;
}

/* Blocks with convolutions that read all earlier outputs of the block. After some blocks come a 1x1 convolution to half
 * as many channels and a pooling to half the size. */
static int32_t add_dense(struct network *network, const struct cnn *cnn)
{
    const struct network_activation *relu = network_activation_named("relu");
    int64_t blocks = cnn->depth / 4;
    int32_t at = NETWORK_INPUT;

    for (int64_t i = 0; i < blocks; i++) {
        int32_t features[1 + DENSE_CONVS] = {at};

        for (size_t j = 1; j <= DENSE_CONVS; j++) {
            int32_t seen = network_concat(network, features, j);
            features[j] = add_conv(network, cnn, seen, GROWTH, 1);
        }
        at = network_concat(network, features, 1 + DENSE_CONVS);
        if (i % cnn->pool_interval == 0 && i != blocks - 1) {
            at = add_normed(network, cnn, at, channels_of(network, at) / 2, 1, 1);
            at = network_activation(network, at, relu);
            if (network->list->items[at].shape[1] > 1)
                at = network_halve(network, at);
        }
    }
    return at;
}

static const struct {
    const char *arch;
    int64_t (*channels)(const struct cnn *cnn, int64_t i); /* of a chain of convolutions; NULL: */
    int32_t (*add)(struct network *network, const struct cnn *cnn);
} archs[] = {
    {"pyramid", pyramid, NULL}, {"gradual", gradual, NULL},     {"bottleneck", bottleneck, NULL},
    {"uniform", uniform, NULL}, {"hourglass", hourglass, NULL}, {"residual", NULL, add_residual},
    {"dense", NULL, add_dense},
};

static int build(const struct csv *csv, const struct cnn *cnn, struct layer_list *list, struct error *err)
{
    const int64_t input[] = {cnn->channels, cnn->size, cnn->size};
    struct network network;
    int64_t parameters;
    int32_t at = NETWORK_INPUT;
    size_t arch = 0;

    while (arch < array_size(archs) && strcmp(archs[arch].arch, csv->values[ARCH]) != 0)
        arch++;
    if (arch == array_size(archs))
        return csv_error(csv, err, "arch '%.40s' is not known: pyramid, residual, dense, ...", csv->values[ARCH]);
    if (archs[arch].add == add_dense && cnn->pool_interval < 1)
        return csv_error(csv, err, "no dense_pool_interval: a dense network needs it");
    if (csv_integer(csv, TOTAL_PARAMS, 1, LAYER_MAX_PARAMETERS, 0, &parameters, err))
        return -EINVAL;
    network_begin(&network, list, csv, csv->values[LAYERS], input, 3, err);
    if (archs[arch].add)
        at = archs[arch].add(&network, cnn);
    else
        for (int64_t i = 0; i < cnn->depth; i++)
            at = add_conv(&network, cnn, at, archs[arch].channels(cnn, i), 1);
    at = network_global_pool(&network, at);
    at = network_linear(&network, at, cnn->classes);
    if (cnn->classes > 1)
        network_softmax(&network, at);
    return network_finish(&network, parameters);
}

static int read_row(const struct csv *csv, struct dataset_row *row, struct error *err)
{
    int64_t use_dropout, use_batch_norm, kernel;
    struct cnn cnn;

    if (csv_integer(csv, INPUT_CHANNELS, 1, MAX_CHANNELS, 0, &cnn.channels, err) ||
        csv_integer(csv, NUM_CLASSES, 1, 1 << 20, 0, &cnn.classes, err) ||
        csv_integer(csv, DEPTH_ARG, 1, MAX_DEPTH, 0, &cnn.depth, err) ||
        csv_integer(csv, BASE_FILTERS, 1, MAX_CHANNELS, 0, &cnn.base, err) ||
        csv_integer(csv, BATCH_SIZE, 1, DATASET_MAX_BATCH, 0, &cnn.batch, err) ||
        csv_integer(csv, INPUT_SIZE, 1, MAX_SIZE, 0, &cnn.size, err) ||
        csv_integer(csv, DENSE_POOL_INTERVAL, 0, MAX_DEPTH, 0, &cnn.pool_interval, err) ||
        csv_integer(csv, KERNEL_SIZE, 1, MAX_KERNEL, KERNEL, &kernel, err) ||
        csv_integer(csv, USE_DROPOUT, 0, 1, 0, &use_dropout, err) ||
        csv_integer(csv, USE_BATCHNORM, 0, 1, 0, &use_batch_norm, err) ||
        network_activation_find(csv, ACTIVATION, &cnn.activation, err) || dataset_measured(csv, row, MEASURED, err) ||
        dataset_permille(csv, SMACT, &row->smact_permille, err) ||
        dataset_permille(csv, SMOCC, &row->smocc_permille, err) || dataset_status(csv, STATUS, row, err))
        return -EINVAL;
    cnn.kernel = (int32_t)kernel;
    cnn.dropout = use_dropout;
    cnn.batch_norm = use_batch_norm;
    row->training.batch_size = cnn.batch;
    row->training.summary_pass = row->training.summary_gradients = true;
    row->training.summary_batch = SUMMARY_BATCH;
    snprintf(row->group, sizeof row->group, "%s", csv->values[ARCH]);
    row->has_layers = build(csv, &cnn, &row->layers, err) == 0;
    return row->has_layers ? dataset_collected(csv, COLLECTED, row, err) : -EINVAL;
}

const struct dataset_rows dataset_cnn_rows = {{columns, array_size(columns), 0}, read_row};
