/* Where layers get their input, for summaries that do not say. Layers stand in the order in which they ran; each takes
 * what the one before it made, unless its shape or its parameters contradict that. Then it is a branch (it takes what
 * an earlier layer made), or something that is no module stands in between: a sum, a product, a concatenation, a
 * pooling, a reshape, the core of an attention. Blocks (containers) say where branches come together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/connect.h"

#define LOOK_BACK   256     /* layers, for a branch's source */
#define LOOK_BUDGET 4000000 /* in all: a hostile list's time is bounded */
#define MAX_MEMBERS 512     /* of a concatenation */
#define SHORTCUT_LAYERS 3
#define NOTHING     (-2)
#define MODEL_INPUT (-1)

enum { COST_BLOCK_INPUT = 1, COST_EARLIER = 2 };

/* A container that has begun. */
struct frame {
    size_t row;
    int32_t first;    /* the first layer added in it */
    int32_t input;    /* what its first layer takes; NOTHING until then */
    int32_t main;     /* what waits for the shortcut's result; NOTHING: there is no shortcut */
    int32_t residual; /* in a block with attention: what the next sum adds */
    bool attention, residual_type, pre_norm;
    bool added;  /* it has its sum */
    bool nested; /* a block in it has a sum of its own */
    bool drops;  /* it ends with stochastic depth, which only what is added has */
};

struct connect {
    struct layer_list *rows;
    struct bodies bodies;
    struct layer_list made; /* the new list */
    uint32_t *used;         /* by layer of `made`: how many take its output */
    size_t used_capacity;
    int32_t *tensor; /* by row: the layer of `made` that has its output */
    int32_t prev;
    struct frame *frames;
    size_t frame_count, frame_capacity;
    uint32_t *attention; /* by row: how many layers of attention stand before it */
    size_t row;          /* at hand */
    int64_t budget;      /* how often an earlier layer may still be tried */
    int projections;     /* linear layers just before that take the same */
    bool scores;         /* the attention at hand makes its matrix of scores */
};

static struct shape shape_at(const struct connect *c, int32_t tensor)
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

static const struct layer *layer_at(const struct connect *c, int32_t tensor)
{
    return tensor >= 0 ? &c->made.items[tensor] : NULL;
}

static bool same_shape(const struct connect *c, int32_t a, int32_t b)
{
    struct shape left = shape_at(c, a), right = shape_at(c, b);

    return left.rank > 0 && shape_equal(&left, &right);
}

static void use(struct connect *c, struct layer *layer, int32_t from)
{
    layer_add_input(layer, from);
    if (from >= 0)
        c->used[from]++;
}

static struct frame *innermost(struct connect *c)
{
    return c->frame_count ? &c->frames[c->frame_count - 1] : NULL;
}

/* A layer that the summary leaves out. */
static int32_t make(struct connect *c, enum layer_kind kind, const char *type, const struct shape *shape)
{
    struct layer *layer = layer_list_add(&c->made, kind);

    array_reserve(c->used, c->used_capacity, c->made.count);
    c->used[c->made.count - 1] = 0;
    snprintf(layer->type, sizeof layer->type, "%s", type);
    if (c->bodies.tree && c->frame_count)
        layer->depth = (uint8_t)(c->rows->items[innermost(c)->row].depth + 1);
    layer->shape_known = true;
    layer->rank = shape->rank;
    memcpy(layer->shape, shape->size, sizeof layer->shape);
    c->prev = (int32_t)c->made.count - 1;
    return c->prev;
}

static int32_t make_of(struct connect *c, enum layer_kind kind, const char *type, const struct shape *shape, int32_t a,
                       int32_t b)
{
    int32_t tensor = make(c, kind, type, shape);

    use(c, &c->made.items[tensor], a);
    if (b != NOTHING)
        use(c, &c->made.items[tensor], b);
    return tensor;
}

static int32_t make_sum(struct connect *c, int32_t a, int32_t b)
{
    struct shape shape = shape_at(c, a);

    return make_of(c, LAYER_ADD, "add", &shape, a, b);
}

static size_t member_count(const struct connect *c, int32_t tensor)
{
    const struct layer *layer = layer_at(c, tensor);

    return layer && layer->kind == LAYER_CONCAT ? layer->input_count : 1;
}

/* Joined anew from all parts, as networks of dense blocks do it: a part that is itself a concatenation by its parts. */
static int32_t make_concat(struct connect *c, const int32_t *parts, size_t count)
{
    struct shape shape = shape_at(c, parts[0]);
    int32_t tensor = make(c, LAYER_CONCAT, "cat", &shape);
    int64_t channels = 0;
    size_t members = 0;

    for (size_t i = 0; i < count; i++)
        members += member_count(c, parts[i]);
    for (size_t i = 0; i < count; i++) {
        channels += shape_at(c, parts[i]).size[0];
        if (member_count(c, parts[i]) > 1 && members <= MAX_MEMBERS)
            for (uint32_t j = 0; j < c->made.items[parts[i]].input_count; j++)
                use(c, &c->made.items[tensor], c->made.items[parts[i]].inputs[j]);
        else
            use(c, &c->made.items[tensor], parts[i]);
        if (parts[i] >= 0)
            c->used[parts[i]]++;
    }
    c->made.items[tensor].shape[0] = channels;
    return tensor;
}

