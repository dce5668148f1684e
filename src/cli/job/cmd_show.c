/* carma show: everything about a job. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/job_field.h"
#include "api/job_signal.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/history/ended.h"
#include "cli/job/last_words.h"
#include "cli/show/answer.h"

#define KEY_SCRIPT 0x200

struct wanted {
    struct cli_jobs jobs; /* first: cli_parse_jobs takes this for it */
    bool script;
};

static const struct argp_option options[] = {
    CLI_OPTIONS_SELECT,
    CLI_OPTION_JSON,
    {"script", KEY_SCRIPT, NULL, 0, "print its script as it was when it was submitted", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct wanted *wanted = state->input;

    if (key != KEY_SCRIPT)
        return key == 'y' ? ARGP_ERR_UNKNOWN : cli_parse_jobs(key, arg, state);
    wanted->script = true;
    return 0;
}

const struct argp show_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[IDS...]",
    .doc = "Show everything about jobs; of one whose details are forgotten, the row of carma history."
           "\v" CLI_IDS_HELP " With --json one job is an object, several are {\"jobs\": [...]}.",
};

static void line(const char *title, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(const char *title, const char *format, ...)
{
    bool colour = term_colour(stdout);
    va_list args;

    printf("%s%-10s%s ", colour ? term_style_start(STYLE_BOLD) : "", title, colour ? TERM_STYLE_END : "");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static void line_of(const json_t *job, const char *title, const char *member)
{
    if (answer_text(job, member)) {
        CLEANUP(free_ptr) char *text = answer_safe_text(job, member);
        line(title, "%s", text);
    }
}

static void line_of_time(const json_t *job, const char *title, const char *member)
{
    if (answer_integer(job, member, 0) > 0) {
        CLEANUP(free_ptr) char *text = answer_time(answer_integer(job, member, 0));
        line(title, "%s", text);
    }
}

/* As one would type it: arguments that hold more than plain characters in single quotes. */
static void put_word(struct strbuf *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    CLEANUP(free_ptr) char *safe = term_escape(word);

    if (word && *word && !word[strspn(word, plain)]) {
        strbuf_puts(out, safe);
        return;
    }
    strbuf_puts(out, "'");
    for (const char *c = safe; *c; c++)
        strbuf_append(out, *c == '\'' ? "'\\''" : c, *c == '\'' ? 4 : 1);
    strbuf_puts(out, "'");
}

static void print_command(const json_t *job)
{
    const json_t *command = json_object_get(job, "command");
    CLEANUP(strbuf_release) struct strbuf out = {0};
    json_t *item;
    size_t i;

    if (!json_array_size(command))
        return;
    json_array_foreach (command, i, item) {
        strbuf_puts(&out, i ? " " : "");
        put_word(&out, json_string_value(item));
    }
    line("Command", "%s", out.text);
    if (answer_true(job, "script"))
        line("Script", "a copy of that time: carma show --script %" PRId64, answer_integer(job, "id", 0));
}

/* Its value as the option takes it; NULL: it says nothing. */
static char *value_of(const json_t *job, const struct job_field *field)
{
    int64_t number = answer_integer(job, field->name, -1);
    char text[UNITS_TEXT];

    if (answer_text(job, field->name))
        return answer_safe_text(job, field->name);
    if (field->type == JOB_FIELD_RANK)
        return answer_integer(job, field->name, 0) ? xasprintf("%" PRId64, answer_integer(job, field->name, 0)) : NULL;
    if (number < 0)
        return field->type == JOB_FIELD_SWITCH && answer_true(job, field->name) ? xstrdup("yes") : NULL;
    if (field->type == JOB_FIELD_SIZE)
        return answer_bytes(job, field->name);
    if (field->type == JOB_FIELD_TIME)
        return xstrdup(format_duration(number, text));
    if (field->type == JOB_FIELD_FACTOR)
        return xasprintf("%g", (double)number / 1000);
    return xasprintf("%" PRId64, number);
}

/* It runs otherwise, or must. */
static bool is_without_mps(const json_t *job)
{
    const char *way = answer_text(job, "runs_by"), *wish = answer_text(job, "share");

    return (way && strcmp(way, "mps") != 0) || (wish && strcmp(wish, "time-slice") == 0) ||
           answer_true(job, "exclusive");
}

/* Facts of its submission that no other line shows. */
static void print_options(const json_t *job)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    for (size_t i = 0; i < job_field_count; i++) {
        CLEANUP(free_ptr) char *value = NULL;
        if (!job_fields[i].option || job_fields[i].apart || !(value = value_of(job, &job_fields[i])))
            continue;
        strbuf_printf(&out, "%s%s %s", out.length ? ", " : "", job_fields[i].option, value);
    }
    if (out.length)
        line("Options", "%s", out.text);
    if (is_without_mps(job) &&
        (answer_integer(job, "mps_threads_percent", 0) > 0 || answer_integer(job, "mps_memory_limit_bytes", 0) > 0))
        line("", "not in force, as it does not run by MPS: mps-threads, mps-memory-limit");
}

static void print_state(const json_t *job)
{
    const char *style = term_colour(stdout) ? term_style_start(answer_state_style(job)) : "";
    CLEANUP(free_ptr) char *state = answer_safe_text(job, "state");
    CLEANUP(free_ptr) char *where = answer_job_where(job);
    int64_t status = answer_integer(job, "exit_status", -1);

    line("State", "%s%s%s%s%s", style, state, *style ? TERM_STYLE_END : "", *where ? ": " : "", where);
    if (answer_job_ended(job) && status > 0 && answer_text(job, "message"))
        line("Exit", "status %" PRId64, status);
}

static void print_placements(const json_t *job)
{
    json_t *placement;
    size_t i;

    json_array_foreach (json_object_get(job, "placements"), i, placement) {
        CLEANUP(free_ptr) char *memory = answer_bytes(placement, "observed_bytes");
        CLEANUP(free_ptr) char *uuid = answer_safe_text(placement, "uuid");
        line(i                       ? ""
             : answer_job_ended(job) ? "Ran on"
                                     : "Runs on",
             "GPU %" PRId64 "  %s  used %s at most", answer_integer(placement, "index", -1), uuid, memory);
    }
}

/* Where it should not be. */
static void print_strays(const json_t *job)
{
    json_t *stray;
    size_t i;

    json_array_foreach (json_object_get(job, "strays"), i, stray) {
        CLEANUP(free_ptr) char *process = view_process(stray);
        line(i ? "" : "Also on", "GPU %" PRId64 ", which it was not given: %s", answer_integer(stray, "gpu", -1),
             process);
    }
}

/* Only unusual facts. */
static void print_sharing(const json_t *job)
{
    const char *wish = answer_text(job, "share"), *way = answer_text(job, "runs_by");

    if (wish && strcmp(wish, "any") != 0)
        line("Shares", "only by %s", strcmp(wish, "mps") == 0 ? "MPS" : "time-slicing");
    else if (way && strcmp(way, "mps") == 0)
        line("Shares", "by MPS");
}

/* When it has to end, and the consequence. */
static void print_limit(const json_t *job)
{
    int64_t limit_ns = answer_integer(job, "time_limit_ns", -1), signal = answer_integer(job, "signal", 0);
    int64_t idle_ns = answer_integer(job, "idle_limit_ns", 0);
    CLEANUP(free_ptr) char *deadline = answer_deadline(job);
    char limit[UNITS_TEXT], before[UNITS_TEXT], name[JOB_SIGNAL_TEXT], warning[96] = "";

    if (signal > 0)
        snprintf(warning, sizeof warning, ", signal %s %s before it", job_signal_name((uint32_t)signal, name),
                 format_duration(answer_integer(job, "signal_before_ns", 0), before));
    if (limit_ns > 0)
        line("Time limit", "%s%s%s", format_duration(limit_ns, limit), warning,
             answer_true(job, "requeue") ? "; started again after it" : "");
    if (idle_ns > 0)
        line("Idle limit", "%s without use of its GPUs", format_duration(idle_ns, limit));
    if (deadline)
        line("Deadline", "%s", deadline);
    if (limit_ns <= 0 && answer_true(job, "requeue"))
        line("Requeue", "it is started again when it was lost");
}

static void print_host_limits(const json_t *job)
{
    int64_t cpus = answer_integer(job, "cpus", 0), memory = answer_integer(job, "host_memory_bytes", 0);
    CLEANUP(free_ptr) char *gap = answer_safe_text(job, "host_limits_gap");
    char bytes[UNITS_TEXT], processors[32] = "";

    if (cpus > 0)
        snprintf(processors, sizeof processors, "%" PRId64 " CPU%s", cpus, cpus > 1 ? "s" : "");
    if (cpus > 0 || memory > 0)
        line("Host limits", "%s%s%s%s%s", memory > 0 ? format_bytes(memory, bytes) : "",
             memory > 0 && cpus > 0 ? " of memory, "
             : memory > 0           ? " of memory"
                                    : "",
             processors, gap && *gap ? ", not in force: " : "", gap ? gap : "");
}

static void print_estimate(const json_t *estimate)
{
    CLEANUP(free_ptr) char *activity = answer_permille(estimate, "sm_activity_permille");
    CLEANUP(free_ptr) char *before = answer_permille(estimate, "uncorrected_sm_activity_permille");
    int64_t permille = answer_integer(estimate, "sm_activity_permille", -1);
    int64_t uncorrected = answer_integer(estimate, "uncorrected_sm_activity_permille", -1);
    json_t *warning;
    size_t i;

    line_of(estimate, "Estimate", "text");
    if (uncorrected >= 0 && uncorrected != permille)
        line("Activity", "%s of the SMs, estimated (%s before runs like it were seen)", activity, before);
    else if (permille >= 0)
        line("Activity", "%s of the SMs, estimated", activity);
    json_array_foreach (json_object_get(estimate, "warnings"), i, warning) {
        CLEANUP(free_ptr) char *safe = term_escape(json_string_value(warning));
        line("Warning", "%s", safe);
    }
}

static void print_untried(const json_t *job)
{
    CLEANUP(free_ptr) char *why = answer_safe_text(job, "untried");

    if (answer_text(job, "untried"))
        line("Estimate", "none, as its command is not tried: %s", why);
}

static void print_last_words(const json_t *job)
{
    char *lines[LAST_LINES];
    size_t count = 0;

    if (answer_job_ended(job) && answer_state_style(job) == STYLE_RED && answer_integer(job, "started_ns", 0) > 0)
        count = last_lines(job, (uint64_t)answer_integer(job, "id", 0), lines);
    for (size_t i = 0; i < count; i++) {
        line(i ? "" : "Last lines", "%s", lines[i]);
        free(lines[i]);
    }
}

/* Its last run's message when GPU memory ran out, and its neighbours then. */
static void print_failure(const json_t *failure)
{
    CLEANUP(free_ptr) char *requested = answer_bytes(failure, "requested_bytes");
    CLEANUP(free_ptr) char *free_then = answer_bytes(failure, "free_bytes");
    CLEANUP(free_ptr) char *used = answer_bytes(failure, "used_bytes");
    CLEANUP(free_ptr) char *said = xasprintf("; %s were free, it said", free_then);
    CLEANUP(free_ptr) char *seen = xasprintf("; %s were observed in use", used);
    json_t *tenant;
    size_t i;

    if (answer_integer(failure, "requested_bytes", -1) < 0)
        return;
    line("Asked for", "%s of GPU memory%s%s", requested, answer_integer(failure, "free_bytes", -1) >= 0 ? said : "",
         answer_integer(failure, "used_bytes", -1) >= 0 ? seen : "");
    json_array_foreach (json_object_get(failure, "tenants"), i, tenant) {
        CLEANUP(free_ptr) char *held = answer_bytes(tenant, "used_bytes");
        line(i ? "" : "Beside it", "process %" PRId64 " held %s", answer_integer(tenant, "pid", 0), held);
    }
}

static void print_overuse(const json_t *job)
{
    CLEANUP(free_ptr) char *request = answer_bytes(job, "request_bytes");
    CLEANUP(free_ptr) char *over = answer_bytes(job, "over_reservation_bytes");
    int64_t victims = answer_integer(job, "victims", 0);

    if (answer_integer(job, "request_bytes", -1) >= 0 &&
        answer_integer(job, "request_bytes", -1) != answer_integer(job, "reserved_bytes", -1))
        line("Request", "%s on each GPU", request);
    if (answer_integer(job, "over_reservation_bytes", 0) > 0)
        line("Over", "it uses %s more than was reserved for it at its start", over);
    if (answer_integer(job, "victim_of", 0) > 0)
        line("Harmed by", "job %" PRId64 ": it ran out of memory, as that used more than was reserved for it",
             answer_integer(job, "victim_of", 0));
    if (victims)
        line("Harm", "%" PRId64 " job%s ran out of memory by its use beyond that: its next start is alone", victims,
             victims == 1 ? "" : "s");
}

/* An older daemon knows only of its own fence. The driver finds the limits' GPUs among those that a process sees, and
 * drops all limits of one that does not see one of them. */
static void print_fence(const json_t *job)
{
    int64_t fence = answer_integer(job, "fence_bytes", -1), limit = answer_integer(job, "process_limit_bytes", fence);
    int64_t gpus = answer_integer(job, "gpus", 1);
    char bytes[UNITS_TEXT];

    if (limit < 0)
        return;
    line("Memory limit", "%s per GPU, for each process (enforced by MPS%s)", format_bytes(limit, bytes),
         limit == fence ? "" : "; set by mps_memory_limit or --mps-memory-limit");
    if (gpus > 1)
        line("",
             "not in force for a process that narrows CUDA_VISIBLE_DEVICES: only for those that see all %" PRId64
             " GPUs",
             gpus);
}

static void print_threads(const json_t *job)
{
    int64_t threads = answer_integer(job, "threads_percent", 0), own = answer_integer(job, "mps_threads_percent", 0);

    if (threads > 0)
        line("Threads", "at most %" PRId64 "%% of a GPU's (enforced by MPS)", own > 0 && own < threads ? own : threads);
}

/* The rows of core/job_state.def that have a title. */
static void print_shown(const json_t *job)
{
    static const struct {
        const char *name, *title;
        enum { NUMBER, BYTES, PERCENT, DURATION, TIME, FLAG } form;
    } rows[] = {
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title) {name, title, form},
#include "core/job_state.def"
    };

    for (size_t i = 0; i < array_size(rows); i++) {
        int64_t value = answer_integer(job, rows[i].name, INT64_MIN);
        char text[UNITS_TEXT];

        if (!rows[i].title || value == INT64_MIN)
            continue;
        if (rows[i].form == TIME)
            line_of_time(job, rows[i].title, rows[i].name);
        else if (rows[i].form == BYTES || rows[i].form == DURATION)
            line(rows[i].title, "%s", rows[i].form == BYTES ? format_bytes(value, text) : format_duration(value, text));
        else
            line(rows[i].title, "%" PRId64 "%s", value, rows[i].form == PERCENT ? "%" : "");
    }
}

