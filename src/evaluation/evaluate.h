/* Asks an estimator about every row of a data set. */
#ifndef CARMA_EVALUATION_EVALUATE_H
#define CARMA_EVALUATION_EVALUATE_H

#include "base/error.h"
#include "estimate/estimate.h"
#include "evaluation/dataset.h"
#include "evaluation/metrics.h"

struct evaluation_options {
    const struct estimator *estimator;
    int32_t quantile_permille;
    int64_t bin_bytes;
    bool
        folds; /* about a row that was trained on, ask the models of the cross-validation that have not seen its fold */
    void (*progress)(size_t done, size_t rows, void *context); /* after every row; NULL: nobody wants to know */
    void *progress_context;
};

struct evaluation_row {
    const struct dataset_row *row; /* borrowed */
    struct estimate estimate;
    bool answered;
    bool seen;          /* the estimator's models were trained on it ... */
    bool activity_seen; /* ... those of SM activity were ... */
    int32_t fold;       /* ... and it was asked of those without this fold; -1: of the whole */
};

struct evaluation {
    struct evaluation_row *rows; /* owned; one for each of the data set */
    size_t count;
    struct metrics metrics; /* of the rows with an answer */
    size_t unanswered;
    char why_unanswered[256]; /* of the first; "" */
    bool in_sample;           /* a model that was asked had been trained on the row it was asked about */
    /* The data set's own figures of horus or faketensor, where it has them and that was asked; else 0 rows. */
    size_t published_rows;
    double published_mape, published_worst_ape; /* |median - published| / published */
    /* SM activity, where it was recorded of a run that was not out of memory, and estimated. */
    size_t smact_rows;
    bool smact_in_sample;
    double smact_r2, smact_mae;
};

/* -EINVAL: an impossible question, named by its row. Questions without an answer are counted; -ENOTSUP where all of
 * them are. */
int evaluate(struct evaluation *evaluation, const struct dataset *dataset, const struct evaluation_options *options,
             struct error *err);
void evaluation_release(struct evaluation *evaluation);

#endif
