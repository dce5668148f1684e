/* What a submitted job waits for of other jobs (--dependency), or for a time (--begin). */
#ifndef CARMA_DAEMON_DEPENDENCIES_H
#define CARMA_DAEMON_DEPENDENCIES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct daemon;
struct error;
struct job_spec;
struct job_view;

/* What the jobs of one submission wait for: first judged, job by job, then told to the core. */
struct dependencies {
    uint64_t count;              /* records that they become */
    uint64_t looks;              /* at jobs, for those that wait for all of a name */
    struct namesakes *namesakes; /* uthash by name, owned: of the names that are waited for */
};

struct awaited_name {
    const char *name; /* borrowed */
    uint32_t jobs;
};

/* Whether all of what a job of this user waits for can come true, by the jobs that carma knows: -EINVAL, -ENOENT. And
 * whether it is not too much with that of the jobs before it in its submission: -E2BIG. `jobs`: it is an array of so
 * many. `before`: those before it. */
int dependencies_judge(struct dependencies *all, const struct daemon *daemon, const struct job_spec *spec, uid_t uid,
                       uint32_t jobs, const struct awaited_name *before, size_t before_count, struct error *err);

/* The core is told of those that have not come true, as the job's submission was. For each job, in the same order. */
void dependencies_tell(struct dependencies *all, struct daemon *daemon, const struct job_view *view);

void dependencies_release(struct dependencies *all);

#endif
