/* JSON of foreign origin is counted before it becomes a tree. A tree is much larger than its text: "{}," becomes 224
 * bytes. The text is looked through once, without memory of its own: values, nesting, bytes of strings. What passes its
 * reader's bounds, and only that, is given to jansson. All of carma reads JSON by these functions (tests/layers). */
#ifndef CARMA_BASE_JSON_JSON_READ_H
#define CARMA_BASE_JSON_JSON_READ_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"

/* How much a text may have. Its tree takes at most 256 bytes for each value, and the strings. */
struct json_bounds {
    size_t values; /* and names of members */
    size_t depth;  /* of arrays and objects within one another */
    size_t bytes;  /* of all strings and names, as they are written */
};

/* A new reference into *json; `flags` are jansson's. Else *json is NULL, and err says what is wrong with the text,
 * which the caller names. -E2BIG: beyond a bound; -EINVAL: not JSON. */
int json_read(const char *text, size_t length, size_t flags, const struct json_bounds *most, json_t **json,
              struct error *err);

/* 0; else as above, and nothing is read. */
int json_check(const char *text, size_t length, const struct json_bounds *most, struct error *err);

/* A part of a text. */
struct json_piece {
    const char *text; /* borrowed */
    size_t length;
};

/* Takes a list of many large things apart, so that they are read one after the other. The arrays and objects at the
 * third level, as the jobs of {"jobs": [{}, {}]}, are the pieces. `rest` becomes the text with a 0 for each of them.
 * Returns how many there are. Of more than `most` only that many are noted, and the rest is not of use. */
size_t json_take_apart(const char *text, size_t length, struct strbuf *rest, struct json_piece *pieces, size_t most);

#endif
