#include "estimate/summary/read_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define MAX_COUNT (INT64_C(1) << 62)

bool reader_next(struct reader *reader)
{
    const char *newline;
    size_t length;

    if (reader->next == reader->end) {
        reader->line = (struct slice){reader->end, 0};
        return false;
    }
    length = (size_t)(reader->end - reader->next);
    newline = memchr(reader->next, '\n', length);
    if (newline)
        length = (size_t)(newline - reader->next);
    reader->line = (struct slice){reader->next, length};
    while (reader->line.length > 0 && strchr(" \t\r", reader->line.text[reader->line.length - 1]))
        reader->line.length--;
    reader->next += length + (newline != NULL);
    reader->number++;
    return true;
}

int reader_truncated(const struct reader *reader, const char *missing)
{
    return reader_error(reader, "the %s summary is truncated: %s is missing; save the whole of it",
                        summary_format_name(reader->summary->format), missing);
}

void reader_warn(struct reader *reader, uint32_t line, const char *format, ...)
{
    struct summary *summary = reader->summary;
    char *warning;
    va_list args;
    int length;

    if (summary->warning_count++ >= SUMMARY_MAX_WARNINGS)
        return;
    warning = summary->warnings[summary->warning_count - 1];
    length = snprintf(warning, sizeof summary->warnings[0], "%s:%u: ", reader->name, line);
    if (length < 0 || (size_t)length >= sizeof summary->warnings[0])
        return;
    va_start(args, format);
    vsnprintf(warning + length, sizeof summary->warnings[0] - (size_t)length, format, args);
    va_end(args);
}

void copy_printable(char *to, size_t size, struct slice from)
{
    size_t length = from.length < size ? from.length : size - 1;

    for (size_t i = 0; i < length; i++)
        to[i] = from.text[i] >= ' ' && from.text[i] <= '~' ? from.text[i] : '?';
    memset(to + length, 0, size - length);
}

char *quote(char text[static QUOTE_SIZE], struct slice from)
{
    copy_printable(text, QUOTE_SIZE, from);
    if (from.length >= QUOTE_SIZE)
        memcpy(text + QUOTE_SIZE - 4, "...", 4);
    return text;
}

struct slice join_path(char text[static LAYER_NAME_SIZE], const struct slice *parts, int count)
{
    size_t begin = LAYER_NAME_SIZE;

    for (int i = count - 1; i >= 0 && begin > 0; i--) {
        size_t take = parts[i].length;
        if (take == 0)
            continue;
        if (begin < LAYER_NAME_SIZE)
            text[--begin] = '.';
        if (take > begin)
            take = begin;
        begin -= take;
        memcpy(text + begin, parts[i].text + parts[i].length - take, take);
    }
    return (struct slice){text + begin, LAYER_NAME_SIZE - begin};
}

struct layer *reader_add(struct reader *reader, enum layer_kind kind, struct slice type, struct slice name,
                         uint32_t line)
{
    struct layer *layer, texts; /* type and name may lie in the list, which moves */

    if (reader->list->count >= LAYER_LIST_MAX) {
        reader_error_at(reader, line, "more than %d layers", LAYER_LIST_MAX);
        return NULL;
    }
    array_reserve(reader->lines, reader->line_capacity, reader->list->count + 1);
    reader->lines[reader->list->count] = line;
    if (name.length >= sizeof texts.name)
        name = slice_from(name, name.length - (sizeof texts.name - 1));
    copy_printable(texts.type, sizeof texts.type, type);
    copy_printable(texts.name, sizeof texts.name, name);
    layer = layer_list_add(reader->list, kind);
    memcpy(layer->type, texts.type, sizeof layer->type);
    memcpy(layer->name, texts.name, sizeof layer->name);
    return layer;
}

struct slice slice_trim(struct slice slice)
{
    while (slice.length > 0 && (*slice.text == ' ' || *slice.text == '\t'))
        slice = slice_from(slice, 1);
    while (slice.length > 0 && (slice.text[slice.length - 1] == ' ' || slice.text[slice.length - 1] == '\t'))
        slice.length--;
    return slice;
}

