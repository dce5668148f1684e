#include "slurm/step/grant.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "slurm/shared/ask.h"
#include "slurm/step/others.h"
#include "slurm/step/request.h"
#include "slurm/step/words.h"

enum {
    ANSWER_MS = 500, /* between carmad's own deadline and ours */
    JOIN_WAIT_MS = 5000,
    SCRIPT_BYTES = 64 << 10, /* as carmad takes it */
    SCRIPT_MOST_BYTES = 16 << 20,
};

/* The smallest GPU of this node; 0: carmad does not tell. */
static int64_t smallest_gpu(const struct step *step, int64_t deadline_ms, struct error *err)
{
    json_t *capacity = NULL, *item;
    int64_t least = 0;
    size_t i;

    if (ask_until(step->socket, deadline_ms, "GET", "/v1/capacity", NULL, &capacity, err) == 0)
        json_array_foreach (json_object_get(capacity, "memory_bytes"), i, item)
            if (least == 0 || json_integer_value(item) < least)
                least = json_integer_value(item);
    json_decref(capacity);
    return least;
}

/* What carmad learns the job by: a batch script's text, a step's words. */
static json_t *command_of(const struct step *step)
{
    CLEANUP(free_ptr) char *text = NULL;
    const char *script = request_text("script", "");
    size_t length = 0;

    if (step->batch && file_read(script, SCRIPT_MOST_BYTES, &text, &length, NULL) == 0 && length > 0)
        return words_json(text, length < SCRIPT_BYTES ? length : SCRIPT_BYTES);
    return words_json_of(request_text("command", ""));
}

/* As docs/formats/http.md has it. carmad answers before the deadline. */
static json_t *request_of(const struct step *step, bool exclusive, int64_t memory_bytes, int64_t left_ms)
{
    const char *share = request_text("share", ""), *directory = request_text("SLURM_SUBMIT_DIR", "/");
    const char *name = request_text("SLURM_JOB_NAME", "");
    char job_name[128], path[512];

    snprintf(job_name, sizeof job_name, "%s", *name ? name : "slurm");
    snprintf(path, sizeof path, "%s", *directory == '/' ? directory : "/");
    return json_pack("{s:s, s:o, s:I, s:I, s:o, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:b, s:o, s:I}", "engine", "slurm",
                     "cluster", words_json_of(step->cluster), "job", (json_int_t)step->job, "restart",
                     (json_int_t)step->restart, "node", words_json_of(step->node), "uid",
                     (json_int_t)request_number("uid", -1), "gid", (json_int_t)request_number("gid", -1), "name",
                     words_json_of(job_name), "command", command_of(step), "directory", words_json_of(path), "gpus",
                     (json_int_t)step->counts.gpus, "gpu_memory",
                     memory_bytes > 0 ? json_integer(memory_bytes) : json_null(), "exclusive", exclusive, "share",
                     *share && !exclusive ? words_json_of(share) : json_null(), "wait_ms",
                     (json_int_t)(left_ms > 2 * ANSWER_MS ? left_ms - ANSWER_MS : left_ms / 2));
}

/* The key makes asking again harmless: a lease that was granted and not heard of is granted again. */
static int take(const struct step *step, struct grant *grant, int64_t memory_bytes, int64_t deadline_ms)
{
    json_t *body = request_of(step, grant->exclusive, memory_bytes, deadline_ms - ask_now_ms());

    json_decref(grant->lease);
    grant->code = ask_until(step->socket, deadline_ms, "POST", "/v1/leases", body, &grant->lease, &grant->why);
    json_decref(body);
    return grant->code;
}

static json_int_t number_in(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* It is a batch script that may be guessed for; its steps find its lease, which may have grown. carmad may know of it
 * that it takes more than Slurm has counted: then the count holds. */
static void keep_to_count(const struct step *step, struct grant *grant, int64_t deadline_ms)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/leases/%lld/end", (long long)number_in(grant->lease, "id"));
    json_t *body, *said = NULL;

    if (number_in(grant->lease, "request_bytes") <= step_memory_bytes(step))
        return;
    body = json_pack("{s:i, s:b, s:n}", "signal", SIGTERM, "stopped", 1, "output");
    grant->code = ask_until(step->socket, deadline_ms, "POST", path, body, &said, &grant->why);
    json_decref(body);
    json_decref(said);
    if (grant->code == 0)
        take(step, grant, step_memory_bytes(step), deadline_ms);
}

/* A count of whole GPUs is a request of GPUs, not of memory, and shared in no way, also where it has grown to that. */
struct grant grant_ask(const struct step *step)
{
    const int64_t deadline_ms = ask_now_ms() + request_number("wait_ms", 0);
    struct grant grant = {.code = -ETIMEDOUT};
    const int64_t each = step_memory_bytes(step), least = smallest_gpu(step, deadline_ms, &grant.why);
    bool guessed = step->counts.guess && step->restart == 0;

