/* Integer square roots. */
#ifndef CARMA_BASE_ROOT_H
#define CARMA_BASE_ROOT_H

#include <stdint.h>

/* The largest integer of which the square is not more than `of`, which is not negative. */
static inline int64_t square_root(int64_t of)
{
    int64_t root, next = 1;

    if (of < 1)
        return 0;
    for (int64_t left = of; left; left >>= 2)
        next <<= 1; /* to a power of two that is more than the root: few steps remain */
    for (root = next + 1; next < root;) {
        root = next;
        next = (root + of / root) / 2;
    }
    return root;
}

#endif