static bool same_sides(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank && a->rank > 0 && memcmp(a->size + 1, b->size + 1, (a->rank - 1u) * sizeof *a->size) == 0;
}

/* The smallest block that holds the making of `tensor` too; NULL: none. */
static struct frame *common_block(struct connect *c, int32_t tensor)
{
    for (size_t i = c->frame_count; i-- > 0;)
        if (c->frames[i].first <= tensor)
            return &c->frames[i];
    return NULL;
}

/* --- Where a layer's input comes from ------------------------------------------------------------------------- */

/* The cost of taking a tensor that is not the last; only what is not odd, or skips as shortcuts do. */
static int branch_cost(const struct connect *c, const struct layer *layer, int32_t tensor, int penalty)
{
    struct shape shape = shape_at(c, tensor);
    struct fit fit;
    int cost = tensor == c->prev ? FIT_NONE : layer_fit(layer, &shape, &fit);
    bool strides = cost == 0 && (fit.stride[0] > 1 || fit.stride[1] > 1 || fit.stride[2] > 1);

    if ((cost == COST_SKIPS && fit.skips) || (cost == 0 && (penalty == COST_BLOCK_INPUT || !strides)))
        return cost + penalty;
    return FIT_NONE;
}

/* A tensor made before, other than the last, that the layer takes: what a block took, or any; of equal ones the latest.
 * Returns the cost; *source is NOTHING where there is none. */
static int find_earlier(struct connect *c, const struct layer *layer, int32_t *source)
{
    int best = FIT_NONE;

    *source = NOTHING;
    for (size_t i = c->frame_count; i-- > 0;) {
        int cost = branch_cost(c, layer, c->frames[i].input, COST_BLOCK_INPUT);
        if (cost < best) {
            best = cost;
            *source = c->frames[i].input;
        }
    }
    for (int32_t i = (int32_t)c->made.count - 1, left = LOOK_BACK;
         best > COST_EARLIER && i >= MODEL_INPUT && left > 0 && c->budget-- > 0; i--, left--) {
        int cost = branch_cost(c, layer, i, COST_EARLIER);
        if (cost < best) {
            best = cost;
            *source = i;
        }
    }
    return best;
}

/* Whether a 1x1 convolution that could go on from `main` is rather the shortcut of the block that `main` ends: it is
 * shaped like it and like what the block gives. Then *source is what it takes. */
static bool find_shortcut(struct connect *c, const struct layer *layer, int32_t *source)
{
    struct shape out = layer_shape(layer), last = shape_at(c, c->prev);
    const struct layer *main = layer_at(c, c->prev);
    struct frame *block = common_block(c, c->prev);
    struct shape given;
    struct fit fit;

    if (layer->kind != LAYER_CONV || !main || !block || block->input == NOTHING || block->main != NOTHING)
        return false;
    if (!shape_equal(&out, &last) || main->kind == LAYER_ACTIVATION || main->kind == LAYER_ADD)
        return false;
    given = layer_shape(&c->rows->items[block->row]);
    if (!shape_equal(&out, &given) || block->first == (int32_t)c->made.count)
        return false;
    *source = block->input;
    given = shape_at(c, block->input);
    if (shape_equal(&given, &out) || layer_fit(layer, &given, &fit) > COST_SKIPS || fit.kernel[0] != 1 ||
        fit.kernel[1] > 1)
        return false;
    if (main->kind != LAYER_BATCH_NORM && main->kind != LAYER_GROUP_NORM && !block->residual_type)
        return false;
    block->main = c->prev;
    return true;
}

/* Adds up main branch and shortcut, where the shortcut is done. */
static void close_shortcut(struct connect *c, const struct layer *next)
{
    struct frame *block = NULL;

    for (size_t i = c->frame_count; i-- > 0 && !block;)
        if (c->frames[i].main != NOTHING)
            block = &c->frames[i];
    if (!block || !same_shape(c, block->main, c->prev))
        return;
    if (next && (next->kind == LAYER_BATCH_NORM || next->kind == LAYER_IDENTITY || next->kind == LAYER_GROUP_NORM))
        return; /* the shortcut's own */
    make_sum(c, block->main, c->prev);
    block->main = NOTHING;
    block->added = true;
}

/* In a block with attention, each normalisation after the first stands at a sum with what went around. */
static void close_sublayer(struct connect *c, const struct layer *next)
{
    struct frame *block = NULL;

    if (next->kind != LAYER_LAYER_NORM)
        return;
    for (size_t i = c->frame_count; i-- > 0 && !block;)
        if (c->frames[i].attention && c->frames[i].residual_type)
            block = &c->frames[i];
    if (!block || block->input == NOTHING || block->residual == c->prev || !same_shape(c, block->residual, c->prev))
        return;
    make_sum(c, c->prev, block->residual);
    block->residual = c->prev;
    block->added = true;
}

