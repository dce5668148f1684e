#include "api/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/memory.h"

#define NSIG_MOST 128

/* NULL: it is not an object. */
static json_t *load(const char *text, size_t length, struct error *err)
{
    static const struct json_bounds bounds = {
        .values = 2 * LEASE_PIDS_MAX, .depth = 4, .bytes = LEASE_REQUEST_MAX_BYTES};
    json_t *json;

    if (length > LEASE_REQUEST_MAX_BYTES) {
        error_set(err, EINVAL, "the request has %zu bytes, at most %d: shorten the command or the output", length,
                  LEASE_REQUEST_MAX_BYTES);
        return NULL;
    }
    if (json_read(text, length, JSON_REJECT_DUPLICATES, &bounds, &json, err))
        error_prefix(err, "the request");
    else if (json_is_object(json))
        return json;
    else
        error_set(err, EINVAL, "the request is not a JSON object: it is another value");
    json_decref(json);
    return NULL;
}

/* An error may quote what somebody else wrote. */
static int finish(json_t *json, int rc, struct error *err)
{
    json_decref(json);
    if (rc < 0 && err)
        error_make_printable(err);
    return rc;
}

/* Members that nobody reads are a misunderstanding. */
static int check_members(const json_t *json, const char *const *known, struct error *err)
{
    const char *name;
    const json_t *value;

    json_object_foreach ((json_t *)json, name, value) {
        const char *const *at = known;
        while (*at && strcmp(*at, name) != 0)
            at++;
        if (!*at)
            return error_set(err, EINVAL, "'%.60s' is not known here: leave it out", name);
    }
    return 0;
}

/* The member's value, NULL where it is null or left out. */
static const json_t *said(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);

    return json_is_null(value) ? NULL : value;
}

static int take_number(const json_t *json, const char *name, int64_t low, int64_t high, int64_t *number,
                       struct error *err)
{
    const json_t *value = said(json, name);

    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
        return error_set(err, EINVAL, "%s is not a whole number from %" PRId64 " to %" PRId64, name, low, high);
    *number = json_integer_value(value);
    return 0;
}

static int require_number(const json_t *json, const char *name, int64_t low, int64_t high, int64_t *number,
                          struct error *err)
{
    return said(json, name) ? take_number(json, name, low, high, number, err)
                            : error_set(err, EINVAL, "%s is missing: a whole number", name);
}

/* *text: owned by the caller. */
static int take_text(const json_t *json, const char *name, char **text, struct error *err)
{
    const json_t *value = said(json, name);

    if (!value)
        return 0;
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return error_set(err, EINVAL, "%s is not a text without NUL", name);
    free(*text);
    *text = *json_string_value(value) ? xstrdup(json_string_value(value)) : NULL;
    return 0;
}

static int take_bool(const json_t *json, const char *name, bool *result, struct error *err)
{
    const json_t *value = said(json, name);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return error_set(err, EINVAL, "%s is not true or false", name);
    *result = json_is_true(value);
    return 0;
}

/* A script by its text; a command by its words, so that `--seed 3` is known to have no say in memory. */
static void take_command(const char *text, struct job_spec *spec)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text ? text : spec->name);
    char *rest = NULL;

    if (strncmp(copy, "#!", 2) == 0) {
        spec->script = steal_ptr(&copy);
        spec_strings_add(&spec->command, spec->name);
        return;
    }
    for (char *word = strtok_r(copy, " \t\n\r", &rest); word; word = strtok_r(NULL, " \t\n\r", &rest))
        spec_strings_add(&spec->command, word);
    if (spec->command.count == 0)
        spec_strings_add(&spec->command, spec->name);
}

static int take_key(const json_t *json, struct job_spec *spec, struct error *err)
{
    int rc;

    if ((rc = take_text(json, "engine", &spec->engine, err)) ||
        (rc = take_text(json, "cluster", &spec->cluster, err)) ||
        (rc = require_number(json, "job", 1, UINT32_MAX, &spec->slurm_job, err)) ||
        (rc = require_number(json, "restart", 0, UINT32_MAX, &spec->slurm_restart, err)) ||
        (rc = take_text(json, "node", &spec->slurm_node, err)))
        return rc;
    if (!spec->engine || !spec->cluster || !spec->slurm_node)
        return error_set(err, EINVAL, "%s is missing: a text",
                         !spec->engine    ? "engine"
                         : !spec->cluster ? "cluster"
                                          : "node");
    return 0;
}

static int take_needs(const json_t *json, struct lease_request *request, struct error *err)
{
    struct job_spec *spec = &request->spec;
    int64_t gpus = 1, uid = 0;
    int rc;

    if ((rc = require_number(json, "uid", 0, UINT32_MAX - 1, &uid, err)) ||
        (rc = take_number(json, "gid", 0, UINT32_MAX - 1, &request->gid, err)) ||
        (rc = take_number(json, "gpus", 1, UINT32_MAX, &gpus, err)) ||
        (rc = take_number(json, "gpu_memory", 1, SPEC_MAX_GPU_MEMORY, &spec->gpu_memory_bytes, err)) ||
        (rc = take_bool(json, "exclusive", &spec->exclusive, err)) ||
        (rc = take_text(json, "share", &spec->share, err)) ||
        (rc = take_number(json, "time_limit_ns", 1, SPEC_MAX_TIME_NS, &spec->time_limit_ns, err)) ||
        (rc = take_number(json, "wait_ms", 0, LEASE_WAIT_MAX_MS, &request->wait_ms, err)))
        return rc;
    spec->gpus = (uint32_t)gpus;
    request->uid = (uint32_t)uid;
    return 0;
}

