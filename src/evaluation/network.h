/* A network as the generator of a data set made it, put together layer by layer and compared with the row's list of
 * layers. For the readers of this folder. */
#ifndef CARMA_EVALUATION_NETWORK_H
#define CARMA_EVALUATION_NETWORK_H

#include "base/error.h"
#include "estimate/layers.h"
#include "trace/csv.h"

/* All functions that add a layer return its index. After the first contradiction to the row they go on adding, but only
 * the first is told, by network_finish(). */
struct network {
    struct layer_list *list;
    const struct csv *csv; /* the row at hand, for messages */
    const char *listed;    /* the rest of its list, "type:activations:parameters|..."; NULL: the row has none */
    size_t listed_layers;  /* so far */
    int64_t parameters;    /* as the row counts them: without those of PReLU, which its list shows as 0 */
    bool failed;
    struct error *err;
};

#define NETWORK_INPUT (-1)

/* The generators' names of activations ("leaky_relu"). */
struct network_activation {
    const char *name, *type;
    enum layer_kind kind;
    enum activation activation;
};
const struct network_activation *network_activation_named(const char *name); /* NULL: none of that name */
int network_activation_find(const struct csv *csv, size_t column, const struct network_activation **activation,
                            struct error *err);

/* Inits *list; the model's input is of `rank` dimensions. listed: NULL, or the row's list. */
void network_begin(struct network *network, struct layer_list *list, const struct csv *csv, const char *listed,
                   const int64_t *input, uint8_t rank, struct error *err);

int32_t network_linear(struct network *network, int32_t from, int64_t out);
int32_t network_conv(struct network *network, int32_t from, int64_t out, int32_t kernel, int32_t stride);
int32_t network_batch_norm(struct network *network, int32_t from);
int32_t network_layer_norm(struct network *network, int32_t from);
int32_t network_activation(struct network *network, int32_t from, const struct network_activation *activation);
int32_t network_dropout(struct network *network, int32_t from);
int32_t network_softmax(struct network *network, int32_t from);
int32_t network_global_pool(struct network *network, int32_t from); /* N,C,H,W -> N,C */
int32_t network_halve(struct network *network, int32_t from);       /* average pooling by 2x2 */
int32_t network_add(struct network *network, int32_t a, int32_t b);
int32_t network_concat(struct network *network, const int32_t *from, size_t count); /* of channels */
/* Any other layer, with the shape of `from`; to be filled in. It is in no row's list. */
struct layer *network_layer(struct network *network, enum layer_kind kind, const char *type, int32_t from);

/* The type of the next layer in the row's list; "" at its end, or where there is none. */
const char *network_next_type(const struct network *network, char type[static LAYER_NAME_SIZE]);

/* The list must be used up, and the parameters be `parameters` (where >= 0). 0, or -EINVAL with the first
 * contradiction: the list is then released. */
int network_finish(struct network *network, int64_t parameters);

#endif
