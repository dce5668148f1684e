/* layers_complete(): its results from published models' summaries are those models. */
#include "unit.h"

#include "estimate/program/lower.h"
#include "layer_sums.h"

#define MAX_ROWS 1000

/* A module's real structure (tests/fakes/completion/generate.py). */
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
    char *rest;

    text = file_text(path);
    *model = (struct model){0};
    layer_list_init(&model->list);
    model->list.input_rank = 3;
    char *line = strtok_r(text, "\n", &rest);
    assert_int_equal(
        sscanf(line, "%*s %ld %ld %ld", &model->list.input[0], &model->list.input[1], &model->list.input[2]), 3);
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

/* Every layer takes only earlier tensors; nothing is lost. */
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
    size_t sums, products, joins; /* that are not modules */
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

TEST(test_published_models)
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
                print_message(
                    "%s: layer %s (%zu) %s: in %ld kernel %dx%d stride %dx%d groups %ld bias %d, not %ld %dx%d "
                    "%dx%d %ld %d\n",
                    expected[i].model, layer->name, j, layer->type, layer->in_channels, layer->kernel[0],
                    layer->kernel[1], layer->stride[0], layer->stride[1], layer->groups, layer->bias,
                    truth->in_channels, truth->kernel[0], truth->kernel[1], truth->stride[0], truth->stride[1],
                    truth->groups, truth->bias);
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

/* --- Any list -------------------------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *random, uint32_t below)
{
    *random = *random * 1664525 + 1013904223;
    return (*random >> 8) % below;
}

/* Layers of random kinds, shapes and parameters, as no network has them; some are containers, some say their inputs. */
static void make_random(struct layer_list *list, uint32_t seed)
{
    static const char *const types[] = {"Conv2d",    "Block",     "BasicConv2d",    "SqueezeExcitation",
                                        "Attention", "Inception", "BatchNormAct2d", "DropPath",
                                        "Linear",    "Bottleneck"};
    uint32_t random = seed, count = 1 + next_random(&random, 60), depth = 0;
    bool tree = next_random(&random, 2), links = next_random(&random, 4) == 0;

    layer_list_init(list);
    list->input_rank = (uint8_t)next_random(&random, 4);
    for (int i = 0; i < 3; i++)
        list->input[i] = 1 + next_random(&random, 30);
    for (uint32_t i = 0; i < count; i++) {
        struct layer *layer = layer_list_add(list, (enum layer_kind)next_random(&random, LAYER_KIND_COUNT));
        int64_t most = next_random(&random, 50) ? 9 : LAYER_MAX_DIMENSION;
        snprintf(layer->type, sizeof layer->type, "%s", types[next_random(&random, array_size(types))]);
        layer->container = next_random(&random, 4) == 0;
        layer->shape_known = next_random(&random, 10) != 0;
        layer->rank = layer->shape_known ? (uint8_t)next_random(&random, LAYER_MAX_RANK + 1) : 0;
        for (int j = 0; j < layer->rank; j++)
            layer->shape[j] = most == 9 ? 1 + next_random(&random, 9) : most;
        layer->parameters = next_random(&random, 3) ? next_random(&random, 2000) : 0;
        depth = tree ? next_random(&random, depth + 2) : 0;
        layer->depth = (uint8_t)depth;
        if (links && i > 0 && next_random(&random, 2))
            layer_add_input(layer, (int32_t)next_random(&random, i + 1) - 1);
    }
    for (uint32_t i = 0; i < count; i++) /* readers do not link to containers */
        for (uint32_t j = 0; j < list->items[i].input_count; j++)
            if (list->items[i].inputs[j] >= 0 && list->items[list->items[i].inputs[j]].container)
                list->items[i].inputs[j] = -1;
}

static bool keeps_shape(const struct layer *layer)
{
    return layer->kind == LAYER_BATCH_NORM || layer->kind == LAYER_LAYER_NORM || layer->kind == LAYER_GROUP_NORM ||
           layer->kind == LAYER_ACTIVATION || layer->kind == LAYER_SOFTMAX || layer->kind == LAYER_DROPOUT ||
           layer->kind == LAYER_IDENTITY;
}

