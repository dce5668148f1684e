/* Inside api only: the lines of a text that somebody else wrote. */
#ifndef CARMA_API_LINES_H
#define CARMA_API_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct lines {
    const char *file; /* borrowed; for messages */
    const char *next;
    const char *end;
    unsigned line; /* the one at hand, from 1 */
};

struct lines lines_of(const char *file, const char *text, size_t length);

/* The next line without its end ("\n" or "\r\n"); false: there is none. Not NUL-terminated. */
bool lines_next(struct lines *lines, const char **begin, size_t *count);

/* Copies the current line to a string of its own. -EINVAL when it holds a control character other than a tab, so that
 * later messages may repeat it on a terminal. */
int lines_copy(const struct lines *lines, const char *begin, size_t count, char **copy, struct error *err);

/* "FILE:LINE: ..."; returns -EINVAL. */
#define lines_error(lines, err, ...) error_set_at(err, (lines)->file, (lines)->line, __VA_ARGS__)

#endif
