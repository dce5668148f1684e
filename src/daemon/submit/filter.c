#include "daemon/submit/filter.h"

#include <errno.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/text/printable.h"
#include "daemon/log.h"

#define FILTER_TIME_S 10
#define FILTER_MEMORY (INT64_C(512) << 20)
#define FILTER_OUTPUT (1 << 20)
#define REFUSAL_BYTES 300

json_t *filter_job(const struct job_spec *spec)
{
    static const char *const kept_back[] = {"environment", "summary", "capture", "hf_config", "lengths"};
    json_t *json = job_spec_to_json(spec);

    for (size_t i = 0; i < array_size(kept_back); i++)
        json_object_del(json, kept_back[i]);
    return json;
}

char *filter_input(uid_t uid, const char *user, bool edited, json_t *jobs)
{
    json_t *json = json_pack("{s:I, s:s, s:b, s:o}", "uid", (json_int_t)uid, "user", user ? user : "", "edited", edited,
                             "jobs", jobs);
    CLEANUP(free_ptr) char *text = json_dumps(json, JSON_COMPACT);

    json_decref(json);
    return xasprintf("%s\n", text ? text : "{}");
}

int filter_start(struct daemon *daemon, const char *input,
                 void (*ended)(int rc, const char *output, size_t length, const struct error *err, void *user),
                 void *user, struct low_child **child, struct error *err)
{
    static const struct low_child_limits limits = {.what = "filter",
                                                   .too_long = "try again later",
                                                   .too_large = "submit fewer jobs at a time",
                                                   .time_s = FILTER_TIME_S,
                                                   .memory_bytes = FILTER_MEMORY,
                                                   .output_bytes = FILTER_OUTPUT,
                                                   .prompt = true,
                                                   .as_nobody = true};
    char *argv[] = {daemon->config.submit_filter, NULL};

    return low_child_start(daemon->loop, argv, input, &limits, ended, user, child, err);
}

int filter_failed(const struct daemon *daemon, const char *done, const char *why, struct error *err)
{
    CLEANUP(free_ptr) char *reason = xstrdup(why); /* it may lie in err */

    error_set(err, EAGAIN, "the administrator's filter failed, so nothing was %s: %s", done, reason);
    error_make_printable(err);
    daemon_log("submit_filter %s: %s", daemon->config.submit_filter, err->text);
    return 503;
}

int filter_refused(const char *why, struct error *err)
{
    error_set(err, EPERM, "%.*s", REFUSAL_BYTES, why);
    error_make_printable(err);
    return 403;
}

static int check_changes(const json_t *changes, size_t count, struct error *err)
{
    const json_t *each;
    size_t i;

    if (!json_is_array(changes) || json_array_size(changes) != count)
        return error_set(err, EINVAL, "its \"jobs\" are not a list of %zu", count);
    json_array_foreach (changes, i, each)
        if (!json_is_null(each) && !json_is_object(each))
            return error_set(err, EINVAL, "its \"jobs\" are not objects");
    return 0;
}

int filter_read(const char *output, size_t count, char **refusal, json_t **changes, struct error *err)
{
    static const struct json_bounds most = {.values = 64 << 10, .depth = 4, .bytes = FILTER_OUTPUT};
    const char *text = output + strspn(output, " \t\r\n"), *refused = NULL;
    json_t *json = NULL, *jobs = NULL;
    int rc;

    *refusal = NULL;
    *changes = NULL;
    if (!*text)
        return 0;
    rc = json_read(text, strlen(text), JSON_REJECT_DUPLICATES, &most, &json, err);
    if (rc)
        return rc;
    if (json_unpack_ex(json, NULL, JSON_STRICT, "{s?s, s?o}", "refuse", &refused, "jobs", &jobs) != 0)
        rc = error_set(err, EINVAL, "it does not say {\"refuse\": TEXT} or {\"jobs\": [...]}");
    else if (refused)
        *refusal = xstrdup(refused);
    else if (jobs && (rc = check_changes(jobs, count, err)) == 0)
        *changes = json_incref(jobs);
    json_decref(json);
    return rc;
}
