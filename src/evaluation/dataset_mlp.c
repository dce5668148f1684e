/* Multi-layer perceptrons (thesis 5.4.2): hidden layers of an activation each, with batch norm and dropout as the row
 * has them, and a softmax. The generator's four shapes are the thesis's Table 5.2 as its published rows show them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "evaluation/collected.h"
#include "evaluation/network.h"
#include "evaluation/rows.h"

#define COLUMNS(COLUMN)                                                                                                \
    COLUMN(ARCH, "arch", true)                                                                                         \
    COLUMN(INPUT_SIZE, "input_size", true)                                                                             \
    COLUMN(OUTPUT_SIZE, "output_size", true)                                                                           \
    COLUMN(HIDDEN_DEPTH, "hidden_depth", true)                                                                         \
    COLUMN(BATCH_SIZE, "batch_size", true)                                                                             \
    COLUMN(ACTIVATION, "activation", true)                                                                             \
    COLUMN(DROPOUT_RATE, "dropout_rate", false)                                                                        \
    COLUMN(USE_DROPOUT, "use_dropout", true)                                                                           \
    COLUMN(USE_BATCHNORM, "use_batchnorm", true)                                                                       \
    COLUMN(LINEAR_LAYERS, "linear_layers", false)                                                                      \
    COLUMN(BATCHNORM_LAYERS, "batchnorm_layers", false)                                                                \
    COLUMN(DROPOUT_LAYERS, "dropout_layers", false)                                                                    \
    COLUMN(TOTAL_ACTIVATIONS, "total_activations", false)                                                              \
    COLUMN(TOTAL_PARAMS, "total_params", true)                                                                         \
    COLUMN(LAYERS, "layers", true)                                                                                     \
    COLUMN(MEASURED, "max_gpu_memory_mib", true)                                                                       \
    COLUMN(GPUTL, "avg_gputl", false)                                                                                  \
    COLUMN(GRACT, "avg_gract", false)                                                                                  \
    COLUMN(SMACT, "avg_smact", false)                                                                                  \
    COLUMN(SMOCC, "avg_smocc", false)                                                                                  \
    COLUMN(FP32A, "avg_fp32a", false)                                                                                  \
    COLUMN(STATUS, "status", false)

enum { COLUMNS(CSV_COLUMN_PLACE) COLLECTED /* from here on */ };

static const struct csv_column columns[] = {COLUMNS(CSV_COLUMN_ROW) COLLECTED_COLUMNS(COLLECTED)};

#define SAMPLES       4096 /* of every run's data set */
#define SUMMARY_BATCH 2    /* torchsummary's own */
#define MAX_WIDTH     (INT64_C(1) << 20)
#define MAX_DEPTH     256

struct mlp {
    int64_t input, output, depth, batch;
    const struct network_activation *activation;
    bool dropout, batch_norm;
};

/* A hidden layer of `width` with the layers behind it. */
static int32_t add_hidden(struct network *network, const struct mlp *mlp, int32_t from, int64_t width)
{
    from = network_linear(network, from, width);
    if (mlp->batch_norm)
        from = network_batch_norm(network, from);
    from = network_activation(network, from, mlp->activation);
    return mlp->dropout ? network_dropout(network, from) : from;
}

/* Widths: "pyramid" halves from layer to layer but not below the output; "bottleneck" is the same with one layer more.
 * "uniform" keeps the input's; "gradual" goes down to the output in equal steps. */
static int32_t add_all_hidden(struct network *network, const struct mlp *mlp, const char *arch, int32_t at)
{
    int64_t width = mlp->input, step = (mlp->input - mlp->output) / mlp->depth;
    int64_t layers = mlp->depth + (strcmp(arch, "bottleneck") == 0);

    /* rounded down, as Python's // does */
    if (step * mlp->depth > mlp->input - mlp->output)
        step--;
    for (int64_t i = 0; i < layers; i++) {
        if (strcmp(arch, "gradual") == 0)
            width -= step;
        else if (strcmp(arch, "uniform") != 0)
            width /= 2;
        if (width < mlp->output && strcmp(arch, "uniform") != 0)
            width = mlp->output;
        at = add_hidden(network, mlp, at, width);
    }
    return at;
}

static int build(const struct csv *csv, const struct mlp *mlp, struct layer_list *list, struct error *err)
{
    static const char *const archs[] = {"pyramid", "bottleneck", "uniform", "gradual"};
    const char *arch = csv->values[ARCH];
    const int64_t input[] = {mlp->input};
    char type[LAYER_NAME_SIZE];
    struct network network;
    int64_t parameters;
    size_t known = 0;
    int32_t at;

    while (known < array_size(archs) && strcmp(archs[known], arch) != 0)
        known++;
    if (known == array_size(archs))
        return csv_error(csv, err, "arch '%.40s' is not known: pyramid, bottleneck, uniform, gradual", arch);
    if (csv_integer(csv, TOTAL_PARAMS, 1, LAYER_MAX_PARAMETERS, 0, &parameters, err))
        return -EINVAL;
    network_begin(&network, list, csv, csv->values[LAYERS], input, 1, err);
    at = add_all_hidden(&network, mlp, arch, NETWORK_INPUT);
    at = network_linear(&network, at, mlp->output);
    /* A single output has no softmax: a sigmoid or nothing, which no column but the list says. */
    network_next_type(&network, type);
    if (mlp->output > 1)
        network_softmax(&network, at);
    else
        network_activation(&network, at,
                           network_activation_named(strcmp(type, "Sigmoid") == 0 ? "sigmoid" : "identity"));
    return network_finish(&network, parameters);
}

static int read_row(const struct csv *csv, struct dataset_row *row, struct error *err)
{
    int64_t use_dropout, use_batch_norm;
    struct mlp mlp;

    if (csv_integer(csv, INPUT_SIZE, 1, MAX_WIDTH, 0, &mlp.input, err) ||
        csv_integer(csv, OUTPUT_SIZE, 1, MAX_WIDTH, 0, &mlp.output, err) ||
        csv_integer(csv, HIDDEN_DEPTH, 1, MAX_DEPTH, 0, &mlp.depth, err) ||
        csv_integer(csv, BATCH_SIZE, 1, DATASET_MAX_BATCH, 0, &mlp.batch, err) ||
        csv_integer(csv, USE_DROPOUT, 0, 1, 0, &use_dropout, err) ||
        csv_integer(csv, USE_BATCHNORM, 0, 1, 0, &use_batch_norm, err) ||
        network_activation_find(csv, ACTIVATION, &mlp.activation, err) || dataset_measured(csv, row, MEASURED, err) ||
        dataset_permille(csv, SMACT, &row->smact_permille, err) ||
        dataset_permille(csv, SMOCC, &row->smocc_permille, err) ||
        (*csv->values[STATUS] && dataset_status(csv, STATUS, row, err)))
        return -EINVAL;
    mlp.dropout = use_dropout;
    mlp.batch_norm = use_batch_norm;
    row->training.batch_size = mlp.batch;
    row->training.samples = SAMPLES;
    row->training.summary_pass = row->training.summary_gradients = true;
    row->training.summary_batch = SUMMARY_BATCH;
    snprintf(row->group, sizeof row->group, "%s", csv->values[ARCH]);
    row->has_layers = build(csv, &mlp, &row->layers, err) == 0;
    return row->has_layers ? dataset_collected(csv, COLLECTED, row, err) : -EINVAL;
}

const struct dataset_rows dataset_mlp_rows = {{columns, array_size(columns), 0}, read_row};
