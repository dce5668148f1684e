/* A job's view as people see it. */
#include <inttypes.h>

#include "api/job_field.h"
#include "api/or_null.h"
#include "api/spec.h"
#include "base/json/moment.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/ledger.h"
#include "core/need/overuse.h"
#include "core/share/slowdown.h"
#include "core/verdict.h"
#include "daemon/view/owners.h"
#include "daemon/view/view.h"
#include "launch/launch.h"

static const char *end_in_words(const struct job_view *view, const struct core *core)
{
    const struct job *job = core_find_job(core, view->id);
    bool is_oom = view->retry || (job && job->run->crash_is_oom); /* beyond its user's budget it waits in its place */

    switch (view->run->exit.cause) {
    case EXIT_COMPLETED:
        return verdict_of(&view->run->exit).caught ? "GPU memory ran out in it, and it went on to its end" : NULL;
    case EXIT_GPU_OOM:
        return view->state == JOB_FAILED || (!job_state_ended(view->state) && !is_oom)
                   ? "it printed that GPU memory ran out, which the memory in use does not bear out"
                   : "GPU memory ran out";
    case EXIT_GPU_HANDLE:
        return view->state == JOB_FAILED ? "a GPU library could not be set up, though GPU memory was free"
                                         : "a GPU library could not allocate its memory";
    case EXIT_HOST_OOM:
        return "the host's memory ran out";
    case EXIT_MPS_FAULT:
        return "another client of its MPS server failed";
    case EXIT_GPU_ERROR:
        return "its GPU failed";
    case EXIT_TIMEOUT:
        return "its time limit had passed";
    case EXIT_IDLE:
        return "it did not use its GPUs for its idle limit";
    case EXIT_LOST:
        return "it was lost";
    case EXIT_ORPHAN:
        return "its processes had gone, and nobody said how they ended";
    case EXIT_EXPIRED:
        return "no process came to use it";
    default:
        return NULL;
    }
}

char *job_view_moved_why(const struct job_view *view)
{
    char number[JOB_NUMBER_TEXT];
    CLEANUP(free_ptr)
    char *other = view->run->moved_for == view->id
                      ? xstrdup("it")
                      : xasprintf("job %s", job_number(view->views, view->run->moved_for, number));

    return view->run->moved_for
               ? xasprintf("%s ran %" PRIu32 ".%02" PRIu32
                           "x slower than alone on the GPU that they shared; the limit is "
                           "%" PRIu32 ".%02" PRIu32 "x",
                           other, view->run->moved_slowed_permille / 1000, view->run->moved_slowed_permille % 1000 / 10,
                           view->run->moved_bound_permille / 1000, view->run->moved_bound_permille % 1000 / 10)
               : NULL;
}

char *job_view_idle_why(const struct job_view *view, int64_t now_ns)
{
    int64_t ends_ns = view->run->idle_ends_ns;
    char left[UNITS_TEXT];

    if (view->run->idle_step == IDLE_ENDED)
        return xstrdup("it did not use its GPUs for its idle limit, and is ended");
    return ends_ns ? xasprintf("it does not use its GPUs: it is ended in %s unless it does",
                               format_duration(ends_ns > now_ns ? ends_ns - now_ns : 0, left))
                   : NULL;
}

/* The known need of its last run on one of its GPUs that exceeds every GPU; 0: none. */
static int64_t hopeless_bytes(const struct job_view *view, const struct core *core, int64_t *largest_bytes)
{
    int64_t peak = 0;

    *largest_bytes = 0;
    for (uint32_t i = 0; i < view->placement_count; i++)
        if (view->placements[i].observed_bytes > peak)
            peak = view->placements[i].observed_bytes;
    for (uint32_t i = 0; i < core_gpu_count(core); i++)
        if (core_gpu(core, i)->total_bytes > *largest_bytes)
            *largest_bytes = core_gpu(core, i)->total_bytes;
    if (view->state != JOB_GPU_OOM || view->run->exit.requested_bytes < 0 ||
        view->run->exit.requested_bytes <= *largest_bytes - peak)
        return 0;
    return view->run->exit.requested_bytes > INT64_MAX - peak ? INT64_MAX : peak + view->run->exit.requested_bytes;
}

