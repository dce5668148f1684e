/* A list of the samples' lengths, as somebody measured them. */
#ifndef CARMA_ESTIMATE_TRANSFORMER_LENGTHS_H
#define CARMA_ESTIMATE_TRANSFORMER_LENGTHS_H

#include <stddef.h>
#include <stdint.h>

struct lengths {
    struct sample_length {
        int64_t tokens;
        int64_t through; /* samples of this length and of all before */
    } * items;           /* owned; each longer than the one before */
    size_t count;
};

void lengths_release(struct lengths *lengths);

static inline int64_t lengths_shortest(const struct lengths *lengths)
{
    return lengths->items[0].tokens;
}

static inline int64_t lengths_longest(const struct lengths *lengths)
{
    return lengths->items[lengths->count - 1].tokens;
}

/* The number of samples that have at most `tokens` tokens. */
int64_t lengths_within(const struct lengths *lengths, int64_t tokens);

#endif
