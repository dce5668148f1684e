/* GPUs that are kept for a waiting job: by a decision, until the job starts, waits no more, or cannot have them. */
#ifndef CARMA_CORE_APPLY_RESERVED_H
#define CARMA_CORE_APPLY_RESERVED_H

#include <stdint.h>

struct core;
struct job;
struct record_reserved;

void end_reservation(struct core *core, struct job *job, int64_t at_ns);
void end_reservation_of_closed(struct core *core, int64_t at_ns);
void apply_reserved(struct core *core, struct job *job, const struct record_reserved *reserved, int64_t at_ns);
void step_aside(struct core *core, uint64_t id, int64_t at_ns);

#endif
