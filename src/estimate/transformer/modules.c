#include "base/memory.h"
#include "estimate/transformer/model.h"

#define PACKED_BLOCK 64  /* weights with a scale of their own; bitsandbytes' NF4 */
#define SCALE_BLOCK  256 /* scales with one of their own: they are stored in 8 bits */

static bool has(const struct model *model, uint32_t trait)
{
    return model->transformer->traits & trait;
}

static int32_t add(struct model *model, int64_t elements, int64_t last, int64_t second_last)
{
    return tape_add_parameter(&model->lowering.tape, (struct tape_parameter){.elements = elements,
                                                                             .last = last,
                                                                             .second_last = second_last,
                                                                             .element_bytes = model->plain_bytes,
                                                                             .frozen = model->frozen});
}

static void label(struct model *model, uint32_t *number, const char *name)
{
    *number = program_label(model->lowering.tape.program, name);
    model->lowering.tape.at.label = *number;
}

/* 4-bit weights, two to a byte; their scales in 8 bits, and these scales' in full precision. */
static int32_t add_packed(struct model *model, int64_t weights)
{
    struct tape *tape = &model->lowering.tape;
    int64_t scales = (weights + PACKED_BLOCK - 1) / PACKED_BLOCK;
    int32_t number =
        tape_add_parameter(tape, (struct tape_parameter){.elements = weights / 2, .element_bytes = 1, .frozen = true});

    tape_alloc(tape, scales, MEMORY_PARAMETER);
    tape_alloc(tape, (scales + SCALE_BLOCK - 1) / SCALE_BLOCK * FULL_BYTES, MEMORY_PARAMETER);
    return number;
}

static struct linear make_linear(struct model *model, const char *name, int64_t in, int64_t out, bool bias)
{
    struct linear linear = {.in = in, .out = out, .count = bias ? 2 : 1, .adapter = TAPE_NONE};

    label(model, &linear.label, name);
    linear.first = add(model, in * out, in, out);
    if (bias)
        add(model, out, 0, 0);
    return linear;
}

/* Of a block: may be packed, and have an adapter. */
static struct linear make_inner(struct model *model, const char *name, int64_t in, int64_t out, bool bias, bool adapted)
{
    struct linear linear = {.in = in, .out = out, .count = bias ? 2 : 1, .adapter = TAPE_NONE};
    struct tape_parameter adapter = {.element_bytes = adapter_bytes(model)};

    if (model->method->tuning != TUNING_QLORA) {
        linear = make_linear(model, name, in, out, bias);
    } else {
        label(model, &linear.label, name);
        linear.packed = true;
        linear.first = add_packed(model, in * out);
        if (bias)
            add(model, out, 0, 0);
    }
    if (model->method->tuning == TUNING_FULL || !adapted)
        return linear;
    adapter.elements = in * model->method->rank;
    adapter.last = in;
    adapter.second_last = model->method->rank;
    linear.adapter = tape_add_parameter(&model->lowering.tape, adapter);
    adapter.elements = out * model->method->rank;
    adapter.last = model->method->rank;
    adapter.second_last = out;
    tape_add_parameter(&model->lowering.tape, adapter);
    return linear;
}

static struct norm make_norm(struct model *model, const char *name, int64_t width)
{
    struct norm norm = {.count = has(model, TRAIT_RMS) ? 1 : 2, .width = width};

    label(model, &norm.label, name);
    norm.first = add(model, width, 0, 0);
    if (norm.count == 2)
        add(model, width, 0, 0);
    return norm;
}

static void make_attention(struct model *model, struct attention_module *attention)
{
    const struct transformer *t = model->transformer;
    int64_t queries = t->heads * t->head_width, keys = t->kv_heads * t->head_width;
    bool bias = has(model, TRAIT_QKV_BIAS), some = model->method->targets != TARGETS_QV;

    if (has(model, TRAIT_FUSED_QKV)) {
        attention->query = make_inner(model, "attention.qkv", t->width, queries + 2 * keys, bias, true);
    } else {
        attention->query = make_inner(model, "attention.query", t->width, queries, bias, true);
        attention->key = make_inner(model, "attention.key", t->width, keys, bias, some);
        attention->value = make_inner(model, "attention.value", t->width, keys, bias, true);
    }
    attention->out = make_inner(model, "attention.out", queries, t->width, has(model, TRAIT_OUT_BIAS), some);
    if (has(model, TRAIT_QK_NORM)) {
        attention->query_norm = make_norm(model, "attention.query_norm", t->head_width);
        attention->key_norm = make_norm(model, "attention.key_norm", t->head_width);
    }
}