static void print_visible(const json_t *job)
{
    CLEANUP(free_ptr) char *why = answer_safe_text(job, "uuids_why");

    if (answer_text(job, "uuids_why"))
        line("Devices", "by UUID in CUDA_VISIBLE_DEVICES, not by index: %s", why);
}

/* Runs that are not charged, as at a limit that carma had guessed, are not among `crashes`: 0 says nothing of them. */
static void print_attempts(int64_t attempts, int64_t crashes)
{
    if (crashes)
        line("Attempts", "%" PRId64 ", out of GPU memory: %" PRId64, attempts, crashes);
    else if (attempts > 1)
        line("Attempts", "%" PRId64, attempts);
}

static void print_array(const json_t *job)
{
    const json_t *array = json_object_get(job, "array");
    CLEANUP(free_ptr) char *name = answer_job_id(job);
    int64_t most = answer_integer(array, "most", 0);
    CLEANUP(free_ptr) char *limit = most ? xasprintf(", at most %" PRId64 " at a time", most) : xstrdup("");

    if (json_is_object(array))
        line("Array", "%s, of %" PRId64 " jobs%s", name, answer_integer(array, "jobs", 0), limit);
}

static void print_job(const json_t *job)
{
    CLEANUP(free_ptr) char *memory = answer_bytes(job, "reserved_bytes");
    CLEANUP(free_ptr) char *source = term_escape(answer_memory_source(job, "reservation_source"));
    CLEANUP(free_ptr) char *progress = answer_job_progress(job);
    CLEANUP(free_ptr) char *times = answer_run_times(job);
    int64_t crashes = answer_integer(job, "crashes", 0), attempts = answer_integer(job, "attempts", 0);
    int64_t started = answer_integer(job, "started_ns", 0), ended = answer_integer(job, "ended_ns", 0);
    char text[UNITS_TEXT];

    line("Job", "%" PRId64, answer_integer(job, "id", 0));
    print_array(job);
    line_of(job, "Name", "name");
    line_of(job, "User", "user");
    line_of(job, "Project", "account");
    line_of(job, "Tags", "tags");
    print_state(job);
    line_of(json_object_get(job, "turn"), "Turn", "text");
    line_of(json_object_get(job, "kept"), "Kept", "text");
    line_of(json_object_get(job, "start"), "Start", "text");
    if (answer_integer(job, "gpus", 1) == 0)
        line("GPUs", "none: it sees none, and counts for none");
    else
        line("GPUs", "%" PRId64 "%s", answer_integer(job, "gpus", 0),
             answer_true(job, "exclusive") ? ", exclusive (alone on them)" : "");
    print_sharing(job);
    print_limit(job);
    print_host_limits(job);
    if (answer_integer(job, "reserved_bytes", -1) >= 0)
        line("Memory", "%s on each GPU (%s)", memory, source);
    else if (answer_integer(job, "gpus", 1))
        line("Memory", "not known");
    print_overuse(job);
    print_fence(job);
    print_threads(job);
    print_shown(job);
    print_visible(job);
    print_estimate(json_object_get(job, "estimate"));
    print_untried(job);
    print_placements(job);
    print_strays(job);
    if (progress)
        line("Progress", "%s", progress);
    line_of_time(job, "Submitted", "submitted_ns");
    if (answer_integer(job, "first_started_ns", 0) != started)
        line_of_time(job, "First run", "first_started_ns");
    line_of_time(job, "Started", "started_ns");
    line_of_time(job, "Ended", "ended_ns");
    if (started > 0 && ended > 0)
        line("Ran", "%s", format_duration(ended - started, text));
    if (times)
        line("Run times", "%s", times);
    if (answer_integer(job, "modelled_energy_mj", -1) >= 0)
        line("Energy", "%s (modelled)", answer_energy(answer_integer(job, "modelled_energy_mj", 0), text));
    if (answer_integer(job, "unused_since_ns", -1) >= 0) {
        CLEANUP(free_ptr) char *since = answer_time(answer_integer(job, "unused_since_ns", -1));
        line("Note", "it has not used its GPUs since %s", since);
    }
    if (!answer_job_ended(job) && !answer_where_has_message(job))
        line_of(job, "Note", "message");
    print_attempts(attempts, crashes);
    if (answer_integer(job, "relaunch_ns", -1) >= 0)
        line("Relaunched", "%s after its last run ended", format_duration(answer_integer(job, "relaunch_ns", 0), text));
    line_of(job, "Last run", "last_end");
    print_last_words(job);
    print_failure(json_object_get(job, "failure"));
    print_command(job);
    print_options(job);
    line_of(job, "Directory", "directory");
    line_of(job, "Output", "output");
    if (answer_text(job, "output") && answer_text(job, "error") &&
        strcmp(answer_text(job, "output"), answer_text(job, "error")) != 0)
        line_of(job, "Errors", "error");
}

