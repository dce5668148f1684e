/* The operation of a block (a container) on the tensors made in it: adds the block's input, joins its branches, scales
 * the input.
 */
#include <string.h>

#include "base/memory.h"
#include "estimate/connect/connecting.h"

#define MAX_MEMBERS     512 /* of a concatenation */
#define SHORTCUT_LAYERS 3   /* of a shortcut that stands before its block: convolution, norm, activation */

/* The smallest block that holds the making of `tensor` too; NULL: none. */
static struct frame *common_block(struct connect *c, int32_t tensor)
{
    for (size_t i = c->frame_count; i-- > 0;)
        if (c->frames[i].first <= tensor)
            return &c->frames[i];
    return NULL;
}

/* Whether a 1x1 convolution that could go on from `main` is rather the shortcut of the block that `main` ends. It is
 * where it is shaped like it and like the block's output. Then *source is its input. */
bool connect_find_shortcut(struct connect *c, const struct layer *layer, int32_t *source)
{
    struct shape out = layer_shape(layer), last = connect_shape(c, c->prev);
    const struct layer *main = connect_layer(c, c->prev);
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
    given = connect_shape(c, block->input);
    if (shape_equal(&given, &out) || layer_fit(layer, &given, &fit) > COST_SKIPS || fit.kernel[0] != 1 ||
        fit.kernel[1] > 1)
        return false;
    if (main->kind != LAYER_BATCH_NORM && main->kind != LAYER_GROUP_NORM && !block->residual_type)
        return false;
    block->main = c->prev;
    return true;
}

/* Adds up main branch and shortcut, where the shortcut is done. */
void connect_close_shortcut(struct connect *c, const struct layer *next)
{
    struct frame *block = NULL;

    for (size_t i = c->frame_count; i-- > 0 && !block;)
        if (c->frames[i].main != NOTHING)
            block = &c->frames[i];
    if (!block || !connect_same_shape(c, block->main, c->prev))
        return;
    if (next && (next->kind == LAYER_BATCH_NORM || next->kind == LAYER_IDENTITY || next->kind == LAYER_GROUP_NORM))
        return; /* the shortcut's own */
    connect_make_sum(c, block->main, c->prev);
    block->main = NOTHING;
    block->added = true;
}

/* The sum of a ResNet's block stands before the activation that ends it. */
static bool ends_activated(const struct connect *c, const struct frame *frame)
{
    static const char *const types[] = {
        "BasicBlock",    "Bottleneck",   "BottleneckBlock",    "BasicBlockV1",  "ResBottleneckBlock",
        "ResidualBlock", "SEBottleneck", "SEResNetBottleneck", "SEResNetBlock", "SEResNeXtBottleneck"};
    const struct layer *last = connect_layer(c, c->prev);

    if (!last || last->kind != LAYER_ACTIVATION || c->prev <= frame->first)
        return false;
    for (size_t i = 0; i < array_size(types); i++)
        if (strcmp(types[i], c->rows->items[frame->row].type) == 0)
            return true;
    return false;
}

/* The tensor that a block adds to its main branch: its input, or a shortcut's result that is still unused. */
static int32_t find_addend(const struct connect *c, const struct frame *frame)
{
    if (connect_same_shape(c, frame->input, c->prev))
        return frame->input == c->prev ? NOTHING : frame->input;
    /* also one made just before the block: some make the shortcut first */
    for (int32_t i = frame->first > SHORTCUT_LAYERS ? frame->first - SHORTCUT_LAYERS : 0, left = LOOK_BACK;
         i < c->prev && left > 0; i++, left--)
        if (!c->used[i] && connect_same_shape(c, i, c->prev))
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
        connect_make_sum(c, c->prev, addend);
        return;
    }
    connect_make_sum(c, c->made.items[activation].inputs[0], addend);
    connect_put_between(c, activation);
}

/* Unused tensors made in the block; the last `room` of them. */
static size_t open_outputs(const struct connect *c, const struct frame *frame, const struct shape *given, int32_t *open,
                           size_t room)
{
    size_t count = 0;

    for (int32_t i = frame->first; i < (int32_t)c->made.count && count < room; i++) {
        struct shape shape = connect_shape(c, i);
        if (!c->used[i] && shape_same_sides(&shape, given))
            open[count++] = i;
    }
    return count;
}

static int64_t channel_sum(const struct connect *c, const int32_t *tensors, size_t count)
{
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(sum, connect_shape(c, tensors[i]).size[0], &sum))
            return INT64_MAX;
    return sum;
}

/* The convolution that reaches `tensor` through normalisations and activations alone; NULL: none. */
static const struct layer *convolution_behind(const struct connect *c, int32_t tensor)
{
    const struct layer *layer = connect_layer(c, tensor);

    while (layer && layer_keeps_shape(layer) && layer->input_count == 1)
        layer = connect_layer(c, layer->inputs[0]);
    return layer && layer->kind == LAYER_CONV ? layer : NULL;
}

/* A convolution behind one just like it may as well stand beside it. In a block with branches that fall short of its
 * output, it does. */
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

