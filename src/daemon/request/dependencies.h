/* What a submitted job waits for of other jobs (--dependency), or for a time (--begin). */
#ifndef CARMA_DAEMON_DEPENDENCIES_H
#define CARMA_DAEMON_DEPENDENCIES_H

#include <stdint.h>
#include <sys/types.h>

struct daemon;
struct error;
struct job_spec;
struct job_view;

/* How many records they become, of a job with so many namesakes before it in its request. *looks grows by the jobs that
 * this looked at, and dependencies_tell will again. */
uint64_t dependencies_cost(const struct daemon *daemon, const struct job_spec *spec, uid_t uid, uint64_t before,
                           uint64_t *looks);

/* Whether all of it can come true, by the jobs that carma knows: -EINVAL, -ENOENT. */
int dependencies_can_be(const struct daemon *daemon, const struct job_spec *spec, struct error *err);

/* The core is told of those that have not come true, as the job's submission was. */
void dependencies_tell(struct daemon *daemon, const struct job_view *view);

#endif
