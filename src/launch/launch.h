/* Starting jobs, and knowing how they ended.
 *
 * Every launch of a job has a shepherd: a small process (program carma-shepherd) in a session of its own that outlives
 * the daemon. It forks the job, reaps its whole tree, classifies its failure and keeps RUN_DIRECTORY/status up to date
 * (docs/formats/launch-status.md). The daemon reads that file when it is woken, when it starts, and whenever it likes.
 *
 * A launch is identified by its run directory. The first status is created exclusively. So either the shepherd or a
 * restarted daemon that gives the launch up (launch_settle) wins: a job never runs unknown or twice. */
#ifndef CARMA_LAUNCH_LAUNCH_H
#define CARMA_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "core/record.h"
#include "launch/cgroup/cgroup.h"
#include "launch/classify.h"
#include "launch/progress.h"

struct cause_evidence;

/* The job's place in its array (api/array.h); zeroes of a job that is of none. */
struct launch_array {
    uint64_t id; /* of its first job */
    uint32_t index;
    uint32_t jobs, least, most; /* how many there are, and their indices */
};

struct launch_request {
    const char *shepherd;      /* path of the program */
    const char *run_directory; /* absolute; made here with mode 0700; must not exist yet */
    bool lease; /* no process is started (launch/lease.h); start_timeout_ns: the first one comes by then */
    const char *name, *directory;
    const char *output, *error;    /* patterns: launch_output_path(); without `error` it goes into the output */
    const char *conda_environment; /* may be NULL */
    const char *container;         /* an image, in which it runs; may be NULL */
    const char *container_engine;  /* "podman" or "apptainer"; NULL: the first that is there */
    const char *surroundings;      /* base/surroundings.h; may be NULL */
    const char *script;            /* its text; the command's first word is then its name. NULL: it is not a script */
    const char *script_directory;  /* where the shepherd keeps the copy of its script (launch/shepherd/script.h), and
                                    * beside it launch_progress_file() and launch_terminal_socket(); made, and removed
                                    * at the end, by the shepherd; NULL: none of these is wanted */
    char *const *arguments;        /* the command and its arguments */
    size_t argument_count;
    char *const *environment; /* NAME=value */
    size_t environment_count;
    const char *attach; /* how carma run is attached (launch/terminal.h): "pipe", "pty:24x80"; NULL: it is not */
    const char *on_end; /* a command for sh after its end (launch/shepherd/on_end.c); NULL: none */
    bool requeue;       /* it asks to be started again after its time limit */
    bool no_progress;   /* its progress is not looked at */
    uint64_t job;
    struct launch_array array;
    uint32_t launch; /* 1, 2, ...: counts launches of this job; output is truncated by the first only */
    uid_t uid;       /* the job's user; must be the daemon's own unless that is root */
    gid_t gid;
    const char *user;               /* name for initgroups(); needed where root starts another user's job */
    const char *gpu_uuids;          /* comma separated */
    const char *indices;            /* for CUDA_VISIBLE_DEVICES in their place, as they are counted under MPS or, with
                                     * `devices`, behind the filter; NULL: the UUIDs */
    int64_t gpu_memory_bytes;       /* reserved for it on each of them */
    int64_t gpu_total_bytes;        /* memory of the largest of them */
    const char *devices;            /* which device nodes it may open (launch/cgroup/device_filter.h); NULL: all */
    const char *mps_pipe_directory; /* NULL: no MPS; the job gets an empty directory that is not an MPS daemon's */
    const char *mps_log_directory;  /* with mps_pipe_directory; may be NULL */
    uint32_t mps_threads_percent;   /* with mps_pipe_directory: of each GPU's threads at the most; 0: not limited */
    int64_t mps_memory_limit_bytes; /* the same: pinned device memory of its clients on each GPU; -1: not limited */
    const char
        *notify_socket; /* Unix datagram socket that gets "JOB LAUNCH\n" after each change of the status; may be NULL */
    struct cgroup_limits limits; /* of its control group, where it gets one */
    int64_t grace_ns;            /* wall time between SIGTERM and SIGKILL */
    int64_t start_timeout_ns;    /* wall time from started_ns that the job may take to execute the command; 0: any */
    int64_t time_limit_ns;       /* node time from started_ns that the job may take before it is stopped; 0: any */
    int signal;                  /* with time_limit_ns: sent before the limit to jobs that catch or block it; 0:
                                    none */
    int64_t signal_before_ns;    /* ... so long before, in node time */
};

