/* The last line of a stream, which comes in pieces: a program that fails says there why. Zero-initialise. */
#ifndef CARMA_BASE_LAST_LINE_H
#define CARMA_BASE_LAST_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct last_line {
    char text[400]; /* its beginning, where it is longer; without control characters: ready to be shown */
    size_t length;
    bool ended; /* the next byte begins another */
};

void last_line_add(struct last_line *line, const char *bytes, size_t count);

#endif
