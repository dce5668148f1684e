/* Shared by the files of layers_connect(). Private to connect*.c. */
#ifndef CARMA_ESTIMATE_CONNECTING_H
#define CARMA_ESTIMATE_CONNECTING_H

#include "estimate/connect/connect.h"

#define LOOK_BACK   256     /* layers, for a branch's source */
#define LOOK_BUDGET 1000000 /* in all: a hostile list's time is bounded */
#define NOTHING     (-2)
#define MODEL_INPUT (-1)

/* A container that has begun. Tensors are named by the layer of the new list that makes them. */
struct frame {
    size_t row;
    int32_t first;    /* the first layer added in it */
    int32_t input;    /* its first layer's input; NOTHING until then */
    int32_t main;     /* the tensor that waits for the shortcut's result; NOTHING: there is no shortcut */
    int32_t residual; /* in a block with attention: the operand of the next sum */
    bool attention, residual_type, pre_norm;
    bool added;  /* it has its sum */
    bool nested; /* a block in it has a sum of its own */
    bool drops;  /* it ends with stochastic depth, so its output is added to another tensor */
};

struct connect {
    struct layer_list *rows; /* of the summary; emptied on the way */
    size_t row;              /* at hand */
    int32_t *tensor;         /* by row: its output, in the new list */
    uint32_t *attention;     /* by row: how many rows of attention stand before it */
    struct bodies bodies;
    struct frame *frames; /* the containers that are open, the innermost last */
    size_t frame_count, frame_capacity;
    struct layer_list made; /* the new list */
    uint32_t *used;         /* by its layers: how many take their output */
    size_t used_capacity;
    int32_t prev;         /* the last layer's output */
    int64_t budget;       /* how often an earlier layer may still be tried */
    int projections;      /* how many linear layers just before take the same, at most 3 ... */
    int32_t projected[3]; /* ... and which */
    struct shape scores;  /* of the attention at hand, where it shows its matrix; else of rank 0 */
    bool scores_dropped;
};

/* connect_made.c: shapes (of rank 0: not known, or a container's). */
struct shape connect_shape(const struct connect *c, int32_t tensor);
const struct layer *connect_layer(const struct connect *c, int32_t tensor); /* NULL: the model's input, or NOTHING */
bool connect_same_shape(const struct connect *c, int32_t a, int32_t b);
bool shape_same_sides(const struct shape *a, const struct shape *b);    /* but for the channels */
bool layer_takes(const struct layer *layer, const struct shape *shape); /* with nothing odd about it */
bool layer_keeps_shape(const struct layer *layer);
bool layer_is_linear(const struct layer *layer); /* NULL: false */
struct frame *connect_innermost(struct connect *c);
/* Layers that the summary leaves out; each becomes the last and c->prev. */
void connect_use(struct connect *c, struct layer *layer, int32_t from);
int32_t connect_make(struct connect *c, enum layer_kind kind, const char *type, const struct shape *shape);
int32_t connect_make_of(struct connect *c, enum layer_kind kind, const char *type, const struct shape *shape, int32_t a,
                        int32_t b); /* b may be NOTHING */
int32_t connect_make_sum(struct connect *c, int32_t a, int32_t b);
int32_t connect_make_concat(struct connect *c, const int32_t *parts, size_t count);
/* Moves the last layer between a layer and its input; c->prev is then that layer. */
void connect_put_between(struct connect *c, int32_t layer);

/* connect_between.c: true where something was added after which the layer takes c->prev. */
bool connect_join_two(struct connect *c, const struct layer *layer);
bool connect_join_open(struct connect *c, const struct layer *layer);
bool connect_scale(struct connect *c, const struct layer *layer);
bool connect_pool(struct connect *c, const struct layer *layer);
bool connect_reshape(struct connect *c, const struct layer *layer);

/* connect_attention.c */
void connect_close_embeddings(struct connect *c, const struct layer *next);
void connect_close_sublayer(struct connect *c, const struct layer *next);
bool connect_is_inside(struct connect *c, const struct layer *layer);
bool connect_is_projection(struct connect *c, const struct layer *layer);
void connect_attend(struct connect *c, const struct layer *layer);

/* connect_blocks.c */
bool connect_find_shortcut(struct connect *c, const struct layer *layer, int32_t *source);
void connect_close_shortcut(struct connect *c, const struct layer *next); /* NULL: the end */
void connect_push_frame(struct connect *c, size_t row);
void connect_pop_frame(struct connect *c, size_t row);

#endif
