/* The paths at which the new file tree is not a read-only view of the old one: mounts, directories that can be written,
 * directories that are made anew. Paths are resolved, and asked for, with the caller's rights: what leads nowhere for
 * him, or is not absolute, adds nothing. */
#ifndef CARMA_SANDBOX_POINTS_H
#define CARMA_SANDBOX_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum point_kind {
    POINT_MOUNT = 1,
    POINT_WRITABLE = 2,
    POINT_WORK = 4,      /* the command is to work there; it is writable, too */
    POINT_THROW_AWAY = 8 /* empty, but for what is named in it */
};

struct point {
    char *path; /* absolute, without links; owned. Of a throw-away directory's entry, the entry itself */
    unsigned kinds;
};

struct points {
    struct point *items; /* sorted by path: a directory is before what is in it */
    size_t count, capacity;
};

/* Those of /proc/self/mountinfo's text; without /proc, /sys and /dev, which are made anew. */
void points_add_mounts(struct points *points, const char *mountinfo);

void points_add_throw_away(struct points *points);

void points_add_work(struct points *points, const char *path); /* NULL: nothing */

/* The absolute paths in a word of the command or a variable of its environment ("NAME=/a:/b", "--out=/a/b"). Each names
 * itself or its directory, where the user may write there, but for the root; and its entry of a throw-away directory.
 */
void points_add_named(struct points *points, const char *text);

unsigned points_kinds(const struct points *points, const char *path); /* 0: it is none of them */

/* The next point below the directory, behind the position `at` (first 0), that is not below another such point; NULL:
 * no more. */
const struct point *points_below(const struct points *points, const char *directory, size_t *at);

bool points_is_made_anew(const char *path); /* /proc, /sys, /dev or below */
mode_t points_throw_away(const char *path); /* the mode of that throw-away directory; 0: it is none */

void points_release(struct points *points);

#endif
