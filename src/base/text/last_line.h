/* The last line of a stream, which comes in pieces: a program that fails says there why. Zero-initialise. */
#ifndef CARMA_BASE_TEXT_LAST_LINE_H
#define CARMA_BASE_TEXT_LAST_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct last_line {
    char text[400]; /* its beginning, where it is longer: any bytes */
    size_t length;
    bool ended; /* the next byte begins another */
};

void last_line_add(struct last_line *line, const char *bytes, size_t count);

/* Fit to be shown (printable_replace), once all of it has come. */
const char *last_line_text(struct last_line *line);

#endif
