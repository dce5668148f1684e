/* Usage: bench-gpumemnet KIND:FILE... (mlp: or cnn:, as in `carma evaluate --dataset`).
 * The class of every row by both kinds of GPUMemNet's classifiers, by the model that has not seen the row's fold and by
 * that of all rows: `KEY FAMILY CLASSIFIER FOLD CLASS LOGIT...`; then on standard error what one answer took.
 * bench/gpumemnet compares with what Python makes of the same tables. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/memory.h"
#include "estimate/gpumemnet.h"
#include "evaluation/dataset.h"

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int print_row(const struct dataset_row *row, enum gpumemnet_kind kind, int32_t fold, double *spent_us,
                     struct error *err)
{
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    struct gpumemnet_classes classes;
    double start = now_us();

    if (gpumemnet_input_read(&input, &row->layers, row->training.batch_size, err) ||
        gpumemnet_classify(&input, kind, fold, &classes, err))
        return -1;
    *spent_us += now_us() - start;
    printf("%016" PRIx64 " %s %s %d %u", row->key, gpumemnet_family_names[input.family], gpumemnet_kind_names[kind],
           (int)fold, classes.best);
    for (uint32_t c = 0; c < classes.count; c++)
        printf(" %.6f", (double)classes.logits[c]);
    putchar('\n');
    return 0;
}

static int print_dataset(const char *which, struct error *err)
{
    CLEANUP(dataset_release) struct dataset dataset = {0};

    if (dataset_read(&dataset, which, NULL, err))
        return -1;
    for (int kind = 0; kind < GPUMEMNET_KIND_COUNT; kind++) {
        double spent_us = 0;

        for (size_t i = 0; i < dataset.count; i++)
            if (print_row(&dataset.rows[i], kind, dataset_fold(&dataset.rows[i]), &spent_us, err) ||
                print_row(&dataset.rows[i], kind, -1, &spent_us, err))
                return -1;
        fprintf(stderr, "%s %s: %.3f ms an answer\n", dataset_kind_names[dataset.kind], gpumemnet_kind_names[kind],
                spent_us / 1e3 / (2.0 * (double)dataset.count));
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct error err;

    if (argc < 2) {
        fprintf(stderr, "usage: bench-gpumemnet mlp:FILE|cnn:FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++)
        if (print_dataset(argv[i], &err)) {
            fprintf(stderr, "bench-gpumemnet: %s\n", err.text);
            return 1;
        }
    return 0;
}
