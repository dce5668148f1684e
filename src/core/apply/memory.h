/* A running job's memory: what is observed of it, on its GPUs and on others, and its reservation as that changes. */
#ifndef CARMA_CORE_APPLY_MEMORY_H
#define CARMA_CORE_APPLY_MEMORY_H

#include <stdint.h>

struct core;
struct error;
struct job;
struct record;
struct record_memory;
struct record_shrunk;

int apply_memory(struct core *core, struct job *job, const struct record *record, struct error *err);
int apply_strayed(const struct core *core, struct job *job, const struct record_memory *strayed, struct error *err);
void apply_reservation(struct core *core, struct job *job, const struct record_shrunk *reservation);

#endif
