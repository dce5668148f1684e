/* A job that comes to want something else: by an estimate, an edit, or a dependency. */
#ifndef CARMA_CORE_APPLY_WANTS_H
#define CARMA_CORE_APPLY_WANTS_H

#include <stdint.h>

struct core;
struct error;
struct job;
struct record_depends;
struct record_edited;
struct record_estimated;

int apply_estimated(struct core *core, struct job *job, const struct record_estimated *estimated, int64_t at_ns,
                    struct error *err);
int apply_depends(struct core *core, struct job *job, const struct record_depends *depends, int64_t at_ns,
                  struct error *err);
int apply_edited(struct core *core, struct job *job, const struct record_edited *edited, int64_t at_ns,
                 struct error *err);

#endif
