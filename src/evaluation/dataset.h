/* Measured training runs (the columns of docs/formats/datasets.md) as questions to the estimators. */
#ifndef CARMA_EVALUATION_DATASET_H
#define CARMA_EVALUATION_DATASET_H

#include "base/error.h"
#include "estimate/estimate.h"

enum dataset_kind { DATASET_MLP, DATASET_CNN, DATASET_TRANSFORMER, DATASET_REAL, DATASET_TIMM, DATASET_KIND_COUNT };
extern const char *const dataset_kind_names[DATASET_KIND_COUNT];

struct dataset_row {
    char name[96];      /* for people: "mlp row 17", "resnet50 imagenet 128" */
    char group[32];     /* the architecture, for leave-one-out; "" where there is none */
    uint64_t key;       /* of the row's question and measurement: FNV-1a of the row's text; the fold comes from it */
    bool out_of_memory; /* then `measured_bytes` is not the need */
    int64_t measured_bytes;
    int32_t smact_permille, smocc_permille; /* -1 = not recorded */
    int64_t published[3];                   /* horus, faketensor, gpumemnet, as the file has them; bytes; -1 = none */
    bool has_layers;
    struct layer_list layers; /* complete */
    struct capture *capture;  /* owned; NULL = none */
    struct training training;
};

struct dataset {
    enum dataset_kind kind;
    struct dataset_row *rows; /* owned */
    size_t count, capacity;
    size_t left_out; /* rows of the file without a capture, or without a measurement of this machine */
    const struct machine_profile *profile; /* of the machine they were measured on */
};

/* "mlp:FILE", "cnn:FILE", "transformer:FILE", "real:FILE,LAYERS", "timm:FILE" (captures: a folder of NAME.capture, or
 * NULL). -EINVAL names file, line and fault. */
int dataset_read(struct dataset *dataset, const char *which, const char *captures, struct error *err);
void dataset_release(struct dataset *dataset);

#define DATASET_FOLDS 5
int dataset_fold(const struct dataset_row *row); /* key % DATASET_FOLDS */

#endif
