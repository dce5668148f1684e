/* The list that layers_connect() makes: its tensors, and layers that are added to it. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/connect/connecting.h"

#define MAX_MEMBERS 512 /* of a concatenation that is joined anew */

struct shape connect_shape(const struct connect *c, int32_t tensor)
{
    struct shape shape = {0};

    if (tensor >= 0)
        return c->made.items[tensor].container ? shape : layer_shape(&c->made.items[tensor]);
    if (tensor == MODEL_INPUT) {
        shape.rank = c->rows->input_rank;
        memcpy(shape.size, c->rows->input, sizeof shape.size);
    }
    return shape;
}

const struct layer *connect_layer(const struct connect *c, int32_t tensor)
{
    return tensor >= 0 ? &c->made.items[tensor] : NULL;
}

bool connect_same_shape(const struct connect *c, int32_t a, int32_t b)
{
    struct shape left = connect_shape(c, a), right = connect_shape(c, b);

    return left.rank > 0 && shape_equal(&left, &right);
}

bool shape_same_sides(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank && a->rank > 0 && memcmp(a->size + 1, b->size + 1, (a->rank - 1u) * sizeof *a->size) == 0;
}

bool layer_takes(const struct layer *layer, const struct shape *shape)
{
    struct fit fit;

    return layer_fit(layer, shape, &fit) == 0;
}

bool layer_keeps_shape(const struct layer *layer)
{
    switch ((enum layer_kind)layer->kind) {
    case LAYER_BATCH_NORM:
    case LAYER_LAYER_NORM:
    case LAYER_GROUP_NORM:
    case LAYER_ACTIVATION:
    case LAYER_SOFTMAX:
    case LAYER_DROPOUT:
    case LAYER_IDENTITY:
        return true;
    default:
        return false;
    }
}

struct frame *connect_innermost(struct connect *c)
{
    return c->frame_count ? &c->frames[c->frame_count - 1] : NULL;
}

void connect_use(struct connect *c, struct layer *layer, int32_t from)
{
    layer_add_input(layer, from);
    if (from >= 0)
        c->used[from]++;
}

/* A layer that the summary leaves out. */
int32_t connect_make(struct connect *c, enum layer_kind kind, const char *type, const struct shape *shape)
{
    struct layer *layer = layer_list_add(&c->made, kind);

    array_reserve(c->used, c->used_capacity, c->made.count);
    c->used[c->made.count - 1] = 0;
    snprintf(layer->type, sizeof layer->type, "%s", type);
    if (c->bodies.tree && c->frame_count)
        layer->depth = (uint8_t)(c->rows->items[connect_innermost(c)->row].depth + 1);
    layer->shape_known = true;
    layer->rank = shape->rank;
    memcpy(layer->shape, shape->size, sizeof layer->shape);
    c->prev = (int32_t)c->made.count - 1;
    return c->prev;
}

int32_t connect_make_of(struct connect *c, enum layer_kind kind, const char *type, const struct shape *shape, int32_t a,
                        int32_t b)
{
    int32_t tensor = connect_make(c, kind, type, shape);

    connect_use(c, &c->made.items[tensor], a);
    if (b != NOTHING)
        connect_use(c, &c->made.items[tensor], b);
    return tensor;
}

int32_t connect_make_sum(struct connect *c, int32_t a, int32_t b)
{
    struct shape shape = connect_shape(c, a);

    return connect_make_of(c, LAYER_ADD, "add", &shape, a, b);
}

static size_t member_count(const struct connect *c, int32_t tensor)
{
    const struct layer *layer = connect_layer(c, tensor);

    return layer && layer->kind == LAYER_CONCAT ? layer->input_count : 1;
}

/* Joined anew from all parts, as networks of dense blocks do it: a part that is itself a concatenation by its parts. */
int32_t connect_make_concat(struct connect *c, const int32_t *parts, size_t count)
{
    struct shape shape = connect_shape(c, parts[0]);
    int32_t tensor = connect_make(c, LAYER_CONCAT, "cat", &shape);
    int64_t channels = 0;
    size_t members = 0;

    for (size_t i = 0; i < count; i++)
        members += member_count(c, parts[i]);
    for (size_t i = 0; i < count; i++) {
        channels += connect_shape(c, parts[i]).size[0];
        if (member_count(c, parts[i]) > 1 && members <= MAX_MEMBERS)
            for (uint32_t j = 0; j < c->made.items[parts[i]].input_count; j++)
                connect_use(c, &c->made.items[tensor], c->made.items[parts[i]].inputs[j]);
        else
            connect_use(c, &c->made.items[tensor], parts[i]);
        if (parts[i] >= 0)
            c->used[parts[i]]++;
    }
    c->made.items[tensor].shape[0] = channels;
    return tensor;
}

static void shift(int32_t *tensor, int32_t at)
{
    if (*tensor >= at)
        ++*tensor;
}

/* Moves the last layer, which was added for it, to `at`; references to the layers from there on follow. */
static void move_last_to(struct connect *c, int32_t at)
{
    int32_t last = (int32_t)c->made.count - 1;
    struct layer layer = c->made.items[last];
    uint32_t uses = c->used[last];

    for (int32_t i = last; i > at; i--) {
        c->made.items[i] = c->made.items[i - 1];
        c->used[i] = c->used[i - 1];
        for (uint32_t j = 0; j < c->made.items[i].input_count; j++)
            shift(&c->made.items[i].inputs[j], at);
    }
    c->made.items[at] = layer;
    c->used[at] = uses;
    for (size_t row = c->row < c->rows->count ? c->row + 1 : c->row;
         row-- > 0 && (c->tensor[row] < 0 || c->tensor[row] >= at);)
        shift(&c->tensor[row], at);
    for (size_t i = 0; i < c->frame_count; i++) {
        shift(&c->frames[i].main, at);
        shift(&c->frames[i].residual, at);
        shift(&c->frames[i].input, at);
    }
}

/* Puts `between`, the last layer, between a layer and its input. */
void connect_put_between(struct connect *c, int32_t layer)
{
    int32_t from = c->made.items[layer].inputs[0], before = c->prev;

    c->made.items[layer].inputs[0] = before;
    c->used[before]++;
    if (from >= 0)
        c->used[from]--;
    /* its reference to the one behind it becomes right by the move */
    move_last_to(c, layer);
    c->made.items[layer + 1].inputs[0] = layer;
    c->prev = layer + 1;
}
