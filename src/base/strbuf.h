/* A growable string, always NUL-terminated once something was added. Zero-initialise: `struct strbuf b = {0};`. */
#ifndef CARMA_BASE_STRBUF_H
#define CARMA_BASE_STRBUF_H

#include <stddef.h>

struct strbuf {
    char *text; /* owned; NULL while empty */
    size_t length;
    size_t capacity;
};

void strbuf_append(struct strbuf *buf, const void *bytes, size_t count);
void strbuf_puts(struct strbuf *buf, const char *text);
void strbuf_printf(struct strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void strbuf_clear(struct strbuf *buf); /* empties, keeps the memory */
void strbuf_release(struct strbuf *buf);
char *strbuf_steal(struct strbuf *buf); /* the text ("" when empty), now the caller's to free */

#endif
