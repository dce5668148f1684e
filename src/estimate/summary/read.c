#include "estimate/summary/read.h"

#include <string.h>

#include "base/memory.h"
#include "estimate/summary/read_formats.h"

static const struct {
    const char *name;
    int (*read)(struct reader *reader);
} formats[SUMMARY_FORMAT_COUNT] = {
    [SUMMARY_TORCHSUMMARY] = {"torchsummary", read_torchsummary},
    [SUMMARY_TORCHINFO] = {"torchinfo", read_torchinfo},
    [SUMMARY_KERAS2] = {"Keras 2", read_keras2},
    [SUMMARY_KERAS3] = {"Keras 3", read_keras3},
};

const char *summary_format_name(enum summary_format format)
{
    return (unsigned)format < SUMMARY_FORMAT_COUNT ? formats[format].name : "unknown";
}

void fill_attention(struct reader *reader)
{
    bool warned = false;

    for (size_t i = 0; i < reader->list->count; i++) {
        struct layer *layer = &reader->list->items[i];
        int64_t width = layer->rank > 0 ? layer->shape[layer->rank - 1] : 0;
        const bool counted = layer->heads == ATTENTION_COUNTED;

        if (counted)
            layer->heads = 0;
        if (layer->kind != LAYER_ATTENTION || layer->container || counted || layer->parameters > 0 || width < 1 ||
            width > (1 << 19))
            continue;
        layer->parameters = 4 * width * (width + 1);
        if (!warned)
            reader_warn(reader, reader->lines[i],
                        "the parameters of %s are not shown: 4 projections of its width are assumed", layer->type);
        warned = true;
    }
}

/* Without the escape sequences that colour a terminal; NULL where there are none. */
static char *strip_colours(const char *text, size_t *length)
{
    char *plain;
    size_t end = 0;

    if (*length == 0 || !memchr(text, '\x1b', *length))
        return NULL;
    plain = xmalloc(*length);
    for (size_t i = 0; i < *length; i++) {
        if (text[i] != '\x1b') {
            plain[end++] = text[i];
            continue;
        }
        if (i + 1 == *length || text[i + 1] != '[')
            continue;
        for (i += 2; i < *length && text[i] != '\n' && (text[i] < '@' || text[i] > '~'); i++)
            ;
        if (i < *length && text[i] == '\n')
            i--; /* a sequence without its end: the line stays a line */
    }
    *length = end;
    return plain;
}

static bool is_any_rule(struct slice line)
{
    return slice_is_rule(line, '=', 3) || slice_is_rule(line, '-', 3) || slice_is_rule(line, '_', 3);
}

/* "Layer (type)" heads several formats: the rule over it tells them apart, or else the first row. */
static enum summary_format format_of_header(const struct reader *reader, struct slice line, struct slice before)
{
    struct reader ahead = *reader;

    if (!slice_starts(line, "Layer (type)") || slice_is_rule(before, '=', 8))
        return SUMMARY_TORCHINFO;
    if (slice_is_rule(before, '_', 8))
        return SUMMARY_KERAS2;
    if (slice_is_rule(before, '-', 8))
        return SUMMARY_TORCHSUMMARY;
    while (reader_next(&ahead)) {
        struct slice row = slice_trim(ahead.line);
        if (row.length > 0 && !is_any_rule(row))
            return slice_find_char(row, '[') < slice_find_char(row, '(') ? SUMMARY_TORCHSUMMARY : SUMMARY_KERAS2;
    }
    return SUMMARY_KERAS2;
}

/* Reads on to the line where a summary begins. */
static bool find_format(struct reader *reader, enum summary_format *format)
{
    struct slice before = {0};

    while (reader_next(reader)) {
        struct slice line = slice_trim(reader->line), cell = line;
        if (line.length == 0)
            continue;
        if (slice_starts(line, "|"))
            cell = slice_trim(slice_from(line, 1));
        else if (slice_starts(line, "┃") || slice_starts(line, "│"))
            cell = slice_trim(slice_from(line, strlen("┃")));
        if (slice_starts(cell, "Layer (type")) {
            *format = cell.text == line.text ? format_of_header(reader, line, before) : SUMMARY_KERAS3;
            return true;
        }
        before = line;
    }
    return false;
}

/* PyTorch's modules that do nothing but hold others. */
static bool is_plain_container(const char *type)
{
    return strcmp(type, "Sequential") == 0 || strcmp(type, "ModuleList") == 0 || strcmp(type, "ModuleDict") == 0;
}

/* A container without layers: an empty sequence, as some models have for a shortcut, hands its input on; timm's pooling
 * does not print its parts. */
