/* The sums of each user's jobs, ended and unfinished, from the first job that the store ever knew. These numbers never
 * fall while the daemon runs. The sums of a user's ended jobs are kept by the store (store/history.h), forgotten ones
 * included; unfinished jobs are added when somebody asks. The one source of GET /v1/stats and of GET /metrics.
 *
 * No number falls over a restart either, unless the daemon was killed. Memory and energy since the last storing (30 s
 * of wall time) are then counted anew, and may be a little less. */
#ifndef CARMA_DAEMON_ACCOUNT_TOTALS_H
#define CARMA_DAEMON_ACCOUNT_TOTALS_H

#include "daemon/daemon.h"
#include "store/history.h"

struct total {
    uint32_t uid;
    const char *user;  /* borrowed: as known of the latest job */
    int64_t submitted; /* jobs */
    /* Of unfinished jobs too, up to now: gpu_ns, memory_mib_ms, energy_mj (modelled), oom_crashes, handle_crashes and
     * retries. Of all that were launched: launched, wait_ns and wait_le. Of ended ones: `ended`. */
    struct history_sums sums;
};

struct totals *totals_new(void);
void totals_free(struct totals *totals);

/* The stored sums, once all else is loaded. Jobs that ended by records alone (an earlier carma kept no accounting) are
 * counted too; the store has them with the next snapshot. */
int totals_load(struct daemon *daemon, struct error *err);

/* The job has ended with the record that was folded last: it is counted, once. */
void totals_end(struct totals *totals, const struct job_view *view);

/* A job that has ended already is found to have used more. */
void totals_add_energy(struct totals *totals, uint32_t uid, int64_t mj);

/* Calls `take` for each user that ever had a job, in the order of uids. Its arguments are valid until it returns. */
void totals_read(const struct daemon *daemon, int64_t now_ns, void (*take)(const struct total *total, void *user_data),
                 void *user_data);

/* How many jobs an ended state has in `total`, all of them together. */
int64_t total_ended(const struct total *total);

/* The row of the accounting for a job, as it is known; its texts are the view's. */
struct store_history history_row_of(const struct job_view *view);

#endif
