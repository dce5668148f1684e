#include "cli/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

void id_list_add(struct id_list *list, uint64_t id)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == id)
            return;
    }
    array_reserve(list->items, list->capacity, list->count + 1);
    list->items[list->count++] = id;
}

static int bad_part(const char *part, struct error *err)
{
    return error_set(err, EINVAL, "'%.40s' is not a list of job ids: write it like 7, 1,3-5 or @ (the last job)", part);
}

static int add_part(struct id_list *list, char *part, struct error *err)
{
    char *dash = strchr(part, '-');
    int64_t from, to;

    if (strcmp(part, "@") == 0) {
        id_list_add(list, ID_LAST);
        return 0;
    }
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
    for (int64_t id = from; id <= to; id++)
        id_list_add(list, (uint64_t)id);
    return 0;
}

int id_list_parse(struct id_list *list, const char *text, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    char *rest = copy, *part;

    while ((part = strsep(&rest, ","))) {
        if (!*part)
            return bad_part(text, err);
        int rc = add_part(list, part, err);
        if (rc)
            return rc;
    }
    return 0;
}

void id_list_release(struct id_list *list)
{
    free(list->items);
    *list = (struct id_list){0};
}
