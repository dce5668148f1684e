/* How this file works: the words of an id list that only the daemon can tell, "@", "7", which may be an array, and
 * "7_3", are replaced by the numbers of jobs. With selectors the daemon chooses among them: it is asked for the list
 * that they describe. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/array.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/show/answer.h"

/* The caller's last job, or its array. */
static int last_submitted(struct cli *cli, uint64_t *id, struct error *err)
{
    CLEANUP(json_release) json_t *reply = NULL;
    int64_t last = 0;
    json_t *job;
    size_t i;
    int rc = cli_ask(cli, "GET", "/v1/jobs?state=all&uid=self&last=1", NULL, &reply, err);

    if (rc)
        return rc;
    json_array_foreach (json_object_get(reply, "jobs"), i, job) {
        if (answer_integer(job, "uid", -1) != (int64_t)getuid() || answer_integer(job, "id", 0) < last)
            continue;
        last = answer_integer(job, "id", 0);
        *id = (uint64_t)answer_integer(json_object_get(job, "array"), "id", last);
    }
    return last ? 0 : error_set(err, ENOENT, "'@' is your last job, and you have submitted none: name an id");
}

/* The indices that "7_3" or "7_[0-9]" names; false: it names none, but all. */
static bool parse_indices(const char *word, struct array_words *indices)
{
    const char *mark = strchr(word, '_');
    CLEANUP(free_ptr) char *text = mark ? xstrndup(mark + 1, strcspn(mark + 1, "]")) : NULL;

    return mark && array_parse(*text == '[' ? text + 1 : text, indices, NULL) == 0;
}

static int name_one(const json_t *jobs, uint64_t id, struct error *err)
{
    const json_t *first = json_object_get(json_array_get(jobs, 0), "array"),
                 *last = json_object_get(json_array_get(jobs, json_array_size(jobs) - 1), "array");

    return error_set(err, EINVAL,
                     "%" PRIu64 " is an array of jobs, and this is about one: name it, as %" PRIu64 "_%" PRId64
                     " to %" PRIu64 "_%" PRId64,
                     id, id, answer_integer(first, "index", 0), id, answer_integer(last, "index", 0));
}

static int add_array(const json_t *jobs, const char *word, enum ids_wanted wanted, struct id_list *list,
                     struct error *err)
{
    struct array_words indices;
    bool some = parse_indices(word, &indices);
    size_t before = list->count, count = json_array_size(jobs);
    bool any = false, all = wanted == IDS_ALL || wanted == IDS_ONE;

    for (size_t i = 0; i < count; i++) {
        const json_t *job = json_array_get(jobs, wanted == IDS_LAST_FIRST ? count - 1 - i : i);
        int64_t index = answer_integer(json_object_get(job, "array"), "index", 0);
        if (some && array_position(&indices, (uint32_t)index) < 0)
            continue;
        any = true;
        if ((some && indices.jobs == 1) || all || !answer_job_ended(job))
            id_list_add(list, (uint64_t)answer_integer(job, "id", 0));
    }
    if (!any)
        return error_set(err, ENOENT, "there is no job %.40s: its array has others", word);
    if (list->count == before)
        return error_set(err, EINVAL, "all jobs of array %.40s have ended", word);
    return 0;
}

static int add_word(struct cli *cli, const char *word, enum ids_wanted wanted, struct id_list *list, struct error *err)
{
    CLEANUP(json_release) json_t *reply = NULL;
    CLEANUP(free_ptr) char *path = NULL;
    uint64_t id = strtoull(word, NULL, 10);
    const json_t *jobs;
    int rc = *word == '@' ? last_submitted(cli, &id, err) : 0;

    if (rc)
        return rc;
    path = xasprintf("/v1/jobs?state=all&array=%" PRIu64, id);
    rc = cli_list_jobs(cli, path, cli_ask, &reply, err);
    if (rc)
        return rc;
    jobs = json_object_get(reply, "jobs");
    if (json_array_size(jobs) == 0 && strchr(word, '_'))
        return error_set(err, ENOENT, "there is no array %" PRIu64 " for '%.40s'", id, word);
    if (json_array_size(jobs) == 0)
        return id_list_add(list, id), 0;
    if (wanted == IDS_ONE && json_array_size(jobs) > 1 && !strchr(word, '_'))
        return name_one(jobs, id, err);
    return add_array(jobs, word, wanted, list, err);
}

