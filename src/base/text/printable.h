/* Text that others wrote, fit to be shown: job names, reasons, the ends of outputs. A terminal obeys control characters
 * (C0, DEL, C1). Others make a line look different from its content: direction marks and overrides, separators of lines
 * and paragraphs, zero-width characters, the byte order mark, tags. Bytes that are not UTF-8 belong to these. Each
 * outlet has its form of replacement: below. */
#ifndef CARMA_BASE_TEXT_PRINTABLE_H
#define CARMA_BASE_TEXT_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* The character that starts at text, of *length bytes; -1 where the bytes are not (shortest-form) UTF-8: of one byte.
 */
int32_t printable_decode(const char *text, size_t *length);

/* Whether a character must not be shown; also for -1. */
bool printable_deceives(int32_t character);

/* For a line: the bytes of such a character as \xNN. */
void printable_append(struct strbuf *out, const char *text);

/* In the text's own place: '?' for each such character. It becomes valid UTF-8. */
void printable_replace(char *text);

/* In the text's own place: without what colours it on a terminal. The new length. */
size_t printable_drop_colours(char *text, size_t length);

/* For JSON, which stays the same value: such characters as \uNNNN. Takes the text (NULL: none), and returns it or its
 * successor, owned by the caller. */
char *printable_json(char *json);

#endif
