#include "api/later/dependency.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/array.h"
#include "base/memory.h"
#include "base/text/nearest.h"
#include "base/units.h"

#define SINGLETON "singleton"
#define EACH      "aftercorr"
#define WORDS     "afterok, afterany, afternotok, after or " EACH ", each with :ID, or " SINGLETON

static const char *const words[DEPENDS_KINDS] = {
    [DEPENDS_OK] = "afterok", [DEPENDS_ANY] = "afterany", [DEPENDS_NOT_OK] = "afternotok", [DEPENDS_START] = "after"};

const char *dependency_word(uint32_t kind)
{
    return kind < DEPENDS_KINDS && words[kind] ? words[kind] : "unknown";
}

struct list {
    struct job_dependency *items;
    size_t count, capacity;
};

static int add(struct list *list, struct job_dependency dependency, struct error *err)
{
    if (list->count == DEPENDENCIES_MAX)
        return error_set(err, EINVAL, "more than %d dependencies: a job may have that many", DEPENDENCIES_MAX);
    array_reserve(list->items, list->capacity, list->count + 1);
    list->items[list->count++] = dependency;
    return 0;
}

/* "16", "16_3", or after a start "16+5". */
static int parse_job(uint32_t kind, char *text, struct job_dependency *dependency, struct error *err)
{
    char *plus = kind == DEPENDS_START ? strchr(text, '+') : NULL, *mark;
    int64_t job;
    bool bad;

    *dependency = (struct job_dependency){.kind = kind, .index = -1};
    if (plus)
        *plus++ = '\0';
    mark = strchr(text, '_');
    if (mark)
        *mark = '\0';
    bad = (strcmp(text, "@") != 0 ? parse_integer(text, 1, INT64_MAX - 1, &job, NULL) : (job = DEPENDENCY_LAST, 0)) ||
          (mark && parse_integer(mark + 1, 0, ARRAY_MAX_INDEX, &dependency->index, NULL));
    if (mark)
        *mark = '_';
    if (bad)
        return error_set(err, EINVAL, "dependency '%s:%.40s': '%.40s' is not the number of a job", words[kind], text,
                         text);
    if (plus && (parse_duration(plus, &dependency->delay_ns, err) != 0 || !is_interval(dependency->delay_ns)))
        return error_set(err, EINVAL, "dependency '%s:%s+%.40s': '%.40s' is no time: 5 (minutes) or 30s, for example",
                         words[kind], text, plus, plus);
    dependency->job = (uint64_t)job;
    return 0;
}

static int parse_item(struct list *list, char *item, struct error *err)
{
    struct job_dependency dependency = {.kind = DEPENDS_ANY, .index = -1};
    char *jobs = strchr(item, ':'), *rest;
    uint32_t kind = 0;
    bool each;
    int rc = 0;

    if (strcmp(item, SINGLETON) == 0)
        return add(list, dependency, err);
    if (jobs)
        *jobs++ = '\0';
    if (jobs && strcmp(item, SINGLETON) == 0)
        return error_set(err, EINVAL, "dependency 'singleton:%.40s': singleton names no job", jobs);
    each = strcmp(item, EACH) == 0;
    while (kind < DEPENDS_KINDS && (!words[kind] || strcmp(words[kind], each ? words[DEPENDS_OK] : item) != 0))
        kind++;
    if (kind == DEPENDS_KINDS)
        return nearest_refuse(err, "dependency", item, WORDS);
    if (!jobs || !*jobs)
        return error_set(err, EINVAL, "dependency '%s' names no job: %s:ID", item, item);
    for (char *job = strtok_r(jobs, ":", &rest); job && rc == 0; job = strtok_r(NULL, ":", &rest)) {
        rc = parse_job(kind, job, &dependency, err);
        if (rc == 0 && each && dependency.index >= 0)
            rc = error_set(err, EINVAL, "dependency '" EACH ":%.40s': " EACH " names a whole array", job);
        if (each)
            dependency.index = DEPENDENCY_OWN_INDEX;
        if (rc == 0)
            rc = add(list, dependency, err);
    }
    return rc;
}

int dependency_parse(const char *text, struct job_dependency **items, size_t *count, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    struct list list = {0};
    char *rest;
    int rc = 0;

    if (strchr(text, '?'))
        return error_set(err, EINVAL, "dependency '%.80s': one of several ('?') is not possible here: all, with ','",
                         text);
    for (char *item = strtok_r(copy, ",", &rest); item && rc == 0; item = strtok_r(NULL, ",", &rest))
        rc = parse_item(&list, item, err);
    if (rc == 0 && !list.count)
        rc = error_set(err, EINVAL, "dependency '%.80s' names nothing: " WORDS, text);
    if (rc != 0)
        free_ptr(&list.items);
    *items = list.items;
    *count = list.count;
    return rc;
}

int dependency_check(const char *text, struct error *err)
{
    CLEANUP(free_ptr) struct job_dependency *list = NULL;
    size_t count;

    return dependency_parse(text, &list, &count, err);
}
