/* A measured training run as a question to the estimators: a line of JSON, as python/carma_bench/datasets.py makes one
 * of a row of a data set (docs/formats/datasets.md). `carma evaluate` asks it, and so do programs of bench. */
#ifndef CARMA_EVALUATION_QUESTION_H
#define CARMA_EVALUATION_QUESTION_H

#include <jansson.h>

#include "base/error.h"
#include "estimate/estimate.h"

struct question {
    const char *name, *kind; /* borrowed, from the JSON: for people; "mlp", "cnn", ... */
    uint64_t key;            /* of the row: what the models were trained on is listed by it */
    struct layer_list layers;
    struct capture *capture; /* owned; NULL = none */
    bool has_layers;
    struct training training;
};

#define QUESTION_MAX_BYTES ((size_t)64 << 20) /* of a line */
#define QUESTION_FOLDS     5

/* A line. -EINVAL; -E2BIG beyond the bounds of a question. */
int question_parse(const char *line, size_t length, json_t **json, struct error *err);

/* 1: *question is filled; `json` must outlive it. 0: its capture is of another batch size, or not there. -EINVAL, or
 * what reading the capture said. question_release() ends it in each case. */
int question_read(struct question *question, const json_t *json, struct error *err);
void question_release(struct question *question);

#endif
