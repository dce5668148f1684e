/* Finds a process's job: NVML names pids, carma knows launches.
 *
 * A process belongs to a launch when it is in the launch's own control group; else when it is the shepherd or descends
 * from it. Forks, executions and orphans do not change that, since the shepherd is the subreaper of the job's tree.
 * Else it belongs when it is of the session that the job's main process began. Start times
 * tell a process from a later one with its pid. Under MPS the driver lists the clients by their own pids, so nothing
 * differs.
 *
 * A lease's processes were begun by others, and may be older than it. They are in a group that was named for it, or
 * descend from a process that was named for it. */
#ifndef CARMA_LAUNCH_OWNER_H
#define CARMA_LAUNCH_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lease;

#define OWNER_COMMAND_SIZE 64

/* A launch, as its processes are known by. */
struct owner_launch {
    uint64_t job;
    pid_t shepherd;
    uint64_t shepherd_start_ticks;
    pid_t process; /* the job's main process; its pid is its session's number; 0: unknown */
    uint64_t process_start_ticks;
    const char *cgroup;        /* of this launch alone; "" or NULL: it has none */
    const struct lease *lease; /* NULL: it is none */
};

/* A process as /proc shows it. */
struct owner_process {
    uint64_t start_ticks;
    uint32_t uid;                     /* effective */
    char command[OWNER_COMMAND_SIZE]; /* its short name (comm), printable ASCII */
};

/* 0; -ENOENT or -ESRCH: no process of this PID namespace has the pid. */
int owner_read(pid_t pid, struct owner_process *process);

/* The launch of `attempts` that the process belongs to; NULL: none of them, or the process is gone. */
const struct owner_launch *owner_find(pid_t pid, const struct owner_launch *launches, size_t count);

/* The facts that owner_find() uses; for tests of cases that real processes cannot be made to show. */
struct owner_facts {
    struct owner_link {
        pid_t pid;
        uint64_t start_ticks;
    } * chain; /* owned; the process itself, then its parent, and so on */
    size_t count;
    size_t capacity;
    pid_t session;
    char *cgroup; /* owned; may be NULL */
};

const struct owner_launch *owner_judge(const struct owner_facts *facts, const struct owner_launch *launches,
                                       size_t count);

#endif
