/* What carmad tells the shepherd of a running job, beside that the job is to be stopped (launch_stop): lines of the
 * file "orders" in the run directory, in their order: a word, and a number where it takes one. A signal says that there
 * are new ones. A shepherd of an earlier carma heeds those that it knows. */
#ifndef CARMA_LAUNCH_ORDERS_H
#define CARMA_LAUNCH_ORDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define ORDERS_LIMIT (1 << 20) /* bytes: what is said beyond is refused, and not read */
/* What the job's owner may say of these: nobody makes his job deaf to administrators and carmad. */
#define ORDERS_OF_OWNER (ORDERS_LIMIT / 2)

/* Adds the line, and wakes the shepherd. -ESRCH: it no longer runs; -EFBIG: too many. */
int orders_add(const char *run_directory, pid_t shepherd, uint64_t start_ticks, const char *order, struct error *err);

/* Whether the owner of its job has said as much as he may. */
bool orders_owner_is_heard_out(const char *run_directory);

/* Its path; owned by the caller. */
char *orders_file(const char *run_directory);

#endif
