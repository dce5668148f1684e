/* The data of `carma top` and its user's choices: the daemon's answers as rows, filtered and sorted; the selection.
 * Pure: no terminal, no daemon, no clock. */
#ifndef CARMA_CLI_TOP_MODEL_H
#define CARMA_CLI_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/top/text.h"

enum top_pane { TOP_GPUS, TOP_RUNNING, TOP_QUEUE, TOP_PANES };

/* The daemon's answers, about one moment; NULL: nothing yet. References are owned. */
struct top_picture {
    json_t *status;  /* GET /v1/status */
    json_t *gpus;    /* GET /v1/gpus */
    json_t *running; /* GET /v1/jobs?state=running */
    json_t *waiting; /* GET /v1/jobs?state=waiting, the first of them */
};
void top_picture_release(struct top_picture *picture);

struct top_gpu {
    const json_t *json;  /* of the picture */
    int64_t taken_bytes; /* memory that the daemon does not count as free: its jobs' reservations, others' memory, the
                            margin; -1: unknown */
    bool instance;       /* a MIG instance beneath its parent */
};

struct top_job {
    const json_t *json; /* of the picture */
    int64_t id;
    int64_t used_bytes;     /* the most that was observed of it on one of its GPUs; -1: it is on none */
    int64_t reserved_bytes; /* -1: not known */
    int64_t sm_permille;    /* mean SM activity of its GPUs; -1: not known */
    bool sm_coarse;         /* NVML's utilisation in its place, on one of them at least */
    int64_t slowdown_permille;
    int64_t done_permille; /* of its steps, by its own words; -1: not known */
    int64_t time_ns;       /* it runs or waits since then */
    int64_t energy_mj;
    size_t order; /* as the daemon lists it, those first that are retried before the queue */
};

enum top_sort {
    TOP_BY_ORDER,
    TOP_BY_NAME,
    TOP_BY_USER,
    TOP_BY_USED,
    TOP_BY_RESERVED,
    TOP_BY_SM,
    TOP_BY_SLOWDOWN,
    TOP_BY_DONE,
    TOP_BY_TIME,
    TOP_BY_ENERGY,
    TOP_SORTS
};

struct top_cursor {
    size_t selected; /* a row; 0 where there is none */
    size_t offset;   /* the first row that is shown: the view moves it to have the selected one in sight */
    int64_t id;      /* of the selected job, which is followed where it goes; -1: none */
};

/* The view below the GPUs, or instead of all of it. */
enum top_mode { TOP_LISTS, TOP_HELP, TOP_DETAILS, TOP_LOG };

#define TOP_FILTER    64
#define TOP_HEAD_JOBS 100   /* of the queue that are asked for where nobody scrolls further */
#define TOP_SEEN_JOBS 1000  /* that are looked through where there is a filter */
#define TOP_MOST_JOBS 10000 /* that one can scroll to */

struct top_model {
    struct top_picture picture;
    struct top_gpu *gpus;
    size_t gpu_count, gpu_capacity;
    struct top_job *jobs[TOP_PANES]; /* of TOP_RUNNING and TOP_QUEUE */
    size_t job_count[TOP_PANES], job_capacity[TOP_PANES];

    int64_t uid;  /* the user of the jobs that are "mine" */
    bool cluster; /* of all nodes, which are only looked at */
    enum top_pane focus;
    struct top_cursor cursors[TOP_PANES];
    size_t page[TOP_PANES]; /* rows of each pane on the screen, as last drawn */
    enum top_sort sort[TOP_PANES];
    bool reversed[TOP_PANES];
    char filter[TOP_FILTER]; /* words that are looked for in name, user and state */
    bool typing;             /* the filter */
    bool mine;
    bool unfolded; /* a row for each waiting job of an array */

    enum top_mode mode;
    int64_t shown_job;    /* of TOP_DETAILS and TOP_LOG */
    struct top_text text; /* the content of these and TOP_HELP */
    int64_t cancel_job;   /* the question y/n; -1: none */
    char which[96];       /* of a folded row that is acted on: its jobs, as the API selects them; "": one job */

    char message[sizeof(struct error)]; /* of the last thing that was asked for; "": none */
    bool message_bad;
    char lost[sizeof(struct error)]; /* why the daemon does not answer; "": it does */
    int64_t lost_s;                  /* for so long */
};

void top_model_init(struct top_model *model, int64_t uid);
void top_model_release(struct top_model *model);

/* Takes a new picture over. */
void top_model_take(struct top_model *model, struct top_picture *picture);

/* Makes the rows anew after the filter, `mine` or the order has changed. */
void top_model_arrange(struct top_model *model);

size_t top_model_rows(const struct top_model *model, enum top_pane pane);

/* The selected job of the pane that has the keys; NULL: none. */
const struct top_job *top_model_selected(const struct top_model *model);

/* Selects another row of the pane that has the keys, by this many lines. */
void top_model_move(struct top_model *model, int64_t lines);

/* Whether jobs of that pane can be sorted so. */
bool top_sort_applies(enum top_sort sort, enum top_pane pane);

/* How many waiting jobs to ask the daemon for. */
size_t top_model_wanted(const struct top_model *model);

/* As it is for people: "by memory used". */
const char *top_sort_name(enum top_sort sort);

#endif