struct slice slice_from(struct slice slice, size_t at)
{
    return (struct slice){slice.text + at, slice.length - at};
}

size_t slice_closing(struct slice slice, char opening, char closing)
{
    int depth = 0;

    for (size_t i = 0; i < slice.length; i++) {
        depth += slice.text[i] == opening;
        depth -= slice.text[i] == closing;
        if (depth == 0)
            return i;
    }
    return slice.length;
}

struct slice slice_to(struct slice slice, size_t end)
{
    return (struct slice){slice.text, end};
}

bool slice_is(struct slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.text, text, slice.length) == 0;
}

bool slice_starts(struct slice slice, const char *text)
{
    size_t length;

    if (slice.length == 0 || *slice.text != *text)
        return false;
    length = strlen(text);
    return slice.length >= length && memcmp(slice.text, text, length) == 0;
}

bool slice_ends(struct slice slice, const char *text)
{
    size_t length = strlen(text);

    return slice.length >= length && memcmp(slice.text + slice.length - length, text, length) == 0;
}

size_t slice_find(struct slice slice, const char *text)
{
    size_t length = strlen(text), at = 0;

    while (at + length <= slice.length) {
        const char *first = memchr(slice.text + at, *text, slice.length - length + 1 - at);
        if (!first)
            break;
        at = (size_t)(first - slice.text);
        if (memcmp(first, text, length) == 0)
            return at;
        at++;
    }
    return slice.length;
}

size_t slice_find_char(struct slice slice, char c)
{
    const char *found = slice.length > 0 ? memchr(slice.text, c, slice.length) : NULL;

    return found ? (size_t)(found - slice.text) : slice.length;
}

bool slice_is_rule(struct slice slice, char character, size_t least)
{
    for (size_t i = 0; i < slice.length; i++)
        if (slice.text[i] != character)
            return false;
    return slice.length >= least;
}

static bool continues_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t slice_column(struct slice slice, size_t column)
{
    size_t at = 0;

    for (; at < slice.length && column > 0; column--) {
        at++;
        while (at < slice.length && continues_character(slice.text[at]))
            at++;
    }
    return at;
}

size_t slice_columns(struct slice slice)
{
    size_t columns = 0;

    for (size_t i = 0; i < slice.length; i++)
        columns += !continues_character(slice.text[i]);
    return columns;
}

bool parse_count(struct slice slice, int64_t *count)
{
    int64_t value = 0;

    if (slice.length == 0 || slice.text[0] == ',' || slice.text[slice.length - 1] == ',')
        return false;
    for (size_t i = 0; i < slice.length; i++) {
        char c = slice.text[i];
        if (c == ',')
            continue;
        if (c < '0' || c > '9' || value > (MAX_COUNT - 9) / 10)
            return false;
        value = value * 10 + (c - '0');
    }
    *count = value;
    return true;
}

bool parse_decimal(struct slice slice, double *value)
{
    size_t point = slice_find_char(slice, '.');
    int64_t whole, fraction = 0;
    double scale = 1;

    if (!parse_count(slice_to(slice, point), &whole))
        return false;
    if (point < slice.length) {
        struct slice digits = slice_from(slice, point + 1);
        if (slice_find_char(digits, ',') < digits.length || !parse_count(digits, &fraction))
            return false;
        for (size_t i = 0; i < digits.length; i++)
            scale *= 10;
    }
    *value = (double)whole + (double)fraction / scale;
    return true;
}

static int parse_dimension(const struct reader *reader, struct slice text, int64_t *dimension)
{
    char quoted[QUOTE_SIZE];

    text = slice_trim(text);
    if (slice_is(text, "None") || slice_is(text, "-1") || slice_is(text, "?")) {
        *dimension = DIMENSION_UNKNOWN;
        return 0;
    }
    if (!parse_count(text, dimension) || *dimension > LAYER_MAX_DIMENSION)
        return reader_error(reader, "'%s' is not a dimension of a tensor (0 to %lld)", quote(quoted, text),
                            (long long)LAYER_MAX_DIMENSION);
    return 0;
}

