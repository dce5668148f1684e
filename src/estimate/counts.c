#include "estimate/counts.h"

#include <errno.h>

#define FORMULA_CONFIDENCE_PERMILLE 200 /* "350 GB difference" and "17 GB said, 30 GB used": thesis, section 5.3 */

/* Which layers' outputs the published `horus_mb` of real_models.csv holds (horus.c). */
static bool horus_counts(enum layer_kind kind)
{
    switch (kind) {
    case LAYER_CONV:
    case LAYER_CONV_TRANSPOSE:
    case LAYER_LINEAR:
    case LAYER_CONV1D_LINEAR:
    case LAYER_BATCH_NORM:
    case LAYER_LAYER_NORM:
    case LAYER_GROUP_NORM:
    case LAYER_ACTIVATION:
    case LAYER_SOFTMAX:
    case LAYER_EMBEDDING:
    case LAYER_ATTENTION:
    case LAYER_RECURRENT:
        return true;
    default:
        return false;
    }
}

int layer_counts_of(const struct estimate_question *question, struct layer_counts *counts, struct error *err)
{
    const struct layer_list *layers = question->layers;

    *counts = (struct layer_counts){0};
    if (layers) {
        for (size_t i = 0; i < layers->count; i++) {
            const struct layer *layer = &layers->items[i];
            if (layer->container)
                continue;
            counts->parameters += (double)layer->parameters;
            if (!horus_counts(layer->kind))
                continue;
            counts->horus_activations += (double)layer_elements(layer);
            counts->shapeless += !layer->shape_known;
        }
        if (counts->parameters + counts->horus_activations == 0)
            return error_set(err, ENOTSUP,
                             "the summary shows neither parameters nor shapes: print it of a built model");
        return 0;
    }
    if (!question->capture)
        return error_set(err, ENOTSUP, "there is no model to count: give its summary");
    counts->parameters = (double)question->capture->program.parameter_bytes / 4; /* stored as fp32, with AMP too */
    return 0;
}

int estimate_from_formula(const char *name, double bytes, struct estimate *estimate, struct error *err)
{
    if (!(bytes >= 0 && bytes < 0x1p62))
        return error_set(err, EINVAL, "%s: the model is too large to have a size: check its summary", name);
    estimate->bytes = estimate->median_bytes = (int64_t)bytes;
    estimate->confidence_permille = FORMULA_CONFIDENCE_PERMILLE;
    return 0;
}