enum launch_phase {
    LAUNCH_STARTING, /* the shepherd is there; the command is not running yet */
    LAUNCH_RUNNING,
    LAUNCH_ENDED,  /* the whole process tree has ended */
    LAUNCH_FAILED, /* the command was never run; `message` says why */
    LAUNCH_PHASE_COUNT
};

#define LAUNCH_LEFT_TEXT 96

struct launch_status {
    enum launch_phase phase;
    uint64_t job;
    uint32_t launch;
    char boot[40];  /* the boot of the machine (its boot_id) to which all pids belong; "": not known */
    bool rebooted;  /* read from before this boot, and not at its end: pids are 0, the control group is gone */
    pid_t shepherd; /* 0: a launch that was given up before its shepherd began */
    uint64_t shepherd_start_ticks;
    pid_t process; /* the job's main process, also its session; 0 before it exists */
    uint64_t process_start_ticks;
    int64_t started_ns;    /* node time at which the job was let go; 0 before */
    int64_t ended_ns;      /* node time at which the tree was empty, or the launch failed; 0 before */
    int32_t exit_status;   /* of the main process; -1: none, it was ended by `signal` */
    int32_t signal;        /* 0: none */
    enum exit_cause cause; /* once ENDED, as far as the shepherd can tell (launch/cause.h) */
    bool host_oom_kill;    /* processes in the job's control group that the kernel killed because memory ran out while
                              it ran */
    bool host_oom_own;     /* ... and that group is the job's alone: it killed the job, or a process of it */
    /* Of the job's output, once it has ended, and failed or told of GPU memory (launch/classify.h): */
    enum output_kind output;
    uint32_t evidence;       /* of GPU memory, as far as the shepherd sees it: bits of enum exit_evidence */
    int64_t requested_bytes; /* size of the failed allocation of GPU memory; -1: unknown */
    int64_t free_bytes;      /* memory free at that time; -1: unknown */
    uint32_t tenant_count;   /* other processes that held memory then */
    struct classify_tenant tenants[CLASSIFY_MAX_TENANTS];
    struct progress_count progress; /* while it runs, as far as it says */
    bool warned;                    /* some of its processes were given the signal that comes before its time is up */
    bool timed_out;                 /* it was stopped because of time_limit_ns, or */
    bool idle;                      /* because it did not use its GPUs: carmad has said so */
    bool stopped;                   /* a stop was requested, or the time was up, before the tree had ended */
    char cgroup[256];               /* the launch's own control group (launch/cgroup/cgroup.h); "": it has none */
    uint32_t left_count;            /* processes that outlived the main one, and were ended */
    char left[LAUNCH_LEFT_TEXT];    /* their names, each once */
    char message[256];              /* one line without control characters, or "" */
};

/* One line on what was left behind, with the remedy; NULL: nothing was. Owned by the caller. */
char *launch_left_text(const struct launch_status *status);

/* The facts of a launch's end in its status, for cause_decide() (launch/cause.h). */
struct cause_evidence launch_evidence(const struct launch_status *status);

const char *launch_phase_name(enum launch_phase phase); /* "starting", "running", "ended", "failed" */

/* A launch that has begun. The shepherd is the caller's child: see launch_alive(); the ticks tell it from a later
 * process with its pid. */
struct launch_begun {
    pid_t shepherd;
    uint64_t start_ticks;
    int fd; /* by which it is told to go on */
};

