/* Sums over a model's layers, as the published formulas take them. */
#ifndef CARMA_ESTIMATE_COUNTS_H
#define CARMA_ESTIMATE_COUNTS_H

#include "base/error.h"
#include "estimate/estimate.h"

struct layer_counts {
    double parameters;        /* elements; each layer's own, containers left out */
    double horus_activations; /* output elements per sample of the layers that Horus's published figures count */
    size_t shapeless;         /* of those, the layers of unknown shape */
};

/* From the summary's layers; from the capture parameters alone. -ENOTSUP: there is neither, or no layer shows anything.
 */
int layer_counts_of(const struct estimate_question *question, struct layer_counts *counts, struct error *err);

/* A formula's result in bytes as an answer; -EINVAL where it is not a number below 2^62. */
int estimate_from_formula(const char *name, double bytes, struct estimate *estimate, struct error *err);

#endif