/* Word, position and segment embeddings are added up. */
static void close_embeddings(struct connect *c, const struct layer *next)
{
    int32_t last = c->prev, i;

    if (last < 0 || c->made.items[last].kind != LAYER_EMBEDDING || next->kind == LAYER_EMBEDDING)
        return;
    for (i = last; i > 0 && c->made.items[i - 1].kind == LAYER_EMBEDDING && same_shape(c, i - 1, last);)
        i--;
    for (int32_t sum = i++; i <= last; i++)
        sum = make_sum(c, sum, i);
}

/* --- What stands in between --------------------------------------------------------------------------------------- */

static bool takes(const struct layer *layer, const struct shape *shape)
{
    struct fit fit;

    return layer_fit(layer, shape, &fit) == 0;
}

/* What the last layer made, joined with something earlier. */
static bool join_two(struct connect *c, const struct layer *layer)
{
    struct shape last = shape_at(c, c->prev);

    for (int32_t i = c->prev - 1, left = LOOK_BACK; i >= MODEL_INPUT && left > 0 && c->budget-- > 0; i--, left--) {
        struct shape other = shape_at(c, i), joined = last;
        int32_t parts[] = {i, c->prev};
        if (!same_sides(&other, &last) || __builtin_add_overflow(other.size[0], last.size[0], &joined.size[0]) ||
            !takes(layer, &joined))
            continue;
        make_concat(c, parts, 2);
        return true;
    }
    return false;
}

/* The last layers whose output nothing has taken yet, joined. */
static bool join_open(struct connect *c, const struct layer *layer)
{
    struct shape joined = shape_at(c, c->prev);
    int32_t parts[MAX_MEMBERS];
    size_t count = MAX_MEMBERS;

    parts[--count] = c->prev;
    for (int32_t i = c->prev - 1, left = LOOK_BACK; i >= 0 && left > 0 && count > 0 && c->budget-- > 0; i--, left--) {
        struct shape other = shape_at(c, i);
        if (c->used[i] || !same_sides(&other, &joined) ||
            __builtin_add_overflow(other.size[0], joined.size[0], &joined.size[0]))
            continue;
        parts[--count] = i;
        if (takes(layer, &joined)) {
            make_concat(c, parts + count, MAX_MEMBERS - count);
            return true;
        }
    }
    return false;
}

/* A scale for each channel, put on what it was made from. */
static bool scale_channels(struct connect *c, const struct layer *layer)
{
    struct shape last = shape_at(c, c->prev);

    if (last.rank < 3 || shape_elements(&last) != last.size[0])
        return false;
    for (int32_t i = c->prev - 1, left = LOOK_BACK; i >= MODEL_INPUT && left > 0 && c->budget-- > 0; i--, left--) {
        struct shape other = shape_at(c, i);
        if (other.rank == last.rank && other.size[0] == last.size[0] && takes(layer, &other)) {
            make_of(c, LAYER_MULTIPLY, "mul", &other, c->prev, i);
            return true;
        }
    }
    return false;
}

/* A global average, before a layer that takes one number for each channel. */
static bool pool_globally(struct connect *c, const struct layer *layer)
{
    struct shape last = shape_at(c, c->prev), first = {.rank = 1, .size = {1, 1, 1, 1, 1}}, end = {.rank = 1};

    if (last.rank < 2)
        return false;
    first.size[0] = last.size[0];
    if (layer->kind == LAYER_CONV)
        first.rank = last.rank;
    end.size[0] = last.size[last.rank - 1];
    if (takes(layer, &first))
        make_of(c, LAYER_AVG_POOL, "mean", &first, c->prev, NOTHING);
    else if (takes(layer, &end)) /* over a sequence */
        make_of(c, LAYER_RESHAPE, "select", &end, c->prev, NOTHING);
    else
        return false;
    return true;
}

