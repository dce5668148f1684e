/* Finds many words in a text at once, in any case. Pure. */
#ifndef CARMA_LAUNCH_WORDS_H
#define CARMA_LAUNCH_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define WORDS_MAX   512
#define WORDS_CHAIN 4096

struct words {
    const char *text[WORDS_MAX]; /* borrowed: lower case, three bytes at least */
    uint8_t length[WORDS_MAX];
    uint16_t next[WORDS_MAX];    /* of the same chain, from 1; 0: none */
    uint16_t first[WORDS_CHAIN]; /* of the words with these first three bytes */
    uint32_t count;
};

/* The word's number, the same for the same word. `words` begins all zero. */
uint32_t words_add(struct words *words, const char *text);

/* The number of a word that begins at text + at, from 1, starting after `previous`; 0: none (more). */
uint32_t words_at(const struct words *words, const char *text, size_t length, size_t at, uint32_t previous);

#endif
