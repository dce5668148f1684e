/* Jobs of which a row cannot be read in the store, is missing, or is not what the records lead to. The others are not kept
 * from running by them: such a job is shown as the core knows it, is not started any more, and is named with what to do. */
#ifndef CARMA_DAEMON_SET_ASIDE_H
#define CARMA_DAEMON_SET_ASIDE_H

#include "daemon/daemon.h"

struct job_view;

/* While the store is loaded: `format` says what of the job is wrong. Only the first is kept. */
__attribute__((format(printf, 2, 3))) void set_aside(struct job_view *view, const char *format, ...);

/* Once the records are in the core: it is right where what is stored of jobs says something else. */
void set_aside_what_disagrees(struct daemon *daemon);

/* Once all is loaded: takes those that wait out of the queue, and tells of all. One that runs is left to end. */
void set_aside_from_queue(struct daemon *daemon);

#endif
