/* Reads the JSON of carmad's answers without allocating: values are places in the text. Bounded: nesting ends at 16
 * levels. */
#ifndef CARMA_SLURM_PLUGIN_JSON_H
#define CARMA_SLURM_PLUGIN_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
    const char *at, *end; /* a value and what follows it; at == NULL: there is none */
};

/* The value of a whole text; none where the text is not one JSON value. */
struct json json_of(const char *bytes, size_t length);

struct json json_member(struct json object, const char *name); /* the first of that name; none where there is none */

/* Walks the members of an object or the items of an array. `*walk` begins as {0}; false at the end. An item of an array
 * has the name {0}. */
bool json_next(struct json whole, struct json *walk, struct json *name, struct json *value);

/* Unescaped and NUL-terminated. false: not a string, it does not fit, or it has a NUL in it. */
bool json_read_string(struct json value, char *text, size_t size);
bool json_read_integer(struct json value, int64_t *number);
bool json_is_yes(struct json value);

/* The value's own text. */
size_t json_length(struct json value);

#endif
