/* Usage: bench-gpumemnet KIND:FILE... (as in `carma evaluate --dataset`; rows of other families are left out).
 * Classifies every row by both kinds of GPUMemNet's classifiers: by the model that has not seen the row's fold, and by
 * that of all rows. Prints `KEY FAMILY CLASSIFIER FOLD CLASS LOGIT...`, and on standard error the time of one answer.
 * bench/gpumemnet compares it with Python's results on the same tables. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/memory.h"
#include "estimate/learned/gpumemnet.h"
#include "evaluation/dataset.h"

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int print_row(const struct dataset_row *row, const struct gpumemnet_input *input, enum gpumemnet_kind kind,
                     int32_t fold, struct error *err)
{
    struct gpumemnet_classes classes;
    int rc = gpumemnet_classify(input, kind, fold, &classes, err);

    if (rc)
        return rc;
    printf("%016" PRIx64 " %s %s %d %u", row->key, gpumemnet_family_names[input->family], gpumemnet_kind_names[kind],
           (int)fold, classes.best);
    for (uint32_t c = 0; c < classes.count; c++)
        printf(" %.6f", (double)classes.logits[c]);
    putchar('\n');
    return 0;
}

static int print_kind(const struct dataset *dataset, enum gpumemnet_kind kind, struct error *err)
{
    double start = now_us();
    size_t answers = 0;

    for (const struct dataset_row *row = dataset->rows; row < dataset->rows + dataset->count; row++) {
        CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
        int rc = gpumemnet_input_read(&input, &row->layers, row->training.batch_size, err);

        if (rc == -ENOTSUP) /* no family of ours */
            continue;
        if (rc || print_row(row, &input, kind, dataset_fold(row), err) || print_row(row, &input, kind, -1, err))
            return -1;
        answers += 2;
    }
    fprintf(stderr, "%s %s: %.3f ms an answer\n", dataset_kind_names[dataset->kind], gpumemnet_kind_names[kind],
            (now_us() - start) / 1e3 / (double)answers);
    return 0;
}

static int print_dataset(const char *which, struct error *err)
{
    CLEANUP(dataset_release) struct dataset dataset = {0};

    if (dataset_read(&dataset, which, NULL, err))
        return -1;
    for (int kind = 0; kind < GPUMEMNET_KIND_COUNT; kind++)
        if (print_kind(&dataset, kind, err))
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    struct error err;

    if (argc < 2) {
        fprintf(stderr, "usage: bench-gpumemnet KIND:FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++)
        if (print_dataset(argv[i], &err)) {
            fprintf(stderr, "bench-gpumemnet: %s\n", err.text);
            return 1;
        }
    return 0;
}
