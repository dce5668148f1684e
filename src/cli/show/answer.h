/* Looking into the daemon's JSON, and jobs as people read them. A missing or null member reads as the default: an older
 * or newer daemon must not crash its client. */
#ifndef CARMA_CLI_SHOW_VIEW_H
#define CARMA_CLI_SHOW_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/show/term.h"

void json_release(json_t **json); /* for CLEANUP */

int64_t answer_integer(const json_t *object, const char *name, int64_t otherwise);
double answer_number(const json_t *object, const char *name, double otherwise);
const char *answer_text(const json_t *object, const char *name); /* borrowed; NULL: not a string */
bool answer_true(const json_t *object, const char *name);

/* Names all owned by the caller and safe to print. */
char *answer_safe_text(const json_t *object, const char *name); /* "-" where there is none */
char *answer_bytes(const json_t *object, const char *name);     /* "12.4 GiB", "-" */
char *view_process(const json_t *process);                      /* "process 7 (python of ada) holds 12.4 GiB" */
char *answer_permille(const json_t *object, const char *name);  /* "45%", "-" */
char *
answer_time(int64_t at_ns); /* a node time as local time, "-" below 0; on a scaled node, as seconds since its boot */
char *answer_deadline(const json_t *job); /* "2026-12-01 08:00:00, in 7:59:12"; NULL: it has none */

#define ANSWER_ENERGY 32
char *answer_energy(int64_t mj, char text[ANSWER_ENERGY]); /* "812 J", "1.25 MJ" */

char *answer_job_id(const json_t *job); /* "7"; of an array "7_3", of several that are folded "7_[3-99%8]" */
bool answer_job_ended(const json_t *job);
bool answer_job_runs(const json_t *job); /* its processes are there */
enum term_style answer_state_style(const json_t *job);
char *answer_job_progress(const json_t *job); /* "37 of 100 steps, 2.5 a second"; NULL: not known */
char *answer_run_times(
    const json_t *job); /* "has completed", "was cancelled", ...: of one that has ended, behind its name. */
const char *answer_end(const json_t *job);

/* The source of a reservation in words. Borrowed from `job`. */
const char *answer_memory_source(const json_t *job, const char *member);

/* "12:04, the median of 3 ..."; NULL: none is known */
bool answer_where_has_message(const json_t *job);         /* as that of a job whose first start takes long */
char *answer_job_where(const json_t *job);                /* "GPU 0,2", its reason, or how it ended */
char *answer_job_time(const json_t *job, int64_t now_ns); /* how long it runs, waits, or ran */

/* Whether the row of GET /v1/gpus is a GPU in MIG mode, the heading of its instances. */
bool answer_is_heading(const json_t *gpu);

/* Whether an administrator lets no further job come to the GPU, or to any. */
bool answer_is_drained(const json_t *gpu);

/* "7,8_0": the jobs on a GPU, also of a daemon that tells their ids alone. */
char *answer_gpu_jobs(const json_t *gpu);

/* "GPUs 0, 1 are reserved for ada from ... to ... (reservation 2, by root: course)"; of GET /v1/gpus. */
char *answer_reservation(const json_t *reservation);

/* Whether the GPU is reserved for users now. */
bool answer_is_reserved(const json_t *gpu);

#endif
