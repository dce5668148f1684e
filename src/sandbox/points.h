/* The paths of the old file tree at which the new one differs from a plain copy: mounts, directories with a throw-away
 * layer, masked paths. */
#ifndef CARMA_SANDBOX_POINTS_H
#define CARMA_SANDBOX_POINTS_H

#include <stdbool.h>
#include <stddef.h>

enum point_kind { POINT_MOUNT = 1, POINT_WRITABLE = 2, POINT_HIDDEN = 4 };

struct point {
    char *path; /* absolute, without links; owned */
    unsigned kinds;
};

struct points {
    struct point *items; /* sorted by path: a directory is before what is in it */
    size_t count, capacity;
};

/* Those of /proc/self/mountinfo's text; without /proc, /sys and /dev, which are made anew. */
void points_add_mounts(struct points *points, const char *mountinfo);

/* The path is resolved with the caller's rights. One that leads nowhere for him, or that is not absolute, adds nothing.
 */
void points_add(struct points *points, const char *path, enum point_kind kind);

unsigned points_kinds(const struct points *points, const char *path); /* 0: it is none of them */

/* The next point below the directory, behind the position `at` (first 0), that is not below another such point; NULL:
 * no more. */
const struct point *points_below(const struct points *points, const char *directory, size_t *at);

bool points_is_made_anew(const char *path); /* /proc, /sys, /dev or below */
bool points_is_below(const char *path, const char *directory);

void points_release(struct points *points);

#endif
