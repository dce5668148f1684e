#include "base/text/nearest.h"

#include <string.h>

#include "base/memory.h"

#define LONGEST 40

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *word, const char *name)
{
    size_t row[LONGEST + 1], length = strlen(name);

    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; word[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t above = row[j];
            row[j] = least(diagonal + (word[i - 1] != name[j - 1]), least(above, row[j - 1]) + 1);
            diagonal = above;
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
    if (wrong < nearest->wrong && wrong < strlen(name)) {
        nearest->wrong = wrong;
        nearest->name = name;
    }
}

char *nearest_question(const struct nearest *nearest, const char *dashes)
{
    return nearest->name ? xasprintf(": did you mean %s%s?", dashes, nearest->name) : xstrdup("");
}
