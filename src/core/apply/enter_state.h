/* What follows from a job's next state (job.c says which that is). */
#ifndef CARMA_CORE_APPLY_ENTER_STATE_H
#define CARMA_CORE_APPLY_ENTER_STATE_H

#include <stdint.h>

struct core;
struct job;

void enter_state(struct core *core, struct job *job, uint32_t state, int64_t at_ns);

#endif
