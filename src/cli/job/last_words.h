/* The last lines that a job wrote: a program that fails says there why. */
#ifndef CARMA_CLI_JOB_LAST_WORDS_H
#define CARMA_CLI_JOB_LAST_WORDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Of its errors, where these have a file of their own and it is not empty; else of its output. Read with the caller's
 * rights, and ready for a terminal. The caller's to free. NULL: there is none, it cannot be read here, or the text
 * `how` says it already, or as much of it as has room there. */
char *last_words(const json_t *job, uint64_t id, const char *how);

/* The last ones of the same file that are not blank, in their order; the caller's to free. Returns how many. */
#define LAST_LINES 5
size_t last_lines(const json_t *job, uint64_t id, char *lines[static LAST_LINES]);

#endif
