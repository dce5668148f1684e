/* Attention as summaries show it: projections as layers, the operations between them not at all. */
#include "estimate/connect/connecting.h"

/* Word, position and segment embeddings are added up. */
void connect_close_embeddings(struct connect *c, const struct layer *next)
{
    int32_t last = c->prev, i;

    if (last < 0 || c->made.items[last].kind != LAYER_EMBEDDING || next->kind == LAYER_EMBEDDING)
        return;
    for (i = last; i > 0 && c->made.items[i - 1].kind == LAYER_EMBEDDING && connect_same_shape(c, i - 1, last);)
        i--;
    for (int32_t sum = i++; i <= last; i++)
        sum = connect_make_sum(c, sum, i);
}

/* In a block with attention, each normalisation after the first stands at a sum with the block's shortcut. */
void connect_close_sublayer(struct connect *c, const struct layer *next)
{
    struct frame *block = NULL;

    if (next->kind != LAYER_LAYER_NORM)
        return;
    for (size_t i = c->frame_count; i-- > 0 && !block;)
        if (c->frames[i].attention && c->frames[i].residual_type)
            block = &c->frames[i];
    if (!block || block->input == NOTHING || block->residual == c->prev ||
        !connect_same_shape(c, block->residual, c->prev))
        return;
    connect_make_sum(c, c->prev, block->residual);
    block->residual = c->prev;
    block->added = true;
}

bool layer_is_linear(const struct layer *layer)
{
    return layer && (layer->kind == LAYER_LINEAR || layer->kind == LAYER_CONV1D_LINEAR);
}

static bool in_attention(const struct connect *c)
{
    for (size_t i = c->frame_count; i-- > 0;)
        if (type_is_attention(c->rows->items[c->frames[i].row].type))
            return true;
    return false;
}

/* One operator that keeps its inputs; or, where the matrix of scores was shown, the operators that make and keep it. */
static void make_core(struct connect *c, const int32_t *parts, size_t count, const struct shape *shape)
{
    int32_t at;

    if (c->scores.rank == 0) {
        at = connect_make(c, LAYER_MULTIPLY, "scaled_dot_product_attention", shape);
        for (size_t i = 0; i < count; i++)
            connect_use(c, &c->made.items[at], parts[i]);
        return;
    }
    connect_make_of(c, LAYER_MULTIPLY, "matmul", &c->scores, parts[0], count > 1 ? parts[1] : NOTHING);
    connect_make_of(c, LAYER_SOFTMAX, "softmax", &c->scores, c->prev, NOTHING);
    if (c->scores_dropped)
        connect_make_of(c, LAYER_DROPOUT, "dropout", &c->scores, c->prev, NOTHING);
    connect_make_of(c, LAYER_MULTIPLY, "matmul", shape, c->prev, parts[count - 1]);
}

/* Layers inside a module's attention (a dropout of the scores, norms of heads) do not belong to its chain. */
bool connect_is_inside(struct connect *c, const struct layer *layer)
{
    struct shape last = connect_shape(c, c->prev), own = layer_shape(layer);

    if (!in_attention(c) || shape_equal(&last, &own) || own.rank < 3 || layer->parameters > 0)
        return false;
    if (layer->kind != LAYER_DROPOUT && layer->kind != LAYER_SOFTMAX && layer->kind != LAYER_IDENTITY)
        return false;
    if (own.size[own.rank - 1] == own.size[own.rank - 2]) {
        c->scores = own;
        c->scores_dropped |= layer->kind == LAYER_DROPOUT;
    }
    return true;
}

/* Query, key and value are made from one tensor. */
bool connect_is_projection(struct connect *c, const struct layer *layer)
{
    const struct layer *before = connect_layer(c, c->prev);
    struct shape shape;
    struct fit fit;

    if (!layer_is_linear(layer) || !layer_is_linear(before) || before->input_count != 1 || c->used[c->prev] ||
        !in_attention(c))
        return false;
    if (c->projections >= 3)
        return false;
    shape = connect_shape(c, before->inputs[0]);
    return layer_fit(layer, &shape, &fit) == 0;
}

/* Query, key and value (packed, or the last three linear layers) become the output projection's input. */
void connect_attend(struct connect *c, const struct layer *layer)
{
    struct shape last = connect_shape(c, c->prev), core = last;
    const int32_t last_layer = c->prev;

    if (!layer_is_linear(connect_layer(c, c->prev)) || last.rank < 2 || !in_attention(c) || c->used[c->prev])
        return;
    if (c->projections == 3) {
        core = connect_shape(c, c->projected[0]);
        make_core(c, c->projected, 3, &core);
    } else {
        core.size[core.rank - 1] = last.size[last.rank - 1] / 3;
        if (!layer_is_linear(layer) || last.size[last.rank - 1] % 3 || !layer_takes(layer, &core))
            return;
        make_core(c, &last_layer, 1, &core);
    }
    c->scores.rank = 0;
    c->scores_dropped = false;
    c->projections = 0;
}