/* The same elements in another order or with other sides; a class token may join a sequence on the way. */
static bool reshape(struct connect *c, const struct layer *layer)
{
    struct shape last = shape_at(c, c->prev), wanted = layer_shape(layer);
    int64_t elements = shape_elements(&last);

    if (last.rank == 3 && (layer->kind == LAYER_CONV || layer->kind == LAYER_BATCH_NORM)) {
        struct shape turned = {.rank = 3, .size = {last.size[2], last.size[0], last.size[1]}};
        if (takes(layer, &turned)) {
            make_of(c, LAYER_RESHAPE, "permute", &turned, c->prev, NOTHING);
            return true;
        }
    }
    if (layer->kind == LAYER_LINEAR && wanted.rank > 1 && wanted.rank >= last.rank - 1) {
        struct shape turned = wanted;
        turned.size[turned.rank - 1] = last.size[last.rank == 3 && wanted.rank <= 3 ? 0 : last.rank - 1];
        if (shape_elements(&turned) == elements && takes(layer, &turned)) {
            make_of(c, LAYER_RESHAPE, "reshape", &turned, c->prev, NOTHING);
            return true;
        }
    }
    if (wanted.rank == 0 || !takes(layer, &wanted))
        return false;
    if (shape_elements(&wanted) == elements) {
        make_of(c, LAYER_RESHAPE, "reshape", &wanted, c->prev, NOTHING);
        return true;
    }
    for (int tokens = 1; tokens <= 2 && wanted.rank == 2 && wanted.size[0] > tokens; tokens++) {
        struct shape without = wanted;
        without.size[0] -= tokens;
        if (shape_elements(&without) == elements) {
            make_of(c, LAYER_RESHAPE, "reshape", &without, c->prev, NOTHING);
            make_of(c, LAYER_CONCAT, "cat", &wanted, c->prev, NOTHING);
            return true;
        }
    }
    return false;
}

/* --- Attention whose core is no module ---------------------------------------------------------------------------- */

static bool is_linear(const struct layer *layer)
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

static int32_t make_core(struct connect *c, const struct shape *shape)
{
    return make(c, LAYER_MULTIPLY, "scaled_dot_product_attention", shape);
}

/* What a module shows of the inside of its attention (a dropout of the scores, norms of heads) is not of its chain. */
static bool is_inside(struct connect *c, const struct layer *layer)
{
    struct shape last = shape_at(c, c->prev), own = layer_shape(layer);

    if (!in_attention(c) || shape_equal(&last, &own) || own.rank < 3)
        return false;
    if (layer->kind != LAYER_DROPOUT && layer->kind != LAYER_SOFTMAX && layer->kind != LAYER_IDENTITY)
        return false;
    if (own.size[own.rank - 1] == own.size[own.rank - 2])
        c->scores = true;
    return true;
}

/* Query, key and value are made from the same. */
static bool is_projection(struct connect *c, const struct layer *layer)
{
    const struct layer *before = layer_at(c, c->prev);
    struct shape shape;
    struct fit fit;

    if (!is_linear(layer) || !is_linear(before) || before->input_count != 1 || c->used[c->prev] || !in_attention(c))
        return false;
    if (c->projections >= 3)
        return false;
    shape = shape_at(c, before->inputs[0]);
    return layer_fit(layer, &shape, &fit) == 0;
}

/* Query, key and value (packed, or the last three linear layers) become what the output projection takes. */
static void attend(struct connect *c, const struct layer *layer)
{
    struct shape last = shape_at(c, c->prev), core = last;
    int32_t at, first = c->prev - 2;

    if (!is_linear(layer_at(c, c->prev)) || last.rank < 2 || !in_attention(c) || c->used[c->prev])
        return;
    if (c->projections == 3) {
        core = shape_at(c, first);
        at = make_core(c, &core);
        for (int32_t i = 0; i < 3; i++)
            use(c, &c->made.items[at], first + i);
    } else if (is_linear(layer) && last.size[last.rank - 1] % 3 == 0) {
        core.size[core.rank - 1] = last.size[last.rank - 1] / 3;
        if (!takes(layer, &core))
            return;
        at = c->prev;
        use(c, &c->made.items[make_core(c, &core)], at);
    } else {
        return;
    }
    c->scores = false;
    c->projections = 0;
}

/* --- Layer by layer -------------------------------------------------------------------------------------------------
 */

static bool keeps_shape(const struct layer *layer)
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

/* A squeeze that begins with a convolution of one element takes the mean of what came: few elements could also be those
 * of a stride. */
static bool begins_squeeze(struct connect *c, const struct layer *layer)
{
    const struct frame *frame = innermost(c);
    struct shape own = layer_shape(layer), last = shape_at(c, c->prev);

    return frame && type_is_squeeze(c->rows->items[frame->row].type) && layer->kind == LAYER_CONV && own.rank > 1 &&
           shape_elements(&own) == own.size[0] && shape_elements(&last) > last.size[0];
}

/* The layer's one input; what has to stand in between is added. */
static int32_t find_input(struct connect *c, const struct layer *layer)
{
    struct shape last;
    struct fit fit;
    int32_t source;
    int cost, other;

    if (c->made.count == 0 || layer->kind == LAYER_EMBEDDING)
        return MODEL_INPUT;
    if (!layer->shape_known)
        return c->prev;
    if (find_shortcut(c, layer, &source))
        return source;
    close_shortcut(c, layer);
    close_embeddings(c, layer);
    if (is_projection(c, layer)) {
        c->projections++;
        return c->made.items[c->prev].inputs[0];
    }
    attend(c, layer);
    c->projections = is_linear(layer);
    close_sublayer(c, layer);
    if (begins_squeeze(c, layer) && pool_globally(c, layer))
        return c->prev;
    last = shape_at(c, c->prev);
    cost = layer_fit(layer, &last, &fit);
    if (cost == 0 || last.rank == 0) /* nothing to hold it against */
        return c->prev;
    other = find_earlier(c, layer, &source);
    if (!keeps_shape(layer) && other < cost && (other == COST_BLOCK_INPUT || layer->kind == LAYER_CONV))
        return source;
    if (cost >= FIT_NONE && (scale_channels(c, layer) || reshape(c, layer) || pool_globally(c, layer)))
        return c->prev;
    if (cost >= FIT_NONE && keeps_shape(layer) && (join_two(c, layer) || join_open(c, layer)))
        return c->prev;
    if (other < cost)
        return source;
    if (cost >= FIT_NONE && (join_two(c, layer) || join_open(c, layer)))
        return c->prev;
    if (cost >= FIT_NONE)
        c->rows->guessed++;
    return c->prev;
}

