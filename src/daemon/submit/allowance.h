/* How many changes a user may ask for: jobs submitted, held, released. Each is a record, and each job a row of the
 * history, which carma's disk keeps for a long time, whatever became of the job. */
#ifndef CARMA_DAEMON_SUBMIT_ALLOWANCE_H
#define CARMA_DAEMON_SUBMIT_ALLOWANCE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct daemon;

#define ALLOWANCE_A_DAY 250000 /* what is not asked for is saved, up to a day's */

/* Takes so many from the user's. -EDQUOT: he has not got them. Root and carmad's own user have any. */
int allowance_take(struct daemon *daemon, uid_t uid, uint64_t changes, struct error *err);

void allowances_release(struct daemon *daemon);

#endif
