/* The cache of captures for later submissions, and of the reasons why there are none: files of the state directory, a
 * folder for each user. A user's job is never answered from another's folder.
 *
 * All but capture_cache_key() reads and writes files: call it beside the loop. */
#ifndef CARMA_DAEMON_CAPTURE_CACHE_H
#define CARMA_DAEMON_CAPTURE_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct job_spec;

#define CACHE_AGE_S         (30 * 24 * 3600)
#define CACHE_FAILURE_AGE_S 1800 /* the missing thing may be there by then: a data set, memory */
#define CACHE_MOST          100  /* of a user */
#define CACHE_BYTES         (32 << 20)

struct cached_capture {
    uint64_t job;    /* that it was made for */
    json_t *digests; /* owned (daemon/capture/digests.h); NULL: not known, so that it is not kept */
    char *text;      /* owned: the capture; NULL: none could be recorded */
    char *said;      /* owned: where it is from, or why there is none */
};

void capture_cache_release(struct cached_capture *cached);

/* Of equal commands, arguments, scripts, directories and environments, without variables that differ from shell to
 * shell. A name, no proof: it is looked for in the user's own folder only. */
uint64_t capture_cache_key(const struct job_spec *spec);

/* Whether there is one that is not too old. It is the latest used then. */
bool capture_cache_load(const char *state_directory, uid_t uid, uint64_t key, struct cached_capture *cached);

/* In place of an older one. Removes those of the user that are too many then. */
int capture_cache_store(const char *state_directory, uid_t uid, uint64_t key, const struct cached_capture *cached,
                        struct error *err);

/* Removes what nobody has used for long. */
void capture_cache_prune(const char *state_directory);

#endif
