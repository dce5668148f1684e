/* Words of a line as a POSIX shell splits them, without any expansion: blanks, '...', "...", backslashes, and a comment
 * from a # that begins a word. */
#ifndef CARMA_API_WORDS_H
#define CARMA_API_WORDS_H

#include "api/spec_strings.h"
#include "base/error.h"

/* Appends the words of line to *words; at most SPEC_MAX_ARGUMENTS in all. -EINVAL with the reason. */
int words_split(const char *line, struct spec_strings *words, struct error *err);

#endif
