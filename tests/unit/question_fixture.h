/* For tests of estimators: a list of layers, the question about it, and what is answered, anew for each test. */
#ifndef CARMA_TESTS_QUESTION_FIXTURE_H
#define CARMA_TESTS_QUESTION_FIXTURE_H

#include "unit.h"

#include "estimate/estimate.h"

static struct layer_list list;
static struct estimate_question question; /* about the list */
static struct estimate result;
static struct error err;

/* Another question about the list, with the defaults. */
static inline void ask_about(int64_t batch_size)
{
    question = (struct estimate_question){.layers = &list,
                                          .profile = machine_profile_find("a100-40g-thesis"),
                                          .declared_bytes = -1,
                                          .quantile_permille = ESTIMATE_QUANTILE_PERMILLE,
                                          .fold = -1};
    training_default(&question.training);
    question.training.batch_size = batch_size;
}

/* An empty list of layers upon one input. */
static inline void begin_list(int64_t channels, int64_t side)
{
    layer_list_release(&list);
    layer_list_init(&list);
    list.input_rank = side ? 3 : 1;
    list.input[0] = channels;
    list.input[1] = list.input[2] = side;
}

static int begin_question(void **state)
{
    layer_list_init(&list);
    ask_about(32);
    result = (struct estimate){0};
    err = (struct error){{0}};
    return 0;
}

static int end_question(void **state)
{
    layer_list_release(&list);
    return 0;
}

#define QUESTION_TEST(name) TEST_BETWEEN(name, begin_question, end_question)

static inline struct layer *add(enum layer_kind kind, int64_t channels, int64_t side, int64_t parameters)
{
    struct layer *layer = layer_list_add(&list, kind);

    layer->shape_known = true;
    layer->rank = side ? 3 : 1;
    layer->shape[0] = channels;
    layer->shape[1] = layer->shape[2] = side;
    layer->parameters = parameters;
    return layer;
}

static inline void add_activation(enum activation activation, int64_t channels, int64_t side, bool in_place)
{
    struct layer *layer = add(LAYER_ACTIVATION, channels, side, 0);

    layer->activation = (uint8_t)activation;
    layer->in_place = in_place;
}

/* VGG-16 (Simonyan and Zisserman, 2015, configuration D), as torchsummary would list it. */
static inline void build_vgg16(bool in_place)
{
    static const int plan[] = {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
    static const int dense[][2] = {{512 * 7 * 7, 4096}, {4096, 4096}, {4096, 1000}};
    int64_t channels = 3, side = 224;

    begin_list(channels, side);
    for (size_t i = 0; i < array_size(plan); i++) {
        if (!plan[i]) {
            add(LAYER_MAX_POOL, channels, side /= 2, 0);
            continue;
        }
        add(LAYER_CONV, plan[i], side, channels * plan[i] * 9 + plan[i]);
        channels = plan[i];
        add_activation(ACTIVATION_RELU, channels, side, in_place);
    }
    add(LAYER_AVG_POOL, channels, 7, 0);
    for (size_t i = 0; i < array_size(dense); i++) {
        add(LAYER_LINEAR, dense[i][1], 0, (int64_t)(dense[i][0] + 1) * dense[i][1]);
        if (i == 2)
            break;
        add_activation(ACTIVATION_RELU, dense[i][1], 0, in_place);
        add(LAYER_DROPOUT, dense[i][1], 0, 0);
    }
}

/* The same with what a summary does not say. */
static inline void complete_vgg16(bool in_place)
{
    build_vgg16(in_place);
    layers_complete(&list);
}

#endif
