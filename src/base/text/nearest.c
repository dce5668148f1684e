#include "base/text/nearest.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

#define LONGEST 40

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Of letters that are large in one of them alone, no difference. */
static bool differ(char a, char b)
{
    return tolower((unsigned char)a) != tolower((unsigned char)b);
}

static size_t distance(const char *word, const char *name)
{
    size_t rows[3][LONGEST + 1], *row = rows[0], *last = rows[1], *before = rows[2], length = strlen(name);

    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; word[i - 1]; i++) {
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            row[j] = least(last[j - 1] + differ(word[i - 1], name[j - 1]), least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && !differ(word[i - 1], name[j - 2]) && !differ(word[i - 2], name[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[length];
}

void nearest_begin(struct nearest *nearest, const char *word)
{
    const size_t length = strlen(word);

    *nearest = (struct nearest){.word = word, .wrong = length <= LONGEST ? (length + 2) / 3 + 1 : 0};
}

void nearest_try(struct nearest *nearest, const char *name)
{
    size_t wrong;

    if (nearest->wrong == 0 || strlen(name) > LONGEST)
        return;
    wrong = distance(nearest->word, name);
    if (wrong > 1 && strlen(nearest->word) > 1 && strncasecmp(name, nearest->word, strlen(nearest->word)) == 0)
        wrong = 1; /* its beginning */
    if (wrong == nearest->wrong && nearest->name && strlen(name) < strlen(nearest->name))
        nearest->name = name;
    if (wrong < nearest->wrong && wrong < strlen(name)) {
        nearest->wrong = wrong;
        nearest->name = name;
    }
}

char *nearest_question(const struct nearest *nearest, const char *dashes)
{
    return nearest->name ? xasprintf(": did you mean %s%s?", dashes, nearest->name) : xstrdup("");
}

static char *hint(struct nearest *nearest)
{
    return nearest->name ? xasprintf(" (did you mean %s?)", nearest->name) : xstrdup("");
}

char *nearest_hint(const char *word, const char *known)
{
    CLEANUP(free_ptr) char *copy = xstrndup(known, strcspn(known, ";"));
    struct nearest nearest;
    char *rest = NULL;

    nearest_begin(&nearest, word);
    for (char *name = strtok_r(copy, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest))
        if (strcmp(name, "or") != 0 && strcmp(name, "and") != 0 && !strchr(name, '='))
            nearest_try(&nearest, name);
    return hint(&nearest);
}

char *nearest_file(const char *word, const char *directory, const char *suffix)
{
    CLEANUP(free_ptr) char *best = NULL;
    DIR *stream = opendir(directory);
    struct nearest nearest;

    nearest_begin(&nearest, word);
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        const char *end = strrchr(entry->d_name, '.');
        CLEANUP(free_ptr) char *name = xstrndup(entry->d_name, end ? (size_t)(end - entry->d_name) : 0);
        if (end && strcmp(end, suffix) == 0)
            nearest_try(&nearest, name);
        if (nearest.name == name) {
            free(best);
            nearest.name = best = steal_ptr(&name);
        }
    }
    if (stream)
        closedir(stream);
    return hint(&nearest);
}

int nearest_refuse(struct error *err, const char *what, const char *word, const char *known)
{
    CLEANUP(free_ptr) char *meant = nearest_hint(word, known);

    return error_set(err, EINVAL, "%s '%.40s'%s is not known: %s", what, word, meant, known);
}
