/* Usage: bench-features KIND:FILE... (as in `carma evaluate --dataset`; timm: takes --captures DIR before it). Prints
 * one line of CSV for each row that has a layer list or a capture. It has the row's names and measurements, the
 * replays' reserved memory, and the features for the trained corrections. python/carma_train reads nothing else. On
 * standard error: the time for one row's features. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "estimate/learned/features.h"
#include "estimate/program/lower.h"
#include "estimate/utilisation.h"
#include "evaluation/dataset.h"

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void print_header(void)
{
    printf("kind,key,fold,group,name,out_of_memory,measured_bytes,smact,smocc,context_bytes,cudnn_bytes,memory_bytes,"
           "convolutions,flops,batch,base_bytes");
    for (int i = 0; i < REPLAY_COUNT; i++)
        printf(",reserved_bytes_%d", i);
    for (int i = 0; i < FEATURE_COUNT; i++)
        printf(",%s", feature_names[i]);
    for (int i = 0; i < UTILISATION_COUNT; i++)
        printf(",%s", utilisation_feature_names[i]);
    putchar('\n');
}

static void print_row(const struct dataset *dataset, const struct dataset_row *row, const struct program *program,
                      const struct features *features)
{
    const struct machine_profile *profile = dataset->profile;
    float utilisation[UTILISATION_COUNT];

    utilisation_features_compute(utilisation, program);
    printf("%s,%016" PRIx64 ",%d,%s,%s,%d,%" PRId64 ",%d,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%zu,%" PRIu64
           ",%" PRId64 ",%.0f",
           dataset_kind_names[dataset->kind], row->key, dataset_fold(row), row->group, row->name, row->out_of_memory,
           row->measured_bytes, (int)row->smact_permille, (int)row->smocc_permille, profile->context_bytes,
           profile->cudnn_bytes, profile->memory_bytes, program->conv_count, program->flops, program->batch_size,
           features->base_bytes);
    for (int i = 0; i < REPLAY_COUNT; i++)
        printf(",%" PRId64, features->replays[i].peak_reserved_bytes);
    for (int i = 0; i < FEATURE_COUNT; i++)
        printf(",%.9g", (double)features->values[i]);
    for (int i = 0; i < UTILISATION_COUNT; i++)
        printf(",%.9g", (double)utilisation[i]);
    putchar('\n');
}

static int print_dataset(const char *which, const char *captures, struct error *err)
{
    CLEANUP(dataset_release) struct dataset dataset = {0};
    double spent_us = 0;
    size_t count = 0;

    if (dataset_read(&dataset, which, captures, err))
        return -1;
    for (size_t i = 0; i < dataset.count; i++) {
        const struct dataset_row *row = &dataset.rows[i];
        CLEANUP(program_release) struct program lowered = {0};
        const struct program *program = row->capture ? &row->capture->program : &lowered;
        struct features features;
        double start = now_us();

        if (!row->capture && (!row->has_layers || program_lower(&lowered, &row->layers, &row->training, err))) {
            if (row->has_layers)
                fprintf(stderr, "bench-features: %s: left out: %s\n", row->name, err->text);
            continue;
        }
        features_compute(&features, program, dataset.profile);
        spent_us += now_us() - start;
        print_row(&dataset, row, program, &features);
        count++;
    }
    fprintf(stderr, "%s: %zu rows, %.3f ms a row\n", which, count, count ? spent_us / 1e3 / (double)count : 0);
    return 0;
}

int main(int argc, char **argv)
{
    const char *captures = NULL;
    struct error err;

    if (argc < 2) {
        fprintf(stderr, "usage: bench-features [--captures DIR] KIND:FILE...\n");
        return 2;
    }
    print_header();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--captures") == 0 && i + 1 < argc) {
            captures = argv[++i];
        } else if (print_dataset(argv[i], captures, &err)) {
            fprintf(stderr, "bench-features: %s\n", err.text);
            return 1;
        }
    }
    return 0;
}
