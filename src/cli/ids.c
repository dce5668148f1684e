#include "cli/ids.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "api/array.h"
#include "base/memory.h"
#include "base/units.h"

void id_list_add(struct id_list *list, uint64_t id)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == id)
            return;
    }
    id_list_append(list, id);
}

void id_list_append(struct id_list *list, uint64_t id)
{
    array_reserve(list->items, list->capacity, list->count + 1);
    list->items[list->count++] = id;
}

static int bad_part(const char *part, struct error *err)
{
    return error_set(err, EINVAL,
                     "'%.40s' is not a list of job ids: write it like 7, 1,3-5, 7_3 (of array 7) or @ (the last job)",
                     part);
}

static void add_word(struct id_list *list, const char *word)
{
    array_reserve(list->words, list->word_capacity, list->word_count + 1);
    list->words[list->word_count] = xstrdup(word);
    id_list_add(list, ID_WORD + list->word_count++);
}

/* "7_3", "7_[0-9]". */
static int add_of_array(struct id_list *list, char *part, char *mark, struct error *err)
{
    size_t length = strlen(mark + 1);
    bool bracketed = mark[1] == '[' && mark[length] == ']';
    CLEANUP(free_ptr) char *indices = bracketed ? xstrndup(mark + 2, length - 2) : xstrdup(mark + 1);
    struct array_words words;
    int64_t array;
    int bad;

    *mark = '\0';
    bad = parse_integer(part, 1, INT64_MAX - 1, &array, NULL);
    *mark = '_';
    if (bad || array_parse(indices, &words, NULL) || words.most || (!bracketed && words.jobs > 1))
        return bad_part(part, err);
    add_word(list, part);
    return 0;
}

static int add_part(struct id_list *list, char *part, struct error *err)
{
    char *dash = strchr(part, '-'), *mark = strchr(part, '_');
    int64_t from, to;

    if (mark)
        return add_of_array(list, part, mark, err);
    if (dash)
        *dash = '\0';
    int bad = parse_integer(part, 1, INT64_MAX - 1, &from, NULL);
    if (!bad)
        bad = dash ? parse_integer(dash + 1, 1, INT64_MAX - 1, &to, NULL) : (to = from, 0);
    if (dash)
        *dash = '-';
    if (bad)
        return bad_part(part, err);
    if (to < from)
        return error_set(err, EINVAL, "'%.40s' runs backwards: write the smaller job id first", part);
    if (list->count + (size_t)(to - from) >= ID_LIST_MAX)
        return error_set(err, EINVAL, "'%.40s' makes it more than %d jobs: name fewer", part, ID_LIST_MAX);
    if (!dash)
        add_word(list, part);
    for (int64_t id = from; dash && id <= to; id++)
        id_list_add(list, (uint64_t)id);
    return 0;
}

/* Up to a comma that is not within brackets. */
static char *next_part(char **rest)
{
    char *part = *rest, *end = part;

    if (!part)
        return NULL;
    for (bool within = false; *end && (within || *end != ','); end++)
        within = *end == '[' || (within && *end != ']');
    *rest = *end ? end + 1 : NULL;
    *end = '\0';
    return part;
}

int id_list_parse(struct id_list *list, const char *text, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    char *rest = copy, *part;

    while ((part = next_part(&rest))) {
        if (!*part)
            return bad_part(text, err);
        int rc = strcmp(part, "@") == 0 ? (add_word(list, part), 0) : add_part(list, part, err);
        if (rc)
            return rc;
    }
    return 0;
}

void id_list_release(struct id_list *list)
{
    for (size_t i = 0; i < list->word_count; i++)
        free(list->words[i]);
    free(list->words);
    free(list->items);
    *list = (struct id_list){0};
}
