/* What each user has had of the GPUs lately, for fair turns: the time that his jobs held them, by the part held, of
 * which half counts a week later, and so on. Integers only: the same records give the same figures everywhere. */
#ifndef CARMA_CORE_USE_H
#define CARMA_CORE_USE_H

#include <stdint.h>

struct core;
struct job;
struct user;

#define USE_HALF_LIFE_S INT64_C(604800)

/* The job has got its GPUs; it takes more memory of them than was reserved; it leaves them. What it holds of each is
 * the largest of the part of its memory, of its SM activity as known at its start, and of the part that its own
 * `max_slowdown` keeps from others: 1 / max_slowdown. All, where it is exclusive or of unknown need. */
void use_begins(const struct core *core, struct job *job, int64_t at_ns);
void use_grows(const struct core *core, struct job *job, int64_t at_ns);
void use_ends(struct job *job, int64_t at_ns);

/* What he has had until then, in thousandths of a GPU times seconds. */
int64_t use_until(const struct user *user, int64_t now_ns);

/* The same, with what his running jobs hold for an hour more: who has just got GPUs is behind one who has not. */
int64_t use_expected(const struct user *user, int64_t now_ns);

/* Who has had less for his share: below 0, the first; 0: both the same. */
static inline int use_compare(int64_t use, uint32_t share, int64_t other, uint32_t of_other)
{
    __int128 own = (__int128)use * of_other, others = (__int128)other * share;

    return own < others ? -1 : own > others;
}

/* For people. */
static inline double use_in_gpu_hours(int64_t use)
{
    return (double)use / 3600e3;
}

/* By how much that grows as he gets GPUs of which he holds this. */
int64_t use_of_start(int64_t held_permille);

#endif
