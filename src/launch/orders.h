/* What carmad tells the shepherd of a running job, beside that the job is to be stopped (launch_stop): lines of the
 * file "orders" in the run directory, in their order: a word, and a number where it takes one. A signal says that there
 * are new ones. A shepherd of an earlier carma heeds those that it knows. */
#ifndef CARMA_LAUNCH_ORDERS_H
#define CARMA_LAUNCH_ORDERS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define ORDERS_LIMIT (1 << 20) /* bytes: what is said beyond is refused, and not read */

/* Adds the line, and wakes the shepherd. -ESRCH: it no longer runs; -EFBIG: too many. */
int orders_add(const char *run_directory, pid_t shepherd, uint64_t start_ticks, const char *order, struct error *err);

/* Its path; owned by the caller. */
char *orders_file(const char *run_directory);

#endif