char *job_view_last_end(const struct job_view *view, const struct core *core)
{
    const char *words = view->run->exited ? end_in_words(view, core) : NULL;
    CLEANUP(free_ptr) char *moved = job_view_moved_why(view);
    char needed[UNITS_TEXT], largest[UNITS_TEXT], number[JOB_NUMBER_TEXT];
    int64_t largest_bytes, needed_bytes = hopeless_bytes(view, core, &largest_bytes);

    if (!words)
        return NULL;
    if (view->run->overuser)
        return xasprintf("job %s used more GPU memory than was reserved for it, and this job ran out; it is "
                         "retried %s",
                         job_number(view->views, view->run->overuser, number),
                         view->retry ? "before the queue" : "in its turn");
    if (view->run->unfenced && !job_state_ended(view->state))
        return xasprintf("GPU memory ran out at the limit of the node default, not on the GPU; it is retried %s "
                         "without a limit",
                         view->retry ? "before the queue" : "in its turn");
    if (moved && view->run->exit.cause == EXIT_TIMEOUT)
        return xasprintf("it was moved off its GPUs: %s. It goes on in its turn", moved);
    if (needed_bytes)
        return xasprintf("%s: it needs at least %s, the largest GPU has %s", words, format_bytes(needed_bytes, needed),
                         format_bytes(largest_bytes, largest));
    if (job_state_ended(view->state))
        return xstrdup(words);
    return xasprintf("%s; it is retried %s", words, view->retry ? "before the queue" : "in its turn");
}

static const char *uuids_why_text(uint32_t why)
{
    static const char *const texts[UUIDS_WHY_COUNT] = {
        [UUIDS_LEASE] = "its processes are started by another program, whose GPUs carma does not number",
        [UUIDS_INSTANCE] = "a MIG instance has no index",
        [UUIDS_UNKNOWN_SERVER] = "the GPUs of the administrator's MPS daemon (mps_pipe_directory) are not known",
        [UUIDS_CONTAINER] = "its container may see only its own GPUs, and an index is another there",
        [UUIDS_MIXED_NODE] = "a GPU in MIG mode changes the indices, and jobs can open all GPUs here (carma doctor)",
        [UUIDS_NOT_READ] = "the driver does not tell the index of one of its GPUs",
    };

    return why < UUIDS_WHY_COUNT ? texts[why] : NULL;
}

void reason_name_others(struct reason *reason, const struct views *views)
{
    const struct job_view *resident = reason->resident ? views_find(views, reason->resident) : NULL;

    if (reason->code == REASON_ALLOTTED)
        reason->owner = owners_name(views->owners, (uid_t)reason->other);
    else
        reason->owner = resident ? job_view_user(resident) : NULL;
    if (reason->other && reason->code != REASON_OTHER_USER && reason->code != REASON_ARRAY &&
        reason->code != REASON_ALLOTTED)
        job_number(views, reason->other, reason->number);
}

json_t *reason_to_json(const struct reason *reason, int64_t now_ns)
{
    char text[REASON_TEXT];

    if (reason->code == REASON_NONE)
        return json_null();
    return json_pack("{s:s, s:s}", "code", reason_name(reason->code), "text", reason_format(reason, now_ns, text));
}

int64_t job_view_reserved_bytes(const struct job_view *view, const struct core *core, uint32_t *source)
{
    const struct job *job = job_state_ended(view->state) ? NULL : core_find_job(core, view->id);

    if (job && job->placement_count == 0)
        return core_reservation(core, job, source);
    *source = view->reservation_source;
    return view->reserved_bytes;
}

int64_t job_view_over_bytes(const struct job_view *view, const struct core *core)
{
    const struct job *job = job_state_ended(view->state) ? NULL : core_find_job(core, view->id);

    return job ? overuse_bytes(job) : 0;
}

