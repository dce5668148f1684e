/* The files of measured runs: the columns of each kind, and how a row becomes a question. For dataset.c. */
#ifndef CARMA_EVALUATION_ROWS_H
#define CARMA_EVALUATION_ROWS_H

#include "evaluation/dataset.h"
#include "trace/csv.h"

/* A kind of file with rows that need no other file. */
struct dataset_rows {
    struct csv_table table;
    /* Fills *row; its name, key, and "not recorded" are set already. 0, or -EINVAL; *row then owns nothing. */
    int (*read)(const struct csv *csv, struct dataset_row *row, struct error *err);
};

extern const struct dataset_rows dataset_mlp_rows, dataset_cnn_rows, dataset_transformer_rows;

/* Together, so that a file cannot ask for any amount of memory. */
#define DATASET_MAX_LAYERS 4000000
int dataset_too_large(const struct csv *csv, struct error *err); /* -EINVAL */
#define DATASET_MAX_BATCH (INT64_C(1) << 24)

/* These fill *dataset, with its kind set; after an error it holds the rows read before. */
int dataset_read_rows(struct dataset *dataset, const char *path, const struct dataset_rows *rows, struct error *err);
int dataset_read_real(struct dataset *dataset, const char *models, const char *layers, struct error *err);
int dataset_read_timm(struct dataset *dataset, const char *path, const char *captures, struct error *err);

/* An empty last row, with nothing recorded; valid until the next is added. */
struct dataset_row *dataset_add(struct dataset *dataset, const struct csv *csv);
/* Takes the last row off again. */
void dataset_drop(struct dataset *dataset);

/* Columns that several files share: a fraction 0 to 1 as permille, MiB as bytes; -1 where empty. */
int dataset_permille(const struct csv *csv, size_t column, int32_t *permille, struct error *err);
int dataset_mib(const struct csv *csv, size_t column, int64_t *bytes, struct error *err);
int dataset_measured(const struct csv *csv, struct dataset_row *row, size_t column, struct error *err); /* >= 1 MiB */
/* SUCCESSFUL or OOM_CRASH. */
int dataset_status(const struct csv *csv, size_t column, struct dataset_row *row, struct error *err);

#endif
