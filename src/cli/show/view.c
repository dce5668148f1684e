#include "cli/show/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"

void json_release(json_t **json)
{
    json_decref(*json);
}

int64_t view_integer(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);

    if (json_is_integer(value))
        return json_integer_value(value);
    return json_is_real(value) ? (int64_t)json_real_value(value) : otherwise;
}

double view_number(const json_t *object, const char *name, double otherwise)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : otherwise;
}

const char *view_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

bool view_true(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

char *view_safe_text(const json_t *object, const char *name)
{
    return term_escape(view_text(object, name));
}

char *view_bytes(const json_t *object, const char *name)
{
    int64_t bytes = view_integer(object, name, -1);
    char text[UNITS_TEXT];

    return xstrdup(bytes < 0 ? "-" : format_bytes(bytes, text));
}

char *view_process(const json_t *process)
{
    CLEANUP(free_ptr) char *command = view_safe_text(process, "command");
    CLEANUP(free_ptr) char *user = view_safe_text(process, "user");
    CLEANUP(free_ptr) char *held = view_bytes(process, "used_bytes");
    struct strbuf out = {0};

    strbuf_printf(&out, "process %" PRId64, view_integer(process, "pid", -1));
    if (view_text(process, "command"))
        strbuf_printf(&out, " (%s%s%s)", command, view_text(process, "user") ? " of " : "",
                      view_text(process, "user") ? user : "");
    strbuf_printf(&out, " holds %s", view_integer(process, "used_bytes", -1) < 0 ? "memory" : held);
    return strbuf_steal(&out);
}

char *view_permille(const json_t *object, const char *name)
{
    int64_t permille = view_integer(object, name, -1);

    return permille < 0 ? xstrdup("-") : xasprintf("%" PRId64 "%%", (permille + 5) / 10);
}

char *view_time(int64_t at_ns)
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

char *view_energy(int64_t mj, char text[VIEW_ENERGY])
{
    double joules = (double)mj / 1000;

    if (joules < 10000)
        snprintf(text, VIEW_ENERGY, "%.0f J", joules);
    else if (joules < 1e6)
        snprintf(text, VIEW_ENERGY, "%.1f kJ", joules / 1e3);
    else
        snprintf(text, VIEW_ENERGY, "%.2f MJ", joules / 1e6);
    return text;
}

static bool state_is(const json_t *job, const char *state)
{
    const char *text = view_text(job, "state");

    return text && strcmp(text, state) == 0;
}

bool view_job_ended(const json_t *job)
{
    static const char *const ended[] = {"COMPLETED", "FAILED", "GPU_OOM", "CANCELLED", "LOST", "REFUSED", "TIMEOUT"};

    for (size_t i = 0; i < array_size(ended); i++) {
        if (state_is(job, ended[i]))
            return true;
    }
    return false;
}

enum term_style view_state_style(const json_t *job)
{
    static const struct {
        const char *state;
        enum term_style style;
    } styles[] = {
        {"RUNNING", STYLE_GREEN}, {"PLACED", STYLE_GREEN}, {"STOPPING", STYLE_YELLOW}, {"CRASHED", STYLE_YELLOW},
        {"QUEUED", STYLE_NONE},   {"HELD", STYLE_DIM},     {"COMPLETED", STYLE_DIM},   {"CANCELLED", STYLE_DIM},
        {"FAILED", STYLE_RED},    {"GPU_OOM", STYLE_RED},  {"LOST", STYLE_RED},        {"REFUSED", STYLE_RED},
        {"TIMEOUT", STYLE_RED},
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

    json_array_foreach(json_object_get(job, "placements"), i, placement)
        strbuf_printf(&out, "%s%" PRId64, i ? "," : "GPU ", view_integer(placement, "index", -1));
    return strbuf_steal(&out);
}

static char *ending(const json_t *job)
{
    int64_t status = view_integer(job, "exit_status", -1);

    if (view_text(job, "message"))
        return view_safe_text(job, "message");
    if (state_is(job, "CANCELLED"))
        return xstrdup(""); /* however it went then */
    if (view_text(job, "last_end"))
        return view_safe_text(job, "last_end");
    if (status > 128)
        return xasprintf("signal %" PRId64, status - 128);
    return status > 0 ? xasprintf("exit status %" PRId64, status) : xstrdup("");
}

char *view_job_where(const json_t *job)
{
    const json_t *reason = json_object_get(job, "reason");

    if (view_job_ended(job))
        return ending(job);
    if (state_is(job, "PLACED") || state_is(job, "RUNNING") || state_is(job, "STOPPING")) {
        CLEANUP(free_ptr) char *gpus = placements(job);
        return xasprintf("%s%s", gpus, view_integer(job, "unused_since_ns", -1) >= 0 ? ", unused" : "");
    }
    CLEANUP(free_ptr) char *text = view_text(reason, "text") ? view_safe_text(reason, "text") : xstrdup("");
    return xasprintf("%s%s", view_true(job, "recovery") ? "recovery: " : "", text);
}

char *view_job_time(const json_t *job, int64_t now_ns)
{
    int64_t started = view_integer(job, "started_ns", 0), ended = view_integer(job, "ended_ns", 0);
    int64_t submitted = view_integer(job, "submitted_ns", 0), from, to = now_ns;
    char text[UNITS_TEXT];

    if (view_job_ended(job)) {
        from = started > 0 ? started : ended;
        to = ended;
    } else {
        bool runs = state_is(job, "RUNNING") || state_is(job, "STOPPING");
        from = runs && started > 0 ? started : submitted;
    }
    return xstrdup(format_duration(to - from, text));
}
