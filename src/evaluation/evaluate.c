#include "evaluation/evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/learned/model.h"

/* The rows that an estimator's models were trained on: their arrays "rows/KIND", sorted. */
struct seen {
    uint64_t *keys; /* owned */
    size_t count;
};

static int compare_keys(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

static void add_seen(struct seen *seen, const char *model_name, enum dataset_kind kind)
{
    char name[32];
    struct model_array array;

    snprintf(name, sizeof name, "rows/%s", dataset_kind_names[kind]);
    array = model_array(model_find(model_name), name, MODEL_U64);
    if (!array.data || array.count == 0)
        return;
    seen->keys = xrealloc(seen->keys, seen->count + array.count, sizeof *seen->keys);
    memcpy(seen->keys + seen->count, array.data, array.count * sizeof *seen->keys);
    seen->count += array.count;
}

static void sort_seen(struct seen *seen)
{
    if (seen->count)
        qsort(seen->keys, seen->count, sizeof *seen->keys, compare_keys);
}

static bool has_seen(const struct seen *seen, uint64_t key)
{
    return seen->count && bsearch(&key, seen->keys, seen->count, sizeof *seen->keys, compare_keys);
}

/* `auto` may ask any of them but the last, which knows no other rows than they do. */
static struct seen find_seen(const struct estimator *estimator, enum dataset_kind kind)
{
    static const char *const models[] = {"replay", "gpumemnet"};
    bool any = strcmp(estimator->name, "auto") == 0;
    struct seen seen = {0};

    for (size_t i = 0; i < array_size(models); i++)
        if (any || strcmp(models[i], estimator->name) == 0)
            add_seen(&seen, models[i], kind);
    sort_seen(&seen);
    return seen;
}

/* SM activity has models of its own, beside any estimator of memory. A table without a list of its training rows was
 * trained with that of the memory. */
static struct seen find_activity_seen(enum dataset_kind kind)
{
    struct seen seen = {0};

    add_seen(&seen, "utilisation", kind);
    if (seen.count == 0)
        add_seen(&seen, "replay", kind);
    sort_seen(&seen);
    return seen;
}

static int ask(struct evaluation *evaluation, struct evaluation_row *asked, const struct dataset *dataset,
               const struct evaluation_options *options, struct error *err)
{
    const struct dataset_row *row = asked->row;
    struct estimate_question question = {
        .layers = row->has_layers ? &row->layers : NULL,
        .capture = row->capture,
        .training = row->training,
        .profile = dataset->profile,
        .declared_bytes = -1,
        .quantile_permille = options->quantile_permille,
        .fold = asked->fold,
    };
    struct error inner;
    int rc = estimate(options->estimator, &question, &asked->estimate, &inner);

    asked->answered = rc == 0;
    if (rc == 0)
        return 0;
    if (rc != -ENOTSUP)
        return error_set(err, EINVAL, "%s: %s", row->name, inner.text);
    if (evaluation->unanswered++ == 0)
        snprintf(evaluation->why_unanswered, sizeof evaluation->why_unanswered, "%s: %.150s", row->name, inner.text);
    return 0;
}

static int ask_all(struct evaluation *evaluation, const struct dataset *dataset,
                   const struct evaluation_options *options, struct error *err)
{
    struct seen seen = find_seen(options->estimator, dataset->kind);
    struct seen activity_seen = find_activity_seen(dataset->kind);
    int rc = 0;

    for (size_t i = 0; i < evaluation->count && rc == 0; i++) {
        struct evaluation_row *asked = &evaluation->rows[i];
        asked->row = &dataset->rows[i];
        asked->seen = has_seen(&seen, asked->row->key);
        asked->activity_seen = has_seen(&activity_seen, asked->row->key);
        /* a formula was not trained: then it is about SM activity alone */
        asked->fold =
            options->folds && (seen.count ? asked->seen : asked->activity_seen) ? dataset_fold(asked->row) : -1;
        rc = ask(evaluation, asked, dataset, options, err);
        evaluation->in_sample |= asked->answered && asked->seen && asked->fold < 0;
        if (options->progress)
            options->progress(i + 1, evaluation->count, options->progress_context);
    }
    free(seen.keys);
    free(activity_seen.keys);
    return rc;
}

static void measure(struct evaluation *evaluation, const struct dataset *dataset, int64_t bin_bytes)
{
    CLEANUP(free_ptr) struct metrics_row *rows = xcalloc(evaluation->count, sizeof *rows);
    size_t count = 0;

    for (size_t i = 0; i < evaluation->count; i++) {
        const struct evaluation_row *asked = &evaluation->rows[i];
        if (asked->answered)
            rows[count++] = (struct metrics_row){.measured_bytes = asked->row->measured_bytes,
                                                 .out_of_memory = asked->row->out_of_memory,
                                                 .median_bytes = asked->estimate.median_bytes,
                                                 .bytes = asked->estimate.bytes};
    }
    metrics_compute(&evaluation->metrics, rows, count, bin_bytes, dataset->profile->memory_bytes);
}

static void compare_published(struct evaluation *evaluation, const char *estimator)
{
    static const char *const names[] = {"horus", "faketensor"}; /* gpumemnet's are edges of classes */
    size_t which = 0;
    double sum = 0;

    while (which < array_size(names) && strcmp(names[which], estimator) != 0)
        which++;
    for (size_t i = 0; i < evaluation->count && which < array_size(names); i++) {
        const struct evaluation_row *asked = &evaluation->rows[i];
        double published = (double)asked->row->published[which], error;
        if (!asked->answered || published <= 0)
            continue;
        error = fabs((double)asked->estimate.median_bytes - published) / published;
        evaluation->published_rows++;
        sum += error;
        evaluation->published_worst_ape = fmax(evaluation->published_worst_ape, error);
    }
    if (evaluation->published_rows)
        evaluation->published_mape = sum / (double)evaluation->published_rows;
}

static void measure_activity(struct evaluation *evaluation)
{
    double sum = 0, squares = 0, residuals = 0, errors = 0;
    size_t count = 0;

    for (size_t i = 0; i < evaluation->count; i++) {
        const struct evaluation_row *asked = &evaluation->rows[i];
        double actual = asked->row->smact_permille, error;
        if (!asked->answered || asked->row->smact_permille < 0 || asked->estimate.smact_permille < 0)
            continue;
        if (asked->row->out_of_memory) /* it hardly ran */
            continue;
        error = (double)asked->estimate.smact_permille - actual;
        sum += actual;
        squares += actual * actual;
        residuals += error * error;
        errors += fabs(error);
        evaluation->smact_in_sample |= asked->activity_seen && asked->fold < 0;
        count++;
    }
    evaluation->smact_rows = count;
    if (count == 0)
        return;
    squares -= sum * sum / (double)count;
    evaluation->smact_r2 = squares > 0 ? 1 - residuals / squares : NAN;
    evaluation->smact_mae = errors / (double)count / 1000;
}

int evaluate(struct evaluation *evaluation, const struct dataset *dataset, const struct evaluation_options *options,
             struct error *err)
{
    int rc;

    *evaluation = (struct evaluation){.count = dataset->count};
    evaluation->rows = xcalloc(dataset->count, sizeof *evaluation->rows);
    rc = ask_all(evaluation, dataset, options, err);
    if (rc) {
        evaluation_release(evaluation);
        return rc;
    }
    if (evaluation->unanswered == evaluation->count) {
        rc = error_set(err, ENOTSUP, "%s answers none of the %zu rows: %s", options->estimator->name, evaluation->count,
                       evaluation->why_unanswered);
        evaluation_release(evaluation);
        return rc;
    }
    measure(evaluation, dataset, options->bin_bytes);
    compare_published(evaluation, options->estimator->name);
    measure_activity(evaluation);
    return 0;
}

void evaluation_release(struct evaluation *evaluation)
{
    free(evaluation->rows);
    *evaluation = (struct evaluation){0};
}
