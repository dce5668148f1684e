/* How this file works: a list through the jobs themselves. A queue in the order of turns has a tree beside it
 * (by_turn.c), in which queue_insert() finds the neighbour; one to which queue_push() adds has none. */
#include "core/waiting/queue.h"

#include <stddef.h>

#include "core/waiting/by_turn.h"

static void insert_before(struct queue *queue, struct job *job, struct job *next)
{
    struct job *previous = next ? next->previous : queue->tail;

    job->queue = queue;
    job->previous = previous;
    job->next = next;
    if (previous)
        previous->next = job;
    else
        queue->head = job;
    if (next)
        next->previous = job;
    else
        queue->tail = job;
    queue->count++;
}

void queue_push(struct queue *queue, struct job *job)
{
    insert_before(queue, job, NULL);
}

void queue_insert(struct queue *queue, struct job *job)
{
    insert_before(queue, job, by_turn_next(queue->tree, job->turn, BY_TURN_QUEUE));
    by_turn_add(&queue->tree, job, BY_TURN_QUEUE);
}

void queue_remove(struct job *job)
{
    struct queue *queue = job->queue;

    if (!queue)
        return;
    if (queue->tree)
        by_turn_remove(&queue->tree, job, BY_TURN_QUEUE);
    if (job->previous)
        job->previous->next = job->next;
    else
        queue->head = job->next;
    if (job->next)
        job->next->previous = job->previous;
    else
        queue->tail = job->previous;
    queue->count--;
    job->queue = NULL;
    job->previous = job->next = NULL;
}
