/* Playing a trace: its jobs are submitted at their times, and followed until all have ended. */
#ifndef CARMA_CLI_PLAY_PLAY_H
#define CARMA_CLI_PLAY_PLAY_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/play/usage.h"
#include "trace/trace.h"

struct play_item {
    const struct trace_job *job;
    char *output;    /* path of its output file: no other job has it */
    uint64_t id;     /* 0: not submitted yet */
    int64_t crashes; /* as last seen */
    bool running;    /* as last observed: it has GPUs */
    bool listed;     /* in the latest list of unfinished jobs */
    json_t *ended;   /* owned: the job as the daemon shows it once it has ended; NULL until then */
};

struct play {
    struct cli *cli;
    const char *train;     /* program that each job runs */
    const char *directory; /* where the jobs run and write */
    const char *workloads; /* the file that the jobs look their workload up in; NULL: the installed one */
    double jitter;         /* standard deviation of the factor on run times */
    int64_t seed;          /* of the jitter */
    char **summaries;      /* owned array of owned texts, one per workload known; NULL: it has none */
    const struct workload *first_workload; /* of that array */
    bool estimates;                        /* declare the recorded estimate as the job's GPU memory */
    double scale;                          /* node time runs this much faster than the wall clock */
    struct play_item *items;
    size_t count;
    size_t submitted; /* items[0 .. submitted) have ids */
    size_t in_doubt;  /* above submitted: the answer for items[submitted .. in_doubt) did not come */
    size_t done;
    uint64_t greatest_id;  /* of the jobs known */
    int64_t begun_wall_ns; /* monotonic */
    struct usage usage;
    bool interactive; /* stderr is a terminal */
    int64_t next_line_wall_ns;
};

/* Set to its number by the caller's signal handler: stop as soon as may be. */
extern volatile sig_atomic_t play_interrupted;

/* Submits and follows until all jobs have ended: 0. -EINTR after an interruption; else one line. */
int play_run(struct play *play, struct error *err);

/* Cancels the submitted jobs that have not ended; returns how many. Complains where it cannot find out. */
size_t play_cancel_rest(struct play *play);

/* One line on stderr about how far it is: redrawn on a terminal, else every few seconds. */
void play_show_progress(struct play *play, bool last);

/* {"jobs": [spec]} for items[from .. to). */
json_t *play_request(const struct play *play, size_t from, size_t to);

#endif
