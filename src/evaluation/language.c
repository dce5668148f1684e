#include "evaluation/language.h"

#include <string.h>

#include "base/memory.h"

/* Positions that a model has embeddings for. */
#define BERT_POSITIONS 512
#define GPT2_POSITIONS 1024
#define BERT_SEGMENTS  2
#define TIED           0 /* the output layer's weight is the word embedding's: it is counted there */

struct build {
    struct network network;
    const struct language_model *language;
};

static int32_t last(const struct build *build)
{
    return (int32_t)build->network.list->count - 1;
}

static struct layer *item(const struct build *build, int32_t layer)
{
    return &build->network.list->items[layer];
}

static int32_t add_embedding(struct build *build, int64_t words)
{
    struct layer *layer = network_layer(&build->network, LAYER_EMBEDDING, "Embedding", NETWORK_INPUT);

    layer->rank = 2;
    layer->shape[0] = build->language->length;
    layer->shape[1] = build->language->width;
    layer->parameters = words * build->language->width;
    return last(build);
}

static int32_t add_linear(struct build *build, int32_t from, int64_t out, bool bias)
{
    int32_t layer = network_linear(&build->network, from, out);

    item(build, layer)->bias = bias;
    item(build, layer)->parameters -= bias ? 0 : out;
    return layer;
}

/* transformers.Conv1D */
static int32_t add_conv1d(struct build *build, int32_t from, int64_t out)
{
    int32_t layer = add_linear(build, from, out, true);

    item(build, layer)->kind = LAYER_CONV1D_LINEAR;
    memcpy(item(build, layer)->type, "Conv1D", sizeof "Conv1D");
    return layer;
}

/* An operator with a number or something as small, which keeps nothing. */
static int32_t add_one(struct build *build, const char *type, int32_t from)
{
    network_layer(&build->network, LAYER_ADD, type, from);
    return last(build);
}

/* A product that keeps all its factors. */
static int32_t add_product(struct build *build, const char *type, const int32_t *from, size_t count)
{
    struct layer *layer = network_layer(&build->network, LAYER_MULTIPLY, type, from[0]);

    for (size_t i = 1; i < count; i++)
        layer_add_input(layer, from[i]);
    layer->rank = 2;
    layer->shape[0] = build->language->length;
    layer->shape[1] = build->language->width;
    return last(build);
}

static int32_t add_activation(struct build *build, int32_t from, const char *name)
{
    return network_activation(&build->network, from, network_activation_named(name));
}

/* The outputs of all replicas that torch.nn.DataParallel gathers on the first GPU, `width` numbers for each word. They
 * are kept until the next step's are there, so for a whole step. */
static void add_gathered(struct build *build, int32_t from, int64_t width)
{
    const int64_t shape[] = {build->language->gpus * build->language->length, width};
    struct layer *layer;

    if (build->language->gpus == 1)
        return;
    layer = network_layer(&build->network, LAYER_UNKNOWN, "gather", from); /* a kind that keeps its result */
    layer->rank = 2;
    memcpy(layer->shape, shape, sizeof shape);
}

/* --- BERT: post-norm; query, key and value apart; a fused attention that keeps them and its output --------------- */

static int32_t bert_attention(struct build *build, int32_t in)
{
    int64_t width = build->language->width;
    int32_t parts[3];

    for (size_t i = 0; i < 3; i++)
        parts[i] = add_linear(build, in, width, true);
    return add_linear(build, add_product(build, "scaled_dot_product_attention", parts, 3), width, true);
}

static int32_t bert_norm(struct build *build, int32_t at, int32_t around)
{
    at = network_dropout(&build->network, at);
    return network_layer_norm(&build->network, network_add(&build->network, at, around));
}

static void build_bert(struct build *build)
{
    const struct language_model *language = build->language;
    int32_t at = add_embedding(build, TIED), segments = add_embedding(build, BERT_SEGMENTS), positions;

    at = network_add(&build->network, at, segments);
    positions = add_embedding(build, BERT_POSITIONS);
    at = network_layer_norm(&build->network, network_add(&build->network, at, positions));
    at = network_dropout(&build->network, at);
    for (int64_t i = 0; i < language->layers; i++) {
        int32_t inner;
        at = bert_norm(build, bert_attention(build, at), at);
        inner = add_activation(build, add_linear(build, at, language->inner, true), "gelu");
        at = bert_norm(build, add_linear(build, inner, language->width, true), at);
    }
    at = add_activation(build, add_linear(build, at, language->width, true), "gelu");
    at = network_layer_norm(&build->network, at);
    add_linear(build, at, language->words, true);
}

/* --- GPT-2: pre-norm; query, key and value in one; GELU's tanh form spelt out ----------------------------------------
 */

/* 0.5 x (1 + tanh(c (x + 0.044715 x^3))), an operator each. */
static int32_t gpt2_gelu(struct build *build, int32_t x)
{
    struct network *network = &build->network;
    int32_t half, at = add_activation(build, x, "gelu"); /* x^3, which keeps x as GELU would */
    int32_t factors[2];

    memcpy(item(build, at)->type, "pow", sizeof "pow");
    at = add_one(build, "mul", network_add(network, add_one(build, "mul", at), x));
    factors[1] = add_one(build, "add", add_activation(build, at, "tanh"));
    half = factors[0] = add_one(build, "mul", x);
    at = add_product(build, "mul", factors, 2);
    memcpy(item(build, at)->shape, item(build, half)->shape, sizeof item(build, at)->shape);
    return at;
}

