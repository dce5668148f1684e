/* A list of texts: of a job's description, such as its command, or of lines about one. */
#ifndef CARMA_API_SPEC_STRINGS_H
#define CARMA_API_SPEC_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

struct spec_strings {
    char **items; /* owned */
    size_t count;
};

void spec_strings_add(struct spec_strings *strings, const char *text);
bool spec_strings_equal(const struct spec_strings *a, const struct spec_strings *b);
void spec_strings_release(struct spec_strings *strings);

#endif
