/* Follows the job's own words on how far it has come, and publishes them in the status. Its FIFO is read
 * here. Its output is read by a child with its user's rights, now and then. Opening or reading a user's file may hang,
 * and a parser of a user's bytes may have faults. */
#ifndef CARMA_LAUNCH_SHEPHERD_PROGRESS_H
#define CARMA_LAUNCH_SHEPHERD_PROGRESS_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch/progress.h"

struct shepherd_request;
struct shepherd;

#define PROGRESS_FORMER 4

struct watched_progress {
    int fifo;                    /* -1: there is none */
    int former[PROGRESS_FORMER]; /* those whose names others have removed; the job may have them open */
    uint32_t former_count;
    int reader;           /* by which the child that reads the output answers; -1: there is no such child */
    int64_t read_at_ns;   /* wall; when the output is read next */
    int64_t listen_at_ns; /* wall; until then the FIFO is left alone */
    int64_t tell_at_ns;   /* wall; until then the status is left alone */
    struct progress progress;
    intmax_t read_bytes[2]; /* of the output and the error file */
};

/* Makes the FIFO for the job's user; a job without one is heard by its output alone. */
void progress_begin(struct shepherd *s);
void progress_remove(const struct shepherd_request *request);

/* Makes it again where others have removed it, and hears those that the job still has. */
void progress_heal(struct shepherd *s);

/* The descriptors to poll: two of them. */
void progress_poll(const struct shepherd *s, struct pollfd polled[static 2]);

/* When to look again, unless one of these has something; INT64_MAX: never. */
int64_t progress_next_ns(const struct shepherd *s);

/* Reads what is there, and begins what is due. */
void progress_turn(struct shepherd *s);

#endif
