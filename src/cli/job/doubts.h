/* What a job will stumble on when it starts, hours after its submission perhaps, and what can be seen now. */
#ifndef CARMA_CLI_JOB_DOUBTS_H
#define CARMA_CLI_JOB_DOUBTS_H

#include <jansson.h>

#include "api/spec.h"

/* A complete specification's program, interpreter, conda environment and outputs are looked for, with the caller's
 * rights, and a warning a line goes to stderr. The job is submitted all the same: what is not there may come. */
void doubts_tell(const struct job_spec *spec);

/* An output that is not this job's alone. `paths`: an object, empty at first, of all jobs that are submitted together.
 */
void doubts_tell_shared(const struct job_spec *spec, json_t *paths);

void doubts_tell_command(const struct job_spec *spec); /* those of its command alone: it is run now */

#endif
