/* Jobs in the order of their turns, as a tree (a treap): a job that comes back
 * finds its neighbours in few steps, however many wait. A job may stand in one
 * tree of each kind. */
#ifndef CARMA_CORE_BY_TURN_H
#define CARMA_CORE_BY_TURN_H

#include "core/job.h"

void by_turn_add(struct job **tree, struct job *job, enum by_turn kind);
void by_turn_remove(struct job **tree, struct job *job, enum by_turn kind);

/* The first job behind the turn; NULL: there is none. */
struct job *by_turn_next(struct job *tree, struct order_turn turn, enum by_turn kind);

/* Any numbers do that are not in the order of turns: the depth of a tree is
 * their doing. */
uint64_t by_turn_scatter(uint64_t number);

#endif