static void make_block(struct model *model, struct block *block, bool decoder)
{
    const struct transformer *t = model->transformer;
    bool bias = has(model, TRAIT_MLP_BIAS), all = model->method->targets == TARGETS_ALL;

    block->decoder = decoder;
    if (has(model, TRAIT_MASKS))
        tape_alloc(&model->lowering.tape, t->positions * t->positions, MEMORY_BUFFER);
    make_attention(model, &block->own);
    if (decoder) {
        block->cross_norm = make_norm(model, "cross_norm", t->width);
        make_attention(model, &block->cross);
    }
    if (has(model, TRAIT_GATED))
        block->gate = make_inner(model, "mlp.gate", t->width, t->inner, bias, all);
    block->up = make_inner(model, "mlp.up", t->width, t->inner, bias, all);
    block->down = make_inner(model, "mlp.down", t->inner, t->width, bias, all);
    block->norms[0] = make_norm(model, "norm", t->width);
    if (!has(model, TRAIT_ONE_NORM))
        block->norms[1] = make_norm(model, "norm", t->width);
    for (int i = 2; i < 4 && has(model, TRAIT_FOUR_NORMS); i++)
        block->norms[i] = make_norm(model, "norm", t->width);
}

static void make_embeddings(struct model *model)
{
    const struct transformer *t = model->transformer;
    uint32_t ignored;

    label(model, &ignored, "embeddings");
    if (t->kind == TRANSFORMER_VISION) {
        int64_t area = t->channels * t->patch * t->patch;
        model->specials = add(model, t->specials * t->width, 0, 0);
        model->patches = make_linear(model, "embeddings.patches", area, t->width, true);
    } else {
        model->words = add(model, t->vocabulary * t->embedding_width, t->embedding_width, t->vocabulary);
    }
    if (t->positions)
        model->places = add(model, t->positions * t->width, t->width, t->positions);
    if (t->types)
        model->types = add(model, t->types * t->width, t->width, t->types);
    if (t->embedding_width != t->width)
        model->embed_in = make_linear(model, "embeddings.in", t->embedding_width, t->width, false);
    if (has(model, TRAIT_EMBED_NORM))
        model->embed_norm = make_norm(model, "embeddings.norm", t->width);
}

static void make_head(struct model *model)
{
    const struct transformer *t = model->transformer;
    bool dense = has(model, TRAIT_HEAD_DENSE);

    if (t->embedding_width != t->width)
        model->embed_out = make_linear(model, "head.out", t->width, t->embedding_width, false);
    if (dense && t->head != HEAD_TOKENS && (t->head != HEAD_NONE || has(model, TRAIT_POOLER)))
        model->dense = make_linear(model, "head.dense", t->width, t->width, true);
    if (t->head == HEAD_LANGUAGE) {
        if (dense)
            model->head_norm = make_norm(model, "head.norm", t->width);
        label(model, &model->head.label, "head");
        model->head = (struct linear){.first = model->words,
                                      .label = model->head.label,
                                      .in = t->embedding_width,
                                      .out = t->vocabulary,
                                      .count = 1,
                                      .adapter = TAPE_NONE};
        if (!has(model, TRAIT_TIED))
            model->head.first = add(model, t->embedding_width * t->vocabulary, t->embedding_width, t->vocabulary);
        if (has(model, TRAIT_HEAD_BIAS)) /* a tied weight and its bias do not stand together */
            add(model, t->vocabulary, 0, 0);
    } else if (t->head != HEAD_NONE) {
        model->head = make_linear(model, "head", t->width, t->labels, t->kind != TRANSFORMER_DECODER);
    }
}

void model_add_modules(struct model *model)
{
    const struct transformer *t = model->transformer;

    model->block_count = (size_t)(t->layers + t->decoder_layers);
    model->blocks = xcalloc(model->block_count, sizeof *model->blocks);
    make_embeddings(model);
    for (int i = 0; i < 2 && has(model, TRAIT_RELATIVE); i++)
        model->relative[i] = add(model, t->buckets * t->heads, t->heads, t->buckets);
    model->first_inner = (int32_t)model->lowering.tape.parameter_count;
    for (size_t i = 0; i < model->block_count; i++)
        make_block(model, &model->blocks[i], (int64_t)i >= t->layers);
    model->end_inner = (int32_t)model->lowering.tape.parameter_count;
    for (int i = 0; i < 1 + (t->decoder_layers > 0) && has(model, TRAIT_FINAL_NORM); i++)
        model->final_norms[i] = make_norm(model, "final_norm", t->width);
    make_head(model);
}

int64_t transformer_parameters(const struct transformer *transformer)
{
    struct method method;
    struct program program;
    struct model model = {.transformer = transformer, .method = &method, .plain_bytes = FULL_BYTES};
    int64_t sum = 0;

    method_default(&method);
    program_init(&program);
    tape_init(&model.lowering.tape, &program);
    model_add_modules(&model);
    for (size_t i = 0; i < model.lowering.tape.parameter_count; i++)
        sum += model.lowering.tape.parameters[i].elements;
    tape_release(&model.lowering.tape);
    program_release(&program);
    free(model.blocks);
    return sum;
}
