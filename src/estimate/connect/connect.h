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

/* How a layer fits an input of some shape. */
struct fit {
    int64_t in_channels, groups;
    int32_t kernel[3], stride[3];
    bool bias_known, bias;
    bool skips; /* its stride is larger than its kernel: some of the input is not looked at */
};

/* How odd the layer would be: 0 an everyday one, more for rarer geometry, FIT_NONE: it cannot take this input. */
#define FIT_NONE 1000
enum { COST_SKIPS = 2 }; /* usual for shortcuts, and rare elsewhere */
int layer_fit(const struct layer *layer, const struct shape *in, struct fit *fit);
/* Fills in the members that the layer does not say itself. */
void fit_apply(struct layer *layer, const struct fit *fit);

/* The rows that belong to each container, by row: body_start[i] up to and without body_end[i]; equal for rows that are
 * not containers. In a summary that shows the tree of modules a container stands before its rows, else behind them
 * (torchsummary), and where it begins is inferred. */
struct bodies {
    size_t *start, *end; /* owned */
    bool tree;
};
void bodies_find(struct bodies *bodies, const struct layer_list *list);
void bodies_release(struct bodies *bodies);

/* Modules that add their input to their output, scale their input (squeeze and excitation), or hold attention: told by
 * their usual type names. */
bool type_is_residual(const char *type);
bool type_is_squeeze(const char *type);
bool type_is_attention(const char *type);

/* Gives inputs to every layer that has none, and adds the operations that a summary leaves out. These are sums,
 * products, concatenations, poolings and reshapes that are not modules. */
void layers_connect(struct layer_list *list);

#endif
