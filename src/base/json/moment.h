/* Moments in JSON: NAME_ns in nanoseconds since 1970, as it is shown, and beside it NAME, the same in ISO 8601 by UTC,
 * for readers that know dates. On a virtual node with a time scale, whose time is no date, that is null. */
#ifndef CARMA_BASE_JSON_MOMENT_H
#define CARMA_BASE_JSON_MOMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define MOMENT_TEXT 32

/* As JSON: with quotes, or null. */
const char *moment_text(int64_t shown_ns, char text[static MOMENT_TEXT]);

/* The object's member `name_ns`, which is a number or null, gets its twin. The object itself. */
json_t *moment_twin(json_t *object, const char *name_ns);

/* Sets both. `known`: it is not null. */
void moment_set(json_t *object, const char *name_ns, int64_t shown_ns, bool known);

#endif
