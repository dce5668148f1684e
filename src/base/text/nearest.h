/* The name that a mistyped word means: of those that are tried, the one with the fewest letters added, left out or
 * changed (Levenshtein's distance). Only a third of the word's letters may be wrong. */
#ifndef CARMA_BASE_TEXT_NEAREST_H
#define CARMA_BASE_TEXT_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word, *name; /* borrowed; name is NULL while none is near enough */
    size_t wrong;
};

void nearest_begin(struct nearest *nearest, const char *word);
void nearest_try(struct nearest *nearest, const char *name);

/* ": did you mean NAME?", or "". The caller's to free. `dashes` stand before the name. */
char *nearest_question(const struct nearest *nearest, const char *dashes);

#endif
