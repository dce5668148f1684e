#include "evaluation/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "evaluation/rows.h"

const char *const dataset_kind_names[DATASET_KIND_COUNT] = {"mlp", "cnn", "transformer", "real", "timm"};

#define MAX_MIB (1 << 24)

int dataset_fold(const struct dataset_row *row)
{
    return (int)(row->key % DATASET_FOLDS);
}

int dataset_permille(const struct csv *csv, size_t column, int32_t *permille, struct error *err)
{
    int64_t value;
    int rc = csv_number(csv, column, 0, 1, 1000, -1, &value, err);

    if (rc == 0)
        *permille = (int32_t)value;
    return rc;
}

int dataset_mib(const struct csv *csv, size_t column, int64_t *bytes, struct error *err)
{
    return csv_number(csv, column, 0, MAX_MIB, (double)MIB, -1, bytes, err);
}

int dataset_measured(const struct csv *csv, struct dataset_row *row, size_t column, struct error *err)
{
    return csv_number(csv, column, 1, MAX_MIB, (double)MIB, -1, &row->measured_bytes, err);
}

int dataset_status(const struct csv *csv, size_t column, struct dataset_row *row, struct error *err)
{
    row->out_of_memory = strcmp(csv->values[column], "OOM_CRASH") == 0;
    if (row->out_of_memory || strcmp(csv->values[column], "SUCCESSFUL") == 0)
        return 0;
    return csv_error(csv, err, "status '%.40s' is neither SUCCESSFUL nor OOM_CRASH", csv->values[column]);
}

struct dataset_row *dataset_add(struct dataset *dataset, const struct csv *csv)
{
    struct dataset_row *row;

    array_reserve(dataset->rows, dataset->capacity, dataset->count + 1);
    row = &dataset->rows[dataset->count++];
    *row = (struct dataset_row){
        .key = csv->row_hash,
        .measured_bytes = -1,
        .smact_permille = -1,
        .smocc_permille = -1,
        .published = {-1, -1, -1},
    };
    snprintf(row->name, sizeof row->name, "%s row %zu", dataset_kind_names[dataset->kind], csv->rows);
    training_default(&row->training);
    return row;
}

int dataset_too_large(const struct csv *csv, struct error *err)
{
    return csv_error(csv, err, "the networks so far have more than %d layers: split the file", DATASET_MAX_LAYERS);
}

static void row_release(struct dataset_row *row)
{
    if (row->has_layers)
        layer_list_release(&row->layers);
    if (row->capture)
        capture_release(row->capture);
    free(row->capture);
}

void dataset_drop(struct dataset *dataset)
{
    row_release(&dataset->rows[--dataset->count]);
}

int dataset_read_rows(struct dataset *dataset, const char *path, const struct dataset_rows *rows, struct error *err)
{
    struct csv csv;
    size_t layers = 0;
    int rc = csv_open(&csv, path, &rows->table, 1, err);

    while (rc == 0 && (rc = csv_next(&csv, err)) == 1) {
        rc = rows->read(&csv, dataset_add(dataset, &csv), err);
        layers += dataset->rows[dataset->count - 1].layers.count;
        if (rc == 0 && layers > DATASET_MAX_LAYERS)
            rc = dataset_too_large(&csv, err);
    }
    csv_release(&csv);
    return rc;
}

/* "FILE,LAYERS", which must both be there. */
static int read_real(struct dataset *dataset, const char *files, struct error *err)
{
    CLEANUP(free_ptr) char *models = xstrdup(files);
    char *comma = strchr(models, ',');

    if (!comma || comma == models || !comma[1])
        return error_set(err, EINVAL, "real:%.200s: name two files, real:MODELS.csv,LAYERS.csv", files);
    *comma = '\0';
    return dataset_read_real(dataset, models, comma + 1, err);
}

static int read_kind(struct dataset *dataset, const char *file, const char *captures, struct error *err)
{
    switch (dataset->kind) {
    case DATASET_MLP:
        return dataset_read_rows(dataset, file, &dataset_mlp_rows, err);
    case DATASET_CNN:
        return dataset_read_rows(dataset, file, &dataset_cnn_rows, err);
    case DATASET_TRANSFORMER:
        return dataset_read_rows(dataset, file, &dataset_transformer_rows, err);
    case DATASET_REAL:
        return read_real(dataset, file, err);
    default:
        return dataset_read_timm(dataset, file, captures, err);
    }
}

int dataset_read(struct dataset *dataset, const char *which, const char *captures, struct error *err)
{
    size_t length = strcspn(which, ":");
    unsigned kind = 0;
    int rc;

    *dataset = (struct dataset){.profile = machine_profile_find("a100-40g-thesis")};
    while (kind < DATASET_KIND_COUNT &&
           (strlen(dataset_kind_names[kind]) != length || strncmp(dataset_kind_names[kind], which, length) != 0))
        kind++;
    if (kind == DATASET_KIND_COUNT || which[length] != ':' || !which[length + 1])
        return error_set(err, EINVAL, "'%.80s' is not a KIND:FILE; KIND is mlp, cnn, transformer, real or timm", which);
    dataset->kind = (enum dataset_kind)kind;
    rc = read_kind(dataset, which + length + 1, captures, err);
    if (rc == 0 && dataset->count == 0)
        rc = error_set(err, EINVAL, "%.200s: no rows", which);
    if (rc)
        dataset_release(dataset);
    return rc;
}

void dataset_release(struct dataset *dataset)
{
    for (size_t i = 0; i < dataset->count; i++)
        row_release(&dataset->rows[i]);
    free(dataset->rows);
    *dataset = (struct dataset){0};
}
