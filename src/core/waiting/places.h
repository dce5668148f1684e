/* A user orders his own waiting jobs. They exchange their places among themselves: nobody else's place changes, and
 * none of them comes before another user's job that no other of them was before. */
#ifndef CARMA_CORE_PLACES_H
#define CARMA_CORE_PLACES_H

#include "base/error.h"
#include "core/job.h"

struct core;

/* -EINVAL: it cannot go there. */
int place_put(struct core *core, struct job *job, const struct record_ordered *ordered, struct error *err);

#endif