static void build_gpt2(struct build *build)
{
    const struct language_model *language = build->language;
    struct network *network = &build->network;
    int32_t at = add_embedding(build, TIED), positions = add_embedding(build, GPT2_POSITIONS), copy;

    at = network_dropout(network, network_add(network, at, positions));
    /* besides the logits the keys and values of all layers, for generating text */
    add_gathered(build, at, language->words + 2 * language->layers * language->width);
    for (int64_t i = 0; i < language->layers; i++) {
        int32_t side = add_conv1d(build, network_layer_norm(network, at), 3 * language->width);
        side = add_product(build, "scaled_dot_product_attention", &side, 1);
        side = add_conv1d(build, side, language->width);
        at = network_add(network, network_dropout(network, side), at);
        side = add_conv1d(build, network_layer_norm(network, at), language->inner);
        side = add_conv1d(build, gpt2_gelu(build, side), language->width);
        at = network_add(network, at, network_dropout(network, side));
    }
    at = network_layer_norm(network, at);
    copy = add_linear(build, at, language->words, false);
    add_one(build, "contiguous", copy); /* without the last word: its target is not known */
}

/* --- XLNet: two streams, of which the second predicts; relative positions; attention with its matrix of scores --- */

/* An operator that makes a tensor of this shape and keeps nothing. */
static int32_t add_plain(struct build *build, const char *type, int32_t from, const int64_t *shape, uint8_t rank)
{
    struct layer *layer = network_layer(&build->network, LAYER_PADDING, type, from);

    layer->rank = rank;
    memcpy(layer->shape, shape, rank * sizeof *shape);
    return last(build);
}

/* Queries times keys: for each head, as many scores as the keys are long. */
static int32_t add_scores(struct build *build, int32_t query, int32_t keys, int64_t length)
{
    const int64_t shape[] = {build->language->heads, build->language->length, length};
    int32_t factors[2] = {add_one(build, "add", query), keys}; /* a bias of its own, the same for all queries */
    int32_t at = add_product(build, "einsum", factors, 2);

    item(build, at)->rank = 3;
    memcpy(item(build, at)->shape, shape, sizeof shape);
    return at;
}

struct xlnet_layer {
    int32_t key, value, positions; /* of the first stream, for both */
    bool shared;                   /* the second stream is at hand, which has the first one's weights */
};

static int32_t xlnet_linear(struct build *build, const struct xlnet_layer *layer, int32_t from, int64_t out, bool bias)
{
    int32_t at = add_linear(build, from, out, bias);

    if (layer->shared)
        item(build, at)->parameters = 0;
    return at;
}

static int32_t xlnet_norm(struct build *build, const struct xlnet_layer *layer, int32_t at, int32_t around)
{
    at =
        network_layer_norm(&build->network, network_add(&build->network, network_dropout(&build->network, at), around));
    if (layer->shared)
        item(build, at)->parameters = 0;
    return at;
}

static int32_t xlnet_attention(struct build *build, const struct xlnet_layer *layer, int32_t in)
{
    const struct language_model *language = build->language;
    const int64_t shape[] = {language->heads, language->length, language->length};
    struct network *network = &build->network;
    int32_t query = xlnet_linear(build, layer, in, language->width, false);
    int32_t by_content = add_scores(build, query, layer->key, language->length), factors[2];
    int32_t at = add_scores(build, query, layer->positions, 2 * language->length);

    at = network_add(network, by_content, add_plain(build, "index_select", at, shape, 3));
    at = add_one(build, "sub", add_one(build, "mul", at)); /* scaled, masked */
    factors[0] = network_dropout(network, network_softmax(network, at));
    factors[1] = layer->value;
    at = xlnet_linear(build, layer, add_product(build, "einsum", factors, 2), language->width, false);
    return xlnet_norm(build, layer, at, in);
}

static int32_t xlnet_feed(struct build *build, const struct xlnet_layer *layer, int32_t in)
{
    int32_t at = add_activation(build, xlnet_linear(build, layer, in, build->language->inner, true), "gelu");

    at = xlnet_linear(build, layer, network_dropout(&build->network, at), build->language->width, true);
    return xlnet_norm(build, layer, at, in);
}

static void build_xlnet(struct build *build)
{
    const struct language_model *language = build->language;
    const int64_t around[] = {2 * language->length, language->width};
    struct network *network = &build->network;
    int32_t words = add_embedding(build, TIED), content = network_dropout(network, words);
    int32_t query = network_dropout(network, words); /* of the one mask embedding for every place */
    int32_t positions = add_plain(build, "positions", words, around, 2);

    positions = network_dropout(network, positions);
    /* besides the logits the first stream of all layers, for texts in pieces */
    add_gathered(build, words, language->words + language->layers * language->width);
    for (int64_t i = 0; i < language->layers; i++) {
        struct xlnet_layer layer = {.key = add_linear(build, content, language->width, false),
                                    .value = add_linear(build, content, language->width, false),
                                    .positions = add_linear(build, positions, language->width, false)};
        content = xlnet_attention(build, &layer, content);
        layer.shared = true;
        query = xlnet_attention(build, &layer, query);
        layer.shared = false;
        content = xlnet_feed(build, &layer, content);
        layer.shared = true;
        query = xlnet_feed(build, &layer, query);
    }
    add_linear(build, query, language->words, true);
}

bool language_build(struct layer_list *list, const char *model, const struct language_model *language,
                    const struct csv *csv, struct error *err)
{
    static const struct {
        const char *prefix;
        void (*build)(struct build *build);
    } models[] = {{"BERT", build_bert}, {"gpt2", build_gpt2}, {"xlnet", build_xlnet}};
    struct build build = {.language = language};

    for (size_t i = 0; i < array_size(models); i++) {
        if (strncmp(models[i].prefix, model, strlen(models[i].prefix)) != 0)
            continue;
        network_begin(&build.network, list, csv, NULL, &language->length, 1, err);
        list->input_is_index = true;
        models[i].build(&build);
        list->connected = true;
        return true;
    }
    return false;
}
