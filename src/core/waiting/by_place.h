/* Jobs in the order of their places, as a tree (a treap): a job that comes back finds its neighbours in few steps,
 * however many wait. A job may stand in one tree of each kind. */
#ifndef CARMA_CORE_BY_PLACE_H
#define CARMA_CORE_BY_PLACE_H

#include "core/job.h"

void by_place_add(struct job **tree, struct job *job, enum by_place kind);
void by_place_remove(struct job **tree, struct job *job, enum by_place kind);

/* The first job behind the place; NULL: there is none. */
struct job *by_place_next(struct job *tree, uint64_t place, enum by_place kind);

/* Any numbers do that are not in the order of places: the depth of a tree is their doing. */
uint64_t by_place_scatter(uint64_t number);

#endif
