/* A small generator of our own, so that a printed seed gives the same run everywhere. */
#ifndef CARMA_TESTS_RANDOM_H
#define CARMA_TESTS_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

/* splitmix64 */
static inline uint64_t random_next(struct random *random)
{
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline int64_t random_range(struct random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(random_next(random) % (uint64_t)(high - low + 1));
}

#endif