static int take_request(const json_t *json, struct lease_request *request, struct error *err)
{
    static const char *const known[] = {"engine",  "cluster",   "job",     "restart",       "node", "uid",
                                        "gid",     "name",      "command", "directory",     "gpus", "gpu_memory",
                                        "wait_ms", "exclusive", "share",   "time_limit_ns", NULL};
    struct job_spec *spec = &request->spec;
    CLEANUP(free_ptr) char *command = NULL;
    int rc;

    if ((rc = check_members(json, known, err)) || (rc = take_key(json, spec, err)) ||
        (rc = take_needs(json, request, err)) || (rc = take_text(json, "name", &spec->name, err)) ||
        (rc = take_text(json, "directory", &spec->directory, err)) || (rc = take_text(json, "command", &command, err)))
        return rc;
    if (!spec->name)
        spec->name = xasprintf("slurm-%" PRId64, spec->slurm_job);
    if (!spec->directory)
        spec->directory = xstrdup("/");
    spec->output = xstrdup("/dev/null"); /* carma opens none for it */
    spec->requeue = true;                /* whoever asks starts it again */
    take_command(command, spec);
    return job_spec_check(spec, err);
}

int lease_request_parse(const char *text, size_t length, struct lease_request *request, struct error *err)
{
    json_t *json = load(text, length, err);
    int rc = -EINVAL;

    *request = (struct lease_request){.gid = -1, .wait_ms = 8000};
    job_spec_init(&request->spec);
    if (json)
        rc = take_request(json, request, err);
    return finish(json, rc, err);
}

void lease_request_release(struct lease_request *request)
{
    job_spec_release(&request->spec);
}

bool lease_step_is_name(const char *name)
{
    static const char *const names[] = {"batch", "interactive", "extern"};

    for (size_t i = 0; i < array_size(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return *name && strlen(name) <= 10 && strspn(name, "0123456789") == strlen(name);
}

/* In the one spelling of it: groups are compared by their paths. The root group has every process of the machine. */
static bool is_path_of_group(const char *path)
{
    if (strpbrk(path, "\n\r") || strlen(path) > 4000)
        return false;
    for (const char *part = path; *part; part += 1 + strcspn(part + 1, "/")) {
        size_t length = strcspn(part + 1, "/");
        if (*part != '/' || length == 0 || (part[1] == '.' && (length == 1 || (length == 2 && part[2] == '.'))))
            return false;
    }
    return *path;
}

static int check_cgroup(const char *cgroup, struct error *err)
{
    if (cgroup && !is_path_of_group(cgroup))
        return error_set(err, EINVAL, "cgroup '%.200s' is not the path of a group, as /proc/PID/cgroup shows it",
                         cgroup);
    return 0;
}

static int take_pids(const json_t *list, struct lease_attach *attach, struct error *err)
{
    if (list && (!json_is_array(list) || json_array_size(list) > LEASE_PIDS_MAX))
        return error_set(err, EINVAL, "pids is not an array of at most %d", LEASE_PIDS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pid = json_array_get(list, i);
        if (!json_is_integer(pid) || json_integer_value(pid) <= 1 || json_integer_value(pid) > INT32_MAX)
            return error_set(err, EINVAL, "pids: number %zu is not a process", i + 1);
        attach->pids[attach->count++] = (pid_t)json_integer_value(pid);
    }
    return 0;
}

int lease_attach_parse(const char *text, size_t length, struct lease_attach *attach, struct error *err)
{
    static const char *const known[] = {"cgroup", "pids", "teller", NULL};
    json_t *json = load(text, length, err);
    int64_t teller = 0;
    int rc = -EINVAL;

    *attach = (struct lease_attach){0};
    if (json && (rc = check_members(json, known, err)) == 0 &&
        (rc = take_text(json, "cgroup", &attach->cgroup, err)) == 0 && (rc = check_cgroup(attach->cgroup, err)) == 0 &&
        (rc = take_number(json, "teller", 2, INT32_MAX, &teller, err)) == 0)
        rc = take_pids(said(json, "pids"), attach, err);
    attach->teller = (pid_t)teller;
    if (rc == 0 && !attach->cgroup && attach->count == 0)
        rc = error_set(err, EINVAL, "the step has neither a cgroup nor pids: name one of them");
    return finish(json, rc, err);
}

void lease_attach_release(struct lease_attach *attach)
{
    free_ptr(&attach->cgroup);
}

static int take_end(const json_t *json, size_t most_output, struct lease_end *end, struct error *err)
{
    static const char *const known[] = {"exit_status", "signal", "output", "stopped", NULL};
    int64_t status = -1, number = 0;
    int rc;

    if ((rc = check_members(json, known, err)) || (rc = take_number(json, "exit_status", 0, 255, &status, err)) ||
        (rc = take_number(json, "signal", 1, NSIG_MOST, &number, err)) ||
        (rc = take_bool(json, "stopped", &end->stopped, err)) || (rc = take_text(json, "output", &end->output, err)))
        return rc;
    if ((status < 0) == (number == 0))
        return error_set(err, EINVAL, "say either exit_status or signal");
    if (end->output && strlen(end->output) > most_output)
        return error_set(err, EINVAL, "output has %zu bytes, at most %zu: send its end", strlen(end->output),
                         most_output);
    end->exit_status = (int32_t)status;
    end->signal = (int32_t)number;
    return 0;
}

int lease_end_parse(const char *text, size_t length, size_t most_output, struct lease_end *end, struct error *err)
{
    json_t *json = load(text, length, err);
    int rc = -EINVAL;

    *end = (struct lease_end){0};
    if (json)
        rc = take_end(json, most_output, end, err);
    return finish(json, rc, err);
}

void lease_end_release(struct lease_end *end)
{
    free_ptr(&end->output);
}
