/* Unpacking gzip data (RFC 1952) that may be hostile: no more than `limit` bytes come out. */
#ifndef CARMA_TRACE_GUNZIP_H
#define CARMA_TRACE_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Whether the bytes begin as a gzip file does. */
bool gunzip_is_packed(const char *bytes, size_t length);

/* *text is owned by the caller, NUL-terminated; *text_length excludes the NUL. Members one after another are one text.
 * -EFBIG above `limit`; -EINVAL where the data is damaged, cut off, or followed by something else. `path` is the name
 * in messages. On an error *text is NULL. */
int gunzip(const char *path, const char *bytes, size_t length, size_t limit, char **text, size_t *text_length,
           struct error *err);

#endif
