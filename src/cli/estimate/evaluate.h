/* The results of carma evaluate, as JSON (docs/formats/cli.md), as a table for people, and row by row as CSV. */
#ifndef CARMA_CLI_ESTIMATE_EVALUATE_H
#define CARMA_CLI_ESTIMATE_EVALUATE_H

#include <jansson.h>

#include "base/strbuf.h"
#include "evaluation/evaluate.h"

struct evaluate_options {
    const char *dataset;  /* KIND:FILE */
    const char *pairs;    /* a file; instead of a data set */
    const char *threads;  /* the same */
    const char *mig;      /* the same */
    const char *captures; /* a folder, or NULL */
    const char *profile;  /* a file; NULL: the dataset's own */
    const struct estimator *estimator;
    double bins_gb; /* 0: the kind's own */
    int32_t quantile_permille;
    bool folds, rows, json;
};

json_t *evaluate_json(const struct evaluate_options *wanted, const struct dataset *dataset,
                      const struct evaluation *evaluation);
void evaluate_format(const struct evaluate_options *wanted, const struct dataset *dataset,
                     const struct evaluation *evaluation, int width, bool colour, struct strbuf *out);
void evaluate_format_rows(const struct evaluation *evaluation, struct strbuf *out);

/* What is predicted of pairs of jobs, of jobs with a share of the threads, and on MIG instances. Print it, and return
 * the exit status. */
int evaluate_pairs(const struct evaluate_options *wanted);
int evaluate_threads(const struct evaluate_options *wanted);
int evaluate_mig(const struct evaluate_options *wanted);

#endif
