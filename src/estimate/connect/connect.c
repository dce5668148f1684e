/* Where layers get their input, for summaries that do not say. Layers stand in the order in which they ran. Each takes
 * the output of the one before it, unless its shape or its parameters contradict that. Then it is a branch (it takes an
 * earlier layer's output), or an operation that is not a module stands in between. Such are a sum, a product, a
 * concatenation, a pooling, a reshape, the core of an attention. Blocks (containers) say where branches come
 * together. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/connect/connecting.h"

enum { COST_BLOCK_INPUT = 1, COST_EARLIER = 2 };

/* The cost of taking a tensor that is not the last; only tensors that fit well, or that skip as shortcuts do. */
static int branch_cost(const struct connect *c, const struct layer *layer, int32_t tensor, int penalty)
{
    struct shape shape = connect_shape(c, tensor);
    struct fit fit;
    int cost = tensor == c->prev ? FIT_NONE : layer_fit(layer, &shape, &fit);
    bool strides = cost == 0 && (fit.stride[0] > 1 || fit.stride[1] > 1 || fit.stride[2] > 1);

    if ((cost == COST_SKIPS && fit.skips) || (cost == 0 && (penalty == COST_BLOCK_INPUT || !strides)))
        return cost + penalty;
    return FIT_NONE;
}

/* A tensor made before, other than the last, that the layer takes: a block's input, or any; of equal ones the latest.
 * Returns the cost; *source is NOTHING where there is none. */
static int find_earlier(struct connect *c, const struct layer *layer, int32_t *source)
{
    int best = FIT_NONE;

    *source = NOTHING;
    for (size_t i = c->frame_count; i > 0 && c->budget-- > 0; i--) {
        int cost = branch_cost(c, layer, c->frames[i - 1].input, COST_BLOCK_INPUT);
        if (cost < best) {
            best = cost;
            *source = c->frames[i - 1].input;
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

/* A squeeze that begins with a convolution of one element takes the mean of its input: few elements could also be those
 * of a stride. */
static bool begins_squeeze(struct connect *c, const struct layer *layer)
{
    const struct frame *frame = connect_innermost(c);
    struct shape own = layer_shape(layer), last = connect_shape(c, c->prev);

    return frame && type_is_squeeze(c->rows->items[frame->row].type) && layer->kind == LAYER_CONV && own.rank > 1 &&
           shape_elements(&own) == own.size[0] && shape_elements(&last) > last.size[0];
}

/* The layer's one input; operations that have to stand in between are added. */
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
    if (connect_find_shortcut(c, layer, &source))
        return source;
    connect_close_shortcut(c, layer);
    connect_close_embeddings(c, layer);
    if (connect_is_projection(c, layer)) {
        c->projections++;
        return c->made.items[c->prev].inputs[0];
    }
    connect_attend(c, layer);
    c->projections = layer_is_linear(layer);
    connect_close_sublayer(c, layer);
    if (begins_squeeze(c, layer) && connect_pool(c, layer))
        return c->prev;
    last = connect_shape(c, c->prev);
    cost = layer_fit(layer, &last, &fit);
    if (cost == 0 || last.rank == 0) /* nothing to hold it against */
        return c->prev;
    other = find_earlier(c, layer, &source);
    if (!layer_keeps_shape(layer) && other < cost && (other == COST_BLOCK_INPUT || layer->kind == LAYER_CONV))
        return source;
    if (cost >= FIT_NONE && (connect_scale(c, layer) || connect_reshape(c, layer) || connect_pool(c, layer)))
        return c->prev;
    if (cost >= FIT_NONE && layer_keeps_shape(layer) && (connect_join_two(c, layer) || connect_join_open(c, layer)))
        return c->prev;
    if (other < cost)
        return source;
    if (cost >= FIT_NONE && (connect_join_two(c, layer) || connect_join_open(c, layer)))
        return c->prev;
    if (cost >= FIT_NONE)
        c->rows->guessed++;
    return c->prev;
}

/* Its own inputs, where the summary says them, as the new layers of those rows. */
static void keep_inputs(struct connect *c, struct layer *layer)
{
    for (uint32_t i = 0; i < layer->input_count; i++) {
        if (layer->inputs[i] >= 0)
            layer->inputs[i] = (size_t)layer->inputs[i] < c->row ? c->tensor[layer->inputs[i]] : MODEL_INPUT;
        if (layer->inputs[i] >= 0 && !layer->container)
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
    if (!said && c->made.count && connect_is_inside(c, &layer)) {
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
        connect_use(c, &c->made.items[c->tensor[row]], input);
    if (layer.kind == LAYER_PARAMETER)
        return;
    if (said || !layer_is_linear(&layer))
        c->projections = 0;
    if (c->projections > 0)
        c->projected[c->projections - 1] = c->tensor[row];
    begin_block(c, &layer, said ? c->made.items[c->tensor[row]].inputs[0] : input, c->tensor[row]);
    if (layer.kind == LAYER_DROPOUT && c->frame_count &&
        (strcmp(layer.type, "StochasticDepth") == 0 || strcmp(layer.type, "DropPath") == 0))
        connect_innermost(c)->drops = true;
    c->prev = c->tensor[row];
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
    keep_inputs(c, &c->rows->items[row]);
    c->made.items[c->made.count++] = c->rows->items[row];
    c->rows->items[row].inputs = NULL; /* moved */
}

static void walk(struct connect *c)
{
    CLEANUP(free_ptr) struct opening *openings = xcalloc(c->rows->count, sizeof *openings);
    size_t count = find_openings(c, openings), next = 0;

    for (c->row = 0; c->row < c->rows->count; c->row++) {
        bool container = c->rows->items[c->row].container;
        while (c->bodies.tree && c->frame_count && c->bodies.end[connect_innermost(c)->row] <= c->row) {
            size_t row = connect_innermost(c)->row;
            connect_pop_frame(c, row);
            c->tensor[row] = c->prev;
        }
        for (; next < count && openings[next].start <= c->row; next++)
            if (!c->bodies.tree || openings[next].row < c->row)
                connect_push_frame(c, openings[next].row);
        if (!container) {
            add_row(c, c->row);
            continue;
        }
        if (!c->bodies.tree)
            connect_pop_frame(c, c->row);
        add_container(c, c->row);
        c->tensor[c->row] = c->prev;
    }
    while (c->frame_count)
        connect_pop_frame(c, connect_innermost(c)->row);
    connect_close_shortcut(c, NULL);
}

/* Blocks of torchvision and timm: their ReLUs run in place, and some of their sums. */
static bool find_published(const struct layer_list *list, bool *sums)
{
    static const struct {
        const char *type;
        bool sums;
    } blocks[] = {
        {"BasicBlock", true},
        {"Bottleneck", true},
        {"MBConv", true},
        {"Block", true},
        {"InvertedResidual", false},
        {"Fire", false},
        {"BasicConv2d", false},
        {"_DenseLayer", false},
        {"DepthwiseSeparableConv", false},
        {"_InvertedResidual", false},
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

/* A summary does not say which operations run in place. Only a ReLU in place takes less: the others then keep a copy of
 * their input. */
static void find_in_place(struct connect *c)
{
    bool sums, published = find_published(c->rows, &sums);

    for (size_t i = 0; i < c->made.count; i++) {
        struct layer *layer = &c->made.items[i];
        const struct layer *from = layer->input_count ? connect_layer(c, layer->inputs[0]) : NULL;
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