static bool opens(char c)
{
    return c == '[' || c == '(';
}

int parse_shape(const struct reader *reader, struct slice slice, struct shape *shape)
{
    size_t begin = 0, end;

    *shape = (struct shape){0};
    /* the innermost of the first brackets */
    while (begin < slice.length && !opens(slice.text[begin]))
        begin++;
    for (size_t i = begin + 1; i < slice.length && slice.text[i] != ']' && slice.text[i] != ')'; i++)
        if (opens(slice.text[i]))
            begin = i;
    if (begin >= slice.length)
        return 0;
    slice = slice_from(slice, begin + 1);
    for (end = 0; end < slice.length && slice.text[end] != ']' && slice.text[end] != ')'; end++)
        ;
    if (end == slice.length)
        return reader_error(reader, "a shape without its closing bracket");
    slice = slice_trim(slice_to(slice, end));
    shape->known = true;
    while (slice.length > 0) {
        size_t comma = slice_find_char(slice, ',');
        int ret;
        if (shape->rank == SHAPE_MAX_RANK)
            return reader_error(reader, "a shape of more than %d dimensions", SHAPE_MAX_RANK);
        ret = parse_dimension(reader, slice_to(slice, comma), &shape->dims[shape->rank++]);
        if (ret)
            return ret;
        slice = slice_trim(slice_from(slice, comma < slice.length ? comma + 1 : comma));
    }
    return 0;
}

int parse_parameters(const struct reader *reader, struct slice slice, uint32_t line, int64_t *parameters)
{
    char quoted[QUOTE_SIZE];

    if (!parse_count(slice, parameters) || *parameters > LAYER_MAX_PARAMETERS)
        return reader_error_at(reader, line, "'%s' is not a number of parameters (0 to %lld)", quote(quoted, slice),
                               (long long)LAYER_MAX_PARAMETERS);
    return 0;
}

int layer_set_shape(const struct reader *reader, struct layer *layer, const int64_t *dims, int rank)
{
    int64_t elements = 1;

    layer->rank = 0;
    layer->shape_known = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 1)
            return 0;
        if (__builtin_mul_overflow(elements, dims[i], &elements) || elements > LAYER_MAX_PARAMETERS)
            return reader_error(reader, "a tensor of more than %lld elements", (long long)LAYER_MAX_PARAMETERS);
    }
    layer->shape_known = true;
    layer->shape[0] = 1;
    for (; rank > LAYER_MAX_RANK; rank--, dims++)
        layer->shape[0] *= *dims;
    for (int i = 0; i < rank; i++)
        layer->shape[i] = (i == 0 ? layer->shape[0] : 1) * dims[i];
    layer->rank = (uint8_t)(rank > 0 ? rank : 1);
    return 0;
}

int layer_set_batched_shape(const struct reader *reader, struct layer *layer, const struct shape *shape, int64_t batch)
{
    int64_t dims[SHAPE_MAX_RANK];
    int rank = shape->rank;

    if (!shape->known)
        return 0;
    memcpy(dims, shape->dims, sizeof dims);
    if (rank == 0)
        return layer_set_shape(reader, layer, dims, 0); /* a scalar: a loss */
    if (batch < 1 || dims[0] == batch || dims[0] < 1)
        return layer_set_shape(reader, layer, dims + 1, rank - 1);
    for (int i = 1; i < rank && dims[0] % batch != 0; i++)
        if (dims[i] == batch) {
            memmove(dims + i, dims + i + 1, (size_t)(rank - i - 1) * sizeof *dims);
            return layer_set_shape(reader, layer, dims, rank - 1);
        }
    if (dims[0] % batch == 0)
        dims[0] /= batch; /* windows, heads: several of each sample */
    return layer_set_shape(reader, layer, dims, rank);
}
