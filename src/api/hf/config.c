#include "api/hf/config.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/spec_limits.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/strbuf.h"

#define SIZE_LIMIT  (INT64_C(1) << 24)
#define LAYER_LIMIT 10000

#define BIASES (TRAIT_QKV_BIAS | TRAIT_OUT_BIAS | TRAIT_MLP_BIAS)
#define LLAMA  (TRAIT_ROTARY | TRAIT_RMS | TRAIT_GATED | TRAIT_FINAL_NORM)
#define GEMMA  (LLAMA | TRAIT_TIED | TRAIT_RMS_FULL)
#define T5     (TRAIT_RMS | TRAIT_FINAL_NORM | TRAIT_RELATIVE | TRAIT_INNER_DROPOUT)
#define BERT   (BIASES | TRAIT_POST_NORM | TRAIT_EMBED_NORM | TRAIT_TIED | TRAIT_HEAD_BIAS | TRAIT_HEAD_DENSE)
#define NEOX   (BIASES | TRAIT_ROTARY | TRAIT_PARALLEL | TRAIT_FINAL_NORM)

/* The published model types, with the facts that their configurations leave out. Sizes are the defaults of the
 * library's classes, as far as published configurations leave them out. */
static const struct family {
    const char *type;
    uint8_t kind;
    uint32_t traits;
    const char *activation;
    bool dropout;               /* where the configuration does not say */
    int64_t positions, types;   /* rows of the embeddings; positions 0: none are learned */
    int64_t inner_factor;       /* of the width, where no inner width is given; 0 = it must be */
    int64_t vocabulary, labels; /* the latter 0 = 2 */
} families[] = {
    {"gpt2", TRANSFORMER_DECODER, BIASES | TRAIT_FUSED_QKV | TRAIT_FINAL_NORM | TRAIT_TIED, "gelu_new", true, 1024, 0,
     4},
    {"gpt_neo", TRANSFORMER_DECODER, TRAIT_OUT_BIAS | TRAIT_MLP_BIAS | TRAIT_FINAL_NORM | TRAIT_TIED | TRAIT_MASKS,
     "gelu_new", false, 2048, 0, 4},
    {"gpt_neox", TRANSFORMER_DECODER, NEOX | TRAIT_FUSED_QKV, "gelu", false, 0, 0, 0},
    {"phi", TRANSFORMER_DECODER, NEOX | TRAIT_ONE_NORM | TRAIT_HEAD_BIAS, "gelu_new", false, 0, 0, 4},
    {"phi3", TRANSFORMER_DECODER, LLAMA | TRAIT_FUSED_QKV, "silu", false, 0, 0, 0},
    {"opt", TRANSFORMER_DECODER, BIASES | TRAIT_FINAL_NORM | TRAIT_TIED, "relu", true, 2048, 0, 0},
    {"llama", TRANSFORMER_DECODER, LLAMA, "silu", false, 0, 0, 0},
    {"mistral", TRANSFORMER_DECODER, LLAMA, "silu", false, 0, 0, 0},
    {"qwen2", TRANSFORMER_DECODER, LLAMA | TRAIT_QKV_BIAS, "silu", false, 0, 0, 0},
    {"qwen3", TRANSFORMER_DECODER, LLAMA | TRAIT_QK_NORM, "silu", false, 0, 0, 0},
    {"smollm3", TRANSFORMER_DECODER, LLAMA | TRAIT_TIED, "silu", false, 0, 0, 0},
    {"gemma", TRANSFORMER_DECODER, GEMMA, "gelu_pytorch_tanh", false, 0, 0, 0, 256000},
    {"gemma2", TRANSFORMER_DECODER, GEMMA | TRAIT_FOUR_NORMS, "gelu_pytorch_tanh", false, 0, 0, 0, 256000},
    {"gemma3_text", TRANSFORMER_DECODER, GEMMA | TRAIT_FOUR_NORMS | TRAIT_QK_NORM, "gelu_pytorch_tanh", false, 0, 0, 0,
     262208},
    {"bert", TRANSFORMER_ENCODER, BERT | TRAIT_POOLER, "gelu", true, 512, 2, 0, 30522},
    {"roberta", TRANSFORMER_ENCODER, BERT | TRAIT_POOLER, "gelu", true, 512, 2, 0, 50265},
    {"xlm-roberta", TRANSFORMER_ENCODER, BERT | TRAIT_POOLER, "gelu", true, 512, 2, 0, 30522},
    {"camembert", TRANSFORMER_ENCODER, BERT | TRAIT_POOLER, "gelu", true, 512, 2, 0, 30522},
    {"distilbert", TRANSFORMER_ENCODER, BERT, "gelu", true, 512, 0, 0, 30522},
    {"t5", TRANSFORMER_ENCODER_DECODER, T5 | TRAIT_TIED, "relu", true, 0, 0, 0, 32128},
    {"mt5", TRANSFORMER_ENCODER_DECODER, T5 | TRAIT_GATED, "gelu_new", true, 0, 0, 0, 250112},
    {"vit", TRANSFORMER_VISION, BIASES | TRAIT_FINAL_NORM | TRAIT_POOLER, "gelu", false, 1, 0, 0, 0, 1000},
};

