/* Records applied (core_apply in core.h): what other files of the core need of it. */
#ifndef CARMA_CORE_APPLY_H
#define CARMA_CORE_APPLY_H

#include <stdbool.h>

struct core;
struct record;
struct record_list;

/* A decision is a record like any other: it changes the state only by being applied. False: it does not apply. */
bool core_decided(struct core *core, struct record_list *out, const struct record *decision);

#endif
