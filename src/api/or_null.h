/* JSON of values that may be unknown: null then. */
#ifndef CARMA_API_OR_NULL_H
#define CARMA_API_OR_NULL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

static inline json_t *integer_or_null(int64_t value, bool is_known)
{
    return is_known ? json_integer(value) : json_null();
}

/* Below 0, or not a number: not known. */
static inline json_t *natural_or_null(int64_t value)
{
    return integer_or_null(value, value >= 0);
}

static inline json_t *real_or_null(double value)
{
    return value >= 0 ? json_real(value) : json_null();
}

/* NULL: not known. A text that is not UTF-8 is not worth losing the rest for. */
static inline json_t *text_or_null(const char *text)
{
    json_t *json = text ? json_string(text) : NULL;

    return json ? json : json_null();
}

#endif
