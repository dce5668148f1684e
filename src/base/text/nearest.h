/* The name that a mistyped word means: of those that are tried, the one with the fewest letters added, left out,
 * changed or exchanged (Damerau's distance). Only a third of the word's letters may be wrong. The beginning of a name
 * means it.
 */
#ifndef CARMA_BASE_TEXT_NEAREST_H
#define CARMA_BASE_TEXT_NEAREST_H

#include <stddef.h>

#include "base/error.h"

struct nearest {
    const char *word, *name; /* borrowed; name is NULL while none is near enough */
    size_t wrong;
};

void nearest_begin(struct nearest *nearest, const char *word);
void nearest_try(struct nearest *nearest, const char *name);

/* ": did you mean NAME?", or "". The caller's to free. `dashes` stand before the name. */
char *nearest_question(const struct nearest *nearest, const char *dashes);

/* " (did you mean NAME?)", or "", for behind the word: of those in `known`, as it lists them: "a, b or c; more words".
 * The caller's to free. */
char *nearest_hint(const char *word, const char *known);

/* The same of the files in a directory with the suffix, which does not belong to the name. */
char *nearest_file(const char *word, const char *directory, const char *suffix);

/* "WHAT 'WORD' (did you mean NAME?) is not known: KNOWN". -EINVAL. */
int nearest_refuse(struct error *err, const char *what, const char *word, const char *known);

#endif
