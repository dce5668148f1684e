#include "estimate/transformer/model.h"

static bool has(const struct model *model, uint32_t trait)
{
    return model->transformer->traits & trait;
}

static struct tape_value mlp(struct model *model, struct tape_value input, const struct block *block)
{
    struct tape_value up;

    if (!has(model, TRAIT_GATED)) {
        up = model_activate(model, model_linear(model, input, &block->up));
    } else {
        struct tape_value gate = model_linear(model, model_keep(model, &input), &block->gate);
        gate = model_activate(model, gate);
        up = model_multiply(model, gate, model_linear(model, input, &block->up));
    }
    up = model_dropout(model, up, has(model, TRAIT_INNER_DROPOUT) && model->transformer->dropout);
    return model_linear(model, up, &block->down);
}

static struct tape_value finish(struct model *model, struct tape_value part, const struct norm *behind)
{
    part = model_dropout(model, part, model->transformer->dropout);
    return model_normalise(model, part, behind);
}

static struct tape_value attend(struct model *model, struct tape_value input, const struct block *block)
{
    bool causal = model->transformer->kind == TRANSFORMER_DECODER || block->decoder;

    return finish(model, model_attend(model, model_keep(model, &input), input, &block->own, causal), &block->norms[2]);
}

static struct tape_value feed(struct model *model, struct tape_value input, const struct block *block)
{
    return finish(model, mlp(model, input, block), &block->norms[3]);
}

static struct tape_value look_back(struct model *model, struct tape_value input, const struct block *block)
{
    struct tape_value bias = model->bias, from = model_normalise(model, model_keep(model, &input), &block->cross_norm);

    model->bias.elements = 0; /* the encoder's tokens have no positions there */
    from = model_attend(model, from, model_keep(model, &model->memory), &block->cross, false);
    model->bias = bias;
    return model_add(model, input, model_dropout(model, from, model->transformer->dropout));
}

static struct tape_value parallel(struct model *model, struct tape_value input, const struct block *block)
{
    struct tape_value first = model_normalise(model, model_keep(model, &input), &block->norms[0]), second, fed;

    second = block->norms[1].count ? model_normalise(model, model_keep(model, &input), &block->norms[1])
                                   : model_keep(model, &first);
    first = attend(model, first, block);
    fed = feed(model, second, block);
    return model_add(model, input, model_add(model, first, fed));
}

struct tape_value model_block(struct model *model, struct tape_value input, const struct block *block)
{
    struct tape_value part;

    if (has(model, TRAIT_PARALLEL))
        return parallel(model, input, block);
    if (has(model, TRAIT_POST_NORM)) {
        part = attend(model, model_keep(model, &input), block);
        input = model_normalise(model, model_add(model, input, part), &block->norms[0]);
        part = feed(model, model_keep(model, &input), block);
        return model_normalise(model, model_add(model, input, part), &block->norms[1]);
    }
    part = attend(model, model_normalise(model, model_keep(model, &input), &block->norms[0]), block);
    input = model_add(model, input, part);
    if (block->decoder)
        input = look_back(model, input, block);
    part = feed(model, model_normalise(model, model_keep(model, &input), &block->norms[1]), block);
    return model_add(model, input, part);
}