struct reading {
    const char *name;
    const json_t *config;
    const struct family *family;
    struct transformer *to;
};

/* The families' names for a size, one name after the other; the most specific first. */
static const json_t *find(const struct reading *reading, const char *names)
{
    char name[64];

    for (const char *at = names; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        const json_t *value;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
        value = json_object_get(reading->config, name);
        if (value && !json_is_null(value))
            return value;
    }
    return NULL;
}

/* otherwise < 0: it must be there. */
static int take(const struct reading *reading, const char *names, int64_t most, int64_t otherwise, int64_t *to,
                struct error *err)
{
    const json_t *value = find(reading, names);

    if (!value && otherwise >= 0) {
        *to = otherwise;
        return 0;
    }
    if (!value)
        return error_set(err, EINVAL, "%s: a configuration of %s needs %.*s", reading->name, reading->family->type,
                         (int)strcspn(names, " "), names);
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > most)
        return error_set(err, EINVAL, "%s: %.*s is not a number from 1 to %lld", reading->name,
                         (int)strcspn(names, " "), names, (long long)most);
    *to = json_integer_value(value);
    return 0;
}

static bool flag(const struct reading *reading, const char *names, bool otherwise)
{
    const json_t *value = find(reading, names);

    if (value && json_is_number(value))
        return json_number_value(value) > 0;
    return value ? json_is_true(value) : otherwise;
}

static void set_trait(const struct reading *reading, const char *names, uint32_t traits)
{
    bool had = (reading->to->traits & traits) == traits;

    if (flag(reading, names, had))
        reading->to->traits |= traits;
    else if (had)
        reading->to->traits &= ~traits;
}

static int take_sizes(const struct reading *reading, struct error *err)
{
    struct transformer *t = reading->to;
    const struct family *family = reading->family;
    bool vision = family->kind == TRANSFORMER_VISION;
    int rc;

    if ((rc = take(reading, "hidden_size n_embd d_model dim", SIZE_LIMIT, -1, &t->width, err)) ||
        (rc = take(reading, "num_hidden_layers n_layer num_layers n_layers", LAYER_LIMIT, -1, &t->layers, err)) ||
        (rc = take(reading, "num_attention_heads n_head num_heads n_heads", SIZE_LIMIT, -1, &t->heads, err)) ||
        (rc = take(reading, "num_key_value_heads", t->heads, t->heads, &t->kv_heads, err)) ||
        (rc = take(reading, "head_dim d_kv", SIZE_LIMIT, t->width / t->heads, &t->head_width, err)) ||
        (rc = take(reading, "intermediate_size n_inner d_ff ffn_dim hidden_dim", SIZE_LIMIT,
                   family->inner_factor ? family->inner_factor * t->width : -1, &t->inner, err)) ||
        (rc = take(reading, "word_embed_proj_dim", SIZE_LIMIT, t->width, &t->embedding_width, err)))
        return rc;
    if (t->head_width < 1 || t->heads % t->kv_heads)
        return error_set(err, EINVAL, "%s: %lld heads do not fit a width of %lld with %lld heads of keys",
                         reading->name, (long long)t->heads, (long long)t->width, (long long)t->kv_heads);
    if (!vision && (rc = take(reading, "vocab_size", SIZE_LIMIT, family->vocabulary ? family->vocabulary : -1,
                              &t->vocabulary, err)))
        return rc;
    if (!vision && family->positions &&
        (rc = take(reading, "max_position_embeddings n_positions n_ctx", SIZE_LIMIT, family->positions, &t->positions,
                   err)))
        return rc;
    if (family->types && (rc = take(reading, "type_vocab_size", SIZE_LIMIT, family->types, &t->types, err)))
        return rc;
    if (family->kind == TRANSFORMER_ENCODER_DECODER &&
        ((rc = take(reading, "num_decoder_layers", LAYER_LIMIT, t->layers, &t->decoder_layers, err)) ||
         (rc = take(reading, "relative_attention_num_buckets", SIZE_LIMIT, 32, &t->buckets, err))))
        return rc;
    return 0;
}

