/* A PyTorch module's repr: "Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2), bias=False)". Internal to read*.c. */
#ifndef CARMA_ESTIMATE_READ_REPR_H
#define CARMA_ESTIMATE_READ_REPR_H

#include "estimate/summary/read_text.h"

/* Fills the layer (its kind is set) from the text between the brackets, by PyTorch's definition of the layer. It sets
 * kernel, stride, groups, input channels, bias, in_place and parameters. The last dimension of its output becomes a
 * shape [N] that is not known as a whole. *exact: the parameters follow from the text alone. -EINVAL with err set where
 * a number is out of range. */
int read_repr(const struct reader *reader, struct layer *layer, struct slice arguments, bool *exact);

#endif
