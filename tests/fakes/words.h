/* The words that tell a fake library how to answer: a list with commas between them in the environment variable
 * FAKE_WORDS, read at each call. */
#ifndef CARMA_TESTS_FAKES_WORDS_H
#define CARMA_TESTS_FAKES_WORDS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Whether the word is there; with `value`, followed by "=" and a number, which *value gets. */
static inline bool has(const char *word, double *value)
{
    const char *at = getenv(FAKE_WORDS);
    size_t length = strlen(word);

    for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, word, length) != 0)
            continue;
        if (at[length] == '=' && value) {
            *value = strtod(at + length + 1, NULL);
            return true;
        }
        if ((at[length] == '\0' || at[length] == ',') && !value)
            return true;
    }
    return false;
}

static inline double number(const char *word, double otherwise)
{
    has(word, &otherwise);
    return otherwise;
}

/* What a function returns: 0, which is success, unless the word says otherwise. */
static inline int code(const char *word)
{
    return (int)number(word, 0);
}

#endif
