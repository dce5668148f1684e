/* How users learn from one another: the one rule, for every figure that runs of several users tell.
 *
 * Each user has one figure, however many runs are behind it: the published one, moved by that user's own runs. The own
 * figure stands for a fifth of all users, and the answer is the median of all. It is at most a quarter above the own
 * figure. It is never below it with fewer than five users, and at most a fifth below it with more.
 *
 * So no user moves another's figure by more than 25%, and no fifth of five users or more does. Proof: k users who come
 * or go move the median by at most k / 2 places, and the own figure fills more places than that. So it does not lie
 * between the two medians. Then both answers are within [own, 1.25 own], or both within [0.8 own, own]. */
#ifndef CARMA_BASE_FOLD_H
#define CARMA_BASE_FOLD_H

#include <stddef.h>
#include <stdint.h>

#define FOLD_LEAST_USERS 5 /* from here on others may lower a figure, too */

/* `figures`: ascending, each user's. `mine` is the asking user's among them; -1: is not among them. */
static inline int64_t fold_users(int64_t own, const int64_t *figures, size_t count, int64_t mine)
{
    size_t skipped = 0, end = count, others, places, middle;
    int64_t least = own - own / 5, most = own + own / 4, figure;

    while (mine >= 0 && skipped < end) {
        size_t at = skipped + (end - skipped) / 2;
        if (figures[at] < mine)
            skipped = at + 1;
        else
            end = at;
    }
    if (mine < 0)
        skipped = count;
    others = count - (mine >= 0);
    places = (others + 5) / 5; /* a fifth of all, rounded up */
    middle = (others + places - 1) / 2;
    if (others + 1 < FOLD_LEAST_USERS)
        least = own;
    if (middle < others && (figure = figures[middle + (middle >= skipped)]) < own)
        return figure > least ? figure : least;
    if (middle >= places && (figure = figures[middle - places + (middle - places >= skipped)]) > own)
        return figure < most ? figure : most;
    return own;
}

#endif
