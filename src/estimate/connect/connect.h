/* How layers_complete() works things out. Private to fit.c, bodies.c, connect*.c and complete.c. */
#ifndef CARMA_ESTIMATE_CONNECT_H
#define CARMA_ESTIMATE_CONNECT_H

#include "estimate/layers.h"

struct shape {
    uint8_t rank;
    int64_t size[LAYER_MAX_RANK];
};

struct shape layer_shape(const struct layer *layer);
bool shape_equal(const struct shape *a, const struct shape *b);
int64_t shape_elements(const struct shape *shape); /* INT64_MAX where they are more */

/* What a layer is if it takes an input of some shape. */
struct fit {
    int64_t in_channels, groups;
    int32_t kernel[3], stride[3];
    bool bias_known, bias;
    bool skips; /* its stride is larger than its kernel: some of the input is not looked at */
};

/* How odd the layer would be: 0 an everyday one, more for rarer geometry, FIT_NONE: it cannot take this input. */
#define FIT_NONE 1000
enum { COST_SKIPS = 2 }; /* what shortcuts do, and hardly anything else */
int layer_fit(const struct layer *layer, const struct shape *in, struct fit *fit);
/* Fills in what the layer does not say itself. */
void fit_apply(struct layer *layer, const struct fit *fit);

/* The rows that belong to each container, by row: body_start[i] up to and without body_end[i]; equal for what is none.
 * In a summary that shows the tree of modules a container stands before its rows, else behind them (torchsummary), and
 * where it begins is inferred. */
struct bodies {
    size_t *start, *end; /* owned */
    bool tree;
};
void bodies_find(struct bodies *bodies, const struct layer_list *list);
void bodies_release(struct bodies *bodies);

/* Type names whose module adds its input to its output, or scales its input (squeeze and excitation), or holds
 * attention: by how they are usually called. */
bool type_is_residual(const char *type);
bool type_is_squeeze(const char *type);
bool type_is_attention(const char *type);

/* Gives every layer that has none its inputs, and adds the layers that a summary leaves out: sums, products,
 * concatenations, poolings and reshapes that are no modules. */
void layers_connect(struct layer_list *list);

#endif