/* Its own inputs, where the summary says them, by what became of the rows. */
static void keep_inputs(struct connect *c, struct layer *layer)
{
    for (uint32_t i = 0; i < layer->input_count; i++) {
        if (layer->inputs[i] >= 0)
            layer->inputs[i] = c->tensor[layer->inputs[i]];
        if (layer->inputs[i] >= 0)
            c->used[layer->inputs[i]]++;
    }
}

static void begin_block(struct connect *c, const struct layer *layer, int32_t input, int32_t self)
{
    for (size_t i = c->frame_count; i-- > 0 && c->frames[i].input == NOTHING;) {
        c->frames[i].input = c->frames[i].residual = input;
        c->frames[i].pre_norm = layer->kind == LAYER_LAYER_NORM;
    }
    for (size_t i = c->frame_count; i-- > 0;) {
        struct frame *frame = &c->frames[i];
        if (!frame->attention || !frame->residual_type)
            continue;
        if (layer->kind == LAYER_LAYER_NORM && !frame->pre_norm)
            frame->residual = self;
        break;
    }
}

/* Takes the row over into the new list. */
static void add_row(struct connect *c, size_t row)
{
    struct layer layer = c->rows->items[row];
    bool said = layer.input_count > 0;
    int32_t input = NOTHING;

    c->rows->items[row].inputs = NULL; /* moved */
    if (!said && c->made.count && is_inside(c, &layer)) {
        c->tensor[row] = c->prev;
        return;
    }
    if (said)
        keep_inputs(c, &layer);
    else if (layer.kind != LAYER_PARAMETER)
        input = layer.kind == LAYER_INPUT ? MODEL_INPUT : find_input(c, &layer);
    array_reserve(c->made.items, c->made.capacity, c->made.count + 1);
    array_reserve(c->used, c->used_capacity, c->made.count + 1);
    c->made.items[c->made.count] = layer;
    c->used[c->made.count] = 0;
    c->tensor[row] = (int32_t)c->made.count++;
    if (input != NOTHING)
        use(c, &c->made.items[c->tensor[row]], input);
    if (layer.kind == LAYER_PARAMETER)
        return;
    begin_block(c, &layer, said ? c->made.items[c->tensor[row]].inputs[0] : input, c->tensor[row]);
    if (layer.kind == LAYER_DROPOUT && c->frame_count &&
        (strcmp(layer.type, "StochasticDepth") == 0 || strcmp(layer.type, "DropPath") == 0))
        innermost(c)->drops = true;
    c->prev = c->tensor[row];
}

/* --- Block by block
 * --------------------------------------------------------------------------------------------------- */

static void shift(int32_t *tensor, int32_t at)
{
    if (*tensor >= at)
        ++*tensor;
}

/* Moves the last layer, which was added for it, to `at`; what refers to the layers from there on follows. */
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
static void put_between(struct connect *c, int32_t layer)
{
    int32_t from = c->made.items[layer].inputs[0], before = c->prev;

    c->made.items[layer].inputs[0] = before;
    c->used[before]++;
    if (from >= 0)
        c->used[from]--;
    /* its reference to the one behind it becomes right by the move */
    move_last_to(c, layer);
    c->made.items[layer + 1].inputs[0] = layer;
    c->prev = (int32_t)c->made.count - 1;
}

/* The sum of a ResNet's block stands before the activation that ends it. */
static bool ends_activated(const struct connect *c, const struct frame *frame)
{
    static const char *const types[] = {
        "BasicBlock",    "Bottleneck",   "BottleneckBlock",    "BasicBlockV1",  "ResBottleneckBlock",
        "ResidualBlock", "SEBottleneck", "SEResNetBottleneck", "SEResNetBlock", "SEResNeXtBottleneck"};
    const struct layer *last = layer_at(c, c->prev);

    if (!last || last->kind != LAYER_ACTIVATION || c->prev <= frame->first)
        return false;
    for (size_t i = 0; i < array_size(types); i++)
        if (strcmp(types[i], c->rows->items[frame->row].type) == 0)
            return true;
    return false;
}

