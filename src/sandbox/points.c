#include "sandbox/points.h"

#include <fcntl.h>
#include <libgen.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define BETWEEN_PATHS " \t\n:;,='\"()"

/* Their entries are others' and each other's: services' sockets, other jobs' files. */
static const struct {
    const char *path;
    mode_t mode;
} throw_away[] = {{"/run", 0755}, {"/tmp", 01777}, {"/var/tmp", 01777}};

static bool is_below(const char *path, const char *directory)
{
    size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

    return strncmp(path, directory, length) == 0 && path[length] == '/' && path[length + 1];
}

bool points_is_made_anew(const char *path)
{
    static const char *const anew[] = {"/proc", "/sys", "/dev"};

    for (size_t i = 0; i < array_size(anew); i++)
        if (strcmp(path, anew[i]) == 0 || is_below(path, anew[i]))
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

static void add(struct points *points, const char *path, unsigned kinds)
{
    size_t at = 0;

    while (at < points->count && compare(points->items[at].path, path) < 0)
        at++;
    if (at < points->count && strcmp(points->items[at].path, path) == 0) {
        points->items[at].kinds |= kinds;
        return;
    }
    array_reserve(points->items, points->capacity, points->count + 1);
    memmove(points->items + at + 1, points->items + at, (points->count - at) * sizeof *points->items);
    points->items[at] = (struct point){.path = xstrdup(path), .kinds = kinds};
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

mode_t points_throw_away(const char *path)
{
    for (size_t i = 0; i < array_size(throw_away); i++)
        if (strcmp(path, throw_away[i].path) == 0)
            return throw_away[i].mode;
    return 0;
}

void points_add_throw_away(struct points *points)
{
    for (size_t i = 0; i < array_size(throw_away); i++)
        add(points, throw_away[i].path, POINT_THROW_AWAY);
}

/* The whole entry: a virtual environment or a project has its parts beside one another. */
static void add_entry(struct points *points, const char *path)
{
    for (size_t i = 0; i < array_size(throw_away); i++) {
        size_t length = strlen(throw_away[i].path);
        if (is_below(path, throw_away[i].path) && path[length + 1] != '.') {
            CLEANUP(free_ptr)
            char *entry = xasprintf("%.*s", (int)(length + 1 + strcspn(path + length + 1, "/")), path);
            add(points, entry, POINT_WRITABLE);
        }
    }
}

static bool may_write(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

/* An entry of a throw-away directory may be another's: it is shown whole, but what is written there needs more. */
static bool is_covered(const struct points *points, const char *path)
{
    for (size_t i = 0; i < points->count; i++)
        if (points->items[i].kinds & POINT_WRITABLE && is_below(path, points->items[i].path) &&
            may_write(points->items[i].path))
            return true;
    return false;
}

void points_add_work(struct points *points, const char *path)
{
    CLEANUP(free_ptr) char *resolved = path && path[0] == '/' ? realpath(path, NULL) : NULL;

    if (!resolved || points_is_made_anew(resolved))
        return;
    add_entry(points, path);
    add_entry(points, resolved);
    add(points, resolved, POINT_WRITABLE | POINT_WORK);
}

static void add_named(struct points *points, char *path)
{
    CLEANUP(free_ptr) char *resolved = NULL;
    struct stat st;

    if (path[0] != '/' || points_is_made_anew(path))
        return;
    add_entry(points, path);
    resolved = realpath(path, NULL);
    if (!resolved || (stat(resolved, &st) == 0 && !S_ISDIR(st.st_mode))) {
        free(resolved);
        resolved = realpath(dirname(path), NULL);
    }
    if (!resolved || !resolved[1] || points_is_made_anew(resolved) || points_throw_away(resolved))
        return;
    add_entry(points, resolved);
    if (may_write(resolved) && !is_covered(points, resolved))
        add(points, resolved, POINT_WRITABLE);
}

void points_add_named(struct points *points, const char *text)
{
    CLEANUP(free_ptr)
    char *whole = xstrdup(text[0] == '/' ? text : text + strcspn(text, "=") + (strchr(text, '=') != NULL));
    CLEANUP(free_ptr) char *parts = xstrdup(text);
    char *rest = NULL;

    add_named(points, whole); /* blanks and all */
    for (char *part = strtok_r(parts, BETWEEN_PATHS, &rest); part; part = strtok_r(NULL, BETWEEN_PATHS, &rest))
        add_named(points, part);
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
        if (!is_below(found->path, directory))
            continue;
        while (++*at < points->count && is_below(points->items[*at].path, found->path))
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
