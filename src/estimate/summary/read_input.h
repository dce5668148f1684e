/* A model's input, where a summary tells no more than its size. Internal to read*.c. */
#ifndef CARMA_ESTIMATE_READ_INPUT_H
#define CARMA_ESTIMATE_READ_INPUT_H

#include "estimate/layers.h"

/* Sets list->input, where it is not set. It follows from the input's size in bytes (with the batch, where the list has
 * one), known to +- slack (INFINITY: not known). It also follows from the first layer: a convolution's channels and
 * steps, a linear layer's width, an embedding's sequence. */
void input_from_bytes(struct layer_list *list, double bytes, double slack);

#endif
