/* What holds of each layer of a list, however it was read. */
#ifndef CARMA_TESTS_FUZZ_LAYERS_H
#define CARMA_TESTS_FUZZ_LAYERS_H

#include "estimate/layers.h"
#include "fuzz.h"

static inline void require_layer(const struct layer_list *list, size_t index)
{
    const struct layer *layer = &list->items[index];

    require(layer->kind < LAYER_KIND_COUNT && layer->rank <= LAYER_MAX_RANK);
    require(layer->groups >= 0 && layer->in_channels >= 0 && layer->parameters >= 0);
    for (int i = 0; i < 3; i++)
        require(layer->kernel[i] >= 0 && layer->stride[i] >= 0);
    for (int i = 0; layer->shape_known && i < layer->rank; i++)
        require(layer->shape[i] >= 1);
    for (uint32_t i = 0; i < layer->input_count; i++) {
        require(layer->inputs[i] >= -1 && layer->inputs[i] < (int32_t)index);
        require(layer->inputs[i] < 0 || !list->items[layer->inputs[i]].container);
    }
}

#endif