/* ---- The remaining facts of a job whose details are forgotten ---- */

static void line_of_memory(const json_t *job, const char *title, const char *member)
{
    CLEANUP(free_ptr) char *memory = answer_bytes(job, member);

    if (answer_integer(job, member, -1) >= 0)
        line(title, "%s on one GPU", memory);
}

static void print_history(const json_t *job)
{
    CLEANUP(free_ptr) char *reservation = answer_bytes(job, "reserved_bytes");
    CLEANUP(free_ptr) char *source = term_escape(answer_memory_source(job, "reservation_source"));
    CLEANUP(free_ptr) char *last_reservation = answer_bytes(job, "last_reserved_bytes");
    CLEANUP(free_ptr) char *last_source = term_escape(answer_memory_source(job, "last_reservation_source"));
    int64_t crashes = answer_integer(job, "oom_crashes", 0) + answer_integer(job, "handle_crashes", 0);
    int64_t attempts = answer_integer(job, "attempts", 0);
    char text[UNITS_TEXT + ENDED_TEXT + ANSWER_ENERGY];

    line("Job", "%" PRId64, answer_integer(job, "id", 0));
    line_of(job, "Name", "name");
    line_of(job, "User", "user");
    line_of(job, "Project", "account");
    line_of(job, "Tags", "tags");
    line_of(job, "State", "state");
    line_of(job, "Cause", "exit_cause");
    line("GPUs", "%" PRId64, answer_integer(job, "gpus", 0));
    if (answer_integer(job, "reserved_bytes", -1) >= 0)
        line("Memory", "%s on each GPU (%s)", reservation, source);
    if (answer_integer(job, "last_reserved_bytes", -1) >= 0 &&
        answer_integer(job, "last_reserved_bytes", -1) != answer_integer(job, "reserved_bytes", -1))
        line("", "%s in the end (%s)", last_reservation, last_source);
    line_of_memory(job, "Used", "peak_bytes");
    line_of_time(job, "Submitted", "submitted_ns");
    if (answer_integer(job, "first_started_ns", 0) != answer_integer(job, "started_ns", 0))
        line_of_time(job, "First run", "first_started_ns");
    line_of_time(job, "Started", "started_ns");
    line_of_time(job, "Ended", "ended_ns");
    if (answer_integer(job, "wait_ns", -1) >= 0)
        line("Waited", "%s", format_duration(answer_integer(job, "wait_ns", 0), text));
    line("GPU time", "%s hours", ended_hours(answer_integer(job, "gpu_ns", 0), text));
    line("Energy", "%s (modelled)", answer_energy(answer_integer(job, "modelled_energy_mj", 0), text));
    print_attempts(attempts, crashes);
    line("Note", "its command, output and placements are forgotten: this is from carma history");
}