char *job_view_memory_text(const struct job_view *view, const struct core *core, enum access_view access)
{
    static const char *const sources[SOURCE_COUNT] = {
        [SOURCE_DECLARED] = ", declared",
        [SOURCE_RECORDED] = ", recorded with it",
        [SOURCE_LEARNED] = ", learned from earlier runs",
        [SOURCE_OBSERVED] = ", as it was observed to need",
        [SOURCE_RAISED] = ", raised after it ran out of memory",
        [SOURCE_PRIOR] = ", which is enough for most workloads: its own need is not known yet",
    };
    CLEANUP(free_ptr) char *estimated = access == ACCESS_ALL ? job_estimate_text(&view->common->estimate) : NULL;
    uint32_t source;
    int64_t reserved_bytes = job_view_reserved_bytes(view, core, &source);
    struct strbuf out = {0};
    char bytes[UNITS_TEXT], request[UNITS_TEXT];

    if (source == SOURCE_LEARNED && view->wants->request_source == SOURCE_DECLARED)
        strbuf_printf(&out, "%s on each GPU, as the last run of this command used; that was more than the %s declared",
                      format_bytes(reserved_bytes, bytes), format_bytes(view->wants->request_bytes, request));
    else if (reserved_bytes >= 0)
        strbuf_printf(&out, "%s on each GPU%s", format_bytes(reserved_bytes, bytes),
                      source < SOURCE_COUNT && sources[source] ? sources[source] : "");
    else
        strbuf_puts(&out, view->wants->gpus ? "not known" : "none, without a GPU");
    if (estimated)
        strbuf_printf(&out, ": %s", estimated);
    return strbuf_steal(&out);
}

json_t *job_view_estimate_to_json(const struct job_view *view)
{
    CLEANUP(free_ptr) char *text = job_estimate_text(&view->common->estimate);
    json_t *json;

    if (!text && view->common->estimate.warnings.count == 0)
        return json_null();
    json = job_estimate_to_json(&view->common->estimate);
    json_object_set_new(json, "text", text_or_null(text));
    return json;
}

static json_t *placements_to_json(const struct job_view *view, const struct core *core)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < view->placement_count; i++) {
        const struct gpu *gpu = core_gpu(core, view->placements[i].gpu);
        json_array_append_new(list, json_pack("{s:I, s:s, s:I}", "index", (json_int_t)view->placements[i].gpu, "uuid",
                                              gpu ? gpu->uuid : "", "observed_bytes",
                                              (json_int_t)view->placements[i].observed_bytes));
    }
    return list;
}

int32_t job_view_slowdown_permille(const struct job_view *view, const struct core *core)
{
    int32_t worst = 0;

    for (uint32_t i = 0; job_state_runs(view->state) && i < view->placement_count; i++) {
        const struct gpu *gpu = core_gpu(core, view->placements[i].gpu);
        int32_t slowdown = gpu ? slowdown_predict(core, gpu, NULL).worst_permille : 0;
        if (slowdown > worst)
            worst = slowdown;
    }
    return worst;
}

static json_t *progress_to_json(const struct job_progress *progress)
{
    int64_t total = progress->count.total, speed = progress->micro_steps_per_s;

    return moment_twin(json_pack("{s:I, s:o, s:o, s:I}", "step", (json_int_t)progress->count.step, "total",
                                 integer_or_null(total, total > 0), "steps_per_s",
                                 speed >= 0 ? json_real((double)speed / 1e6) : json_null(), "at_ns",
                                 (json_int_t)nodetime_shown_ns(progress->count.at_ns)),
                       "at_ns");
}

json_t *job_view_array_to_json(const struct job_view *view)
{
    const struct launch_array array = job_view_array(view);

    if (!array.id)
        return json_null();
    return json_pack("{s:I, s:i, s:i, s:o}", "id", (json_int_t)array.id, "index", (int)array.index, "jobs",
                     (int)array.jobs, "most", integer_or_null(view->wants->array_most, view->wants->array_most > 0));
}

void job_view_add_deadline(const struct job_view *view, json_t *json)
{
    int64_t at_ns = view->wants->deadline_ns;

    moment_set(json, "deadline_at_ns", nodetime_shown_ns(at_ns), at_ns > 0);
}

