/* The environment of a job: its submitter's, carma's own variables, and some that are good where its user says nothing.
 */
#ifndef CARMA_LAUNCH_SHEPHERD_VARIABLES_H
#define CARMA_LAUNCH_SHEPHERD_VARIABLES_H

#include <stddef.h>

#include "base/strbuf.h"
#include "launch/request.h"

/* carma's own, which win over the submitter's. CARMA_RUN marks the job's processes (launch_sweep). `checkpoint`: the
 * directory that was made for it; NULL: none could be. For the life of the program. */
struct strbuf *variables_of_carma(const struct shepherd_request *request, const char *checkpoint, size_t *count);

/* All of them, for `environ`; they lead into the request and the own variables. */
char **variables_of_job(const struct shepherd_request *request, const struct strbuf *own, size_t own_count);

/* The job is not behind the device filter that its request counted on: it counts the GPUs otherwise, so that their
 * UUIDs take the place of indices. Under MPS its server's list counts. */
void variables_unfiltered(const struct shepherd_request *request, struct strbuf *own, char **all);

/* For a lease, whose processes somebody else starts: each with a NUL behind it. */
void variables_print(const struct shepherd_request *request, struct strbuf *text);

#endif
