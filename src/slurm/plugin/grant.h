/* What a task gets: its job's lease by what Slurm has counted, and the variables, the group and the GPUs of it. */
#ifndef CARMA_SLURM_PLUGIN_GRANT_H
#define CARMA_SLURM_PLUGIN_GRANT_H

#include <stdint.h>

#include "slurm/plugin/step.h"
#include "slurm/plugin/text.h"

/* carmad stores and places the lease while slurmstepd sets the step up: the request is sent, and not waited for.
 * `share` may be NULL. */
void grant_ask_ahead(spank_t spank, const struct step *step, const char *share);

/* In a process that does not wait for that answer. */
void grant_forget_ahead(void);

/* In the task, while it is root's. 0, or lease_take()'s errors with carmad's reason in *answer. */
int grant_take(spank_t spank, const struct step *step, const char *share, int64_t deadline_ms, struct text *answer);

#endif
