/* Published models (thesis, Table 6.2): their measurements, and for some CNNs the lines of their torchsummary. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "evaluation/language.h"
#include "evaluation/rows.h"

enum column {
    MODEL,
    DOMAIN,
    DATASET,
    BATCH_SIZE,
    GPUS,
    MEASURED,
    CARMA_RAD,
    CARMA_README,
    HORUS,
    FAKETENSOR,
    GPUMEMNET,
    NUM_LAYERS,
    HIDDEN,
    FF,
    HEADS,
    VOCAB,
    SEQ_LEN
};

static const struct csv_column columns[] = {
    [MODEL] = {"model", true},
    [DOMAIN] = {"domain", true},
    [DATASET] = {"dataset", true},
    [BATCH_SIZE] = {"batch_size", true},
    [GPUS] = {"gpus", true},
    [MEASURED] = {"actual_mb_thesis", false},
    [CARMA_RAD] = {"actual_mib_carma_rad", false},
    [CARMA_README] = {"actual_gb_carma_readme", false},
    [HORUS] = {"horus_mb", false},
    [FAKETENSOR] = {"faketensor_mb", false},
    [GPUMEMNET] = {"gpumemnet_mb", false},
    [NUM_LAYERS] = {"num_layers", false},
    [HIDDEN] = {"hidden", false},
    [FF] = {"ff", false},
    [HEADS] = {"heads", false},
    [VOCAB] = {"vocab", false},
    [SEQ_LEN] = {"seq_len", false},
};

#define MAX_SUMMARIES 1000
#define MAX_WIDTH     (1 << 18)

enum line_column { LINE_MODEL, LINE_DATASET, LINE_IDX, LINE_TYPE, LINE_SHAPE, LINE_PARAMS };

static const struct csv_column line_columns[] = {
    [LINE_MODEL] = {"model", true},
    [LINE_DATASET] = {"dataset", true},
    [LINE_IDX] = {"idx", true},
    [LINE_TYPE] = {"layer_type", true},
    [LINE_SHAPE] = {"output_shape_no_batch", true},
    [LINE_PARAMS] = {"params", true},
};

/* The layers of one model on one data set. */
struct summary_lines {
    char model[64], dataset[32];
    struct layer_list list;
};

struct summaries {
    struct summary_lines *items; /* owned */
    size_t count, capacity;
};

static void summaries_release(struct summaries *summaries)
{
    for (size_t i = 0; i < summaries->count; i++)
        layer_list_release(&summaries->items[i].list);
    free(summaries->items);
}

static struct summary_lines *find_lines(struct summaries *summaries, const char *model, const char *dataset)
{
    for (size_t i = 0; i < summaries->count; i++)
        if (strcmp(summaries->items[i].model, model) == 0 && strcmp(summaries->items[i].dataset, dataset) == 0)
            return &summaries->items[i];
    return NULL;
}

/* "32x112x112", "1000" */
static int read_shape(const struct csv *csv, struct layer *layer, struct error *err)
{
    const char *text = csv->values[LINE_SHAPE];

    layer->shape_known = true;
    for (;;) {
        char *end;
        long long size = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : 0;
        if (size < 1 || size > LAYER_MAX_DIMENSION || layer->rank == LAYER_MAX_RANK || (*end && *end != 'x'))
            return csv_error(csv, err, "output_shape_no_batch '%.40s' is not a shape such as 64x56x56",
                             csv->values[LINE_SHAPE]);
        layer->shape[layer->rank++] = size;
        if (!*end)
            return 0;
        text = end + 1;
    }
}

static int read_line(const struct csv *csv, void *user, struct error *err)
{
    struct summaries *summaries = user;
    struct summary_lines *lines = find_lines(summaries, csv->values[LINE_MODEL], csv->values[LINE_DATASET]);
    enum activation activation;
    int64_t index, parameters;
    struct layer *layer;

    if (csv_integer(csv, LINE_IDX, 0, LAYER_LIST_MAX, 0, &index, err) ||
        csv_integer(csv, LINE_PARAMS, 0, LAYER_MAX_PARAMETERS, 0, &parameters, err))
        return -EINVAL;
    if (!lines) {
        if (summaries->count == MAX_SUMMARIES)
            return csv_error(csv, err, "more than %d models: split the file", MAX_SUMMARIES);
        if (strlen(csv->values[LINE_MODEL]) >= sizeof lines->model ||
            strlen(csv->values[LINE_DATASET]) >= sizeof lines->dataset)
            return csv_error(csv, err, "the name %.80s is too long", csv->values[LINE_MODEL]);
        array_reserve(summaries->items, summaries->capacity, summaries->count + 1);
        lines = &summaries->items[summaries->count++];
        snprintf(lines->model, sizeof lines->model, "%s", csv->values[LINE_MODEL]);
        snprintf(lines->dataset, sizeof lines->dataset, "%s", csv->values[LINE_DATASET]);
        layer_list_init(&lines->list);
    }
    if (index != (int64_t)lines->list.count)
        return csv_error(csv, err, "idx %" PRId64 " of %s, but its next line is %zu", index, lines->model,
                         lines->list.count);
    layer = layer_list_add(&lines->list, layer_kind_of_type(csv->values[LINE_TYPE], &activation));
    layer->activation = (uint8_t)activation;
    layer->parameters = parameters;
    snprintf(layer->type, sizeof layer->type, "%s", csv->values[LINE_TYPE]);
    snprintf(layer->name, sizeof layer->name, "%.40s-%zu", csv->values[LINE_TYPE], lines->list.count);
    /* as torchsummary shows a module that is made of others */
    layer->container = layer->kind == LAYER_UNKNOWN && parameters == 0;
    return read_shape(csv, layer, err);
}

