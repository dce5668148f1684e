#include "estimate/program/lowering.h"

static int64_t capped(double number)
{
    return number < 9e18 ? (int64_t)number : INT64_MAX;
}

/* Multiply-adds times two, of one pass over the batch. */
static double flops_of(const struct lowering *lowering, size_t number)
{
    const struct layer *layer = &lowering->list->items[number];
    double samples = 2.0 * (double)lowering->training->batch_size, elements = (double)layer_elements(layer);
    double weights = (double)lowering_weights(lowering, number);
    int64_t channels = layer->rank ? layer->shape[0] : 0, width = layer->rank ? layer->shape[layer->rank - 1] : 0;

    if (!layer->shape_known || width < 1 || channels < 1)
        return 0;
    switch (layer->kind) {
    case LAYER_CONV:
        return samples * elements / (double)channels * weights;
    case LAYER_CONV_TRANSPOSE: { /* every input element meets the whole kernel */
        struct lowering_shape from = lowering_input_shape(lowering, number);
        double places = 1;
        for (uint8_t i = 1; i < from.rank; i++)
            places *= (double)from.sizes[i];
        return samples * places * weights;
    }
    case LAYER_LINEAR:
    case LAYER_CONV1D_LINEAR:
        return samples * elements / (double)width * weights;
    case LAYER_ATTENTION: { /* projections; scores, and their product with the values */
        double length = elements / (double)width;
        return samples * (length * (double)layer->parameters + 2 * length * length * (double)width);
    }
    default:
        return 0;
    }
}

void lowering_count(struct lowering *lowering)
{
    struct program *program = lowering->tape.program;
    double flops = 0, elements = 0;

    for (size_t i = 0; i < lowering->list->count; i++) {
        const struct layer *layer = &lowering->list->items[i];
        if (layer->container)
            continue;
        program->layers++;
        program->convolutions += layer->kind == LAYER_CONV || layer->kind == LAYER_CONV_TRANSPOSE;
        program->linears += layer->kind == LAYER_LINEAR || layer->kind == LAYER_CONV1D_LINEAR;
        program->norms +=
            layer->kind == LAYER_BATCH_NORM || layer->kind == LAYER_LAYER_NORM || layer->kind == LAYER_GROUP_NORM;
        program->dropouts += layer->kind == LAYER_DROPOUT;
        program->activations += layer->kind == LAYER_ACTIVATION;
        program->attentions += layer->kind == LAYER_ATTENTION;
        elements += layer->shape_known ? (double)layer_elements(layer) : 0;
        flops += flops_of(lowering, i);
    }
    program->activation_elements = capped(elements);
    program->flops = (uint64_t)capped(flops);
}