/* Where the layer keeps its input's shape, the input has it, or the list says how often it does not. */
TEST(test_random_lists)
{
    for (uint32_t seed = 1; seed <= 1500; seed++) {
        CLEANUP(layer_list_release) struct layer_list list;
        size_t count, odd = 0;

        make_random(&list, seed);
        int64_t parameters = sum_parameters(&list);
        count = list.count;
        bool linked = false;
        for (size_t i = 0; i < count; i++)
            linked |= list.items[i].input_count > 0;
        layers_complete(&list);
        check_list(&list);
        assert_int_equal(sum_parameters(&list), parameters);
        for (size_t i = 0; i < list.count; i++) {
            const struct layer *layer = &list.items[i], *from;
            if (layer->container || layer->input_count != 1 || layer->inputs[0] < 0 || !layer->shape_known)
                continue;
            from = &list.items[layer->inputs[0]];
            if (keeps_shape(layer) && from->shape_known && from->rank && layer->rank)
                odd += layer->rank != from->rank ||
                       memcmp(layer->shape, from->shape, layer->rank * sizeof *layer->shape) != 0;
        }
        assert_true(linked || odd <= list.guessed);
    }
}

/* The longest list, of layers that are the most work to connect: done in a moment. */
TEST(test_longest_list)
{
    CLEANUP(layer_list_release) struct layer_list list;

    layer_list_init(&list);
    list.input_rank = 3;
    list.input[0] = 3;
    list.input[1] = list.input[2] = 224;
    for (size_t i = 0; i < LAYER_LIST_MAX; i++) {
        struct layer *layer = layer_list_add(&list, i % 7 == 6 ? LAYER_UNKNOWN : LAYER_CONV);
        snprintf(layer->type, sizeof layer->type, i % 7 == 6 ? "Block%zu" : "Conv2d", i);
        layer->container = layer->kind == LAYER_UNKNOWN;
        layer->shape_known = true;
        layer->rank = 3;
        layer->shape[0] = 7 + (int64_t)(i % 13);
        layer->shape[1] = layer->shape[2] = 5 + (int64_t)(i % 5);
        layer->parameters = layer->container ? 0 : layer->shape[0] * (1 + (int64_t)(i % 101));
    }
    layers_complete(&list);
    check_list(&list);
}

/* --- Gaps of summaries, in small -------- ------------------------------------------------------------------------- */

/* What the tests below complete. */
static struct layer_list small;

static struct layer *add(const char *type, const char *shape, int64_t parameters)
{
    enum activation activation;
    struct layer *layer = layer_list_add(&small, layer_kind_of_type(type, &activation));
    CLEANUP(free_ptr) char *sides = xstrdup(shape);

    layer->activation = (uint8_t)activation;
    snprintf(layer->type, sizeof layer->type, "%s", type);
    layer->parameters = parameters;
    layer->container = layer->kind == LAYER_UNKNOWN && parameters == 0;
    layer->shape_known = true;
    for (char *side, *more, *at = sides; (side = strtok_r(at, "x", &more)); at = NULL)
        layer->shape[layer->rank++] = atol(side);
    return layer;
}

/* "TYPE SHAPE PARAMETERS" of each. */
static void add_all(const char *layers)
{
    char type[32], shape[16];
    int length;

    for (long parameters; sscanf(layers, "%31s %15s %ld%n", type, shape, &parameters, &length) == 3; layers += length)
        add(type, shape, parameters);
}

static void begin(int64_t channels, int64_t size)
{
    layer_list_release(&small);
    layer_list_init(&small);
    small.input_rank = 3;
    small.input[0] = channels;
    small.input[1] = small.input[2] = size;
}

/* "TYPE<-INPUT,INPUT" of every layer that is not a container. */
static void check_links(const char *wanted)
{
    CLEANUP(free_ptr) char *links = xstrdup("");

    layers_complete(&small);
    for (size_t i = 0; i < small.count; i++) {
        const struct layer *layer = &small.items[i];
        char *longer =
            layer->container ? xstrdup(links) : xasprintf("%s%s%zu:%s", links, *links ? " " : "", i, layer->type);
        for (uint32_t j = 0; j < layer->input_count; j++) {
            char *with = xasprintf("%s%s%d", longer, j ? "," : "<-", layer->inputs[j]);
            free(longer);
            longer = with;
        }
        free(links);
        links = longer;
    }
    assert_string_equal(links, wanted);
}

TEST(test_norm_that_activates)
{
    begin(3, 8);
    add_all("Conv2d 4x8x8 108 Identity 4x8x8 0 SiLU 4x8x8 0 BatchNormAct2d 4x8x8 8 Linear 5 25");
    check_links("0:Conv2d<--1 1:BatchNormAct2d<-0 2:Identity<-1 3:SiLU<-2 4:mean<-3 5:Linear<-4");
}

