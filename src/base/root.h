/* Integer square roots. */
#ifndef CARMA_BASE_ROOT_H
#define CARMA_BASE_ROOT_H

#include <stdint.h>

/* The largest integer of which the square is not more than `of`, which is not negative. */
static inline int64_t square_root(int64_t of)
{
    int64_t root = of, next = (of + 1) / 2;

    while (next < root) {
        root = next;
        next = (root + of / root) / 2;
    }
    return root;
}

#endif
