/* Lines, words and sizes of an operator trace. Internal to capture*.c. */
#ifndef CARMA_ESTIMATE_CAPTURE_TEXT_H
#define CARMA_ESTIMATE_CAPTURE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct capture_text {
    const char *name;   /* of the file, for errors */
    const char *at;     /* the rest of the line */
    const char *end;    /* of the line */
    const char *next;   /* the line after it */
    const char *limit;  /* of the text */
    uint32_t line;      /* from 1 */
    int64_t batch_size; /* that sizes are worked out for */
    bool scales;        /* sizes may depend on it */
    struct error *err;
};

void capture_text_init(struct capture_text *text, const char *name, const char *bytes, size_t length,
                       struct error *err);

/* "FILE:LINE: ..."; always -EINVAL. */
#define capture_fail(text, ...) error_set_at((text)->err, (text)->name, (text)->line, __VA_ARGS__)

/* The next line: printable ASCII of at most CAPTURE_LINE_MAX characters, or an error. */
#define CAPTURE_LINE_MAX 4096
int capture_line(struct capture_text *text);

/* The next line, which begins with this word; the rest of it is its value. */
int capture_field(struct capture_text *text, const char *word);

/* The next word of the line, up to a space; an error where there is none. It is not copied: its length is set. */
int capture_word(struct capture_text *text, const char **word, size_t *length);
int capture_line_end(struct capture_text *text); /* nothing is left of the line */

/* Whole decimal numbers, no sign, no space. */
int capture_number(struct capture_text *text, const char *word, size_t length, int64_t high, int64_t *value);
int capture_number_word(struct capture_text *text, int64_t high, int64_t *value);

/* BASE, SLOPEx or BASE+SLOPEx, for the batch size in use; from 0 to high. */
int capture_size(struct capture_text *text, const char *word, size_t length, int64_t high, int64_t *value);

#endif
