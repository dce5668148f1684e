/* Text that grows, and JSON written into it: for code that lives in Slurm's processes, which must not end them. A lack
 * of memory is remembered in `failed`; text added after it is dropped. */
#ifndef CARMA_SLURM_PLUGIN_TEXT_H
#define CARMA_SLURM_PLUGIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *bytes; /* owned; NUL-terminated once something was added */
    size_t length;
    size_t capacity;
    bool failed;
};

void text_add(struct text *text, const char *bytes, size_t length);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A JSON string with its quotes. What is not UTF-8 becomes '?': carmad refuses it otherwise. NULL: null. */
void text_json(struct text *text, const char *bytes, size_t length);
void text_json_string(struct text *text, const char *string);

/* Blanks for control characters, with which carmad would refuse a user's text: a lease must not hang on what he writes.
 */
void text_clean(char *text);
void text_release(struct text *text);

#endif
