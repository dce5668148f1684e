/* The quality of estimates, compared with measurements. Rates, accuracies and percentage errors are fractions. */
#ifndef CARMA_EVALUATION_METRICS_H
#define CARMA_EVALUATION_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define METRICS_BIN_GB_BYTES ((int64_t)1000 << 20) /* 1 GB of a bin is 1000 MiB, as in the thesis's classes */
#define METRICS_MAX_CLASSES  100000

struct metrics_row {
    int64_t measured_bytes; /* of nothing where it was out of memory */
    bool out_of_memory;
    int64_t median_bytes; /* the best guess: bins and errors are about it */
    int64_t bytes;        /* the answer at the quantile asked for: the last two figures are about it */
};

/* Classes are bins of equal width, and a last one for runs out of memory and for best guesses above the GPU's. NAN: no
 * row for this figure. */
struct metrics {
    size_t rows, out_of_memory;   /* of the rows */
    double bin_accuracy;          /* best guesses in the right class */
    double bin_below;             /* in a class that is too low */
    double precision, recall, f1; /* means over the classes, weighted by their rows, as in the thesis (5.4.4): recall is
                                     then the accuracy; a class that is never guessed has precision 0 */
    /* Of rows that were not out of memory. */
    double mae_mib;                     /* mean |best guess - measured| */
    double mape, median_ape, worst_ape; /* |best guess - measured| / measured */
    double underestimate_rate;          /* answers at the quantile below the measurement */
    double mean_overestimate;           /* mean of max(0, answer - measured) / measured, over all of them */
};

/* memory_bytes: of the GPU; memory_bytes / bin_bytes < METRICS_MAX_CLASSES. */
void metrics_compute(struct metrics *metrics, const struct metrics_row *rows, size_t count, int64_t bin_bytes,
                     int64_t memory_bytes);

#endif
