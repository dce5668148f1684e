/* bench-estimate-replay: how long it takes to make the program of a convolutional network's training, and to replay it
 * under one workspace rule. The time of the processor, the best and the middle of many runs: a replay is short. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/units.h"
#include "estimate/program/lower.h"
#include "estimate/program/replay.h"
#include "estimate/program/workspace.h"

#define RUNS 201

static double now_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void add(struct layer_list *list, enum layer_kind kind, int64_t channels, int64_t size, int64_t parameters)
{
    struct layer *layer = layer_list_add(list, kind);
    int64_t shape[] = {channels, size, size};

    memcpy(layer->shape, shape, sizeof shape);
    layer->rank = size ? 3 : 1;
    layer->shape_known = true;
    layer->parameters = parameters;
    layer->activation = kind == LAYER_ACTIVATION ? ACTIVATION_RELU : ACTIVATION_NONE;
    snprintf(layer->name, sizeof layer->name, "%s%zu", layer_kind_name(kind), list->count);
    layer_add_input(layer, (int32_t)list->count - 2);
}

/* A residual network: blocks of two 3 x 3 convolutions with batch norms and a shortcut. At fixed distances a layer is
 * twice as wide and half as large. */
static void build(struct layer_list *list, size_t layers)
{
    int64_t channels = 3;

    layer_list_init(list);
    list->connected = true;
    list->input_rank = 3;
    list->input[0] = 3;
    list->input[1] = list->input[2] = 112;
    while (list->count + 2 < layers) {
        int64_t stage = (int64_t)(list->count * 4 / layers), out = INT64_C(64) << stage, size = 56 >> stage;
        int32_t shortcut = (int32_t)list->count - 1;
        for (int i = 0; i < 2; i++) {
            struct layer *conv;
            add(list, LAYER_CONV, out, size, channels * out * 9);
            conv = &list->items[list->count - 1];
            conv->in_channels = channels;
            conv->kernel[0] = conv->kernel[1] = 3;
            conv->stride[0] = conv->stride[1] = 1;
            add(list, LAYER_BATCH_NORM, out, size, 2 * out);
            add(list, LAYER_ACTIVATION, out, size, 0);
            channels = out;
        }
        if (shortcut >= 0 && list->items[shortcut].shape[0] == out) {
            add(list, LAYER_ADD, out, size, 0);
            layer_add_input(&list->items[list->count - 1], shortcut);
        }
    }
    add(list, LAYER_AVG_POOL, channels, 0, 0);
    add(list, LAYER_LINEAR, 1000, 0, channels * 1000 + 1000);
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

static void measure(size_t layers, int64_t samples)
{
    double lower_us[RUNS], replay_us[RUNS];
    struct training training;
    struct layer_list list;
    struct replay_options options = {.rule =
                                         workspace_rule_by_pass(WORKSPACE_NONE, WORKSPACE_WINOGRAD, WORKSPACE_COPY)};
    struct replay_result result;
    size_t events = 0;

    build(&list, layers);
    training_default(&training);
    training.samples = samples;
    for (size_t i = 0; i < RUNS; i++) {
        struct program program;
        struct error err;
        double begin = now_us(), middle;
        if (program_lower(&program, &list, &training, &err)) {
            fprintf(stderr, "bench-estimate-replay: %s\n", err.text);
            exit(1);
        }
        middle = now_us();
        program_replay(&program, &options, &result);
        replay_us[i] = now_us() - middle;
        lower_us[i] = middle - begin;
        events = program.event_count;
        program_release(&program);
    }
    qsort(lower_us, RUNS, sizeof *lower_us, compare);
    qsort(replay_us, RUNS, sizeof *replay_us, compare);
    printf("  %6zu  %7s  %7zu  %8.1f  %8.1f  %8.1f  %8.1f  %8.1f  %9" PRId64 "\n", list.count, samples ? "4" : "2",
           events, lower_us[0], lower_us[RUNS / 2], replay_us[0], replay_us[RUNS / 2],
           replay_us[RUNS / 2] * 1e3 / (double)events, result.peak_reserved_bytes / MIB);
    layer_list_release(&list);
}

int main(void)
{
    printf("Training of residual networks, batches of 32; microseconds of the processor, best and middle of %d.\n",
           RUNS);
    printf("                             lowering            replay\n");
    printf("  layers    steps   events      best       p50      best       p50  ns/event  peak, MiB\n");
    measure(100, 0);
    measure(300, 0);
    measure(300, 1000);
    measure(3000, 0);
    return 0;
}
