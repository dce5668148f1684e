/* Waiting jobs that no rule of placement tells apart: they want the same, are of the same workload, and never had GPUs.
 * What holds for the first of them, the one whose turn is the earliest, holds for all. So a decision looks at the first
 * alone.
 *
 * They wait in lines (order.c says which line goes first). A line has a treap for each number of GPUs, in the order of
 * the first jobs' turns. Each branch knows the least that anything in it needs. So a search for jobs that may fit
 * passes over all others, however long the queue. */
#ifndef CARMA_CORE_AUTOCLUSTER_H
#define CARMA_CORE_AUTOCLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "core/job.h"
#include "core/waiting/vacancy.h"

struct core;
struct profile;
struct record_submitted;
struct user;

/* What the first of them needs. */
struct needs {
    int16_t units; /* on each GPU, at least (vacancy.h) */
    uint8_t band;  /* of its SM activity (slowdown.h) */
    bool anywhere; /* a search stops at it, whatever the vacancy: nothing is known of the GPUs that it fits, or they are
                      reserved for it */
    int64_t since_ns; /* it has waited since then (job_waits_since_ns) */
};

/* The least of what any of a branch needs. */
struct least {
    struct vacancy vacancy;
    int16_t units; /* of that, in any band */
    bool anywhere;
    int64_t since_ns;
};

/* The part of a workload's history that counts for its waiting jobs. */
struct expectation {
    int64_t bytes;      /* beside others */
    int64_t idle_bytes; /* on an idle GPU */
    int32_t activity_permille;
    bool activity_is_known;
    uint32_t source; /* of the memory */
};

struct autocluster_key {
    const struct record_submitted *wants;
    const struct profile *profile;
    uint64_t job; /* one that had GPUs before, and so stands alone; else 0 */
};

/* The jobs of the classes before the main queue; of one priority, the main queue, or a user's part of it under fair
 * turns. */
struct line {
    const struct user *user;    /* NULL: of all users */
    uint32_t behind;            /* of its jobs' turns */
    struct line *first;         /* of those that differ from it by that alone, the one that was there first */
    struct line *other;         /* the next of them */
    struct autocluster **trees; /* owned array: for each of core.widths */
    uint32_t tree_count;
    uint32_t autoclusters; /* in the trees */
    uint64_t searched;     /* core.openings when all its jobs had been looked at: those that are not unexamined */
    uint64_t eligible;     /* of the first: of all their jobs, those that were ranked, and the use of these: order.c */
    int64_t ranked;
    int64_t use; /* the user's, while lines are sorted: at use_ns, after so many changes (user.use_changes) */
    int64_t use_ns;
    uint64_t use_changes;
    bool listed;       /* among those that order.c keeps sorted */
    struct line *next; /* of core.lines */
};

struct autocluster {
    struct autocluster_key key;
    struct line *line;        /* borrowed */
    struct job *first, *tree; /* borrowed: the first of its jobs, and all of them (by_turn.h) */
    struct order_turn turn;   /* the first's */
    uint64_t examined;        /* core.openings when it was last found not to fit anywhere; 0: unexamined */
    struct needs needs;
    struct expectation expected;
    /* In its tree: */
    struct least least; /* of this branch */
    uint64_t priority;  /* above those below it: drawn by the job's number */
    struct autocluster *before, *behind;
    /* Of its workload: */
    struct autocluster *profile_previous, *profile_next;
    UT_hash_handle hh; /* core.autoclusters, by key */
};

/* The jobs that want this number of GPUs. */
struct autoclusters_of_width {
    uint32_t gpus;
    struct vacancy most; /* on each of these, beside residents */
};

/* The job has come into the queue, with its turn; it leaves it. */
void autocluster_join(struct core *core, struct job *job);
void autocluster_leave(struct core *core, struct job *job);

/* The job behind it in its autocluster; NULL: there is none. */
struct job *autocluster_behind(const struct job *job);

/* It was found to fit nowhere at core.openings `examined`. 0: it has to be looked at again, on every GPU. */
void autocluster_set_examined(struct core *core, struct autocluster *autocluster, uint64_t examined);

/* The settings or the GPUs are others: any job may need less, or can never run any more. */
void autocluster_all_changed(struct core *core);

/* Figures of workloads, beside others or of jobs of unknown need, have changed by a record that was applied: jobs that
 * may fit where they did not are looked at again. */
void autocluster_take_news(struct core *core);

/* A search stops at those that the vacancy may hold, and the most of their width, too; if so asked, at those of
 * needs.anywhere; and at those that have waited at least since `since_ns`. */
struct search {
    struct vacancy vacancy;
    bool anywhere;
    int64_t since_ns;
};

/* The first of the line behind a turn; NULL: there is none. */
struct autocluster *autocluster_next(const struct core *core, const struct line *line, struct order_turn turn,
                                     const struct search *search);

/* The least memory that any of the line's first jobs needs, which wants several GPUs if so asked; in units (vacancy.h).
 */
int16_t autocluster_least_units(const struct core *core, const struct line *line, bool several);

/* Since when the one of the line's first jobs waits that has waited longest; INT64_MAX: it has none. */
int64_t autocluster_oldest_ns(const struct line *line);

/* Lines are others under another order: all waiting jobs leave them before it is set, and join again. */
void autocluster_leave_lines(struct core *core);
void autocluster_join_lines(struct core *core);

void autocluster_free(struct core *core);

#endif
