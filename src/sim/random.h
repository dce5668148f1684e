/* A generator of our own, so that a seed means the same on every machine. */
#ifndef CARMA_SIM_RANDOM_H
#define CARMA_SIM_RANDOM_H

#include <stdint.h>

/* splitmix64 (Steele, Lea, Flood 2014): the next 64 bits; *state may begin anywhere. */
uint64_t random_next(uint64_t *state);

/* A standard normal number (Box-Muller) that depends on `seed` and `index` alone: job 7 under seed 3 meets the same
 * under every policy. */
double random_normal(uint64_t seed, uint64_t index);

#endif
