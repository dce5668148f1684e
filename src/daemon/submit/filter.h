/* The administrator's filter: a program that sees what jobs say, and may refuse it or change it (the setting
 * submit_filter, docs/admin.md). It runs beside the loop, as nobody, for a few seconds. */
#ifndef CARMA_DAEMON_SUBMIT_FILTER_H
#define CARMA_DAEMON_SUBMIT_FILTER_H

#include <jansson.h>

#include "api/spec.h"
#include "daemon/daemon.h"
#include "daemon/low_child.h"

/* What it sees of a job: not what is private, nor what is large and known by its estimate. A new reference. */
json_t *filter_job(const struct job_spec *spec);

/* What it reads: jobs of one user, which are submitted, or `edited`. `jobs` is taken over; the text is the caller's. */
char *filter_input(uid_t uid, const char *user, bool edited, json_t *jobs);

/* As low_child_start(). */
int filter_start(struct daemon *daemon, const char *input,
                 void (*ended)(int rc, const char *output, size_t length, const struct error *err, void *user),
                 void *user, struct low_child **child, struct error *err);

/* Why nothing was `done` ("submitted"), in err and, where the filter failed, in the log; the answer's status. */
int filter_failed(const struct daemon *daemon, const char *done, const char *why, struct error *err);
int filter_refused(const char *why, struct error *err);

/* What it has said of `count` jobs: *refusal, which is the caller's, is why none of it is taken, or NULL; *changes is a
 * list of as many objects and nulls, a new reference, or NULL: there are none. An error: it does not say either. */
int filter_read(const char *output, size_t count, char **refusal, json_t **changes, struct error *err);

#endif