/* What a block adds to its main branch: what it took, or a shortcut's result that nothing else has taken. */
static int32_t find_addend(const struct connect *c, const struct frame *frame)
{
    if (same_shape(c, frame->input, c->prev))
        return frame->input == c->prev ? NOTHING : frame->input;
    /* also one made just before the block: some make the shortcut first */
    for (int32_t i = frame->first > SHORTCUT_LAYERS ? frame->first - SHORTCUT_LAYERS : 0, left = LOOK_BACK;
         i < c->prev && left > 0; i++, left--)
        if (!c->used[i] && same_shape(c, i, c->prev))
            return i;
    return NOTHING;
}

static void close_residual(struct connect *c, struct frame *frame)
{
    int32_t activation = c->prev, addend = find_addend(c, frame);

    if (addend == NOTHING)
        return;
    frame->added = true;
    if (!ends_activated(c, frame)) {
        make_sum(c, c->prev, addend);
        return;
    }
    make_sum(c, c->made.items[activation].inputs[0], addend);
    put_between(c, activation);
}

/* What was made in the block and not taken; the last `room` of them. */
static size_t open_outputs(const struct connect *c, const struct frame *frame, const struct shape *given, int32_t *open,
                           size_t room)
{
    size_t count = 0;

    for (int32_t i = frame->first; i < (int32_t)c->made.count && count < room; i++) {
        struct shape shape = shape_at(c, i);
        if (!c->used[i] && same_sides(&shape, given))
            open[count++] = i;
    }
    return count;
}

static int64_t channel_sum(const struct connect *c, const int32_t *tensors, size_t count)
{
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(sum, shape_at(c, tensors[i]).size[0], &sum))
            return INT64_MAX;
    return sum;
}

/* The convolution whose result reaches `tensor` through normalisations and activations alone; NULL: none. */
static const struct layer *convolution_behind(const struct connect *c, int32_t tensor)
{
    const struct layer *layer = layer_at(c, tensor);

    while (layer && keeps_shape(layer) && layer->input_count == 1)
        layer = layer_at(c, layer->inputs[0]);
    return layer && layer->kind == LAYER_CONV ? layer : NULL;
}

/* A convolution behind one just like it may as well stand beside it; in a block whose branches fall short of what it
 * gives, it does. */
static void split_twins(struct connect *c, const struct frame *frame, int64_t missing)
{
    for (int32_t i = (int32_t)c->made.count - 1; i >= frame->first && missing > 0; i--) {
        struct layer *layer = &c->made.items[i];
        const struct layer *twin;
        int32_t from;

        if (layer->kind != LAYER_CONV || layer->input_count != 1)
            continue;
        from = layer->inputs[0];
        twin = from >= frame->first && c->used[from] == 1 ? convolution_behind(c, from) : NULL;
        if (!twin || twin->parameters != layer->parameters || twin->shape[0] != layer->shape[0] ||
            twin->input_count != 1 || layer->shape[0] > missing)
            continue;
        layer->inputs[0] = twin->inputs[0];
        if (twin->inputs[0] >= 0)
            c->used[twin->inputs[0]]++;
        c->used[from]--;
        missing -= layer->shape[0];
    }
}

/* In an Inception block the last branch, a single 1x1 convolution, stands behind a pooling that is no module. */
static void pool_last_branch(struct connect *c, const struct frame *frame, int32_t *open, size_t count)
{
    int32_t branch = open[count - 1];
    struct shape shape = shape_at(c, frame->input);

    if (count < 3 || strncmp(c->rows->items[frame->row].type, "Inception", 9) != 0)
        return;
    while (branch > open[count - 2] && c->made.items[branch].kind != LAYER_CONV)
        branch--;
    if (branch == open[count - 2] || c->made.items[branch].input_count != 1 ||
        c->made.items[branch].inputs[0] != frame->input)
        return;
    make_of(c, LAYER_AVG_POOL, "AvgPool2d", &shape, frame->input, NOTHING);
    put_between(c, branch);
    open[count - 1]++;
}

/* Branches side by side. False: they are not what the block gives. */
static bool close_branches(struct connect *c, struct frame *frame, const struct shape *given)
{
    int32_t open[MAX_MEMBERS];
    size_t count = open_outputs(c, frame, given, open, array_size(open) - 1);
    struct shape input = shape_at(c, frame->input);
    int64_t sum = channel_sum(c, open, count);

    if (count == 0)
        return false;
    if (sum < given->size[0] && given->size[0] - sum == input.size[0] && input.rank == given->rank) {
        if (!same_sides(&input, given)) { /* pooled by a function */
            struct shape pooled = *given;
            pooled.size[0] = input.size[0];
            make_of(c, LAYER_MAX_POOL, "MaxPool2d", &pooled, frame->input, NOTHING);
            open[count++] = c->prev;
        } else {
            memmove(open + 1, open, count++ * sizeof *open);
            open[0] = frame->input;
        }
    } else if (sum < given->size[0]) {
        split_twins(c, frame, given->size[0] - sum);
        count = open_outputs(c, frame, given, open, array_size(open) - 1);
    }
    if (count < 2 || channel_sum(c, open, count) != given->size[0])
        return false;
    pool_last_branch(c, frame, open, count);
    make_concat(c, open, count);
    return true;
}

