#include "sandbox/points.h"

#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

bool points_is_below(const char *path, const char *directory)
{
    size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

    return strncmp(path, directory, length) == 0 && path[length] == '/' && path[length + 1];
}

bool points_is_made_anew(const char *path)
{
    static const char *const anew[] = {"/proc", "/sys", "/dev"};

    for (size_t i = 0; i < array_size(anew); i++)
        if (strcmp(path, anew[i]) == 0 || points_is_below(path, anew[i]))
            return true;
    return false;
}

/* '/' goes before all other characters: the entries of a directory follow it without a gap. */
static int compare(const char *left, const char *right)
{
    for (; *left == *right && *left; left++, right++)
        ;
    return (*left == '/' ? 1 : (unsigned char)*left) - (*right == '/' ? 1 : (unsigned char)*right);
}

static void add(struct points *points, const char *path, enum point_kind kind)
{
    size_t at = 0;

    while (at < points->count && compare(points->items[at].path, path) < 0)
        at++;
    if (at < points->count && strcmp(points->items[at].path, path) == 0) {
        points->items[at].kinds |= kind;
        return;
    }
    array_reserve(points->items, points->capacity, points->count + 1);
    memmove(points->items + at + 1, points->items + at, (points->count - at) * sizeof *points->items);
    points->items[at] = (struct point){.path = xstrdup(path), .kinds = kind};
    points->count++;
}

/* Blanks and backslashes stand as \ooo in mountinfo. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        unsigned byte;
        if (from[0] == '\\' && sscanf(from + 1, "%3o", &byte) == 1) {
            *to++ = (char)byte;
            from += 3;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

void points_add_mounts(struct points *points, const char *mountinfo)
{
    for (const char *line = mountinfo, *end; *line; line = *end ? end + 1 : end) {
        char path[PATH_MAX];
        end = strchrnul(line, '\n');
        if (sscanf(line, "%*s %*s %*s %*s %4095[^ \n]", path) != 1)
            continue;
        unescape(path);
        if (!points_is_made_anew(path))
            add(points, path, POINT_MOUNT);
    }
}

void points_add(struct points *points, const char *path, enum point_kind kind)
{
    CLEANUP(free_ptr) char *resolved = path && path[0] == '/' ? realpath(path, NULL) : NULL;

    if (resolved && !points_is_made_anew(resolved))
        add(points, resolved, kind);
}

unsigned points_kinds(const struct points *points, const char *path)
{
    for (size_t i = 0; i < points->count; i++)
        if (strcmp(points->items[i].path, path) == 0)
            return points->items[i].kinds;
    return 0;
}

const struct point *points_below(const struct points *points, const char *directory, size_t *at)
{
    for (; *at < points->count; (*at)++) {
        const struct point *found = &points->items[*at];
        if (!points_is_below(found->path, directory))
            continue;
        while (++*at < points->count && points_is_below(points->items[*at].path, found->path))
            ;
        return found;
    }
    return NULL;
}

void points_release(struct points *points)
{
    for (size_t i = 0; i < points->count; i++)
        free(points->items[i].path);
    free(points->items);
}