static int take_image(const struct reading *reading, struct error *err)
{
    struct transformer *t = reading->to;
    int rc;

    if ((rc = take(reading, "image_size", 1 << 14, 224, &t->image, err)) ||
        (rc = take(reading, "patch_size", 1 << 14, 16, &t->patch, err)) ||
        (rc = take(reading, "num_channels", 1 << 10, 3, &t->channels, err)))
        return rc;
    if (t->patch > t->image)
        return error_set(err, EINVAL, "%s: patches of %lld pixels do not fit an image of %lld", reading->name,
                         (long long)t->patch, (long long)t->image);
    t->specials = 1;
    t->positions = t->image / t->patch * (t->image / t->patch) + t->specials;
    return 0;
}

static int take_activation(const struct reading *reading, struct error *err)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } names[] = {{"gelu", ACTIVATION_GELU},
                 {"gelu_new", TRANSFORMER_GELU_NEW},
                 {"gelu_fast", TRANSFORMER_GELU_NEW},
                 {"gelu_pytorch_tanh", ACTIVATION_GELU},
                 {"silu", ACTIVATION_SILU},
                 {"swish", ACTIVATION_SILU},
                 {"relu", ACTIVATION_RELU}};
    const json_t *value =
        find(reading, "hidden_activation hidden_act activation_function activation feed_forward_proj");
    const char *name = json_is_string(value) ? json_string_value(value) : reading->family->activation;

    if (strncmp(name, "gated-", 6) == 0) { /* T5 1.1: "gated-gelu" is others' gelu_new */
        reading->to->traits |= TRAIT_GATED;
        name = strcmp(name, "gated-gelu") == 0 ? "gelu_new" : name + 6;
    }
    /* Gemma's first configurations say gelu; the library takes the kernel's tanh form, which keeps as much. */
    for (size_t i = 0; i < array_size(names); i++)
        if (strcmp(name, names[i].name) == 0) {
            reading->to->activation = names[i].kind;
            return 0;
        }
    return error_set(err, EINVAL,
                     "%s: activation '%.40s' is not known: gelu, gelu_new, gelu_pytorch_tanh, silu or relu",
                     reading->name, name);
}

/* Sequences of the words that end the first of "architectures": BertForMaskedLM. Without any, a decoder's language
 * model. */
static int take_head(const struct reading *reading, struct error *err)
{
    static const struct {
        const char *end;
        uint8_t head;
        int64_t labels; /* 0: num_labels' */
    } heads[] = {{"LMHeadModel", HEAD_LANGUAGE, 0},
                 {"ForCausalLM", HEAD_LANGUAGE, 0},
                 {"ForMaskedLM", HEAD_LANGUAGE, 0},
                 {"ForConditionalGeneration", HEAD_LANGUAGE, 0},
                 {"ForSequenceClassification", HEAD_CLASSES, 0},
                 {"ForImageClassification", HEAD_CLASSES, 0},
                 {"ForTokenClassification", HEAD_TOKENS, 0},
                 {"ForQuestionAnswering", HEAD_TOKENS, 2},
                 {"Model", HEAD_NONE, 0}};
    struct transformer *t = reading->to;
    const json_t *first = json_array_get(find(reading, "architectures"), 0);
    const char *name = json_is_string(first) ? json_string_value(first) : NULL;
    int64_t labels = reading->family->labels ? reading->family->labels : 2;
    int rc = take(reading, "num_labels", SIZE_LIMIT, labels, &t->labels, err);

    if (json_is_object(find(reading, "id2label")) && json_object_size(find(reading, "id2label")))
        t->labels = (int64_t)json_object_size(find(reading, "id2label"));
    t->head = t->kind == TRANSFORMER_VISION ? HEAD_CLASSES : HEAD_LANGUAGE;
    for (size_t i = 0; name && i < array_size(heads); i++) {
        size_t end = strlen(heads[i].end), length = strlen(name);
        if (length < end || strcmp(name + length - end, heads[i].end) != 0)
            continue;
        t->head = heads[i].head;
        if (heads[i].labels)
            t->labels = heads[i].labels;
        return rc;
    }
    if (name)
        return error_set(
            err, EINVAL,
            "%s: architecture '%.60s' is not known: give one that ends in ForCausalLM, "
            "ForMaskedLM, ForSequenceClassification, ForTokenClassification, ForQuestionAnswering or Model",
            reading->name, name);
    return rc;
}

