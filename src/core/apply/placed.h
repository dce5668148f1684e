/* A job that gets its GPUs. */
#ifndef CARMA_CORE_APPLY_PLACED_H
#define CARMA_CORE_APPLY_PLACED_H

#include <stdint.h>

struct core;
struct error;
struct job;
struct record;

int check_gpus(const struct core *core, const struct job *job, uint32_t count, const uint32_t *gpus, struct error *err);
void apply_placed(struct core *core, struct job *job, const struct record *record);

#endif
