/* Jobs with a row in the store that cannot be read, is missing, or contradicts the records. They do not keep the others
 * from running. Such a job is shown as the core knows it, is not started any more, and is named with the remedy. */
#ifndef CARMA_DAEMON_SET_ASIDE_H
#define CARMA_DAEMON_SET_ASIDE_H

#include "daemon/daemon.h"

struct job_view;

/* While the store is loaded: `format` describes the damage to the job. Only the first is kept. */
__attribute__((format(printf, 2, 3))) void set_aside(struct job_view *view, const char *format, ...);

/* Once the records are in the core: the core is right where the stored rows of jobs differ. */
void set_aside_what_disagrees(struct daemon *daemon);

/* Once all is loaded: takes those that wait out of the queue, and tells of all. One that runs is left to end. Those
 * that were refused when the disk was full are cancelled, and told to nobody. */
void set_aside_from_queue(struct daemon *daemon);

#endif