/* The job, or, where the daemon has forgotten it, its row of the history. */
static int get_job(struct cli *cli, uint64_t id, json_t **job, bool *forgotten, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64, id);
    CLEANUP(free_ptr) char *history = xasprintf("/v1/history/%" PRIu64, id);
    struct error ignored; /* the first answer explains best that the job does not exist */
    int rc = cli_call(cli, "GET", path, NULL, job, err);

    *forgotten = rc == -ENOENT && cli_call(cli, "GET", history, NULL, job, &ignored) == 0;
    return *forgotten ? 0 : rc;
}

/* When it is expected to start, which takes the daemon some work. */
static void add_start(struct cli *cli, json_t *job)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRId64 "/explain", answer_integer(job, "id", 0));
    CLEANUP(json_release) json_t *reply = NULL;
    struct error ignored; /* the rest is worth showing without it */

    if (json_is_object(json_object_get(job, "turn")) && cli_call(cli, "GET", path, NULL, &reply, &ignored) == 0)
        json_object_set(job, "start", json_object_get(reply, "start"));
}

static int print_script(struct cli *cli, uint64_t id, const struct wanted *wanted, json_t *shown, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64 "/script", id);
    CLEANUP(json_release) json_t *reply = NULL;
    int rc = cli_call(cli, "GET", path, NULL, &reply, err);

    if (rc == 0 && wanted->jobs.json)
        json_array_append(shown, reply);
    else if (rc == 0)
        fputs(answer_text(reply, "script") ? answer_text(reply, "script") : "", stdout);
    return rc;
}

