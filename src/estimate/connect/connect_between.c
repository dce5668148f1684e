/* Operations between two layers that are not modules, told by their shapes. */
#include "estimate/connect/connecting.h"

#define MAX_MEMBERS 64 /* of a concatenation that is searched for */

/* The last layer's output, joined with an earlier tensor. */
bool connect_join_two(struct connect *c, const struct layer *layer)
{
    struct shape last = connect_shape(c, c->prev);

    for (int32_t i = c->prev - 1, left = LOOK_BACK; i >= MODEL_INPUT && left > 0 && c->budget-- > 0; i--, left--) {
        struct shape other = connect_shape(c, i), joined = last;
        int32_t parts[] = {i, c->prev};
        if (!shape_same_sides(&other, &last) || __builtin_add_overflow(other.size[0], last.size[0], &joined.size[0]) ||
            !layer_takes(layer, &joined))
            continue;
        connect_make_concat(c, parts, 2);
        return true;
    }
    return false;
}

/* The last layers with unused outputs, joined. */
bool connect_join_open(struct connect *c, const struct layer *layer)
{
    struct shape joined = connect_shape(c, c->prev);
    int32_t parts[MAX_MEMBERS];
    size_t count = MAX_MEMBERS;

    parts[--count] = c->prev;
    for (int32_t i = c->prev - 1, left = LOOK_BACK; i >= 0 && left > 0 && count > 0 && c->budget-- > 0; i--, left--) {
        struct shape other = connect_shape(c, i);
        if (c->used[i] || !shape_same_sides(&other, &joined) ||
            __builtin_add_overflow(other.size[0], joined.size[0], &joined.size[0]))
            continue;
        parts[--count] = i;
        if (layer_takes(layer, &joined)) {
            connect_make_concat(c, parts + count, MAX_MEMBERS - count);
            return true;
        }
    }
    return false;
}

/* A scale for each channel, put on the tensor that it was made from. */
bool connect_scale(struct connect *c, const struct layer *layer)
{
    struct shape last = connect_shape(c, c->prev);

    if (last.rank < 3 || shape_elements(&last) != last.size[0])
        return false;
    for (int32_t i = c->prev - 1, left = LOOK_BACK; i >= MODEL_INPUT && left > 0 && c->budget-- > 0; i--, left--) {
        struct shape other = connect_shape(c, i);
        if (other.rank == last.rank && other.size[0] == last.size[0] && layer_takes(layer, &other)) {
            connect_make_of(c, LAYER_MULTIPLY, "mul", &other, c->prev, i);
            return true;
        }
    }
    return false;
}

/* A global average, before a layer that takes one number for each channel. */
bool connect_pool(struct connect *c, const struct layer *layer)
{
    struct shape last = connect_shape(c, c->prev), first = {.rank = 1, .size = {1, 1, 1, 1, 1}}, end = {.rank = 1};

    if (last.rank < 2)
        return false;
    first.size[0] = last.size[0];
    if (layer->kind == LAYER_CONV)
        first.rank = last.rank;
    end.size[0] = last.size[last.rank - 1];
    if (layer_takes(layer, &first))
        connect_make_of(c, LAYER_AVG_POOL, "mean", &first, c->prev, NOTHING);
    else if (layer_takes(layer, &end)) /* over a sequence */
        connect_make_of(c, LAYER_RESHAPE, "select", &end, c->prev, NOTHING);
    else
        return false;
    return true;
}

/* The same elements in another order or with other sides; a class token may join a sequence on the way. */
bool connect_reshape(struct connect *c, const struct layer *layer)
{
    struct shape last = connect_shape(c, c->prev), wanted = layer_shape(layer);
    int64_t elements = shape_elements(&last);

    if (last.rank == 3 && (layer->kind == LAYER_CONV || layer->kind == LAYER_BATCH_NORM)) {
        struct shape turned = {.rank = 3, .size = {last.size[2], last.size[0], last.size[1]}};
        if (layer_takes(layer, &turned)) {
            connect_make_of(c, LAYER_RESHAPE, "permute", &turned, c->prev, NOTHING);
            return true;
        }
    }
    if (layer->kind == LAYER_LINEAR && wanted.rank > 1 && wanted.rank >= last.rank - 1) {
        struct shape turned = wanted;
        turned.size[turned.rank - 1] = last.size[last.rank == 3 && wanted.rank <= 3 ? 0 : last.rank - 1];
        if (shape_elements(&turned) == elements && layer_takes(layer, &turned)) {
            connect_make_of(c, LAYER_RESHAPE, "reshape", &turned, c->prev, NOTHING);
            return true;
        }
    }
    if (wanted.rank == 0 || !layer_takes(layer, &wanted))
        return false;
    if (shape_elements(&wanted) == elements) {
        connect_make_of(c, LAYER_RESHAPE, "reshape", &wanted, c->prev, NOTHING);
        return true;
    }
    for (int tokens = 1; tokens <= 2 && wanted.rank == 2 && wanted.size[0] > tokens; tokens++) {
        struct shape without = wanted;
        without.size[0] -= tokens;
        if (shape_elements(&without) == elements) {
            connect_make_of(c, LAYER_RESHAPE, "reshape", &without, c->prev, NOTHING);
            connect_make_of(c, LAYER_CONCAT, "cat", &wanted, c->prev, NOTHING);
            return true;
        }
    }
    return false;
}