static bool is_activation(const struct layer *layer)
{
    return layer && (layer->kind == LAYER_ACTIVATION || layer->kind == LAYER_SOFTMAX);
}

/* What a squeeze and excitation scales: what its pooling took. NOTHING: it has none. */
static int32_t find_squeezed(const struct connect *c, const struct shape *given)
{
    int32_t at = c->prev;

    for (int left = LOOK_BACK; at >= 0 && left > 0 && c->made.items[at].input_count == 1; left--) {
        bool pools = c->made.items[at].kind == LAYER_AVG_POOL;
        struct shape shape;
        at = c->made.items[at].inputs[0];
        shape = shape_at(c, at);
        if (pools && shape_equal(&shape, given))
            return at;
    }
    return NOTHING;
}

/* The block's output is not what its last layer made. */
static void close_changed(struct connect *c, struct frame *frame, const struct shape *given)
{
    struct shape last = shape_at(c, c->prev), input = shape_at(c, frame->input);

    if (type_is_squeeze(c->rows->items[frame->row].type) && find_squeezed(c, given) != NOTHING)
        make_of(c, LAYER_MULTIPLY, "mul", given, c->prev, find_squeezed(c, given));
    else if (shape_equal(&input, given) && last.rank == given->rank && shape_elements(&last) == last.size[0] &&
             last.size[0] == given->size[0])
        make_of(c, LAYER_MULTIPLY, "mul", given, c->prev, frame->input);
    else if (close_branches(c, frame, given))
        return;
    else if (last.rank && shape_elements(&last) == shape_elements(given))
        make_of(c, LAYER_RESHAPE, "reshape", given, c->prev, NOTHING);
    else if (last.rank > 1 && given->size[0] == last.size[0] && shape_elements(given) < shape_elements(&last))
        make_of(c, LAYER_AVG_POOL, "mean", given, c->prev, NOTHING);
}

static bool is_sum_of(const struct connect *c, int32_t tensor, int32_t part)
{
    const struct layer *layer = layer_at(c, tensor);

    for (uint32_t i = 0; layer && layer->kind == LAYER_ADD && i < layer->input_count; i++)
        if (layer->inputs[i] == part)
            return true;
    return false;
}

static void close_frame(struct connect *c, struct frame *frame)
{
    const struct layer *row = &c->rows->items[frame->row];
    struct shape given = layer_shape(row), last = shape_at(c, c->prev);
    bool holds = c->prev >= frame->first && frame->input != NOTHING, residual = frame->residual_type || frame->drops;

    if (!holds || given.rank == 0)
        return;
    if (frame->main != NOTHING && same_shape(c, frame->main, c->prev)) {
        make_sum(c, frame->main, c->prev);
        frame->added = true;
    } else if (!shape_equal(&last, &given)) {
        close_changed(c, frame, &given);
    } else if (type_is_squeeze(row->type)) {
        int32_t squeezed = is_activation(layer_at(c, c->prev)) ? find_squeezed(c, &given) : NOTHING;
        if (squeezed != NOTHING)
            make_of(c, LAYER_MULTIPLY, "mul", &given, c->prev, squeezed);
    } else if (frame->attention && frame->residual_type) {
        if (frame->pre_norm && same_shape(c, frame->residual, c->prev) && frame->residual != c->prev &&
            !is_sum_of(c, c->prev, frame->residual)) {
            make_sum(c, c->prev, frame->residual);
            frame->added = true;
        }
    } else if (residual && !frame->added && !frame->nested) {
        close_residual(c, frame);
    }
}

static void pop_frame(struct connect *c, size_t row)
{
    size_t at = c->frame_count;
    struct frame frame;

    while (at-- > 0 && c->frames[at].row != row)
        ;
    if (at == SIZE_MAX)
        return;
    frame = c->frames[at];
    close_frame(c, &c->frames[at]);
    frame.added = c->frames[at].added;
    frame.nested = c->frames[at].nested;
    c->frame_count--;
    memmove(c->frames + at, c->frames + at + 1, (c->frame_count - at) * sizeof *c->frames);
    if (at > 0 && at == c->frame_count)
        c->frames[at - 1].nested |= frame.added || frame.nested;
}

static void push_frame(struct connect *c, size_t row)
{
    size_t from = c->bodies.start[row], to = c->bodies.end[row];

    array_reserve(c->frames, c->frame_capacity, c->frame_count + 1);
    c->frames[c->frame_count++] = (struct frame){.row = row,
                                                 .first = (int32_t)c->made.count,
                                                 .input = NOTHING,
                                                 .main = NOTHING,
                                                 .residual = NOTHING,
                                                 .attention = c->attention[to] > c->attention[from],
                                                 .residual_type = type_is_residual(c->rows->items[row].type)};
}