static int read_summaries(struct summaries *summaries, const char *path, struct error *err)
{
    static const struct csv_table table = {line_columns, array_size(line_columns), 0};

    return csv_read(path, &table, read_line, summaries, err);
}

/* The side of the images: the data set's usual one, or that of the first layer's output. */
static int64_t image_size(const char *dataset, const struct layer *first)
{
    static const struct {
        const char *dataset;
        int64_t size;
    } known[] = {{"cifar100", 32}, {"imagenet", 224}, {"imagenet", 299}};
    int64_t out = first->rank == 3 ? first->shape[2] : 0;

    for (size_t i = 0; i < array_size(known); i++)
        if (strcmp(known[i].dataset, dataset) == 0 && (known[i].size == out || llabs(known[i].size - 2 * out) <= 2))
            return known[i].size;
    return 0;
}

static void take_layers(struct dataset_row *row, const struct summary_lines *lines)
{
    struct layer_list *list = &row->layers;
    int64_t size = image_size(lines->dataset, &lines->list.items[0]);

    *list = lines->list;
    list->capacity = list->count;
    list->items = xcalloc(list->count, sizeof *list->items);
    memcpy(list->items, lines->list.items, list->count * sizeof *list->items); /* none has inputs of its own yet */
    if (size) {
        list->input_rank = 3;
        list->input[0] = 3;
        list->input[1] = list->input[2] = size;
    }
    layers_complete(list);
    row->has_layers = true;
}

static int read_language(const struct csv *csv, struct dataset_row *row, int64_t gpus, struct error *err)
{
    struct language_model language = {.gpus = gpus};

    if (csv_number(csv, NUM_LAYERS, 1, 1000, 1, 0, &language.layers, err) ||
        csv_number(csv, HIDDEN, 1, MAX_WIDTH, 1, 0, &language.width, err) ||
        csv_number(csv, FF, 1, MAX_WIDTH, 1, 0, &language.inner, err) ||
        csv_number(csv, HEADS, 1, 1024, 1, 0, &language.heads, err) ||
        csv_number(csv, VOCAB, 1, 1 << 22, 1, 0, &language.words, err) ||
        csv_number(csv, SEQ_LEN, 1, 1 << 20, 1, 0, &language.length, err))
        return -EINVAL;
    if (language.layers && language.width && language.inner && language.heads && language.words && language.length)
        row->has_layers = language_build(&row->layers, csv->values[MODEL], &language, csv, err);
    row->training.optimizer = OPTIMIZER_ADAMW;
    return 0;
}

static int read_row(const struct csv *csv, struct dataset_row *row, struct summaries *summaries, struct error *err)
{
    const char *model = csv->values[MODEL], *dataset = csv->values[DATASET];
    struct summary_lines *lines = find_lines(summaries, model, dataset);
    int64_t gpus;

    if (csv_integer(csv, BATCH_SIZE, 1, DATASET_MAX_BATCH, 0, &row->training.batch_size, err) ||
        csv_integer(csv, GPUS, 1, 64, 0, &gpus, err) || dataset_measured(csv, row, MEASURED, err) ||
        dataset_mib(csv, HORUS, &row->published[0], err) || dataset_mib(csv, FAKETENSOR, &row->published[1], err) ||
        dataset_mib(csv, GPUMEMNET, &row->published[2], err))
        return -EINVAL;
    if (row->training.batch_size % gpus)
        return csv_error(csv, err, "batch_size %s does not divide among %s GPUs", csv->values[BATCH_SIZE],
                         csv->values[GPUS]);
    snprintf(row->name, sizeof row->name, "%.40s %.30s %" PRId64, model, dataset, row->training.batch_size);
    snprintf(row->group, sizeof row->group, "%.31s", model);
    row->training.batch_size /= gpus; /* DataParallel splits it */
    if (!lines)
        return read_language(csv, row, gpus, err);
    take_layers(row, lines);
    return 0;
}

int dataset_read_real(struct dataset *dataset, const char *models, const char *layers, struct error *err)
{
    static const struct csv_table table = {columns, array_size(columns), 0};
    struct summaries summaries = {0};
    struct csv csv = {0};
    size_t total = 0;
    int rc = read_summaries(&summaries, layers, err);

    if (rc == 0)
        rc = csv_open(&csv, models, &table, 1, err);
    while (rc == 0 && (rc = csv_next(&csv, err)) == 1) {
        struct dataset_row *row = dataset_add(dataset, &csv);
        rc = read_row(&csv, row, &summaries, err);
        total += row->layers.count;
        if (rc == 0 && total > DATASET_MAX_LAYERS)
            rc = dataset_too_large(&csv, err);
        if (rc == 0 && row->measured_bytes < 0) { /* not on this machine */
            dataset_drop(dataset);
            dataset->left_out++;
        }
    }
    csv_release(&csv);
    summaries_release(&summaries);
    return rc;
}
