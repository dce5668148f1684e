/* How fast the clients of one MPS server run on one GPU, each in parts of its speed alone. Integers only; pure.
 *
 * Clients with solo SM activities a_i deliver U = 1 - prod(1 - a_i) of the SMs together. The SMs that they get are in
 * proportion to 1 / (1 - a_i): who leaves few SMs idle gets them at the cost of the others. Nobody runs faster than
 * alone; what he cannot use goes to the others in the same way. Nothing is fitted. docs/contention.md has the form's
 * errors on published pairs, and what was tried beside it. */
#ifndef CARMA_CORE_SHARE_RATES_H
#define CARMA_CORE_SHARE_RATES_H

#include <stddef.h>
#include <stdint.h>

#define RATES_PPM    1000000 /* the speed alone */
#define RATES_LEAST  1       /* a rate is never less: it is divided by */
#define RATES_CLIENT 64      /* the most clients of a server */

/* A client that may use all of the GPU's threads. Others have that part of the SMs, in percent: the parts are spread
 * evenly. */
#define RATES_ALL_THREADS 100

/* What a client alone uses, with its limit. */
struct rates_client {
    int32_t activity_permille; /* 0 to 1000 */
    int32_t threads_percent;
};

/* The part of the SMs that the client leaves to others while it is alone, in ppm; of several, the product. On its part
 * of the SMs it is busier. */
int64_t rates_left_by(struct rates_client client);

/* Of `count` clients, at most RATES_CLIENT. A rate is a part of that alone with the client's limit. */
void rates_of_clients(size_t count, const struct rates_client *clients, int32_t *rate_ppm);

/* The same where what they leave together is known: the product of rates_left_by, in their order. */
void rates_of_idle(size_t count, const struct rates_client *clients, int64_t idle_ppm, int32_t *rate_ppm);

/* How much a job alone is slowed by having this part of the SMs, in permille: on a MIG instance, or with a limit of its
 * threads. Its kernels take 1 / part of their time. The host's work, which a part does not slow, overlaps with them to
 * some extent: the squares of the two times add up to that of the step. An activity of a is kernels for a of the step
 * on a whole GPU. */
int64_t rates_slowed_by_part(int64_t activity_permille, int64_t part_permille);

/* The share of a GPU's threads, in percent, that a job gets with which a server has so many clients there. Those before
 * it keep theirs. */
int32_t rates_thread_percent(uint32_t clients);

/* How fast each of so many clients runs in the mean if all of them have this share of the threads, 50 or 14, as a part
 * of its speed among as many without a limit, in permille. Two constants are fitted (docs/contention.md). */
int32_t rates_thread_gain_permille(uint32_t clients, int32_t percent);

/* The worst slowdown that may be predicted where no client of a server is to be slowed more than `bound_permille`. Of
 * what is beyond 1, three elevenths less: 1.8 of 2.1. Of the published pairs within that, 1 in 28 was slowed more than
 * 2.1 times. */
int32_t rates_admitted_permille(int32_t bound_permille);

#endif
