/* How this file works: a treap. Jobs stand in it by turn, and each above those whose scattered number is lower, so that
 * its depth is that of a random tree, and the same after each replay. part() makes room for a job that is higher than
 * what stands there; by_turn_remove() joins the two trees below one that leaves. */
#include "core/waiting/by_turn.h"

#include <stddef.h>

uint64_t by_turn_scatter(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

/* A job stands above those with a lower number. */
static bool is_above(const struct job *job, const struct job *other)
{
    return by_turn_scatter(job->id) > by_turn_scatter(other->id);
}

/* Parts a tree in the jobs before the turn, and the rest. */
static void part(struct job *tree, struct order_turn turn, struct job **before, struct job **rest, enum by_turn kind)
{
    while (tree) {
        if (turn_is_before(tree->turn, turn)) {
            *before = tree;
            before = &tree->by_turn[kind].behind;
            tree = *before;
        } else {
            *rest = tree;
            rest = &tree->by_turn[kind].before;
            tree = *rest;
        }
    }
    *before = *rest = NULL;
}

void by_turn_add(struct job **tree, struct job *job, enum by_turn kind)
{
    while (*tree && is_above(*tree, job))
        tree =
            turn_is_before(job->turn, (*tree)->turn) ? &(*tree)->by_turn[kind].before : &(*tree)->by_turn[kind].behind;
    part(*tree, job->turn, &job->by_turn[kind].before, &job->by_turn[kind].behind, kind);
    *tree = job;
}

/* The two trees below it become one: all of the first are before all of the second. */
void by_turn_remove(struct job **tree, struct job *job, enum by_turn kind)
{
    struct job *first = job->by_turn[kind].before, *second = job->by_turn[kind].behind;

    while (*tree != job)
        tree =
            turn_is_before(job->turn, (*tree)->turn) ? &(*tree)->by_turn[kind].before : &(*tree)->by_turn[kind].behind;
    while (first && second) {
        if (is_above(first, second)) {
            *tree = first;
            tree = &first->by_turn[kind].behind;
            first = *tree;
        } else {
            *tree = second;
            tree = &second->by_turn[kind].before;
            second = *tree;
        }
    }
    *tree = first ? first : second;
}

struct job *by_turn_next(struct job *tree, struct order_turn turn, enum by_turn kind)
{
    struct job *found = NULL;

    while (tree) {
        if (turn_is_before(turn, tree->turn)) {
            found = tree;
            tree = tree->by_turn[kind].before;
        } else {
            tree = tree->by_turn[kind].behind;
        }
    }
    return found;
}
