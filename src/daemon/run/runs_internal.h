/* Shared by the files of the runs. runs.c has the table of launches under way; runs_start.c starts and stops jobs.
 * runs_status.c follows the status files, run_progress.c what they say of the job's progress; runs_takeover.c ends jobs
 * whose shepherd does not; runs_reconcile.c takes up the runs that an earlier daemon left. */
#ifndef CARMA_DAEMON_RUN_RUNS_INTERNAL_H
#define CARMA_DAEMON_RUN_RUNS_INTERNAL_H

#include "daemon/run/runs.h"
#include "daemon/run/mps_jobs.h"
#include "launch/launch.h"
#include "launch/lease.h"

#define PREPARE_WALL_MS 2 /* behind a start: its job has been executed by then, and the next one may be near */

/* Of a shepherd that does not do what it was told (runs_takeover.c). Wall times are monotonic. */
struct takeover {
    int64_t told_wall_ns;  /* when it was told to stop its job; 0: it was not */
    int64_t kill_wall_ns;  /* carmad ends the job itself, and kills from then on; 0: it does not */
    bool asked;            /* its processes had SIGTERM */
    bool hangs;            /* what is left of them was killed and hangs in the kernel */
    int64_t empty_wall_ns; /* when no process of the job was left; 0: there are some */
    int64_t empty_ns;      /* the same in node time */
    char why[64];
};

struct run {
    uint64_t job;
    char *directory; /* owned */
    pid_t shepherd;
    uint64_t start_ticks;
    struct lease lease; /* of one that is a lease */
    bool is_lease;
    struct launch_status status; /* as last read: where its processes are, how it ended */
    int64_t ended_wall_ns;       /* monotonic; when its end was first observed; 0: it has not ended */
    uint32_t uid;
    struct progress_count counted_from; /* its speed is measured since then; at_ns 0: since nothing */
    int64_t taught_ns,
        taught_settled_ns;   /* when its speed was last an input, and since when its neighbours were settled then */
    bool started;            /* the core knows that it runs */
    bool doubted;            /* it was said that there is a status which is not its shepherd's */
    bool waits;              /* its shepherd waits for space, and says so */
    bool timed_out;          /* its time is up, and its MPS clients were seen to */
    int64_t missing_wall_ns; /* monotonic; since when no status is there of a job that ran; 0: there is one */
    bool retry_later;        /* it could not begin for lack of space or the like, and has no shepherd */
    struct sweeper sweeper;
    struct takeover takeover;
    bool over; /* the core knows that it has ended; the shepherd has still to be reaped */
    struct run *next;
};

/* A launch that waits until its placement is stored: the time to store it is won. */
struct early {
    uint64_t job; /* 0: there is none */
    uint32_t launch;
    char *directory; /* owned */
    struct launch_begun begun;
};

struct runs {
    struct daemon *daemon;
    char *directory; /* of all run directories */
    char *scripts;   /* of the scripts of jobs that run: where their users can read them */
    char *shepherd_path;
    char *notify_path;
    int notify_fd;
    uv_poll_t *notify_poll;
    uv_timer_t *look;
    uv_timer_t *prepare; /* the next shepherd, once the last job has had the processors for its own start */
    struct run *first;
    struct early early;
    char *limits_gap;     /* why the host limits of jobs are not in force here; NULL: they are */
    bool heal_told;       /* that something was removed and cannot be made again */
    bool filters_devices; /* jobs can open the device nodes of their own GPUs only */
    bool start_failed;    /* the last start failed for lack of a resource that may return; reported once */
};

/* runs.c: the table, and functions for all the files. Paths are owned by the caller. runs_run_of() is the launch of the
 * job that is under way, or NULL. runs_input() and runs_feed_...() are inputs of the engine's current turn. */
uint32_t runs_tries_of(const struct runs *runs, const struct job_view *view);
char *runs_directory_of(const struct runs *runs, const struct job_view *view, uint32_t try);
char *runs_script_directory_of(const struct runs *runs, const char *run_directory);
struct run *runs_add(struct runs *runs, const struct job_view *view, const char *directory, pid_t shepherd,
                     uint64_t start_ticks);
struct run *runs_run_of(const struct runs *runs, uint64_t job);
void runs_remove(struct runs *runs, struct run *run);
void runs_input(struct runs *runs, const struct record *record);
void runs_set_message(struct runs *runs, uint64_t job, const char *message);
void runs_feed_launch_failed(struct runs *runs, uint64_t job, const char *message);
void runs_feed_lost(struct runs *runs, uint64_t job, const char *message);

/* runs_start.c: runs_start_unless_cancelled() makes a failure an input, too; runs_drop_early() undoes a launch that was
 * begun early, where there is one. */
void runs_start_unless_cancelled(struct runs *runs, const struct job_view *view);
void runs_stop_shepherd(struct daemon *daemon, uint64_t job);
void runs_on_prepare(uv_timer_t *timer);
void runs_drop_early(struct runs *runs);

/* run_verbs.c: to a shepherd that may not have heard it of an earlier daemon, whether its job is to leave its GPUs, to
 * stand still, or to go on. */
void runs_tell_again(struct runs *runs, const struct job_view *view);

/* run_progress.c: takes in how far the running job has come, by its status. */
void runs_take_progress(struct runs *runs, struct run *run);

/* runs_takeover.c: its shepherd was told to stop the job; looks whether it does. */
void runs_told(struct run *run);
void runs_take_over(struct runs *runs, struct run *run);

/* Of a run whose shepherd is dead: its processes are killed, none is left, and its GPUs are free. Call it until then.
 */
bool runs_killed(struct runs *runs, struct run *run, const struct launch_status *status);

/* runs_status.c: runs_end_timed_out() ends MPS clients of a job whose time is up, and has its shepherd end the rest;
 * runs_take_status() is true when the launch is over, or will be without a shepherd. */
void runs_remove_files(const struct runs *runs, const struct run *run);
void runs_end_timed_out(struct runs *runs, struct run *run);
bool runs_take_status(struct runs *runs, struct run *run, const struct launch_status *status);
void runs_handle_dead_shepherd(struct runs *runs, struct run *run);
void runs_on_look(uv_timer_t *timer);
void runs_on_notified(uv_poll_t *poll, int status, int events);

#endif
