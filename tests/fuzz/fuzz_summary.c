/* Model summaries of any format: refused in one line, or a list of layers that others can rely on. Compiled with
 * SUMMARY_BEGIN and SUMMARY_MARK, everything goes to one format's parser. The text then begins with the former, and an
 * input's own beginning, up to the latter, is left away. */
#include <string.h>

#include "base/strbuf.h"
#include "estimate/summary/read.h"
#include "layers.h"

#ifndef SUMMARY_BEGIN
#define SUMMARY_BEGIN ""
#define SUMMARY_MARK  ""
#endif

static void check_text(const char *text)
{
    size_t length = strnlen(text, LAYER_NAME_SIZE);

    require(length < LAYER_NAME_SIZE);
    for (size_t i = 0; i < length; i++)
        require(text[i] >= ' ' && text[i] <= '~');
}

static void check_layer(const struct layer_list *list, size_t index)
{
    const struct layer *layer = &list->items[index];

    check_text(layer->type);
    check_text(layer->name);
    require_layer(list, index);
    require(layer->activation < ACTIVATION_COUNT);
    require(layer->activation == ACTIVATION_NONE || layer->kind == LAYER_ACTIVATION);
    require(!layer->shape_known || layer->rank > 0);
    require(layer_elements(layer) >= 0 && layer_elements(layer) <= LAYER_MAX_PARAMETERS);
    require(layer->parameters <= LAYER_MAX_PARAMETERS);
    require((layer->input_count > 0) == (layer->inputs != NULL));
}

static void check_list(const struct layer_list *list)
{
    uint32_t unknown = 0, shapeless = 0;
    bool connected = true;

    require(list->count >= 1 && list->count <= LAYER_LIST_MAX);
    require(list->batch_size == -1 || (list->batch_size >= 1 && list->batch_size <= LAYER_MAX_DIMENSION));
    require(list->input_rank <= LAYER_MAX_RANK);
    for (int i = 0; i < list->input_rank; i++)
        require(list->input[i] >= 1);
    for (size_t i = 0; i < list->count; i++) {
        const struct layer *layer = &list->items[i];
        check_layer(list, i);
        if (layer->container)
            continue;
        unknown += layer->kind == LAYER_UNKNOWN;
        shapeless += !layer->shape_known && layer->kind != LAYER_PARAMETER;
        connected = connected && layer->input_count > 0;
    }
    require(list->unknown == unknown && list->shapeless == shapeless && list->connected == connected);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct summary summary;
    struct error err = {{0}};
    struct strbuf text = {0};
    const uint8_t *mark = memmem(bytes, length, SUMMARY_MARK, strlen(SUMMARY_MARK));

    if (mark) {
        length -= (size_t)(mark - bytes) + strlen(SUMMARY_MARK);
        bytes = mark + strlen(SUMMARY_MARK);
    }
    strbuf_puts(&text, SUMMARY_BEGIN);
    strbuf_append(&text, bytes, length);
    int rc = summary_read(&summary, "f.txt", text.text, text.length, &err);
    strbuf_release(&text);
    if (rc) {
        require_message(&err);
        require(strncmp(err.text, "f.txt:", 6) == 0);
        require(!summary.layers.items && summary.warning_count == 0);
        return 0;
    }
    require(summary.format < SUMMARY_FORMAT_COUNT);
    check_list(&summary.layers);
    require(summary.layers.unknown == 0 || summary.warning_count > 0);
    for (size_t i = 0; i < summary.warning_count && i < SUMMARY_MAX_WARNINGS; i++)
        require(strncmp(summary.warnings[i], "f.txt:", 6) == 0 && !strchr(summary.warnings[i], '\n'));
    summary_release(&summary);
    return 0;
}