static void settle_empty(struct layer_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct layer *layer = &list->items[i];
        if (layer->kind != LAYER_UNKNOWN || layer->container || layer->parameters > 0)
            continue;
        if (is_plain_container(layer->type))
            layer->kind = LAYER_IDENTITY;
        else if (strcmp(layer->type, "SelectAdaptivePool2d") == 0)
            layer->kind = LAYER_AVG_POOL;
    }
}

/* One warning for each type that is not known, with the first line that has it. */
static void warn_unknown(struct reader *reader)
{
    const struct layer *seen[64];
    size_t seen_count = 0;
    const char *remedy = "";

    if (reader->summary->format == SUMMARY_TORCHINFO)
        remedy = " (does it hold layers? print with a larger depth)";
    else if (reader->summary->format == SUMMARY_KERAS2 || reader->summary->format == SUMMARY_KERAS3)
        remedy = " (does it hold layers? print with expand_nested=True)";

    for (size_t i = 0; i < reader->list->count; i++) {
        const struct layer *layer = &reader->list->items[i];
        size_t j = 0;
        if (layer->kind != LAYER_UNKNOWN || layer->container)
            continue;
        while (j < seen_count && strcmp(seen[j]->type, layer->type) != 0)
            j++;
        if (j < seen_count || seen_count == array_size(seen))
            continue;
        seen[seen_count++] = layer;
        reader_warn(reader, reader->lines[i], "layer type '%s' is not known: only its shape and parameters count%s",
                    layer->type, remedy);
    }
}

/* A language model's last layer often has its embedding's weights, which no summary of PyTorch shows. */
static void warn_shared(struct reader *reader)
{
    const struct layer *embedding = NULL;

    for (size_t i = 0; i < reader->list->count; i++) {
        const struct layer *layer = &reader->list->items[i];
        if (layer->kind == LAYER_EMBEDDING && (!embedding || layer->parameters > embedding->parameters))
            embedding = layer;
        if (layer->kind != LAYER_LINEAR || !embedding || layer->parameters < 1 ||
            layer->parameters != embedding->parameters)
            continue;
        reader_warn(reader, reader->lines[i],
                    "'%.24s' is as large as the embedding '%.24s': counted on its own, though "
                    "many models share the two",
                    layer->name, embedding->name);
        return;
    }
}

static void count_layers(struct layer_list *list)
{
    list->connected = true;
    for (size_t i = 0; i < list->count; i++) {
        const struct layer *layer = &list->items[i];
        if (layer->container)
            continue;
        list->unknown += layer->kind == LAYER_UNKNOWN;
        list->shapeless += !layer->shape_known && layer->kind != LAYER_PARAMETER;
        list->connected = list->connected && layer->input_count > 0;
    }
}

static int read_text(struct reader *reader, const char *text, size_t length)
{
    struct summary *summary = reader->summary;
    const char *zero = length > 0 ? memchr(text, '\0', length) : NULL;
    int ret;

    if (length > SUMMARY_MAX_BYTES)
        return reader_error_at(reader, 1, "a model summary has at most %zu MiB", SUMMARY_MAX_BYTES >> 20);
    if (zero) {
        while (reader->next <= zero && reader_next(reader))
            ;
        return reader_error(reader, "a zero byte: this is not text");
    }
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        reader->next += 3;
    if (!find_format(reader, &summary->format))
        return reader_error_at(reader, 1,
                               "no model summary: print it with torchsummary, torchinfo or Keras' model.summary() "
                               "(print(model) shows no shapes)");
    ret = formats[summary->format].read(reader);
    if (ret)
        return ret;
    if (reader->list->count == 0)
        return reader_error(reader, "the %s summary has no layers", formats[summary->format].name);
    settle_empty(reader->list);
    warn_unknown(reader);
    if (summary->format == SUMMARY_TORCHINFO)
        warn_shared(reader);
    count_layers(reader->list);
    return 0;
}

int summary_read(struct summary *summary, const char *name, const char *text, size_t length, struct error *err)
{
    struct error ignored;
    struct reader reader = {.summary = summary, .list = &summary->layers, .name = name, .err = err ? err : &ignored};
    CLEANUP(free_ptr) char *plain = NULL;
    int ret;

    memset(summary, 0, sizeof *summary);
    layer_list_init(&summary->layers);
    if (length <= SUMMARY_MAX_BYTES)
        plain = strip_colours(text, &length);
    if (plain)
        text = plain;
    reader.next = text;
    reader.end = text + length;
    ret = read_text(&reader, text, length);
    free(reader.lines);
    if (ret)
        summary_release(summary);
    return ret;
}

void summary_release(struct summary *summary)
{
    layer_list_release(&summary->layers);
    memset(summary->warnings, 0, sizeof summary->warnings);
    summary->warning_count = 0;
}
