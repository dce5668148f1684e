#include "launch/words.h"

#include <assert.h>
#include <string.h>

/* ASCII only, in every locale. */
static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static uint32_t chain_of(const char *text)
{
    return (lower(text[0]) * 961u + lower(text[1]) * 31u + lower(text[2])) % WORDS_CHAIN;
}

uint32_t words_add(struct words *words, const char *text)
{
    uint32_t chain = chain_of(text), number = words->first[chain];

    for (; number; number = words->next[number - 1])
        if (strcmp(words->text[number - 1], text) == 0)
            return number;
    assert(words->count < WORDS_MAX && strlen(text) >= 3 && strlen(text) <= UINT8_MAX);
    number = ++words->count;
    words->text[number - 1] = text;
    words->length[number - 1] = (uint8_t)strlen(text);
    words->next[number - 1] = words->first[chain];
    words->first[chain] = (uint16_t)number;
    return number;
}

uint32_t words_at(const struct words *words, const char *text, size_t length, size_t at, uint32_t previous)
{
    uint32_t number;

    if (length - at < 3)
        return 0;
    number = previous ? words->next[previous - 1] : words->first[chain_of(text + at)];
    for (; number; number = words->next[number - 1]) {
        const char *word = words->text[number - 1];
        size_t size = words->length[number - 1], i = 0;
        if (size > length - at)
            continue;
        while (i < size && lower(text[at + i]) == (unsigned char)word[i])
            i++;
        if (i == size)
            break;
    }
    return number;
}