/* Makes the run directory and has a shepherd fork the job. The job waits before it does anything that a user could see
 * but the empty checkpoint directory: the launch has no status yet. */
int launch_begin(const struct launch_request *request, struct launch_begun *begun, struct error *err);

/* Lets the job run. A shepherd that was killed meanwhile is found dead. */
void launch_go(struct launch_begun *begun);

/* Instead of launch_go(): nothing is left of the launch. */
void launch_drop(struct launch_begun *begun, const char *run_directory);

/* The launch's status now. -ENOENT: none yet; -EINVAL: not a status. Of a launch that had not ended before the machine
 * was started anew no pid is told: they are others' now. */
int launch_read_status(const char *run_directory, struct launch_status *status, struct error *err);

/* For a daemon that starts, and for a shepherd that is gone: the launch's status. Where there is none, makes it FAILED
 * for good, so that a shepherd which is only just beginning will refuse to run the job. */
int launch_settle(const char *run_directory, struct launch_status *status, struct error *err);

/* Asks the shepherd to stop the job: SIGTERM to its tree, grace_ns, SIGKILL. -ESRCH: this shepherd no longer runs. */
int launch_stop(pid_t shepherd, uint64_t start_ticks, struct error *err);

/* Whether this shepherd still runs. Reaps it where it is the caller's child and has exited. */
bool launch_alive(pid_t shepherd, uint64_t start_ticks);

/* What hinders this shepherd, as a clause with its pid; NULL: nothing that /proc shows. */
const char *launch_hindrance(pid_t shepherd, uint64_t start_ticks);

/* What is left of a job's processes; zombies do not count. */
enum launch_left {
    LEFT_NONE,
    LEFT_SOME,
    LEFT_HANGING, /* none but those that were killed and hang in the kernel (launch/hanging.h) */
    LEFT_UNKNOWN, /* yet: it is being found out */
};

/* For a launch whose shepherd died without a last status (LOST), or does not answer. Sends a signal to the job's
 * session, the children of a shepherd that lives, and the descendants; SIGKILL ends its control group, 0 only looks.
 * Reads all of /proc: carmad has it done by launch_sweep_aside(). */
enum launch_left launch_sweep(const struct launch_status *status, uid_t uid, int signal);

/* A program that sweeps, and when it is begun again. Zero at first, and where the next one is due at once. */
struct sweeper {
    pid_t pid;             /* 0: none runs */
    int signal;            /* that it sends */
    enum launch_left left; /* as the last one found it */
    int64_t next_wall_ns, pause_ns;
};

/* Whether none runs any more: then the struct may be given up. */
bool launch_sweeper_is_over(struct sweeper *sweeper);

/* The same by the program `shepherd`, aside: LEFT_UNKNOWN until it has ended, and for a growing while after it has left
 * some. After SIGTERM comes SIGCONT. With a `mark`, a run directory, it also looks for the owner's other processes that
 * carry its environment, once no others are left. One whose environment cannot be read is not found. With SIGKILL, call
 * it until none is left before the job is retried. */
enum launch_left launch_sweep_aside(const char *shepherd, const struct launch_status *status, const char *mark,
                                    uid_t uid, int signal, struct sweeper *sweeper);

/* That program: its exit status is an enum launch_left. */
#define SWEEP_ARGUMENTS 8
int sweep_main(char **argv);

/* For a launch whose shepherd does not answer, once none of its processes is left: kills the shepherd, and writes the
 * last status in its place. */
int launch_conclude(const char *run_directory, struct launch_status *status, const char *message, struct error *err);

/* The FIFO that a job may write its progress to, beside the directory; NULL without one. Owned by the caller. */
char *launch_progress_file(const char *script_directory);

/* The socket of its terminal (launch/terminal.h), likewise. */
char *launch_terminal_socket(const char *script_directory);

/* The path that an output pattern names: %j is the job's number, %A its array's, or its own, and in an array %a is
 * its index. Owned by the caller. */
char *launch_output_path(const char *pattern, uint64_t job, const struct launch_array *array);

#endif
