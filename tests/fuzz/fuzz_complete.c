/* Layer lists of every readable summary, completed: nothing is lost, and inputs stand before their users. */
#include "estimate/program/lower.h"
#include "estimate/summary/read.h"
#include "layers.h"
#include "../unit/layer_sums.h"

static void check_layer(const struct layer_list *list, size_t index)
{
    const struct layer *layer = &list->items[index];

    require_layer(list, index);
    require(layer->container || layer->input_count > 0 || layer->kind == LAYER_PARAMETER || layer->kind == LAYER_INPUT);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct summary summary;

    if (summary_read(&summary, "f.txt", (const char *)bytes, length, NULL))
        return 0;
    int64_t parameters = sum_parameters(&summary.layers);
    layers_complete(&summary.layers);
    require(sum_parameters(&summary.layers) == parameters);
    require(summary.layers.connected && summary.layers.guessed <= summary.layers.count);
    for (size_t i = 0; i < summary.layers.count; i++)
        check_layer(&summary.layers, i);
    summary_release(&summary);
    return 0;
}