static void take_traits(const struct reading *reading)
{
    struct transformer *t = reading->to;
    bool of_type = strcmp(reading->family->type, "gpt_neox") == 0;

    set_trait(reading, "tie_word_embeddings", TRAIT_TIED);
    set_trait(reading, "attention_bias qkv_bias", of_type ? TRAIT_QKV_BIAS | TRAIT_OUT_BIAS : TRAIT_QKV_BIAS);
    if (flag(reading, "attention_bias", false)) /* Llama's is of all four */
        t->traits |= TRAIT_OUT_BIAS;
    set_trait(reading, "mlp_bias", TRAIT_MLP_BIAS);
    set_trait(reading, "use_parallel_residual", TRAIT_PARALLEL);
    set_trait(reading, "qk_layernorm", TRAIT_QK_NORM);
    if (!flag(reading, "do_layer_norm_before", true)) { /* OPT of 350 million parameters */
        t->traits |= TRAIT_POST_NORM;
        t->traits &= ~(uint32_t)TRAIT_FINAL_NORM;
    }
    t->dropout =
        flag(reading, "resid_pdrop hidden_dropout_prob dropout_rate hidden_dropout dropout", reading->family->dropout);
    t->attention_dropout = flag(reading, "attn_pdrop attention_probs_dropout_prob attention_dropout dropout_rate",
                                reading->family->dropout);
    if (strcmp(reading->family->type, "opt") == 0)
        t->positions += 2; /* its table has two more rows */
}

static int unknown(const char *name, const char *type, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf known = {0};

    for (size_t i = 0; i < array_size(families); i++)
        strbuf_printf(&known, "%s%s", i ? ", " : "", families[i].type);
    if (!type)
        return error_set(err, EINVAL, "%s: no \"model_type\": is it a model's config.json?", name);
    return error_set(err, EINVAL, "%s: model_type '%.40s' is not known; give a capture. Known: %s", name, type,
                     known.text);
}

static int read_object(struct reading *reading, struct error *err)
{
    const char *type = json_string_value(json_object_get(reading->config, "model_type"));
    int rc;

    for (size_t i = 0; type && i < array_size(families); i++)
        if (strcmp(type, families[i].type) == 0)
            reading->family = &families[i];
    if (!reading->family)
        return unknown(reading->name, type, err);
    reading->to->family = reading->family->type;
    reading->to->kind = reading->family->kind;
    reading->to->traits = reading->family->traits;
    rc = take_sizes(reading, err);
    if (rc == 0 && reading->to->kind == TRANSFORMER_VISION)
        rc = take_image(reading, err);
    if (rc == 0)
        rc = take_activation(reading, err);
    if (rc == 0)
        rc = take_head(reading, err);
    if (rc == 0)
        take_traits(reading);
    return rc;
}

/* The largest configurations name the 22,000 classes of ImageNet, twice. */
static const struct json_bounds bounds = {.values = 128 << 10, .depth = 32, .bytes = SPEC_MAX_CAPTURE};

int hf_config_read(struct transformer *transformer, const char *name, const char *text, size_t length,
                   struct error *err)
{
    struct reading reading = {.name = name, .to = transformer};
    json_t *config;
    int rc = json_read(text, length, 0, &bounds, &config, err);

    *transformer = (struct transformer){0};
    if (rc) {
        error_prefix(err, "%s", name);
    } else if (!json_is_object(config)) {
        rc = error_set(err, EINVAL, "%s: not a JSON object: it is another value", name);
    } else {
        reading.config = config;
        rc = read_object(&reading, err);
    }
    if (rc)
        error_make_printable(err);
    json_decref(config);
    return rc;
}
