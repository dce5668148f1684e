/* A child that has the machine only while nobody else wants it, and not for ever: its output and how it ended. */
#ifndef CARMA_DAEMON_LOW_CHILD_H
#define CARMA_DAEMON_LOW_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/error.h"

struct low_child;

struct low_child_limits {
    const char *what;     /* in messages: "simulation" */
    const char *too_long; /* in messages, the remedies */
    const char *too_large;
    unsigned time_s;      /* wall time */
    int64_t memory_bytes; /* resident, looked at once a second */
    size_t output_bytes;
    bool prompt;    /* somebody waits for it: it gets processors as others do */
    bool as_nobody; /* root's: as a user without any right, without the daemon's environment */
    int status;     /* that it may exit with besides 0: its output counts then, too */
};

/* Starts argv[0] with the lowest priority for CPU and disk, and `input` on its standard input (NULL: none; copied).
 * `ended` is called once on the loop, unless the child was freed before: rc 0 comes with all of its standard output
 * (valid during the call). Else err says why there is none: the last line on standard error, or the limit that was
 * exceeded. Where it cannot be started, `ended` is not called. */
int low_child_start(uv_loop_t *loop, char **argv, const char *input, const struct low_child_limits *limits,
                    void (*ended)(int rc, const char *output, size_t length, const struct error *err, void *user),
                    void *user, struct low_child **child, struct error *err);

/* Kills it where it still runs. Not to be called from `ended`: it ends by itself then. */
void low_child_free(struct low_child *child);

#endif
