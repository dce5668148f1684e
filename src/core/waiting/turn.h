/* What people are told of a waiting job's turn: its place in the order, who goes before it, and why. */
#ifndef CARMA_CORE_TURN_H
#define CARMA_CORE_TURN_H

#include <stdint.h>

#include "core/record.h"

struct core;
struct job;

/* Why `before` goes before the job. */
enum turn_why {
    TURN_NOBODY, /* nobody does */
/* it is of that class, as in enum order_class */
#define CLASS(name, holds, by, why, words) TURN_##name,
#include "core/waiting/classes.def"
    TURN_PRIORITY, /* it has before_priority, and the job a lower one: priority */
    TURN_RUNNING,  /* its user has nothing running; the job's has `running` */
    TURN_USE,      /* its user has had before_use of the GPUs lately, the job's user, for his share, more: use */
    TURN_OWN,      /* it is of the same user, and came earlier */
    TURN_TURNS,    /* the job's user has jobs of his own before it, and the other's turn is between them */
    TURN_EARLIER,  /* it came earlier */
    TURN_WHY_COUNT
};

struct turn {
    uint64_t place, of; /* from 1 on, among those that may start; 0: it does not wait, or is kept (eligible.h) */
    uint64_t own_place, own_of; /* among its user's of them; 0: users are not told apart */
    uint32_t why;               /* enum turn_why */
    const struct job *before;   /* borrowed: the first in the order; of another user, where one is. NULL: nobody */
    uint32_t running;
    const struct user_group *group, *before_group; /* whose use is compared; NULL: the user's own */
    int64_t use, before_use;                       /* as it counts: thousandths of a GPU times seconds (use_expected) */
    uint32_t share, before_share;
    int32_t priority, before_priority;
};

struct turn core_turn(const struct core *core, uint64_t job, int64_t now_ns);

/* GPUs that are kept for a job (reserve.h): at most one job has such. */
struct kept {
    uint64_t job; /* 0: none are */
    uint32_t count;
    uint32_t gpus[RECORD_MAX_GPUS];
    int64_t until_ns; /* INT64_MAX: until it starts */
};

struct kept core_kept(const struct core *core);

const char *turn_why_name(uint32_t why); /* "retry", "use", ... */

#endif