    if (least == 0)
        return grant;
    grant.exclusive = each >= least;
    if (take(step, &grant, grant.exclusive || guessed ? 0 : each, deadline_ms) == 0 && step->batch && guessed &&
        !grant.exclusive)
        keep_to_count(step, &grant, deadline_ms);
    return grant;
}

static const char *environment_of(const json_t *lease, const char *name)
{
    return json_string_value(json_object_get(json_object_get(lease, "environment"), name));
}

/* The variables beside CUDA_VISIBLE_DEVICES that Slurm sets for GPUs of its own. */
static void set_slurms_variables(const struct step *step, const json_t *indexes)
{
    CLEANUP(strbuf_release) struct strbuf list = {0};
    json_t *index;
    size_t i;

    json_array_foreach (indexes, i, index)
        strbuf_printf(&list, "%s%lld", i ? "," : "", (long long)json_integer_value(index));
    if (!list.length)
        return;
    answer("set %s=%s", step_is_numbered(step) ? "SLURM_STEP_GPUS" : "SLURM_JOB_GPUS", list.text);
    answer("set SLURM_GPUS_ON_NODE=%zu", json_array_size(indexes));
}

/* Of --gpus-per-task; 0: it was not given. Since Slurm 24 it is one of a list: "cpu=2,gres/gpu=1". */
static long gpus_per_task(void)
{
    const char *text = request_text("SLURM_GPUS_PER_TASK", NULL), *at, *end;

    if (!text && !(text = strstr(request_text("SLURM_TRES_PER_TASK", ""), "gres/gpu")))
        return 0;
    for (at = end = text + strcspn(text, ","); at > text && at[-1] >= '0' && at[-1] <= '9'; at--)
        ;
    return at < end ? strtol(at, NULL, 10) : 0;
}

/* A task of --gpus-per-task sees its own part of the step's whole GPUs, as with Slurm's own. A shared GPU's memory
 * limit would not bear that (docs/mps.md). */
static void keep_tasks_part(const json_t *lease)
{
    const char *list = environment_of(lease, "CUDA_VISIBLE_DEVICES");
    const long each = gpus_per_task(), first = each * (long)request_number("task", 0);
    CLEANUP(strbuf_release) struct strbuf part = {0};

    if (!list || each < 1)
        return;
    for (long i = 0; *list && i < first + each; i++) {
        size_t wide = strcspn(list, ",");
        if (i >= first)
            strbuf_printf(&part, "%s%.*s", i > first ? "," : "", (int)wide, list);
        list += wide + (list[wide] == ',');
    }
    if (part.length)
        answer("set CUDA_VISIBLE_DEVICES=%s", part.text);
}

static void set_variables(const struct step *step, const struct grant *grant)
{
    /* The steps of a script would ask for CPUs and memory by GPUs that Slurm has not given: the job has them by other
     * names. */
    static const char *const by_gpu[] = {"SLURM_CPUS_PER_GPU", "SLURM_MEM_PER_GPU", "SLURM_NTASKS_PER_GPU"};
    const char *name;
    json_t *value;

    json_object_foreach (json_object_get(grant->lease, "environment"), name, value)
        answer("set %s=%s", name, json_string_value(value));
    set_slurms_variables(step, json_object_get(grant->lease, "indexes"));
    for (size_t i = 0; step->batch && i < array_size(by_gpu); i++)
        answer("unset %s", by_gpu[i]);
    if (!step->batch && grant->exclusive)
        keep_tasks_part(grant->lease);
}

int grant_join(const struct step *step, struct grant *grant)
{
    const pid_t pid = (pid_t)request_number("pid", 0);
    CLEANUP(free_ptr)
    char *path = xasprintf("/v1/leases/%lld/steps/%s", (long long)number_in(grant->lease, "id"), step->name);
    CLEANUP(free_ptr) char *own = others_own_group(pid);
    const char *group = json_string_value(json_object_get(grant->lease, "cgroup"));
    json_t *body, *reply = NULL;
    int rc = 0;

    /* A task stays in Slurm's own group of the job, whose limits hold for it and by which Slurm ends it. */
    if (own)
        strstr(own, "/job_")[1 + strcspn(strstr(own, "/job_") + 1, "/")] = '\0';
    if (!own && group)
        rc = others_enter(group, pid);
    if (rc)
        answer("error %s cannot be entered: %s", group, strerror(-rc));
    body = json_pack("{s:s?, s:[i], s:i}", "cgroup", own, "pids", (int)pid, "teller", (int)request_number("parent", 0));
    rc = ask_until(step->socket, ask_now_ms() + JOIN_WAIT_MS, "PUT", path, body, &reply, &grant->why);
    if (rc == 0)
        set_variables(step, grant);
    json_decref(body);
    json_decref(reply);
    return rc;
}
