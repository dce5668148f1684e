/* One job placed on the GPUs that it fits. */
#ifndef CARMA_CORE_PLACE_H
#define CARMA_CORE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct job;
struct record_list;

/* Whether something may be placed already. */
bool core_decision_due(const struct core *core, int64_t now_ns);

/* Places the job if it fits. False: it does not. */
bool core_place(struct core *core, struct job *job, int64_t now_ns, struct record_list *out);

#endif
