/* Shared by the files of submissions. submission.c has their turns, submission_read.c what a request says, which is
 * work for a thread of the pool, and submission_take.c judges it on the loop and takes its jobs in. */
#ifndef CARMA_DAEMON_SUBMIT_SUBMISSION_INTERNAL_H
#define CARMA_DAEMON_SUBMIT_SUBMISSION_INTERNAL_H

#include "daemon/submit/submission.h"

#include <uv.h>

#include "api/spec.h"
#include "base/json/json_read.h"
#include "daemon/engine/repeats.h"
#include "daemon/low_child.h"
#include "daemon/submit/dependencies.h"

/* What the models of a request may cost together, in events that are replayed. */
#define REQUEST_EVENTS PROGRAM_MAX_EVENTS

/* A job of a request, or an array of jobs. */
struct applicant {
    struct job_spec spec;
    uint32_t jobs;      /* as many as its array has; else 1 */
    char *text;         /* owned; of the spec, to be stored */
    size_t environment; /* of the submission's */
    uint64_t model;     /* digest of all that its estimate depends on; 0: there is nothing to estimate */
    int64_t events;     /* that it has been given of the request's */
    bool ranked;        /* the administrator's filter has given it its priority */
    bool costly;        /* its estimate is still to be made, in a turn of its own */
    struct job_estimate estimate;
    struct record_submitted wants;
};

struct submission {
    uv_work_t work;
    struct daemon *daemon;
    uid_t uid;
    const char *body;
    size_t length;
    bool judged; /* and not taken in */
    submission_done *done;
    void *user;
    struct submission *next; /* in the order of their turns */
    bool started;
    bool read; /* the loop knows that all of it is read: costly estimates are left */
    /* The thread's input: it does not change meanwhile. */
    const struct config *config;
    struct machine_profile profile;
    /* The thread's result. */
    struct json_piece *pieces;    /* owned: its jobs' texts, in the body */
    size_t piece_count;           /* 0: it was not looked at yet */
    struct applicant *applicants; /* owned */
    size_t count;                 /* of those that were read, and are to be released */
    size_t completed;             /* of these, those before the first costly one, when all have been read */
    int64_t events_left;
    struct spec_strings *environments; /* owned; most jobs of a request have the same */
    size_t environment_count, environment_capacity;
    struct dependencies dependencies;
    struct owner owner;                  /* its text is owned; NULL: not known yet */
    bool looked_up;                      /* by this submission */
    char request_id[REPEATS_ID_MAX + 1]; /* "": none */
    uint64_t digest;                     /* of the body */
    struct low_child *filter;            /* the administrator's, while it runs (submission_filter.c) */
    bool filtered;                       /* it has run */
    char *filter_input;                  /* owned */
    char *filter_output;                 /* owned; to be applied */
    int status;                          /* 201 as long as nothing is wrong */
    struct error err;
};

/* Arrays' jobs counted one by one. */
size_t submission_jobs(const struct submission *submission);

bool submission_is_read(const struct submission *submission);

/* submission_read.c: one turn of reading and estimating, on any thread. */
void submission_read(struct submission *submission);

/* submission_take.c: judges what was read, and takes in all jobs or none. *jobs: the answer's (submission.h). */
void submission_take(struct submission *submission, json_t **jobs);

/* submission.c: its next turn, for those that wait for something else than the pool. */
void submission_go_on(struct submission *submission);

/* submission_filter.c: whether the filter has still to see it; its input, made on any thread; starts it where one more
 * may run now; does what it said, on any thread. */
bool submission_filter_is_due(const struct submission *submission);
void submission_filter_prepare(struct submission *submission);
void submission_filter_start(struct submission *submission);
void submission_filter_apply(struct submission *submission);

#endif
