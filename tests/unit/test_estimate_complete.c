/* layers_complete(): what it works out of published models' summaries is what those models are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "estimate/lower.h"

#define MAX_ROWS 1000

/* What a module really is (tests/fakes/completion/generate.py). */
struct truth {
    int64_t in_channels, groups;
    int kernel[2], stride[2];
    int bias;
};

struct model {
    struct layer_list list;
    struct truth truths[MAX_ROWS];
    size_t count;
};

static void read_pair(const char *text, int pair[2])
{
    pair[0] = pair[1] = 0;
    sscanf(text, "%dx%d", &pair[0], &pair[1]);
}

static void read_model(struct model *model, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf(CARMA_FAKES "/completion/%s.txt", name), *text = NULL;
    struct error err;
    size_t length;
    char *line, *rest;

    assert_int_equal(file_read(path, 1 << 20, &text, &length, &err), 0);
    *model = (struct model){0};
    layer_list_init(&model->list);
    model->list.input_rank = 3;
    line = strtok_r(text, "\n", &rest);
    assert_int_equal(sscanf(line, "%*s %ld %ld %ld", &model->list.input[0], &model->list.input[1], &model->list.input[2]),
                     3);
    while ((line = strtok_r(NULL, "\n", &rest))) {
        struct truth *truth = &model->truths[model->count++];
        char type[64], shape[64], kernel[16], stride[16];
        enum activation activation;
        struct layer *layer;
        long parameters;

        assert_int_equal(sscanf(line, "%63s %63s %ld %ld %15s %15s %ld %d", type, shape, &parameters,
                                &truth->in_channels, kernel, stride, &truth->groups, &truth->bias),
                         8);
        read_pair(kernel, truth->kernel);
        read_pair(stride, truth->stride);
        layer = layer_list_add(&model->list, layer_kind_of_type(type, &activation));
        layer->activation = (uint8_t)activation;
        snprintf(layer->type, sizeof layer->type, "%s", type);
        snprintf(layer->name, sizeof layer->name, "%zu", model->count - 1); /* to find it again */
        layer->parameters = parameters;
        layer->container = layer->kind == LAYER_UNKNOWN && parameters == 0;
        layer->shape_known = true;
        for (char *side, *more, *at = shape; (side = strtok_r(at, "x", &more)); at = NULL)
            layer->shape[layer->rank++] = atol(side);
    }
}

static size_t count_kind(const struct layer_list *list, enum layer_kind kind)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        count += list->items[i].kind == kind && !list->items[i].container;
    return count;
}

static bool is_right(const struct layer *layer, const struct truth *truth)
{
    if (layer->in_channels != truth->in_channels || layer->bias != truth->bias || !layer->bias_known)
        return false;
    if (truth->groups == 0)
        return true;
    if (layer->groups != truth->groups || layer->stride[0] != truth->stride[0] || layer->stride[1] != truth->stride[1])
        return false;
    /* (1, n) and (n, 1) are one */
    return (layer->kernel[0] == truth->kernel[0] && layer->kernel[1] == truth->kernel[1]) ||
           (layer->kernel[0] == truth->kernel[1] && layer->kernel[1] == truth->kernel[0]);
}

/* Every layer takes only what was there before; nothing is lost. */
static void check_list(const struct layer_list *list)
{
    assert_true(list->connected);
    for (size_t i = 0; i < list->count; i++) {
        const struct layer *layer = &list->items[i];
        assert_true(layer->container || layer->input_count > 0 || layer->kind == LAYER_INPUT ||
                    layer->kind == LAYER_PARAMETER);
        for (uint32_t j = 0; j < layer->input_count; j++) {
            assert_in_range(layer->inputs[j] + 1, 0, i);
            assert_true(layer->inputs[j] < 0 || !list->items[layer->inputs[j]].container);
        }
    }
}

static const struct expected {
    const char *model;
    size_t sums, products, joins; /* that are no modules */
} expected[] = {
    {"resnet18", 8, 0, 0},
    {"resnet50", 16, 0, 0},
    {"resnext50_32x4d", 16, 0, 0},
    {"densenet121", 0, 0, 58},
    {"efficientnet_b0", 9, 16, 0},
    {"mobilenet_v2", 10, 0, 0},
    {"mobilenet_v3_small", 6, 9, 0},
    {"mnasnet1_0", 10, 0, 0},
    {"regnet_y_400mf", 16, 16, 0},
    {"vgg16", 0, 0, 0},
    {"alexnet", 0, 0, 0},
    {"inception_v3", 0, 0, 11},
    {"googlenet", 0, 0, 9},
    {"squeezenet1_1", 0, 0, 8},
    {"convnext_tiny", 18, 0, 0},
    {"vit_b_16", 24, 0, 1},
    {"swin_t", 24, 0, 0},
};

static void test_published_models(void **state)
{
    bool verbose = getenv("VERBOSE"), failed = false;

    for (size_t i = 0; i < array_size(expected); i++) {
        CLEANUP(free_ptr) struct model *model = xmalloc(sizeof *model);
        size_t wrong = 0;
        read_model(model, expected[i].model);
        layers_complete(&model->list);
        check_list(&model->list);
        for (size_t j = 0; j < model->list.count; j++) {
            const struct layer *layer = &model->list.items[j];
            const struct truth *truth = &model->truths[atol(layer->name)];
            if (!*layer->name || !truth->in_channels || is_right(layer, truth))
                continue;
            wrong++;
            if (verbose)
                print_message("%s: layer %s (%zu) %s: in %ld kernel %dx%d stride %dx%d groups %ld bias %d, not %ld %dx%d "
                              "%dx%d %ld %d\n",
                              expected[i].model, layer->name, j, layer->type, layer->in_channels, layer->kernel[0],
                              layer->kernel[1], layer->stride[0], layer->stride[1], layer->groups, layer->bias,
                              truth->in_channels, truth->kernel[0], truth->kernel[1], truth->stride[0],
                              truth->stride[1], truth->groups, truth->bias);
        }
        size_t sums = count_kind(&model->list, LAYER_ADD), products = count_kind(&model->list, LAYER_MULTIPLY);
        size_t joins = count_kind(&model->list, LAYER_CONCAT);
        bool good = wrong == 0 && sums == expected[i].sums && products == expected[i].products &&
                    joins == expected[i].joins && model->list.guessed == 0;
        if (!good)
            print_message("%s: %zu layers wrong, %u guessed, %zu sums, %zu products, %zu concatenations\n",
                          expected[i].model, wrong, model->list.guessed, sums, products, joins);
        failed |= !good;
        layer_list_release(&model->list);
    }
    assert_false(failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
