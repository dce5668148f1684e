/* Usage: carma evaluate --dataset KIND:FILE --questions | bench-features. Prints one line of CSV for each row that has
 * a layer list or a capture. It has the row's names and measurements, the replays' reserved memory, and the features
 * for the trained corrections. python/carma_train reads nothing else. On standard error: the time for one row's
 * features. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "questions.h"
#include "estimate/learned/features.h"
#include "estimate/program/lower.h"
#include "estimate/utilisation.h"

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

static void print_row(const struct question *question, const json_t *json, const struct machine_profile *profile,
                      const struct program *program, const struct features *features)
{
    float utilisation[UTILISATION_COUNT];

    utilisation_features_compute(utilisation, program);
    printf("%s,%016" PRIx64 ",%d,%s,%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
           ",%zu,%" PRIu64 ",%" PRId64 ",%.0f",
           question->kind, question->key, (int)(question->key % QUESTION_FOLDS), said_text(json, "group"),
           question->name, said_number(json, "out_of_memory"), said_number(json, "measured_bytes"),
           said_number(json, "sm_activity_permille"), said_number(json, "sm_occupancy_permille"),
           profile->context_bytes, profile->cudnn_bytes, profile->memory_bytes, program->conv_count, program->flops,
           program->batch_size, features->base_bytes);
    for (int i = 0; i < REPLAY_COUNT; i++)
        printf(",%" PRId64, features->replays[i].peak_reserved_bytes);
    for (int i = 0; i < FEATURE_COUNT; i++)
        printf(",%.9g", (double)features->values[i]);
    for (int i = 0; i < UTILISATION_COUNT; i++)
        printf(",%.9g", (double)utilisation[i]);
    putchar('\n');
}

static double spent_us;
static size_t rows;

static int use(struct question *question, const json_t *json, struct error *err)
{
    const struct machine_profile *profile = machine_profile_find("a100-40g-thesis");
    CLEANUP(program_release) struct program lowered = {0};
    const struct program *program = question->capture ? &question->capture->program : &lowered;
    struct features features;
    double start = now_us();

    if (!question->capture &&
        (!question->has_layers || program_lower(&lowered, &question->layers, &question->training, err))) {
        if (question->has_layers)
            fprintf(stderr, "bench-features: %s: left out: %s\n", question->name, err->text);
        return 0;
    }
    features_compute(&features, program, profile);
    spent_us += now_us() - start;
    rows++;
    print_row(question, json, profile, program, &features);
    return 0;
}

int main(void)
{
    int status;

    print_header();
    status = each_question("bench-features", use);
    fprintf(stderr, "%zu rows, %.3f ms a row\n", rows, rows ? spent_us / 1e3 / (double)rows : 0);
    return status;
}
