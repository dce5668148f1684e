/* The parts of carma-shepherd: its knowledge of its launch, and the files that use it. */
#ifndef CARMA_LAUNCH_SHEPHERD_SHEPHERD_H
#define CARMA_LAUNCH_SHEPHERD_SHEPHERD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch/request.h"
#include "launch/shepherd/child.h"
#include "launch/shepherd/progress.h"
#include "launch/shepherd/tail.h"
#include "launch/shepherd/writers.h"
#include "launch/status.h"
#include "launch/tree.h"

#define KILL_PAUSE_MS     20   /* between two rounds of SIGKILL, at first */
#define KILL_PAUSE_MAX_MS 1000 /* ... and after some: a process may hang in a driver for hours */

struct shepherd {
    struct shepherd_request request;
    struct launch_status status;
    char program[PATH_MAX];
    int filter; /* the kernel's program for request.devices; negative: carmad has none */
    int signal_fd;
    int first_fd;  /* of the file that will be the first status */
    int report_fd; /* -1: closed */
    char report[1024];
    size_t report_length;
    int handed_fd; /* came with the line of the report that is being read; -1: none */
    bool exec_said;
    bool checkpoint_removed;
    bool not_run;     /* "failed" or "unrun" was said; the status has the message */
    int unrun_status; /* the exit status that a shell would give, after "unrun"; else 0 */
    struct tail_origin output;
    struct tail_origin error;
    pid_t process;
    bool process_ended;
    int wait_status;
    volatile enum child_stage *stage; /* of the child, in memory shared with it */
    int64_t running_at_ns;  /* wall; when it is looked whether the command was executed; 0: not said, or known */
    int64_t start_until_ns; /* wall; when the start has taken too long; 0: it may take any time, or is over */
    bool abandoned;         /* the start's processes hang in the kernel; none of the job's resources wait for them */
    int64_t left_at_ns;     /* wall; when those that outlive the main process are ended; 0: it has not ended */
    int64_t kill_at_ns;     /* wall; when SIGTERM's grace is over; 0: the tree was not asked to end */
    int64_t kill_pause_ms;
    int64_t limit_at_ns;     /* node time; when the job's time is up; 0: never */
    int64_t idle_limit_ns;   /* node time; for which it has not used its GPUs, and is ended for it; 0: it is not */
    int64_t signal_at_ns;    /* node time; when it is told that its time will be up; 0: it is not, or was */
    int64_t suspended_at_ns; /* node time; since then its processes stand still; 0: they do not */
    char *memory_group;      /* owned; the control group that the job's memory.events are read from; NULL: unknown */
    int64_t oom_kills;       /* ... when the job began; -1: not known */
    struct watched_progress progress;
    struct watched_writers writers;
    struct {
        int listener; /* where clients come to the relay, until it has begun; -1: nowhere */
        int control;  /* closed to end the relay; -1: there is none */
    } terminal;
    struct tree tree;   /* the relay is spared in it */
    bool told;          /* there may be new orders */
    size_t orders_read; /* bytes of them */
    int64_t heal_at_ns; /* wall; when it is next looked whether others have removed something */
    bool heal_told;     /* that it could not be made again */
};

/* ---- shepherd.c ---- */

void shepherd_complain(const struct error *err);
void shepherd_write_status(struct shepherd *s);   /* and has the daemon look at it */
void shepherd_publish_status(struct shepherd *s); /* which may wait until it looks by itself */
void shepherd_launch_failed(struct shepherd *s, const char *text);
bool shepherd_stop_is_pending(struct shepherd *s);

/* ---- group.c: the job's control group ---- */

/* One for this launch alone, where one can be made; before the first status, which names it. A reader of that status
 * after our death finds the job by its group. The job is not known yet. */
void group_make(struct shepherd *s);
void group_limit(const struct shepherd *s);
bool group_filter_devices(const struct shepherd *s, const char *cgroup); /* whether there is one now */
void group_find(struct shepherd *s);                                     /* the one to which the running job belongs */
void group_remove(struct shepherd *s);                                   /* with processes that are left in it */

/* ---- start.c: the job's process, and its reports until it executes the command ---- */

/* Forks the job's process, which waits for its request; gives it that; or ends it, while it waits. */
int start_fork(struct shepherd *s);
int start_hand(struct shepherd *s, int request_fd);
void start_withdraw(struct shepherd *s);
void start_read_report(struct shepherd *s);
void start_see_execution(struct shepherd *s); /* "exec" was said a while ago, and somebody still holds the pipe */
void start_give_up(struct shepherd *s);

/* ---- deadlines.c: of the start and of the job ---- */

/* A job's time counts from here on, its user's login shell included. */
void deadlines_set(struct shepherd *s);
void deadlines_tell(struct shepherd *s);
/* Its signal now, and its limit so long after it as always, if it heeds that. */
void deadlines_move(struct shepherd *s);

/* Its time is up now: it has not used its GPUs for so long. */
void deadlines_end_idle(struct shepherd *s, int64_t limit_ns);

/* It stood still for so long: its time did, too. */
void deadlines_put_off(struct shepherd *s, int64_t stood_ns);

/* How long poll() may sleep: until the next thing that nobody will wake us for. */
int deadlines_wait_ms(const struct shepherd *s);

/* ---- orders.c ---- */

/* Does what carmad has said since the last turn. */
void orders_turn(struct shepherd *s);

/* ---- ending.c: the end of the job's tree, and its cause ---- */

void ending_begin(struct shepherd *s); /* SIGTERM, and time to act on it */
void ending_kill(struct shepherd *s);
bool ending_reap(struct shepherd *s); /* whether somebody is left */
/* fork(2) for a child that reads what the job's user wrote. It may hang there for ever, even when it is killed, so
 * nothing waits for it: to ending_reap() it is nobody. */
pid_t ending_fork_helper(void);
void ending_examine(struct shepherd *s); /* why it failed, as far as its output and the kernel say */
void ending_conclude(struct shepherd *s);

/* ---- left.c: what outlives the job's main process ---- */

/* Once that has ended: whether the others have had a moment to end as well. Those that have not are then noted. */
bool left_is_settled(struct shepherd *s);

/* ---- on_end.c: the command that the job's user wants then ---- */

void on_end_run(struct shepherd *s);

/* ---- heal.c: what others remove of a running launch is made again ---- */

void heal_turn(struct shepherd *s);

/* ---- lease.c: instead of a process ---- */

/* Before the first status: ends the process that was forked, and writes the variables down. */
int lease_prepare(struct shepherd *s, struct error *err);
void lease_watch(struct shepherd *s); /* to its end, with the cause */

#endif
