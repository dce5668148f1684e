/* The copy of its script that a job runs: SCRIPT_DIRECTORY/NAME. Only the daemon can write the directory, and only the
 * job's user can enter it and read the file. */
#ifndef CARMA_LAUNCH_SHEPHERD_SCRIPT_H
#define CARMA_LAUNCH_SHEPHERD_SCRIPT_H

#include "launch/request.h"

/* Replaces the request's arguments with those that run the copy: INTERPRETER [ARGUMENT] COPY and the arguments behind
 * the script's name. A request without a script stays as it is, here and below. */
int script_place(struct shepherd_request *request, struct error *err);

/* Writes the copy, in place of one that could not be written to its end. */
int script_write(const struct shepherd_request *request, struct error *err);

/* Once no process of the job is left; of a request without a script nothing. */
void script_remove(const struct shepherd_request *request);

#endif
