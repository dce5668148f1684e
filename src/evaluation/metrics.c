#include "evaluation/metrics.h"

#include <math.h>

#include "base/memory.h"
#include "base/stats/stats.h"
#include "base/units.h"

struct classes {
    int64_t bin_bytes, memory_bytes;
    size_t count; /* with the last one, for rows out of memory */
    size_t *actual, *guessed, *right;
};

static size_t class_of(const struct classes *classes, int64_t bytes)
{
    int64_t bin = bytes > 0 ? bytes / classes->bin_bytes : 0;
    int64_t last = (int64_t)classes->count - 2;

    return (size_t)(bin < last ? bin : last);
}

static size_t actual_class(const struct classes *classes, const struct metrics_row *row)
{
    return row->out_of_memory ? classes->count - 1 : class_of(classes, row->measured_bytes);
}

static size_t guessed_class(const struct classes *classes, const struct metrics_row *row)
{
    return row->median_bytes > classes->memory_bytes ? classes->count - 1 : class_of(classes, row->median_bytes);
}

static void count_classes(struct metrics *metrics, struct classes *classes, const struct metrics_row *rows,
                          size_t count)
{
    size_t right = 0, below = 0;

    for (size_t i = 0; i < count; i++) {
        size_t actual = actual_class(classes, &rows[i]), guessed = guessed_class(classes, &rows[i]);
        classes->actual[actual]++;
        classes->guessed[guessed]++;
        classes->right[actual] += guessed == actual;
        right += guessed == actual;
        below += guessed < actual;
    }
    metrics->bin_accuracy = (double)right / (double)count;
    metrics->bin_below = (double)below / (double)count;
}

static void weigh_classes(struct metrics *metrics, const struct classes *classes, size_t count)
{
    metrics->precision = metrics->recall = metrics->f1 = 0;
    for (size_t c = 0; c < classes->count; c++) {
        double right = (double)classes->right[c], weight = (double)classes->actual[c] / (double)count;
        double precision = classes->guessed[c] ? right / (double)classes->guessed[c] : 0;
        double recall = classes->actual[c] ? right / (double)classes->actual[c] : 0;
        metrics->precision += weight * precision;
        metrics->recall += weight * recall;
        if (right > 0)
            metrics->f1 += weight * 2 * precision * recall / (precision + recall);
    }
}

static void measure_errors(struct metrics *metrics, const struct metrics_row *rows, size_t count)
{
    CLEANUP(free_ptr) double *errors = xcalloc(count, sizeof *errors);
    double sum_mib = 0, sum_over = 0;
    size_t measured = 0, under = 0;

    for (size_t i = 0; i < count; i++) {
        double actual = (double)rows[i].measured_bytes, error = fabs((double)rows[i].median_bytes - actual);
        if (rows[i].out_of_memory)
            continue;
        sum_mib += error / (double)MIB;
        errors[measured++] = error / actual;
        under += rows[i].bytes < rows[i].measured_bytes;
        sum_over += fmax(0, ((double)rows[i].bytes - actual) / actual);
    }
    if (measured == 0) {
        metrics->mae_mib = metrics->mape = metrics->median_ape = metrics->worst_ape = NAN;
        metrics->underestimate_rate = metrics->mean_overestimate = NAN;
        return;
    }
    metrics->mae_mib = sum_mib / (double)measured;
    metrics->mape = stats_mean(errors, measured);
    metrics->median_ape = stats_percentile(errors, measured, 50);
    metrics->worst_ape = stats_percentile(errors, measured, 100);
    metrics->underestimate_rate = (double)under / (double)measured;
    metrics->mean_overestimate = sum_over / (double)measured;
}

void metrics_compute(struct metrics *metrics, const struct metrics_row *rows, size_t count, int64_t bin_bytes,
                     int64_t memory_bytes)
{
    struct classes classes = {.bin_bytes = bin_bytes, .memory_bytes = memory_bytes};

    *metrics = (struct metrics){
        .rows = count, .bin_accuracy = NAN, .bin_below = NAN, .precision = NAN, .recall = NAN, .f1 = NAN};
    for (size_t i = 0; i < count; i++)
        metrics->out_of_memory += rows[i].out_of_memory;
    measure_errors(metrics, rows, count);
    if (count == 0)
        return;
    classes.count = (size_t)((memory_bytes - 1) / bin_bytes) + 2;
    classes.actual = xcalloc(classes.count, sizeof *classes.actual);
    classes.guessed = xcalloc(classes.count, sizeof *classes.guessed);
    classes.right = xcalloc(classes.count, sizeof *classes.right);
    count_classes(metrics, &classes, rows, count);
    weigh_classes(metrics, &classes, count);
    free(classes.actual);
    free(classes.guessed);
    free(classes.right);
}
