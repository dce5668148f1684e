/* The files that the job's GPU processes write to: what their descriptors 1 and 2 are, where that is a regular file
 * other than the job's own output; where it is a pipe, the files of the processes whose standard input it is. A child
 * with the user's rights looks now and then, while the processes are there, and hands on descriptors that name the
 * files and give no access (O_PATH). They are read once the job has ended (tail.h). A pipe, a socket or a terminal is
 * never read: its bytes are for somebody else. */
#ifndef CARMA_LAUNCH_SHEPHERD_WRITERS_H
#define CARMA_LAUNCH_SHEPHERD_WRITERS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "launch/shepherd/tail.h"

#define WRITERS_FILES 8

struct shepherd;

struct watched_writers {
    int looker;         /* by which the child that looks answers; -1: there is none */
    int64_t look_at_ns; /* wall; when it is looked next; 0: it was not yet */
    int64_t pause_ns;   /* wall; until then */
    struct tail_origin files[WRITERS_FILES];
    uint32_t file_count;
    bool itself; /* the job's main process was seen to use a GPU */
};

struct pollfd writers_poll(const struct shepherd *s);
int64_t writers_next_ns(const struct shepherd *s); /* as progress_next_ns() */
void writers_turn(struct shepherd *s);
void writers_take(struct shepherd *s); /* what the child has said so far: the job has ended */

#endif
