/* A job and its life. Every change of state is declared in job.c; core_apply refuses any other. */
#ifndef CARMA_CORE_JOB_H
#define CARMA_CORE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#include "core/record.h"

struct autocluster;
struct awaited;
struct job_array;
struct job;
struct profile;
struct queue;
struct dependency;
struct user;

enum job_state {
    JOB_HELD,     /* waits for a release */
    JOB_QUEUED,   /* waits for GPUs */
    JOB_PLACED,   /* has GPUs, is being started */
    JOB_RUNNING,  /* its process tree runs */
    JOB_STOPPING, /* was cancelled while it had GPUs: is being stopped */
    JOB_CRASHED,  /* ended in a way that may be retried: to be decided on at once */
    /* ended: */
    JOB_COMPLETED,
    JOB_FAILED,
    JOB_GPU_OOM, /* ran out of GPU memory once too often */
    JOB_CANCELLED,
    JOB_LOST,
    JOB_REFUSED,
    JOB_TIMEOUT,  /* its time limit had passed, or its idle limit */
    JOB_RETURNED, /* a lease that crashed: the next attempt is another lease */
    JOB_EXPIRED,  /* not placed in time: for its deadline; a lease, also one that no process used */
    /* not ended, and behind since stores have states by their numbers: */
    JOB_SUSPENDED, /* its process tree stands still, and keeps its memory */
    JOB_REQUEUING, /* is being stopped, to wait again */
    JOB_STATE_COUNT
};

/* A loop from JOB_COMPLETED to this one goes over the states of ended jobs. */
#define JOB_LAST_ENDED JOB_EXPIRED

const char *job_state_name(uint32_t state);   /* "QUEUED", ... */
const char *job_state_letter(uint32_t state); /* as squeue has them: "PD", "R", "CD", ... (docs/formats/cli.md) */
bool job_state_ended(uint32_t state);
bool job_state_has_gpus(uint32_t state);
bool job_state_runs(uint32_t state);
bool job_state_stops(uint32_t state); /* is being stopped */
bool job_transition_allowed(uint32_t from, uint32_t to);

/* The state to which `record` brings a job in state `from`. Only this function says so, for the core and for all code
 * that shows jobs. `from` itself where the record does not change it; JOB_STATE_COUNT where it must not come. */
uint32_t job_state_after(uint32_t from, const struct record *record);

/* Whether such a record may be of this job: some are of leases alone, some of those that carma starts. */
bool job_suits(const struct job *job, const struct record *record);

/* What a job's shepherd is told by this command; NULL: nothing. */
const char *command_order(uint32_t command);

struct job_placement {
    uint32_t gpu;
    int64_t observed_bytes; /* the most observed in this run; 0 until first use */
};

enum order_class {
    CLASS_NONE,
#define CLASS(name, holds, by, why, words) CLASS_##name,
#include "core/waiting/classes.def"
};

/* The key of the order of waiting jobs: the smaller goes first. */
struct order_turn {
    uint64_t class : 3;  /* enum order_class */
    uint64_t behind : 5; /* within it: how far its priority is below the highest */
    uint64_t place : 56; /* within that */
};

_Static_assert(CLASS_MAIN < 8, "a class does not fit into a turn: give it another bit of `place`");

#define ORDER_LAST_PLACE       ((UINT64_C(1) << 56) - 1)
#define ORDER_BEHIND(priority) ((uint32_t)(PRIORITY_MOST - (priority)))

/* Before every job's turn. */
static const struct order_turn order_start = {.class = CLASS_NONE};

static inline bool turn_is_before(struct order_turn turn, struct order_turn other)
{
    if (turn.class != other.class)
        return turn.class < other.class;
    return turn.behind == other.behind ? turn.place < other.place : turn.behind < other.behind;
}

/* Whether it is before the main queue. */
static inline bool turn_is_apart(struct order_turn turn)
{
    return turn.class < CLASS_MAIN;
}

/* The trees that a job may stand in (waiting/by_turn.h): of its queue, and of the jobs that nothing tells from it. */
enum by_turn { BY_TURN_QUEUE, BY_TURN_ALIKE, BY_TURN_KINDS };

/* Rows of job_state.def, by their PART: IF_JOB_##part(...) and IF_RUN_##part(...). */
#define IF_JOB_JOB(...) __VA_ARGS__
#define IF_JOB_RUN(...)
#define IF_RUN_JOB(...)
#define IF_RUN_RUN(...) __VA_ARGS__

/* What a job has since it was first placed: the RUN rows, and what belongs to them. */
struct job_run {
#define STATE(part, type, member, kind, name) IF_RUN_##part(type member;)
#include "core/job_state.def"
    uint32_t stray_count;          /* GPUs that it was not given, and was observed on in this run */
    struct job_placement *strays;  /* owned; these */
    struct record_failure failure; /* of one without a workload; else the history has it */
    struct job *job;
    struct job_run *previous, *next; /* its neighbours in profile.placed */
};

/* Of all jobs that were never placed. */
extern const struct job_run job_never_ran;

/* Thousands wait, and a decision looks at many of them: what it looks at comes first. */
struct job {
    uint64_t id;
    const struct record_submitted *wants; /* without the workload, which its history has: job_submitted() */
    struct user *user;                    /* the job's user; borrowed */
    struct profile *profile;              /* of its workload; borrowed; NULL: it has no key */
    struct autocluster *autocluster; /* while it waits: the jobs that nothing tells from it (autocluster.h): a cache */
    struct order_turn turn;          /* while it waits or is held */
    struct {
        struct job *before, *behind;
    } by_turn[BY_TURN_KINDS]; /* below it, in a tree that it stands in: a cache */
    uint32_t rank;            /* its place among those that wait; 0: it is not eligible: a cache (order.c) */
    uint32_t placement_count; /* GPUs held now */
#define STATE(part, type, member, kind, name) IF_JOB_##part(type member;)
#include "core/job_state.def"
    const struct job_run *run;        /* job_never_ran, or owned: never NULL. To change it: job_run() */
    struct job_placement *placements; /* owned; NULL while it holds none */
    struct dependency *depends;       /* owned list: what it waits for (waiting/depend.h) */
    struct awaited *awaited;          /* owned; NULL: nobody ever waited for it */
    struct job_array *array;          /* where a part of it has to wait (waiting/array.h); borrowed; or NULL */
    struct queue *queue;              /* the one it stands in, or NULL */
    struct job *previous;
    struct job *next;
    UT_hash_handle hh; /* core.jobs, by id */
};

/* To be changed: made at the first call, which is the first placement, and freed with the job. */
struct job_run *job_run(struct job *job);
void job_run_free(struct job *job);

/* Whether it waits for something else than GPUs (waiting/depend.h, waiting/array.h). */
static inline bool job_is_kept(const struct job *job)
{
    return job->depends || job->begin_ns || job->array_waits;
}

/* The latest time at which it may begin, for its deadline; INT64_MAX: there is none. */
int64_t job_latest_start_ns(const struct job *job);

/* Since when it waits for the GPUs that others may not keep from it for ever: a retry has had its run. */
int64_t job_waits_since_ns(const struct job *job);

#endif
