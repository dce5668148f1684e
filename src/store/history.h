/* Accounting: one row for each job that has ended, kept longer than the job's details, and each user's sums, kept for
 * ever. Format: docs/formats/history.md.
 *
 * Memory over time is counted in MiB times milliseconds of node time: bytes times nanoseconds would not fit 63 bits. */
#ifndef CARMA_STORE_HISTORY_H
#define CARMA_STORE_HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/job.h"

struct store;
struct store_batch;

struct store_history {
#define COLUMN(type, member, kind, sums, form, name) type member;
#include "store/history.def"
};

/* Waiting times, as a histogram is to show them: bounds in seconds, and as the columns are named. */
#define HISTORY_WAIT_BOUNDS 13
extern const int64_t history_wait_bounds_s[HISTORY_WAIT_BOUNDS];

/* The sums of a user's ended jobs, forgotten ones included. Sums that would not fit stay at the largest number. */
struct history_sums {
    int64_t ended[JOB_STATE_COUNT];       /* jobs, by the state in which they ended */
    int64_t launched;                     /* of them, those that were launched at all */
    int64_t wait_ns;                      /* of these */
    int64_t wait_le[HISTORY_WAIT_BOUNDS]; /* of these, those that waited at most that long */
    int64_t gpu_ns;
    int64_t memory_mib_ms;
    int64_t energy_mj;
    int64_t oom_crashes;
    int64_t handle_crashes;
    int64_t retries;
};

/* Adds a row, as the store itself does. */
void history_sums_add(struct history_sums *sums, const struct store_history *row);

/* *sum += more, at most INT64_MAX; a negative `more` counts 0. */
void history_add(int64_t *sum, int64_t more);

/* Puts the row, and counts it to its user's sums. Nothing happens where the job has one. */
void store_batch_history(struct store_batch *batch, const struct store_history *row);

/* The use of an ended job, in its row and in its user's sums. Nothing happens where it has no row. */
void store_batch_history_energy(struct store_batch *batch, uint64_t job, int64_t mj);

/* Forgets rows that ended before before_ns, the oldest first and not more than `most` at a time; the sums stay. */
void store_batch_forget_history(struct store_batch *batch, int64_t before_ns, uint32_t most);

/* The sums as of store_open. Before the first commit; a non-zero value of `take` ends it and is returned. */
int store_load_sums(struct store *store,
                    int (*take)(uint32_t uid, const char *user, const struct history_sums *sums, void *user_data),
                    void *user_data, struct error *err);

/* GPU memory that a job which has not ended holds, as far as it is counted. */
struct store_held {
    uint64_t job;
    int64_t at_ns; /* counted until then */
    int64_t bytes; /* held since then, on all of its GPUs */
    int64_t measured_bytes;
    int64_t mib_ms;
    int64_t measured_mib_ms;
};

/* Replaces the job's earlier value; gone once the job's row is put. */
void store_batch_held(struct store_batch *batch, const struct store_held *held);
int store_load_held(struct store *store, int (*take)(const struct store_held *held, void *user), void *user,
                    struct error *err);

/* ---- Questions: by any thread, while a daemon writes ---- */

/* Which rows. Texts are borrowed. */
struct store_history_filter {
    int64_t since_ns;          /* ended then or later; INT64_MIN: whenever */
    int64_t until_ns;          /* and before that; INT64_MAX: whenever */
    const char *user;          /* the user: a name, or a number as the user's id; NULL: any */
    const char *name;          /* pattern of the job's name: *, ?, [...] as in a shell; NULL: any */
    const char *state;         /* as in the row; NULL: any */
    const char *account, *tag; /* its project; one of its tags; NULL: any */
    uint64_t job;              /* this one alone; 0: any */
    uint64_t after;   /* with latest_first: those that come after this one, which has to be there; 0: from the latest */
    uint32_t most;    /* at most this many */
    bool sums;        /* only the members of sums are wanted: other numbers are 0, other texts "" or NULL ... */
    const char *text; /* ... but for this one: "user", "name", "account", "reservation_source"; NULL: none */
    bool latest_first; /* by end, then by number; else in any order */
};

/* How long a question may take. */
struct store_deadline {
    int64_t deadline_ns;         /* of CLOCK_MONOTONIC */
    const _Atomic bool *closing; /* nobody waits for the answer any more; NULL: somebody does */
};

/* Hands out the rows; a non-zero value of `take` ends it and is returned. -ETIMEDOUT: the time limit was reached. Each
 * call has a connection of its own, which only reads. */
int store_read_history(const char *directory, const struct store_history_filter *filter,
                       const struct store_deadline *deadline,
                       int (*take)(const struct store_history *row, void *user, struct error *err), void *user,
                       struct error *err);

/* The job's submission as it was stored, owned by the caller. -ENOENT: there is none. By any thread, too. */
int store_read_spec(const char *directory, uint64_t job, char **text, struct error *err);

/* Checks that the sums are at least those of the rows that are left: *rows is their number. -EBADMSG names the user
 * with a wrong sum. For a store that may be in use. */
int store_check_history(const char *directory, uint64_t *rows, struct error *err);

#endif