/* With --json it is added to those that are printed in the end. */
static int show_one(struct cli *cli, uint64_t id, const struct wanted *wanted, json_t *shown, struct error *err)
{
    CLEANUP(json_release) json_t *job = NULL;
    bool forgotten = false;
    int rc;

    if (wanted->script)
        return print_script(cli, id, wanted, shown, err);
    rc = get_job(cli, id, &job, &forgotten, err);
    if (rc)
        return rc;
    if (wanted->jobs.json) {
        json_array_append(shown, job);
    } else if (forgotten) {
        print_history(job);
    } else {
        add_start(cli, job);
        print_job(job);
    }
    return 0;
}

static void wanted_release(struct wanted *wanted)
{
    cli_jobs_release(&wanted->jobs);
}

int cmd_show(struct cli *cli, int argc, char **argv)
{
    CLEANUP(wanted_release) struct wanted wanted = {0};
    const struct id_list *list = &wanted.jobs.list;
    CLEANUP(json_release) json_t *shown = json_array();
    struct error err;
    bool several;
    int status;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    several = list->count != 1 || selectors_any(&wanted.jobs.selectors);
    if (cli_choose(cli, &wanted.jobs, IDS_ONE, &err))
        return cli_fail("%s", err.text);
    if (list->count == 0)
        return cli_fail("no job is like that");
    for (size_t i = 0; i < list->count; i++) {
        if (i && !wanted.jobs.json)
            putchar('\n');
        if (show_one(cli, list->items[i], &wanted, shown, &err))
            status = cli_fail("%s", err.text);
    }
    if (wanted.jobs.json && several)
        cli_print_jobs(shown);
    else if (wanted.jobs.json && json_array_size(shown))
        cli_print_json(json_array_get(shown, 0));
    return status;
}
