#include "sim/random.h"

#include <math.h>

uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* In (0, 1]: its logarithm is finite. */
static double uniform(uint64_t *state)
{
    return ((double)(random_next(state) >> 11) + 1) * 0x1p-53;
}

double random_normal(uint64_t seed, uint64_t index)
{
    uint64_t state = seed;
    double radius;

    state = random_next(&state) ^ index * UINT64_C(0xd1342543de82ef95);
    radius = sqrt(-2 * log(uniform(&state)));
    return radius * cos(2 * M_PI * uniform(&state));
}
