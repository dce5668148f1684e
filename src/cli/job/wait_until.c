/* Looks at each job again and again: often at first, then once a second. A job that has ended keeps its fields, so the
 * wait for another value is over then. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/nearest.h"
#include "cli/job/wait.h"
#include "cli/job/wait_until.h"
#include "cli/session.h"
#include "cli/show/answer.h"

static const char states[] =
    "QUEUED, HELD, PLACED, RUNNING, SUSPENDED, STOPPING, REQUEUING, CRASHED, COMPLETED, FAILED, "
    "GPU_OOM, CANCELLED, LOST, REFUSED, TIMEOUT, RETURNED or EXPIRED";

static bool is_state(const char *text)
{
    const char *at = strstr(states, text);
    size_t length = strlen(text);

    return at && length > 3 && (at == states || at[-1] == ' ') && (!at[length] || strchr(", ", at[length]));
}

/* Its members differ with the job's fate; one that has never been is waited for in vain. */
static int refuse_field(const json_t *job, uint64_t id, const char *field)
{
    CLEANUP(free_ptr) char *first = xstrndup(field, strcspn(field, "."));
    CLEANUP(free_ptr) char *question = NULL;
    struct nearest nearest;
    const char *name;
    json_t *value;

    if (json_object_get(job, first))
        return 0;
    nearest_begin(&nearest, first);
    json_object_foreach ((json_t *)job, name, value)
        nearest_try(&nearest, name);
    question = nearest_question(&nearest, "");
    return cli_fail("jobs have no field '%.40s'%s (see: carma show --json %" PRIu64 ")", first, question, id);
}

int wait_until_parse(struct wait_until *until, char *text, struct error *err)
{
    char *equals = strchr(text, '=');

    if (!equals || equals == text)
        return error_set(err, -EINVAL, "--until '%.80s' is not FIELD=VALUE: write for example state=RUNNING", text);
    *equals = '\0';
    if (strcmp(text, "state") == 0 && !is_state(equals + 1))
        return nearest_refuse(err, "--until: state", equals + 1, states);
    *until = (struct wait_until){text, equals + 1};
    return 0;
}

/* The member that the field names, borrowed; NULL: the job has none. */
static const json_t *find_member(const json_t *value, const char *field)
{
    while (value && *field) {
        size_t length = strcspn(field, ".");
        CLEANUP(free_ptr) char *name = xstrndup(field, length);

        value = json_is_array(value) ? json_array_get(value, strtoul(name, NULL, 10)) : json_object_get(value, name);
        field += length + (field[length] == '.');
    }
    return value;
}

/* A field's value in the words of the option; owned by the caller. */
static char *value_text(const json_t *value)
{
    if (!value)
        return xstrdup("null");
    if (json_is_string(value))
        return xstrdup(json_string_value(value));
    return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
}

/* One look at a job. 1: it has the value; 0: it may come to have it; negative: complained. */
static int look(struct cli *cli, uint64_t id, const struct wait_until *until, json_t *found)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64, id);
    CLEANUP(json_release) json_t *job = NULL;
    struct error err;

    int rc = session_call(cli, "GET", path, NULL, &job, &err);
    if (rc) {
        cli_fail("%s", err.text);
        return rc;
    }
    if (refuse_field(job, id, until->field))
        return -1;
    CLEANUP(free_ptr) char *value = value_text(find_member(job, until->field));
    if (strcmp(value, until->value) == 0) {
        if (found)
            json_array_append(found, job);
        return 1;
    }
    if (!answer_job_ended(job))
        return 0;
    CLEANUP(free_ptr) char *named = answer_job_id(job);
    cli_fail("%s is '%.80s' at the end of job %s (%s), not '%.80s'", until->field, value, named,
             answer_text(job, "state"), until->value);
    return -1;
}

int wait_until_jobs(struct cli *cli, const struct id_list *list, const struct wait_until *until, json_t *found)
{
    cli->waits = true;
    wait_tell_when_interrupted(list, "carma wait");
    for (size_t i = 0; i < list->count; i++) {
        int64_t pause_ms = WAIT_FIRST_PAUSE_MS;
        int looked;

        while ((looked = look(cli, list->items[i], until, found)) == 0)
            wait_pause(cli, &pause_ms);
        if (looked < 0)
            return session_status(looked);
    }
    return CLI_OK;
}
