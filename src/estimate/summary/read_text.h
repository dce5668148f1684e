/* Shared by the readers of summaries: lines, numbers, shapes, messages that name file and line. Internal to read*.c.
 */
#ifndef CARMA_ESTIMATE_READ_TEXT_H
#define CARMA_ESTIMATE_READ_TEXT_H

#include <errno.h>

#include "estimate/summary/read.h"

/* A piece of the summary's text; not NUL-terminated. */
struct slice {
    const char *text;
    size_t length;
};

#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

struct reader {
    struct summary *summary;
    struct layer_list *list; /* summary->layers */
    const char *name;        /* of the file */
    struct error *err;
    const char *next, *end; /* the unread rest */
    struct slice line;      /* the line at hand, without its end and the blanks before that */
    uint32_t number;        /* of the line at hand, from 1 */
    uint32_t *lines;        /* owned: of each layer; see reader_add() */
    size_t line_capacity;
};

#define SHAPE_MAX_RANK    16
#define DIMENSION_UNKNOWN INT64_C(-1)

/* As the summary writes it, batch included. */
struct shape {
    bool known; /* false: there is none in the text */
    int rank;
    int64_t dims[SHAPE_MAX_RANK]; /* or DIMENSION_UNKNOWN */
};

/* The next line; false at the end, where line is empty and number that of the last line. */
bool reader_next(struct reader *reader);

/* Fills err with "FILE:LINE: ..." of the line at hand, or of `line`; -EINVAL. */
#define reader_error(reader, ...)          reader_error_at(reader, (reader)->number, __VA_ARGS__)
#define reader_error_at(reader, line, ...) error_set_at((reader)->err, (reader)->name, line, __VA_ARGS__)
/* The same of a summary that does not agree with its own totals; -EBADMSG. */
#define reader_contradiction(reader, line, ...) (reader_error_at(reader, line, __VA_ARGS__), -EBADMSG)

/* The summary ended within the table. */
int reader_truncated(const struct reader *reader, const char *missing);

/* Keeps "FILE:LINE: ..." (as long as there is room) and counts it. */
void reader_warn(struct reader *reader, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A new layer, found on `line`; NULL with err set where there are too many. Type and name are cut (a name keeps its
 * end), and unprintable characters become '?'. */
struct layer *reader_add(struct reader *reader, enum layer_kind kind, struct slice type, struct slice name,
                         uint32_t line);

void copy_printable(char *to, size_t size, struct slice from);

/* "layer1.0.conv1" of its parts (empty ones do not count), or its end where it is longer than a layer's name. */
struct slice join_path(char text[static LAYER_NAME_SIZE], const struct slice *parts, int count);

#define QUOTE_SIZE 48
/* A short piece of the file for a message. */
char *quote(char text[static QUOTE_SIZE], struct slice from);

struct slice slice_trim(struct slice slice);
struct slice slice_from(struct slice slice, size_t at);
/* The place of the bracket that closes the slice's first character, an opening one; its length where there is none. */
size_t slice_closing(struct slice slice, char opening, char closing);
struct slice slice_to(struct slice slice, size_t end);
bool slice_is(struct slice slice, const char *text);
bool slice_starts(struct slice slice, const char *text);
bool slice_ends(struct slice slice, const char *text);
/* Where `text` begins in it, or its length. */
size_t slice_find(struct slice slice, const char *text);
size_t slice_find_char(struct slice slice, char c);
/* All of it, at least `least` bytes, is the one character. */
bool slice_is_rule(struct slice slice, char character, size_t least);
/* Bytes before character (not byte) number `column`; its length where it is shorter. */
size_t slice_column(struct slice slice, size_t column);
size_t slice_columns(struct slice slice); /* its characters */

/* All of it is a count: "9408", "9,408". False: it is not, or it is above 2^62. */
bool parse_count(struct slice slice, int64_t *count);
/* All of it is a decimal number: "9,408", "0.57". */
bool parse_decimal(struct slice slice, double *value);

/* The first shape in the text: "[-1, 64, 8, 8]", "(None, 8)", the first of "[(None, 8), (None, 4)]". -EINVAL with err
 * set where a dimension is out of range; known is false where the text has no shape ("--", "?", "multiple"). */
int parse_shape(const struct reader *reader, struct slice slice, struct shape *shape);

/* A parameter count in the range of a layer's, else -EINVAL with err set. `line`: of the row. */
int parse_parameters(const struct reader *reader, struct slice slice, uint32_t line, int64_t *parameters);

/* Gives the layer `dims` as its shape per sample; more than a layer's rank are multiplied into the first. A dimension
 * that is not known: no shape. -EINVAL with err set where the tensor is too large. */
int layer_set_shape(const struct reader *reader, struct layer *layer, const int64_t *dims, int rank);

/* The same of a shape with the batch in front, of a list with batch `batch` (-1: unknown). A tensor that has the batch
 * elsewhere, or a multiple of it in front, is divided by it. */
int layer_set_batched_shape(const struct reader *reader, struct layer *layer, const struct shape *shape, int64_t batch);

#endif
