/* Automatic captures: where nothing is known of a job's memory, its training is recorded without a GPU while it waits
 * or begins (docs/automatic-capture.md). The job waits for none of it: the estimate is an input of its own, ESTIMATED.
 *
 * carma-sandbox runs the job's command as its user. One at a time of each user, in turns, and CAPTURES_MOST in all. */
#ifndef CARMA_DAEMON_CAPTURE_CAPTURES_H
#define CARMA_DAEMON_CAPTURE_CAPTURES_H

#include "daemon/capture/recording.h"

#define CAPTURES_MOST 2

const char *capture_outcome_name(uint32_t outcome); /* "estimated", ... */

/* Finds out, beside the loop, whether the sandbox can be had. Where not, the log says why, and carma captures only jobs
 * that ask for it. */
struct captures *captures_new(struct daemon *daemon);
void captures_free(struct captures *captures); /* ends those that run; run the loop until all is freed */

/* The job was submitted: it is captured soon, if it is one to be captured. */
void captures_consider(struct captures *captures, uint64_t job);

/* After the stored jobs were loaded: the same of those that wait, and have neither an estimate nor a reason for none.
 */
void captures_resume(struct captures *captures);

/* Why the command of a job is not tried of which nothing is known; NULL: it was, or will be, or need not be. The caller
 * frees it. */
char *captures_untried(const struct captures *captures, const struct job_view *view);

/* Nobody needs it any more. */
void captures_drop(struct captures *captures, uint64_t job);

/* How many have ended so since carmad began. */
uint64_t captures_count(const struct captures *captures, uint32_t outcome);

#endif
