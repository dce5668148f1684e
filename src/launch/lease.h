/* A lease: a launch without a process of its own. Somebody else's processes, those of a step of a Slurm job, come to
 * use the GPUs. The daemon writes who they are, and how they ended, to RUN_DIRECTORY/lease
 * (docs/formats/launch-status.md); the launch's shepherd and the next daemon read it there. */
#ifndef CARMA_LAUNCH_LEASE_H
#define CARMA_LAUNCH_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define LEASE_EXPIRES_MS   30000  /* wall time in which the first process has to come */
#define LEASE_ORPHAN_MS    10000  /* wall time without a process, or one that tells its end, after which nobody will */
#define LEASE_BATCH_MS     300000 /* the same where a batch script's end is to be told: late, where carmad was away */
#define LEASE_MAX_STEPS    256
#define LEASE_MAX_TASKS    4096 /* of all steps */
#define LEASE_STEP_SIZE    16   /* of a step's name, NUL included */
#define LEASE_OUTPUT_BYTES (64 << 10)

struct lease_task {
    pid_t pid;
    uint64_t start_ticks;
    pid_t parent; /* of one that has named itself: whoever tells its end, a slurmstepd; 0: not known */
    uint64_t parent_start_ticks;
};

struct lease_step {
    char name[LEASE_STEP_SIZE];
    char *cgroup; /* owned; a group that is looked into, and neither ended nor removed; NULL: none is known */
    struct lease_task *tasks;
    size_t task_count, task_capacity;
};

/* All zero: nobody has come yet. */
struct lease {
    struct lease_step *steps;
    size_t count, capacity;
    bool ended;
    bool stopped;        /* somebody wanted it to end */
    int32_t exit_status; /* -1: ended by `signal` */
    int32_t signal;
    char *output; /* owned; the end of its output; NULL: not said */
};

void lease_release(struct lease *lease);

/* The step of that name, added where it is new; NULL: there are too many. */
struct lease_step *lease_step(struct lease *lease, const char *name);

/* Adds a process to the step. False: there are too many. */
bool lease_add_task(struct lease *lease, struct lease_step *step, struct lease_task task);

/* The first process that a step has named and that lives; 0: there is none. */
pid_t lease_living_task(const struct lease *lease);

/* Whether somebody lives who is to tell the end. */
bool lease_has_teller(const struct lease *lease);

/* A lease without the file is one that nobody has come to. -EINVAL: it is not one. */
int lease_read(const char *run_directory, struct lease *lease, struct error *err);
int lease_write(const char *run_directory, const struct lease *lease, struct error *err);

/* The text of the file; `name` is for messages. */
int lease_parse(const char *name, const char *text, size_t length, struct lease *lease, struct error *err);

/* Has the shepherd read the file. One that is not woken reads it within a second. */
void lease_wake(pid_t shepherd, uint64_t start_ticks);

/* The variables that its processes need, as the shepherd wrote them: each ends with a NUL. Owned by the caller. */
int lease_read_environment(const char *run_directory, char **text, size_t *length, struct error *err);
char *lease_environment_file(const char *run_directory); /* owned by the caller */

#endif
