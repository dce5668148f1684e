/* What each user's jobs have come to, ended and unfinished ones, from the first that the store ever knew on: numbers that
 * never fall while the daemon runs. What a user's ended jobs come to is kept by the store (store/history.h), forgotten
 * ones included; those that have not ended are added when somebody asks. The one source of GET /v1/stats and of GET
 * /metrics.
 *
 * Over a restart no number falls either, but where the daemon was killed: what was counted of memory and energy since
 * the store was last told of them (30 s of wall time) is then counted anew, and may come to a little less. */
#ifndef CARMA_DAEMON_TOTALS_H
#define CARMA_DAEMON_TOTALS_H

#include "daemon/daemon.h"
#include "store/history.h"

struct total {
    uint32_t uid;
    const char *user; /* borrowed: as known of the latest job */
    int64_t submitted; /* jobs */
    /* gpu_ns, memory_mib_ms, energy_mj (modelled), oom_crashes, handle_crashes and recoveries of unfinished jobs too, up to
     * now; launched, wait_ns and wait_le of all that were launched; `ended` of ended ones. */
    struct history_sums sums;
};

struct totals *totals_new(void);
void totals_free(struct totals *totals);

/* What is stored, once all else is loaded: jobs of which only records say that they ended (an earlier carma kept no
 * accounting) are counted too; the store has them with the next snapshot. */
int totals_load(struct daemon *daemon, struct error *err);

/* The job has ended with the record that was folded last: it is counted, once. */
void totals_end(struct totals *totals, const struct job_view *view);

/* A job that has ended already is found to have used more. */
void totals_add_energy(struct totals *totals, uint32_t uid, int64_t mj);

/* Calls `take` for each user that ever had a job, in the order of uids. What it is handed is valid until it returns. */
void totals_read(const struct daemon *daemon, int64_t now_ns, void (*take)(const struct total *total, void *user_data),
                 void *user_data);

/* How many jobs an ended state has in `total`, all of them together. */
int64_t total_ended(const struct total *total);

/* The row of the accounting for a job, as it is known; its texts are the view's. */
struct store_history history_row_of(const struct job_view *view);

#endif
