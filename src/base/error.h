/* One-line errors for people: the thing, the value, and the remedy. */
#ifndef CARMA_BASE_ERROR_H
#define CARMA_BASE_ERROR_H

#include <stdbool.h>

struct error {
    char text[512];
};

/* Fills err (which may be NULL) and returns -abs(code), code being an errno value. */
int error_set(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "FILE:LINE: " and the text. -EINVAL. */
int error_set_at(struct error *err, const char *file, unsigned line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "format: " before the text that is there: the caller's context. */
void error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes one line of a text that quotes bytes of unknown origin (printable_replace). */
void error_make_printable(struct error *err);

/* An error for lack of space, memory, processes or descriptors may pass. */
bool error_is_passing(int code); /* a negative errno */

#endif
