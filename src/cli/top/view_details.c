/* A job's details, and the keys, as lines of text. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/show/answer.h"
#include "cli/top/answer.h"

static void say(struct top_text *text, const char *title, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct top_text *text, const char *title, const char *format, ...)
{
    CLEANUP(free_ptr) char *what = NULL;
    va_list args;

    va_start(args, format);
    what = xvasprintf(format, args);
    va_end(args);
    CLEANUP(free_ptr) char *line = xasprintf("%-9s %s", title, what);
    top_text_line(text, line);
}

static void say_member(struct top_text *text, const char *title, const json_t *object, const char *member)
{
    if (answer_text(object, member))
        say(text, title, "%s", answer_text(object, member));
}

static void say_placements(struct top_text *text, const json_t *job)
{
    json_t *placement;
    size_t i;

    json_array_foreach (json_object_get(job, "placements"), i, placement) {
        CLEANUP(free_ptr) char *memory = answer_bytes(placement, "observed_bytes");
        say(text,
            i                       ? ""
            : answer_job_ended(job) ? "Ran on"
                                    : "Runs on",
            "GPU %" PRId64 ", used %s at most", answer_integer(placement, "index", -1), memory);
    }
}

static void say_gpus(struct top_text *text, const json_t *explanation)
{
    json_t *gpu;
    size_t i;

    json_array_foreach (json_object_get(explanation, "gpus"), i, gpu) {
        CLEANUP(free_ptr) char *free_memory = answer_bytes(gpu, "free_bytes");
        CLEANUP(free_ptr) char *title = xasprintf("GPU %" PRId64, answer_integer(gpu, "index", -1));
        const char *verdict = answer_text(gpu, "verdict");
        say(text, title, "%s free: %s", free_memory, verdict ? verdict : "-");
    }
}

static void say_estimate(struct top_text *text, const json_t *estimate)
{
    json_t *warning;
    size_t i;

    say_member(text, "Estimate", estimate, "text");
    json_array_foreach (json_object_get(estimate, "warnings"), i, warning)
        say(text, "Warning", "%s", json_string_value(warning) ? json_string_value(warning) : "");
}

static void say_time(struct top_text *text, const char *title, const json_t *job, const char *member)
{
    if (answer_integer(job, member, 0) > 0) {
        CLEANUP(free_ptr) char *at = answer_time(answer_integer(job, member, 0));
        say(text, title, "%s", at);
    }
}

void top_view_details(const json_t *job, const json_t *explanation, struct top_text *text)
{
    int64_t slowdown = answer_integer(job, "slowdown_permille", -1),
            energy = answer_integer(job, "modelled_energy_mj", -1);
    int64_t above = text->count ? text->above : INT64_MAX; /* its beginning, until somebody scrolls */
    CLEANUP(free_ptr) char *progress = answer_job_progress(job);
    char joules[ANSWER_ENERGY];

    top_text_release(text);
    say_member(text, "Name", job, "name");
    say_member(text, "User", job, "user");
    say_member(text, "Project", job, "account");
    say_member(text, "Tags", job, "tags");
    say(text, "State", "%s: %s", answer_text(job, "state") ? answer_text(job, "state") : "?",
        answer_text(explanation, "text") ? answer_text(explanation, "text") : "");
    say_member(text, "Turn", json_object_get(explanation, "turn"), "text");
    say_member(text, "Start", json_object_get(explanation, "start"), "text");
    say_member(text, "Last run", job, "last_end");
    say(text, "GPUs", "%" PRId64 "%s", answer_integer(job, "gpus", 0),
        answer_true(job, "exclusive") ? ", exclusive (alone on them)" : "");
    say_member(text, "GPU type", job, "gpu_type");
    say_member(text, "Memory", explanation, "memory");
    if (answer_integer(job, "over_reservation_bytes", 0) > 0) {
        CLEANUP(free_ptr) char *over = answer_bytes(job, "over_reservation_bytes");
        say(text, "Over", "it uses %s more than was reserved for it at its start", over);
    }
    say_estimate(text, json_object_get(explanation, "estimate"));
    say_placements(text, job);
    if (slowdown >= 0)
        say(text, "Slowdown", "%.2f, as estimated for those on its GPUs", (double)slowdown / 1000);
    if (progress)
        say(text, "Progress", "%s", progress);
    if (energy >= 0)
        say(text, "Energy", "%s (modelled)", answer_energy(energy, joules));
    if (answer_integer(job, "unused_since_ns", -1) >= 0)
        say_time(text, "Unused", job, "unused_since_ns");
    say_time(text, "Idle, ends", job, "idle_ends_ns");
    say_time(text, "Submitted", job, "submitted_ns");
    say_time(text, "Started", job, "started_ns");
    say_time(text, "Ended", job, "ended_ns");
    say_member(text, "Directory", job, "directory");
    say_member(text, "Output", job, "output");
    say_gpus(text, explanation);
    text->above = above;
}

void top_view_help(struct top_text *text)
{
    static const char *const lines[] = {
        "Up Down k j     select a row; PgUp PgDn Home End: further",
        "Tab             the next pane (Shift-Tab: the one before)",
        "Enter e         the selected job: why it waits, GPU by GPU",
        "l               follow the job's output",
        "c               cancel it (asks first)",
        "h               hold it, or release it where it is held",
        "> < s           sort by the next column, the one before",
        "r               the other way round",
        "/               show jobs whose name, user or state holds words",
        "u               show only my jobs",
        "a               a row for each waiting job of an array, or one",
        "Esc             back; show all jobs again",
        "q               quit",
        "",
        "Title with *    the jobs are sorted by it",
        "TAKEN           memory of a GPU that is not free for more jobs",
        "USED RSVD       of a job: observed in use, and reserved, on each GPU",
        "BY              where the reservation is from",
        "SM              SM activity of the GPU, or the job's GPUs; with ~",
        "                NVML's utilisation stands in, an upper bound",
        "SLOW            how much longer than alone it is estimated to take",
        "ENERGY          the job's modelled part of its GPUs' energy",
        "... so far      from the GPUs' energy counters",
    };

    top_text_release(text);
    for (size_t i = 0; i < array_size(lines); i++)
        top_text_line(text, lines[i]);
    text->above = INT64_MAX;
}
