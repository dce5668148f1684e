#include "core/waiting/by_place.h"

#include <stddef.h>

uint64_t by_place_scatter(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

/* A job stands above those with a lower number. */
static bool is_above(const struct job *job, const struct job *other)
{
    return by_place_scatter(job->id) > by_place_scatter(other->id);
}

/* Parts a tree in the jobs before the place, and the rest. */
static void part(struct job *tree, uint64_t place, struct job **before, struct job **rest, enum by_place kind)
{
    while (tree) {
        if (tree->place < place) {
            *before = tree;
            before = &tree->by_place[kind].behind;
            tree = *before;
        } else {
            *rest = tree;
            rest = &tree->by_place[kind].before;
            tree = *rest;
        }
    }
    *before = *rest = NULL;
}

void by_place_add(struct job **tree, struct job *job, enum by_place kind)
{
    while (*tree && is_above(*tree, job))
        tree = job->place < (*tree)->place ? &(*tree)->by_place[kind].before : &(*tree)->by_place[kind].behind;
    part(*tree, job->place, &job->by_place[kind].before, &job->by_place[kind].behind, kind);
    *tree = job;
}

/* The two trees below it become one: all of the first are before all of the second. */
void by_place_remove(struct job **tree, struct job *job, enum by_place kind)
{
    struct job *first = job->by_place[kind].before, *second = job->by_place[kind].behind;

    while (*tree != job)
        tree = job->place < (*tree)->place ? &(*tree)->by_place[kind].before : &(*tree)->by_place[kind].behind;
    while (first && second) {
        if (is_above(first, second)) {
            *tree = first;
            tree = &first->by_place[kind].behind;
            first = *tree;
        } else {
            *tree = second;
            tree = &second->by_place[kind].before;
            second = *tree;
        }
    }
    *tree = first ? first : second;
}

struct job *by_place_next(struct job *tree, uint64_t place, enum by_place kind)
{
    struct job *found = NULL;

    while (tree) {
        if (tree->place > place) {
            found = tree;
            tree = tree->by_place[kind].before;
        } else {
            tree = tree->by_place[kind].behind;
        }
    }
    return found;
}