static void add_details(const struct job_view *view, json_t *json)
{
    const struct job_spec *spec = view->common->spec;
    const struct spec_strings words = common_text_list(view->command);
    const struct launch_array array = job_view_array(view);
    CLEANUP(free_ptr) char *output = spec->output ? launch_output_path(spec->output, view->id, &array) : NULL;
    CLEANUP(free_ptr) char *error = spec->error ? launch_output_path(spec->error, view->id, &array) : NULL;
    json_t *command = json_array();

    for (size_t i = 0; i < words.count; i++)
        json_array_append_new(command, json_string(words.items[i]));
    json_object_set_new(json, "command", command);
    json_object_set_new(json, "script", json_boolean(view->has_script));
    json_object_set_new(json, "directory", text_or_null(spec->directory));
    json_object_set_new(json, "output", text_or_null(output));
    json_object_set_new(json, "error", text_or_null(error ? error : output));
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].option && !job_fields[i].apart)
            json_object_set_new(json, job_fields[i].name, job_field_to_json(&job_fields[i], spec));
    job_view_add_deadline(view, json);
}

static json_t *plain(int64_t value)
{
    return json_integer(value);
}

static json_t *over_0(int64_t value)
{
    return integer_or_null(value, value > 0);
}

static json_t *from_0(int64_t value)
{
    return integer_or_null(value, value >= 0);
}

/* The rows of the tables, by their forms. */
static void add_numbers(const struct job_view *view, json_t *json)
{
#define HIDDEN(name, value)
#define PLAIN(name, value)  json_object_set_new(json, name, plain((int64_t)(value)));
#define OVER_0(name, value) json_object_set_new(json, name, over_0((int64_t)(value)));
#define FROM_0(name, value) json_object_set_new(json, name, from_0((int64_t)(value)));
#define MOMENT(name, value) moment_set(json, name, nodetime_shown_ns((int64_t)(value)), (int64_t)(value) >= 0);
#define VIEW(part, type, member, first, form)                                                                          \
    form(#member, IF_JOB_##part(view->member) IF_RUN_##part(view->run->member))
#include "daemon/view/view_fields.def"
#define TIME(name, value, known)   moment_set(json, name, nodetime_shown_ns((int64_t)(value)), known);
#define NUMBER(name, value, known) json_object_set_new(json, name, integer_or_null((int64_t)(value), known));
#define FLAG(name, value, known)   json_object_set_new(json, name, json_boolean(value));
#define BYTES                      NUMBER
#define PERCENT                    NUMBER
#define DURATION                   NUMBER
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title)                                                     \
    IF_JOB_##part(form(name, view->member, view->member != (absent)))                                                  \
        IF_RUN_##part(form(name, view->run->member, view->run->member != (absent)))
#include "core/job_state.def"
}