int cli_resolve_ids(struct cli *cli, struct id_list *list, enum ids_wanted wanted, struct error *err)
{
    CLEANUP(id_list_release) struct id_list found = {0};
    int rc = 0;

    for (size_t i = 0; i < list->count && rc == 0; i++)
        if (list->items[i] < ID_WORD)
            id_list_add(&found, list->items[i]);
        else
            rc = add_word(cli, list->words[list->items[i] - ID_WORD], wanted, &found, err);
    if (rc)
        return rc;
    id_list_release(list);
    *list = found;
    found = (struct id_list){0};
    return 0;
}

int cli_resolve_dependency(struct cli *cli, struct job_spec *spec, struct error *err)
{
    struct strbuf text = {0};
    uint64_t id = 0;

    if (!spec->dependency || !strchr(spec->dependency, '@'))
        return 0;
    if (last_submitted(cli, &id, err))
        return -ENOENT;
    for (const char *at = spec->dependency; *at; at++)
        if (*at == '@')
            strbuf_printf(&text, "%" PRIu64, id);
        else
            strbuf_append(&text, at, 1);
    free(spec->dependency);
    spec->dependency = strbuf_steal(&text);
    return 0;
}

char *cli_ids_text(struct cli *cli, const struct id_list *list, size_t *from, size_t most, struct error *err)
{
    struct strbuf text = {0};
    size_t words = 0;

    for (size_t i = *from; i < list->count && words < most; words++) {
        const char *comma = words ? "," : "";
        uint64_t first = list->items[i++], last = first, id = 0;
        if (first >= ID_WORD && *list->words[first - ID_WORD] == '@') {
            if (last_submitted(cli, &id, err)) {
                strbuf_release(&text);
                return NULL;
            }
            strbuf_printf(&text, "%s%" PRIu64, comma, id);
        } else if (first >= ID_WORD) {
            strbuf_printf(&text, "%s%s", comma, list->words[first - ID_WORD]);
        } else {
            for (; i < list->count && list->items[i] == last + 1; i++)
                last++;
            strbuf_printf(&text, "%s%" PRIu64 "-%" PRIu64, comma, first, last);
        }
        *from = i;
    }
    return strbuf_steal(&text);
}

int cli_choose(struct cli *cli, struct cli_jobs *jobs, enum ids_wanted wanted, struct error *err)
{
    const struct selectors *selectors = &jobs->selectors;
    CLEANUP(json_release) json_t *reply = NULL;
    CLEANUP(strbuf_release) struct strbuf path = {0};
    CLEANUP(free_ptr) char *ids = NULL;
    json_t *job;
    size_t from = 0, i;
    int rc;

    if (!selectors_any(selectors))
        return cli_resolve_ids(cli, &jobs->list, wanted, err);
    if (jobs->list.count && !(ids = cli_ids_text(cli, &jobs->list, &from, CLI_IDS_AT_ONCE, err)))
        return -ENOENT;
    if (from < jobs->list.count)
        return error_set(err, E2BIG, "more than %d ids and ranges: name fewer", CLI_IDS_AT_ONCE);
    strbuf_puts(&path, "/v1/jobs");
    selectors_put(&path, selectors);
    query_put(&path, "ids", ids);
    query_put(&path, "state", ids && !selectors->state ? "all" : NULL);
    query_put(&path, "uid", !ids && !selectors_whose(selectors) ? "self" : NULL);
    rc = cli_list_jobs(cli, path.text, cli_ask, &reply, err);
    if (rc)
        return rc;
    id_list_release(&jobs->list);
    json_array_foreach (json_object_get(reply, "jobs"), i, job)
        id_list_append(&jobs->list, (uint64_t)answer_integer(job, "id", 0));
    return 0;
}
