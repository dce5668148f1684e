/* A summary's layers as text, one in a line: the content of tests/golden/summaries/NAME.layers. */
#ifndef CARMA_TESTS_SUMMARY_TEXT_H
#define CARMA_TESTS_SUMMARY_TEXT_H

#include "base/strbuf.h"
#include "estimate/summary/read.h"
#include "activation_name.h"

static void put_dims(struct strbuf *out, const char *before, const int64_t *dims, int rank)
{
    strbuf_puts(out, before);
    for (int i = 0; i < rank; i++)
        strbuf_printf(out, "%s%lld", i ? "x" : "", (long long)dims[i]);
}

static void put_sizes(struct strbuf *out, const char *before, const int32_t sizes[3])
{
    if (sizes[0] > 0)
        strbuf_printf(out, "%s%d,%d,%d", before, sizes[0], sizes[1], sizes[2]);
}

static void put_layer(struct strbuf *out, const struct layer *layer)
{
    strbuf_printf(out, "%*s%s", 2 * layer->depth, "", layer_kind_name(layer->kind));
    if (layer->activation != ACTIVATION_NONE)
        strbuf_printf(out, ":%s", activation_name(layer->activation));
    strbuf_printf(out, " %s '%s'", layer->type, layer->name);
    strbuf_puts(out, layer->container ? " container" : "");
    strbuf_puts(out, layer->frozen ? " frozen" : "");
    strbuf_puts(out, layer->in_place ? " in-place" : "");
    if (layer->rank > 0)
        put_dims(out, layer->shape_known ? " " : " width ", layer->shape, layer->rank);
    strbuf_printf(out, " p=%lld", (long long)layer->parameters);
    put_sizes(out, " kernel=", layer->kernel);
    put_sizes(out, " stride=", layer->stride);
    if (layer->groups > 0)
        strbuf_printf(out, " groups=%lld", (long long)layer->groups);
    if (layer->in_channels > 0)
        strbuf_printf(out, " in=%lld", (long long)layer->in_channels);
    if (layer->bias_known)
        strbuf_puts(out, layer->bias ? " bias" : " no-bias");
    for (uint32_t i = 0; i < layer->input_count; i++)
        strbuf_printf(out, "%s%d", i ? "," : " from=", layer->inputs[i]);
    strbuf_puts(out, "\n");
}

static void put_summary(struct strbuf *out, const struct summary *shown)
{
    const struct layer_list *list = &shown->layers;

    strbuf_printf(out, "%s: batch %lld", summary_format_name(shown->format), (long long)list->batch_size);
    put_dims(out, list->input_is_index ? ", input of numbers " : ", input ", list->input, list->input_rank);
    strbuf_printf(out, ", %lld parameters, %lld trained, %u unknown, %u without shape%s\n",
                  (long long)list->total_parameters, (long long)list->trainable_parameters, list->unknown,
                  list->shapeless, list->connected ? ", connected" : "");
    for (size_t i = 0; i < shown->warning_count && i < SUMMARY_MAX_WARNINGS; i++)
        strbuf_printf(out, "warning: %s\n", shown->warnings[i]);
    for (size_t i = 0; i < list->count; i++)
        put_layer(out, &list->items[i]);
}

#endif
