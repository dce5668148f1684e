#include "cli/show/answer.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/job_signal.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"

void json_release(json_t **json)
{
    json_decref(*json);
}

int64_t answer_integer(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);

    if (json_is_integer(value))
        return json_integer_value(value);
    return json_is_real(value) ? (int64_t)json_real_value(value) : otherwise;
}

double answer_number(const json_t *object, const char *name, double otherwise)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : otherwise;
}

const char *answer_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

bool answer_true(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

char *answer_safe_text(const json_t *object, const char *name)
{
    return term_escape(answer_text(object, name));
}

char *answer_bytes(const json_t *object, const char *name)
{
    int64_t bytes = answer_integer(object, name, -1);
    char text[UNITS_TEXT];

    return xstrdup(bytes < 0 ? "-" : format_bytes(bytes, text));
}

char *view_process(const json_t *process)
{
    CLEANUP(free_ptr) char *command = answer_safe_text(process, "command");
    CLEANUP(free_ptr) char *user = answer_safe_text(process, "user");
    CLEANUP(free_ptr) char *held = answer_bytes(process, "used_bytes");
    struct strbuf out = {0};

    strbuf_printf(&out, "process %" PRId64, answer_integer(process, "pid", -1));
    if (answer_text(process, "command"))
        strbuf_printf(&out, " (%s%s%s)", command, answer_text(process, "user") ? " of " : "",
                      answer_text(process, "user") ? user : "");
    strbuf_printf(&out, " holds %s", answer_integer(process, "used_bytes", -1) < 0 ? "memory" : held);
    return strbuf_steal(&out);
}

char *answer_permille(const json_t *object, const char *name)
{
    int64_t permille = answer_integer(object, name, -1);

    return permille < 0 ? xstrdup("-") : xasprintf("%" PRId64 "%%", (permille + 5) / 10);
}

char *answer_time(int64_t at_ns)
{
    time_t seconds = (time_t)(at_ns / NS_PER_SEC);
    char text[40];
    struct tm local;

    if (at_ns <= 0)
        return xstrdup("-");
    if (nodetime_scale() != 1)
        return xasprintf("%.1f s of node time", (double)at_ns / 1e9);
    localtime_r(&seconds, &local);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    return xstrdup(text);
}

char *answer_deadline(const json_t *job)
{
    int64_t at_ns = answer_integer(job, "deadline_at_ns", 0), left_ns = at_ns - nodetime_shown_now_ns();
    CLEANUP(free_ptr) char *at = answer_time(at_ns);
    char left[UNITS_TEXT];

    if (at_ns <= 0)
        return NULL;
    if (answer_job_ended(job))
        return steal_ptr(&at);
    return left_ns < 0 ? xasprintf("%s, which has passed", at)
                       : xasprintf("%s, in %s", at, format_duration(left_ns, left));
}

char *answer_energy(int64_t mj, char text[ANSWER_ENERGY])
{
    double joules = (double)mj / 1000;

    if (joules < 10000)
        snprintf(text, ANSWER_ENERGY, "%.0f J", joules);
    else if (joules < 1e6)
        snprintf(text, ANSWER_ENERGY, "%.1f kJ", joules / 1e3);
    else
        snprintf(text, ANSWER_ENERGY, "%.2f MJ", joules / 1e6);
    return text;
}

static bool state_is(const json_t *job, const char *state)
{
    const char *text = answer_text(job, "state");

    return text && strcmp(text, state) == 0;
}

char *answer_job_id(const json_t *job)
{
    const json_t *array = json_object_get(job, "array");
    int64_t id = answer_integer(array, "id", 0), index = answer_integer(array, "index", 0);
    int64_t last = answer_integer(array, "last", index), most = answer_integer(array, "most", 0);
    CLEANUP(free_ptr) char *limit = most ? xasprintf("%%%" PRId64, most) : xstrdup("");

    if (!id)
        return xasprintf("%" PRId64, answer_integer(job, "id", 0));
    if (last == index)
        return xasprintf("%" PRId64 "_%" PRId64, id, index);
    return xasprintf("%" PRId64 "_[%" PRId64 "-%" PRId64 "%s]", id, index, last, limit);
}

bool answer_job_ended(const json_t *job)
{
    static const char *const ended[] = {"COMPLETED", "FAILED",  "GPU_OOM",  "CANCELLED", "LOST",
                                        "REFUSED",   "TIMEOUT", "RETURNED", "EXPIRED"};

    for (size_t i = 0; i < array_size(ended); i++) {
        if (state_is(job, ended[i]))
            return true;
    }
    return false;
}

enum term_style answer_state_style(const json_t *job)
{
    static const struct {
        const char *state;
        enum term_style style;
    } styles[] = {
        {"RUNNING", STYLE_GREEN},    {"PLACED", STYLE_GREEN}, {"STOPPING", STYLE_YELLOW}, {"CRASHED", STYLE_YELLOW},
        {"QUEUED", STYLE_NONE},      {"HELD", STYLE_DIM},     {"COMPLETED", STYLE_DIM},   {"CANCELLED", STYLE_DIM},
        {"FAILED", STYLE_RED},       {"GPU_OOM", STYLE_RED},  {"LOST", STYLE_RED},        {"REFUSED", STYLE_RED},
        {"TIMEOUT", STYLE_RED},      {"RETURNED", STYLE_RED}, {"EXPIRED", STYLE_RED},     {"SUSPENDED", STYLE_YELLOW},
        {"REQUEUING", STYLE_YELLOW},
    };

    for (size_t i = 0; i < array_size(styles); i++) {
        if (state_is(job, styles[i].state))
            return styles[i].style;
    }
    return STYLE_NONE;
}

static char *placements(const json_t *job)
{
    struct strbuf out = {0};
    json_t *placement;
    size_t i;

    json_array_foreach (json_object_get(job, "placements"), i, placement)
        strbuf_printf(&out, "%s%" PRId64, i ? "," : "GPU ", answer_integer(placement, "index", -1));
    if (answer_integer(job, "gpus", 1) == 0)
        strbuf_puts(&out, "no GPU");
    return strbuf_steal(&out);
}

const char *answer_end(const json_t *job)
{
    static const struct {
        const char *state, *end;
    } ends[] = {
        {"COMPLETED", "has completed"}, {"FAILED", "has failed"},       {"GPU_OOM", "ran out of GPU memory"},
        {"CANCELLED", "was cancelled"}, {"LOST", "was lost"},           {"REFUSED", "can never run here"},
        {"TIMEOUT", "timed out"},       {"RETURNED", "was given back"}, {"EXPIRED", "has expired"},
    };

    for (size_t i = 0; i < array_size(ends); i++) {
        if (state_is(job, ends[i].state))
            return ends[i].end;
    }
    return "has ended";
}

const char *answer_memory_source(const json_t *job, const char *member)
{
    const char *source = answer_text(job, member);

    return !source ? "-" : strcmp(source, "prior") == 0 ? "node default" : source;
}

/* Its status is 128 and the number of the signal that ended it. A shell says its last command's end likewise. */
static char *exit_words(const json_t *job, int64_t status)
{
    const char *cause = answer_text(job, "exit_cause");
    bool signalled = cause && strcmp(cause, "signalled") == 0;
    char name[JOB_SIGNAL_TEXT] = "";

    if (status > 128 && status <= 128 + JOB_SIGNAL_MAX)
        job_signal_name((uint32_t)(status - 128), name);
    if (signalled && *name)
        return isalpha((unsigned char)*name) ? xasprintf("signal %" PRId64 " (%s)", status - 128, name)
                                             : xasprintf("signal %s", name);
    if (isalpha((unsigned char)*name))
        return xasprintf("exit status %" PRId64 ", as a shell says of signal %" PRId64 " (%s)", status, status - 128,
                         name);
    return xasprintf("exit status %" PRId64, status);
}

static char *ending(const json_t *job)
{
    int64_t status = answer_integer(job, "exit_status", -1);

    if (answer_text(job, "message"))
        return answer_safe_text(job, "message");
    if (state_is(job, "CANCELLED"))
        return xstrdup(""); /* however it went then */
    if (answer_text(job, "last_end"))
        return answer_safe_text(job, "last_end");
    return status > 0 ? exit_words(job, status) : xstrdup("");
}

char *answer_job_progress(const json_t *job)
{
    const json_t *progress = json_object_get(job, "progress");
    int64_t step = answer_integer(progress, "step", -1), total = answer_integer(progress, "total", 0);
    double speed = json_number_value(json_object_get(progress, "steps_per_s"));
    struct strbuf out = {0};

    if (step < 0)
        return NULL;
    strbuf_printf(&out, "%" PRId64, step);
    if (total > 0)
        strbuf_printf(&out, " of %" PRId64, total);
    strbuf_puts(&out, step == 1 && total <= 0 ? " step" : " steps");
    if (speed >= 1)
        strbuf_printf(&out, ", %.1f a second", speed);
    else if (speed > 0)
        strbuf_printf(&out, ", one in %.1f s", 1 / speed);
    return strbuf_steal(&out);
}

char *answer_run_times(const json_t *job)
{
    const json_t *times = json_object_get(job, "run_times");
    int64_t runs = answer_integer(times, "runs", 0);
    char median[UNITS_TEXT], low[UNITS_TEXT], high[UNITS_TEXT];

    if (runs <= 0)
        return NULL;
    format_duration(answer_integer(times, "median_ns", 0), median);
    if (runs == 1)
        return xasprintf("%s, the one completed run of this workload", median);
    return xasprintf("%s, the median of %" PRId64 " completed runs of this workload (%s to %s)", median, runs,
                     format_duration(answer_integer(times, "low_ns", 0), low),
                     format_duration(answer_integer(times, "high_ns", 0), high));
}

bool answer_where_has_message(const json_t *job)
{
    return state_is(job, "PLACED") && answer_integer(job, "attempts", 1) <= 1 && answer_text(job, "message");
}

/* Why its first start takes so long; later ones have the message of the last run. */
static char *why_it_waits(const json_t *job)
{
    return answer_where_has_message(job) ? answer_safe_text(job, "message") : xstrdup("");
}

bool answer_job_runs(const json_t *job)
{
    return state_is(job, "RUNNING") || state_is(job, "SUSPENDED") || state_is(job, "STOPPING") ||
           state_is(job, "REQUEUING");
}

char *answer_job_where(const json_t *job)
{
    const json_t *reason = json_object_get(job, "reason");
    CLEANUP(free_ptr) char *text = answer_text(reason, "text") ? answer_safe_text(reason, "text") : xstrdup("");

    if (answer_job_ended(job))
        return ending(job);
    if (state_is(job, "PLACED") || answer_job_runs(job)) {
        CLEANUP(free_ptr) char *gpus = placements(job);
        CLEANUP(free_ptr) char *waits = why_it_waits(job);
        return xasprintf("%s%s%s%s%s%s", gpus,
                         answer_integer(job, "idle_ends_ns", 0) > 0        ? ", unused: ends soon"
                         : answer_integer(job, "unused_since_ns", -1) >= 0 ? ", unused"
                                                                           : "",
                         *waits ? ", " : "", waits, *text ? ", " : "", text); /* a running one's is of its slowdown */
    }
    return xasprintf("%s%s%s", answer_true(job, "estimating") ? "estimating; " : "",
                     answer_true(job, "retry") ? "retry: " : "", text);
}

char *answer_job_time(const json_t *job, int64_t now_ns)
{
    int64_t started = answer_integer(job, "started_ns", 0), ended = answer_integer(job, "ended_ns", 0);
    int64_t submitted = answer_integer(job, "submitted_ns", 0), from, to = now_ns;
    char text[UNITS_TEXT];

    if (answer_job_ended(job)) {
        from = started > 0 ? started : ended;
        to = ended;
    } else {
        from = answer_job_runs(job) && started > 0 ? started : submitted;
    }
    return xstrdup(format_duration(to - from, text));
}

bool answer_is_drained(const json_t *gpu)
{
    return answer_true(gpu, "drained") || answer_true(gpu, "node_drained");
}

char *answer_gpu_jobs(const json_t *gpu)
{
    const json_t *names = json_object_get(gpu, "job_names");
    struct strbuf out = {0};
    json_t *job;
    size_t i;

    strbuf_puts(&out, "");
    json_array_foreach (json_object_get(gpu, "jobs"), i, job) {
        const char *name = json_string_value(json_array_get(names, i)); /* NULL: from an earlier carmad */
        CLEANUP(free_ptr) char *safe = term_escape(name);
        if (name)
            strbuf_printf(&out, "%s%s", i ? "," : "", safe);
        else
            strbuf_printf(&out, "%s%" JSON_INTEGER_FORMAT, i ? "," : "", json_integer_value(job));
    }
    return strbuf_steal(&out);
}

static void put_list(struct strbuf *out, const json_t *list)
{
    json_t *one;
    size_t i;

    json_array_foreach (list, i, one) {
        CLEANUP(free_ptr) char *name = term_escape(json_string_value(one));
        if (json_is_integer(one))
            strbuf_printf(out, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "", json_integer_value(one));
        else
            strbuf_printf(out, "%s%s", i ? ", " : "", name);
    }
}

char *answer_reservation(const json_t *reservation)
{
    const json_t *gpus = json_object_get(reservation, "gpus");
    struct strbuf out = {0};
    CLEANUP(free_ptr) char *from = answer_time(answer_integer(reservation, "from_ns", 0));
    CLEANUP(free_ptr) char *until = answer_time(answer_integer(reservation, "until_ns", 0));
    CLEANUP(free_ptr) char *by = answer_safe_text(reservation, "by");
    CLEANUP(free_ptr) char *why = answer_safe_text(reservation, "why");

    strbuf_puts(&out, json_array_size(gpus) == 1 ? "GPU " : "GPUs ");
    put_list(&out, gpus);
    strbuf_printf(&out, " %s reserved for ", json_array_size(gpus) == 1 ? "is" : "are");
    put_list(&out, json_object_get(reservation, "users"));
    strbuf_printf(&out, " from %s to %s (reservation %" PRId64 ", by %s%s%s)", from, until,
                  answer_integer(reservation, "reservation", 0), by, answer_text(reservation, "why") ? ": " : "",
                  answer_text(reservation, "why") ? why : "");
    return strbuf_steal(&out);
}

bool answer_is_reserved(const json_t *gpu)
{
    json_t *one;
    size_t i;

    json_array_foreach (json_object_get(gpu, "closed"), i, one)
        if (answer_text(one, "ground") && strcmp(answer_text(one, "ground"), "reserved_for_users") == 0)
            return true;
    return false;
}

bool answer_is_heading(const json_t *gpu)
{
    const char *kind = answer_text(gpu, "kind");

    return kind && strcmp(kind, "partitioned") == 0;
}