/* Query, key and value beside one another; with torch's fused attention, and with the matrix of scores shown. */
TEST(test_attention)
{
    for (int eager = 0; eager < 2; eager++) {
        begin(3, 8);
        small.input_rank = 2;
        small.input[0] = 6;
        small.input[1] = 8;
        add_all("LayerNorm 6x8 16 Linear 6x8 72 Linear 6x8 72 Linear 6x8 72");
        add_all(eager ? "Dropout 2x6x6 0 Linear 6x8 72" : "Linear 6x8 72");
        add("SelfAttention", "6x8", 0)->container = true;
        add_all("LayerNorm 6x8 16 EncoderLayer 6x8 0");
        check_links(eager ? "0:LayerNorm<--1 1:Linear<-0 2:Linear<-0 3:Linear<-0 4:matmul<-1,2 5:softmax<-4 "
                            "6:dropout<-5 7:matmul<-6,3 8:Linear<-7 10:add<-8,-1 11:LayerNorm<-10 12:add<-11,10"
                          : "0:LayerNorm<--1 1:Linear<-0 2:Linear<-0 3:Linear<-0 "
                            "4:scaled_dot_product_attention<-1,2,3 5:Linear<-4 7:add<-5,-1 8:LayerNorm<-7 "
                            "9:add<-8,7");
    }
}

/* A ResNet's block adds before its last activation, an inverted bottleneck behind everything. */
TEST(test_where_sums_stand)
{
    for (int inverted = 0; inverted < 2; inverted++) {
        begin(4, 8);
        for (int block = 0; block < 2; block++) {
            add_all("Conv2d 4x8x8 144 BatchNorm2d 4x8x8 8 ReLU 4x8x8 0");
            add(inverted ? "InvertedResidual" : "BasicBlock", "4x8x8", 0);
        }
        check_links(inverted ? "0:Conv2d<--1 1:BatchNorm2d<-0 2:ReLU<-1 3:add<-2,-1 5:Conv2d<-3 6:BatchNorm2d<-5 "
                               "7:ReLU<-6 8:add<-7,3"
                             : "0:Conv2d<--1 1:BatchNorm2d<-0 2:add<-1,-1 3:ReLU<-2 5:Conv2d<-3 6:BatchNorm2d<-5 "
                               "7:add<-6,3 8:ReLU<-7");
    }
}

/* A block's author is known by its name: no summary says whether its ReLUs run in place. */
TEST(test_in_place)
{
    static const struct {
        const char *type;
        bool in_place;
    } blocks[] = {{"InvertedResidual", true}, {"_InvertedResidual", true}, {"MyBlock", false}};

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        begin(4, 8);
        add_all("Conv2d 4x8x8 144 BatchNorm2d 4x8x8 8 ReLU 4x8x8 0 Conv2d 4x8x8 144");
        add(blocks[i].type, "4x8x8", 0)->container = true;
        layers_complete(&small);
        assert_int_equal(small.items[2].in_place, blocks[i].in_place);
    }
}

/* Inception's last blocks split a branch into a row and a column of three; the last one follows a bare pooling. */
TEST(test_inception)
{
    begin(9, 8);
    add_all("Conv2d 5x8x8 45 Conv2d 4x8x8 36 Conv2d 4x8x8 48 Conv2d 4x8x8 48 Conv2d 7x8x8 63 InceptionE 20x8x8 0");
    check_links("0:Conv2d<--1 1:Conv2d<--1 2:Conv2d<-1 3:Conv2d<-1 4:AvgPool2d<--1 5:Conv2d<-4 6:cat<-0,2,3,5");
}

/* Nothing that came before has 7 channels: told, and the last taken. */
TEST(test_guess)
{
    begin(3, 8);
    add_all("Conv2d 4x8x8 108 BatchNorm2d 7x5x5 14");
    layers_complete(&small);
    assert_int_equal(small.guessed, 1);
    assert_int_equal(small.items[1].inputs[0], 0);
    begin(3, 8); /* a layer that says its inputs is left as it is */
    layer_add_input(add("Conv2d", "4x8x8", 108), -1);
    layer_add_input(add("BatchNorm2d", "7x5x5", 14), 0);
    layers_complete(&small);
    assert_int_equal(small.guessed, 0);
    assert_int_equal(small.items[0].in_channels, 3);
}

TEST(test_nothing)
{
    layer_list_release(&small);
    layers_complete(&small);
    assert_int_equal(small.count, 0);
    add("Conv2d", "4x8x8", 108); /* the model's input is not known: an image in colour */
    layers_complete(&small);
    assert_int_equal(small.items[0].in_channels, 3);
    assert_int_equal(small.items[0].kernel[1], 3);
}

AROUND(release_small)
{
    layer_list_release(&small);
}

RUN_TESTS(NULL, release_small)