/* In an Inception block the last branch, a single 1x1 convolution, stands behind a pooling that is not a module. */
static void pool_last_branch(struct connect *c, const struct frame *frame, int32_t *open, size_t count)
{
    int32_t branch = open[count - 1];
    struct shape shape = connect_shape(c, frame->input);

    if (count < 3 || strncmp(c->rows->items[frame->row].type, "Inception", 9) != 0)
        return;
    while (branch > open[count - 2] && c->made.items[branch].kind != LAYER_CONV)
        branch--;
    if (branch == open[count - 2] || c->made.items[branch].input_count != 1 ||
        c->made.items[branch].inputs[0] != frame->input)
        return;
    connect_make_of(c, LAYER_AVG_POOL, "AvgPool2d", &shape, frame->input, NOTHING);
    connect_put_between(c, branch);
    open[count - 1]++;
}

/* Branches side by side. False: they are not the block's output. */
static bool close_branches(struct connect *c, struct frame *frame, const struct shape *given)
{
    int32_t open[MAX_MEMBERS];
    size_t count = open_outputs(c, frame, given, open, array_size(open) - 1);
    struct shape input = connect_shape(c, frame->input);
    int64_t sum = channel_sum(c, open, count);

    if (count == 0)
        return false;
    if (sum < given->size[0] && given->size[0] - sum == input.size[0] && input.rank == given->rank) {
        if (!shape_same_sides(&input, given)) { /* pooled by a function */
            struct shape pooled = *given;
            pooled.size[0] = input.size[0];
            connect_make_of(c, LAYER_MAX_POOL, "MaxPool2d", &pooled, frame->input, NOTHING);
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
    connect_make_concat(c, open, count);
    return true;
}

static bool is_activation(const struct layer *layer)
{
    return layer && (layer->kind == LAYER_ACTIVATION || layer->kind == LAYER_SOFTMAX);
}

/* The tensor that a squeeze and excitation scales: its pooling's input. NOTHING: it has none. */
static int32_t find_squeezed(const struct connect *c, const struct shape *given)
{
    int32_t at = c->prev;

    for (int left = LOOK_BACK; at >= 0 && left > 0 && c->made.items[at].input_count == 1; left--) {
        bool pools = c->made.items[at].kind == LAYER_AVG_POOL;
        struct shape shape;
        at = c->made.items[at].inputs[0];
        shape = connect_shape(c, at);
        if (pools && shape_equal(&shape, given))
            return at;
    }
    return NOTHING;
}

/* The block's output differs from its last layer's. */
static void close_changed(struct connect *c, struct frame *frame, const struct shape *given)
{
    struct shape last = connect_shape(c, c->prev), input = connect_shape(c, frame->input);

    if (type_is_squeeze(c->rows->items[frame->row].type) && find_squeezed(c, given) != NOTHING)
        connect_make_of(c, LAYER_MULTIPLY, "mul", given, c->prev, find_squeezed(c, given));
    else if (shape_equal(&input, given) && last.rank == given->rank && shape_elements(&last) == last.size[0] &&
             last.size[0] == given->size[0])
        connect_make_of(c, LAYER_MULTIPLY, "mul", given, c->prev, frame->input);
    else if (close_branches(c, frame, given))
        return;
    else if (last.rank && shape_elements(&last) == shape_elements(given))
        connect_make_of(c, LAYER_RESHAPE, "reshape", given, c->prev, NOTHING);
    else if (last.rank > 1 && given->size[0] == last.size[0] && shape_elements(given) < shape_elements(&last))
        connect_make_of(c, LAYER_AVG_POOL, "mean", given, c->prev, NOTHING);
}

static bool is_sum_of(const struct connect *c, int32_t tensor, int32_t part)
{
    const struct layer *layer = connect_layer(c, tensor);

    for (uint32_t i = 0; layer && layer->kind == LAYER_ADD && i < layer->input_count; i++)
        if (layer->inputs[i] == part)
            return true;
    return false;
}

static void close_frame(struct connect *c, struct frame *frame)
{
    const struct layer *row = &c->rows->items[frame->row];
    struct shape given = layer_shape(row), last = connect_shape(c, c->prev);
    bool holds = c->prev >= frame->first && frame->input != NOTHING, residual = frame->residual_type || frame->drops;

    if (!holds || given.rank == 0)
        return;
    if (frame->main != NOTHING && connect_same_shape(c, frame->main, c->prev)) {
        connect_make_sum(c, frame->main, c->prev);
        frame->added = true;
    } else if (!shape_equal(&last, &given)) {
        close_changed(c, frame, &given);
    } else if (type_is_squeeze(row->type)) {
        int32_t squeezed = is_activation(connect_layer(c, c->prev)) ? find_squeezed(c, &given) : NOTHING;
        if (squeezed != NOTHING)
            connect_make_of(c, LAYER_MULTIPLY, "mul", &given, c->prev, squeezed);
    } else if (frame->attention && frame->residual_type) {
        if (frame->pre_norm && connect_same_shape(c, frame->residual, c->prev) && frame->residual != c->prev &&
            !is_sum_of(c, c->prev, frame->residual)) {
            connect_make_sum(c, c->prev, frame->residual);
            frame->added = true;
        }
    } else if (residual && !frame->added && !frame->nested) {
        close_residual(c, frame);
    }
}

void connect_pop_frame(struct connect *c, size_t row)
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

void connect_push_frame(struct connect *c, size_t row)
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