json_t *job_view_to_json(const struct job_view *view, const struct core *core, int64_t now_ns, enum access_view access,
                         bool detailed)
{
    struct reason reason = core_reason(core, view->id, now_ns);
    const struct job_spec *spec = view->common->spec;
    uint32_t reservation_source;
    int64_t reserved_bytes = job_view_reserved_bytes(view, core, &reservation_source);
    CLEANUP(free_ptr) char *last_end = job_view_last_end(view, core);
    int32_t slowdown = job_view_slowdown_permille(view, core);
    int64_t over_bytes = job_view_over_bytes(view, core);
    json_t *json = json_object();

    reason_name_others(&reason, view->views);
    json_object_set_new(json, "id", json_integer((json_int_t)view->id));
    json_object_set_new(json, "array", job_view_array_to_json(view));
    json_object_set_new(json, "name", text_or_null(common_text_first(view->name)));
    json_object_set_new(json, "user", text_or_null(job_view_user(view)));
    json_object_set_new(json, "uid", json_integer(view->wants->uid));
    json_object_set_new(json, "account", text_or_null(spec->account));
    json_object_set_new(json, "tags", text_or_null(spec->tags));
    json_object_set_new(json, "engine", json_string(spec->engine ? spec->engine : "local"));
    json_object_set_new(json, "cluster", text_or_null(spec->cluster));
    json_object_set_new(json, "slurm_job", integer_or_null(spec->slurm_job, spec->slurm_job > 0));
    json_object_set_new(json, "state", json_string(job_state_name(view->state)));
    json_object_set_new(json, "letter", json_string(job_state_letter(view->state)));
    json_object_set_new(json, "gpus", json_integer(view->wants->gpus));
    json_object_set_new(json, "reserved_bytes", integer_or_null(reserved_bytes, reserved_bytes >= 0));
    json_object_set_new(json, "reservation_source", json_string(memory_source_name(reservation_source)));
    json_object_set_new(json, "request_bytes",
                        integer_or_null(view->wants->request_bytes, view->wants->request_bytes >= 0));
    json_object_set_new(json, "estimating", json_boolean(view->estimating));
    json_object_set_new(json, "over_reservation_bytes", integer_or_null(over_bytes, over_bytes > 0));
    add_numbers(view, json);
    json_object_set_new(json, "uuids_why", text_or_null(uuids_why_text(view->run->uuids_why)));
    json_object_set_new(json, "share", json_string(share_mode_name(view->wants->share)));
    json_object_set_new(json, "runs_by",
                        view->run->share ? json_string(share_mode_name(view->run->share)) : json_null());
    json_object_set_new(json, "exclusive", json_boolean(view->wants->exclusive));
    json_object_set_new(json, "crashes", json_integer(view->run->crashes - view->run->harmed));
    json_object_set_new(json, "time_limit_ns",
                        integer_or_null(view->wants->time_limit_ns, view->wants->time_limit_ns > 0));
    json_object_set_new(json, "idle_limit_ns",
                        integer_or_null(view->wants->idle_limit_ns, view->wants->idle_limit_ns > 0));
    json_object_set_new(json, "signal", integer_or_null(view->wants->signal, view->wants->signal > 0));
    json_object_set_new(json, "signal_before_ns",
                        integer_or_null(view->wants->signal_before_ns, view->wants->signal > 0));
    json_object_set_new(json, "interactive", text_or_null(spec->interactive));
    json_object_set_new(json, "priority", json_integer(view->wants->priority));
    json_object_set_new(json, "requeue", json_boolean(view->wants->requeue));
    json_object_set_new(json, "cpus", integer_or_null(spec->cpus, spec->cpus > 0));
    json_object_set_new(json, "host_memory_bytes",
                        integer_or_null(spec->host_memory_bytes, spec->host_memory_bytes > 0));
    json_object_set_new(
        json, "exit_status",
        integer_or_null(view->run->exit.status, view->run->exited && view->run->exit.cause != EXIT_LOST));
    json_object_set_new(json, "exit_cause",
                        view->run->exited ? json_string(exit_cause_name(view->run->exit.cause)) : json_null());
    json_object_set_new(json, "last_end", text_or_null(last_end));
    json_object_set_new(json, "notify", text_or_null(access == ACCESS_ALL ? spec->notify : NULL));
    json_object_set_new(json, "message", text_or_null(access == ACCESS_ALL ? view->message : NULL));
    json_object_set_new(json, "gpu_ns", json_integer(job_view_gpu_ns(view, now_ns)));
    json_object_set_new(json, "modelled_energy_mj", integer_or_null(view->run->energy_mj, view->attempts > 0));
    json_object_set_new(json, "progress", view->run->progress ? progress_to_json(view->run->progress) : json_null());
    json_object_set_new(json, "slowdown_permille", integer_or_null(slowdown, slowdown > 0));
    moment_set(json, "unused_since_ns", nodetime_shown_ns(view->run->unused_since_ns), view->run->unused_since_ns >= 0);
    json_object_set_new(json, "placements", placements_to_json(view, core));
    json_object_set_new(json, "reason", reason_to_json(&reason, now_ns));
    json_object_set_new(json, "turn", job_view_turn_to_json(view, core, now_ns, detailed));
    if (detailed)
        json_object_set_new(json, "kept", job_view_kept_to_json(view, core, now_ns));
    if (detailed && access == ACCESS_ALL)
        add_details(view, json);
    return json;
}