/* Rows in order of where their bodies begin, the larger ones first. */
struct opening {
    size_t row, start, end;
};

static int compare_openings(const void *left, const void *right)
{
    const struct opening *a = left, *b = right;

    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->row < b->row ? -1 : 1;
}

static size_t find_openings(const struct connect *c, struct opening *openings)
{
    size_t count = 0;

    for (size_t row = 0; row < c->rows->count; row++)
        if (c->rows->items[row].container && c->bodies.start[row] < c->bodies.end[row])
            openings[count++] = (struct opening){row, c->bodies.start[row], c->bodies.end[row]};
    qsort(openings, count, sizeof *openings, compare_openings);
    return count;
}

static void add_container(struct connect *c, size_t row)
{
    array_reserve(c->made.items, c->made.capacity, c->made.count + 1);
    array_reserve(c->used, c->used_capacity, c->made.count + 1);
    c->used[c->made.count] = 0;
    c->made.items[c->made.count++] = c->rows->items[row];
    c->rows->items[row].inputs = NULL; /* moved */
}

static void walk(struct connect *c)
{
    CLEANUP(free_ptr) struct opening *openings = xcalloc(c->rows->count, sizeof *openings);
    size_t count = find_openings(c, openings), next = 0;

    for (c->row = 0; c->row < c->rows->count; c->row++) {
        bool container = c->rows->items[c->row].container;
        while (c->bodies.tree && c->frame_count && c->bodies.end[innermost(c)->row] <= c->row) {
            size_t row = innermost(c)->row;
            pop_frame(c, row);
            c->tensor[row] = c->prev;
        }
        for (; next < count && openings[next].start <= c->row; next++)
            if (!c->bodies.tree || openings[next].row < c->row)
                push_frame(c, openings[next].row);
        if (!container) {
            add_row(c, c->row);
            continue;
        }
        if (!c->bodies.tree)
            pop_frame(c, c->row);
        add_container(c, c->row);
        c->tensor[c->row] = c->prev;
    }
    while (c->frame_count)
        pop_frame(c, innermost(c)->row);
    close_shortcut(c, NULL);
}

/* Blocks of torchvision and timm: their ReLUs run in place, and some of their sums. */
static bool find_published(const struct layer_list *list, bool *sums)
{
    static const struct {
        const char *type;
        bool sums;
    } blocks[] = {
        {"BasicBlock", true},   {"Bottleneck", true},        {"MBConv", true},
        {"Block", true},        {"InvertedResidual", false}, {"Fire", false},
        {"BasicConv2d", false}, {"_DenseLayer", false},      {"DepthwiseSeparableConv", false},
    };
    bool found = false;

    *sums = false;
    for (size_t i = 0; i < list->count; i++) {
        for (size_t j = 0; j < array_size(blocks) && list->items[i].container; j++) {
            if (strcmp(blocks[j].type, list->items[i].type) == 0) {
                found = true;
                *sums |= blocks[j].sums;
            }
        }
    }
    return found;
}

/* A summary does not say what runs in place. Only a ReLU in place takes less: the others then keep a copy of their
 * input. */
static void find_in_place(struct connect *c)
{
    bool sums, published = find_published(c->rows, &sums);

    for (size_t i = 0; i < c->made.count; i++) {
        struct layer *layer = &c->made.items[i];
        const struct layer *from = layer->input_count ? layer_at(c, layer->inputs[0]) : NULL;
        bool relu = layer->kind == LAYER_ACTIVATION && layer->activation == ACTIVATION_RELU;

        if (!from || c->used[layer->inputs[0]] != 1)
            continue;
        if (from->kind != LAYER_BATCH_NORM && from->kind != LAYER_CONV && from->kind != LAYER_ADD)
            continue;
        if ((published && relu) || (sums && layer->kind == LAYER_ADD))
            layer->in_place = true;
    }
}

void layers_connect(struct layer_list *list)
{
    struct connect c = {.rows = list, .prev = MODEL_INPUT, .budget = LOOK_BUDGET};
    struct layer_list old = *list;

    layer_list_init(&c.made);
    bodies_find(&c.bodies, list);
    c.tensor = xcalloc(list->count, sizeof *c.tensor);
    c.attention = xcalloc(list->count + 1, sizeof *c.attention);
    for (size_t i = 0; i < list->count; i++) {
        c.tensor[i] = NOTHING;
        c.attention[i + 1] =
            c.attention[i] + (list->items[i].kind == LAYER_ATTENTION || type_is_attention(list->items[i].type));
    }
    walk(&c);
    find_in_place(&c);
    old.guessed = list->guessed;
    free(list->items); /* their inputs have moved */
    *list = old;
    list->items = c.made.items;
    list->count = c.made.count;
    list->capacity = c.made.capacity;
    bodies_release(&c.bodies);
    free(c.tensor);
    free(c.attention);
    free(c.used);
    free(c.frames);
}
