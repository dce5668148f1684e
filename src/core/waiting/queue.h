/* An intrusive FIFO of jobs; a job stands in at most one. Every operation is O(1); in a queue in the order of turns,
 * to which only queue_insert() adds, it takes as many steps as its tree is deep. */
#ifndef CARMA_CORE_QUEUE_H
#define CARMA_CORE_QUEUE_H

#include <stdint.h>

#include "core/job.h"

struct queue {
    struct job *head;
    struct job *tail;
    uint64_t count;
    struct job *tree; /* of a queue in the order of turns (by_turn.h); else NULL */
};

void queue_push(struct queue *queue, struct job *job);   /* at the tail */
void queue_insert(struct queue *queue, struct job *job); /* by its turn: behind all jobs with an earlier one */
void queue_remove(struct job *job);                      /* from the queue it stands in, if any */

#endif
