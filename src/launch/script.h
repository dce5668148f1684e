/* The copy of its script that a job runs: SCRIPT_DIRECTORY/NAME, in a directory that only the daemon can write, in a file
 * that only the job's user can read. */
#ifndef CARMA_LAUNCH_SCRIPT_H
#define CARMA_LAUNCH_SCRIPT_H

#include "launch/request.h"

/* Writes the copy, and makes the request's arguments what runs it: INTERPRETER [ARGUMENT] COPY and what stood behind the
 * script's name. A request without a script stays as it is. */
int script_place(struct request *request, struct error *err);

/* Once no process of the job is left; of a request without a script nothing. */
void script_remove(const struct request *request);

#endif
