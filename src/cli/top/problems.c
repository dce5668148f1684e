/* What is wrong on the node, the worst first: the same as on the dashboard (web/problems.js). A further kind of problem
 * is a function in `kinds` that adds its lines. */
#include "cli/top/problems.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/show/answer.h"
#include "cli/top/answer.h"

#define WAITS_LONG_NS  (600 * NS_PER_SEC) /* without any job that runs: after this long it is said */
#define LEAST_STRANGER (256 * MIB)        /* of others' memory on a GPU: a display and a context are less */

static void add(struct top_problems *problems, bool is_grave, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(struct top_problems *problems, bool is_grave, const char *format, ...)
{
    va_list args;

    array_reserve(problems->items, problems->capacity, problems->count + 1);
    va_start(args, format);
    problems->items[problems->count++] = (struct top_problem){is_grave, xvasprintf(format, args)};
    va_end(args);
}

/* "GPU 3"; the name of one in MIG mode, which has no number. Owned by the caller. */
static char *label_of(const json_t *gpu)
{
    const char *name = answer_text(gpu, "name");
    int64_t index = answer_integer(gpu, "index", -1);

    return index < 0 ? xstrdup(name ? name : "a GPU") : xasprintf("GPU %" PRId64, index);
}

/* ---- GPUs ---- */

static void closed(const struct top_model *model, const json_t *gpu, struct top_problems *problems)
{
    CLEANUP(free_ptr) char *label = label_of(gpu);
    const char *why = answer_text(gpu, "why");

    if (answer_true(gpu, "lost"))
        add(problems, true, "%s takes no job: %s", label, why ? why : "lost to the driver");
    else if (answer_is_drained(gpu))
        add(problems, false, "%s takes no further job: %s", label, why ? why : "drained");
    else if (why)
        add(problems, true, "%s: %s", label, why);
}

/* Clocks that are held down by more than idleness and settings, and errors of its memory. */
static void ailing(const struct top_model *model, const json_t *gpu, struct top_problems *problems)
{
    CLEANUP(free_ptr) char *label = label_of(gpu);
    static const char *const troubles[][2] = {{"hardware", "its hardware"},
                                              {"heat", "heat"},
                                              {"hardware_heat", "heat, by its hardware"},
                                              {"power_supply", "the power supply"}};
    const json_t *health = json_object_get(gpu, "health");
    int64_t errors = answer_integer(health, "ecc_uncorrected", 0);
    json_t *reason;
    size_t i;

    json_array_foreach (json_object_get(health, "throttle"), i, reason)
        for (size_t k = 0; k < array_size(troubles) && json_is_string(reason); k++)
            if (strcmp(json_string_value(reason), troubles[k][0]) == 0)
                add(problems, true, "%s runs at lower clocks, held down by %s", label, troubles[k][1]);
    if (errors > 0)
        add(problems, false, "%s: %" PRId64 " error%s of its memory could not be corrected", label, errors,
            errors == 1 ? "" : "s");
}

static void fault(const struct top_model *model, const json_t *gpu, struct top_problems *problems)
{
    CLEANUP(free_ptr) char *label = label_of(gpu);
    const json_t *xid = json_object_get(gpu, "xid");
    int64_t ago_ns = answer_integer(model->picture.gpus, "now_ns", 0) - answer_integer(xid, "at_ns", 0);
    char ago[UNITS_TEXT];

    if (json_is_object(xid))
        add(problems, false, "%s reported Xid %" PRId64 ", %s ago", label, answer_integer(xid, "code", 0),
            format_duration(ago_ns > 0 ? ago_ns : 0, ago));
}

static void strangers(const struct top_model *model, const json_t *gpu, struct top_problems *problems)
{
    CLEANUP(free_ptr) char *label = label_of(gpu);
    int64_t bytes = answer_integer(gpu, "unmanaged_bytes", 0) - answer_integer(gpu, "mps_server_bytes", 0);
    char text[UNITS_TEXT];

    if (bytes >= LEAST_STRANGER && bytes > 0)
        add(problems, false, "%s: processes that carma did not start use %s", label, format_bytes(bytes, text));
}

/* ---- Jobs ---- */

static bool reads(const json_t *object, const char *member, const char *wanted)
{
    const char *text = answer_text(object, member);

    return text && strcmp(text, wanted) == 0;
}

static void beyond(const struct top_model *model, const json_t *job, struct top_problems *problems)
{
    const json_t *reason = json_object_get(job, "reason");
    int64_t over = answer_integer(job, "over_reservation_bytes", 0), id = answer_integer(job, "id", 0);
    int64_t unused_ns = answer_integer(job, "unused_since_ns", 0);
    const char *user = answer_text(job, "user");
    char text[UNITS_TEXT];

    if (over > 0)
        add(problems, true, "job %" PRId64 " of %s uses %s more than was reserved for it", id, user ? user : "?",
            format_bytes(over, text));
    if (reads(reason, "code", "slowed"))
        add(problems, true, "job %" PRId64 " of %s is %s", id, user ? user : "?",
            answer_text(reason, "text") ? answer_text(reason, "text") : "slowed beyond its bound");
    if (unused_ns > 0)
        add(problems, false, "job %" PRId64 " of %s has not used its GPUs for %s", id, user ? user : "?",
            format_duration(answer_integer(model->picture.running, "now_ns", unused_ns) - unused_ns, text));
}

static bool has_job(const json_t *jobs, const char *user, size_t before)
{
    json_t *job;
    size_t i;

    json_array_foreach (jobs, i, job)
        if (i >= before)
            return false;
        else if (reads(job, "user", user))
            return true;
    return false;
}

/* Users with nothing that runs, by the first of their jobs that have a turn. */
static void nothing_running(const struct top_model *model, struct top_problems *problems)
{
    const json_t *running = json_object_get(model->picture.running, "jobs");
    const json_t *waiting = json_object_get(model->picture.waiting, "jobs");
    int64_t now_ns = answer_integer(model->picture.waiting, "now_ns", 0);
    char text[UNITS_TEXT];
    json_t *job;
    size_t i;

    json_array_foreach (waiting, i, job) {
        int64_t waits_ns = now_ns - answer_integer(job, "submitted_ns", now_ns);
        const char *user = answer_text(job, "user"), *why = answer_text(json_object_get(job, "reason"), "text");
        if (waits_ns > WAITS_LONG_NS && user && json_is_object(json_object_get(job, "turn")) &&
            !has_job(waiting, user, i) && !has_job(running, user, SIZE_MAX))
            add(problems, false, "%s has nothing running, and waits for %s with job %" PRId64 "%s%s", user,
                format_duration(waits_ns, text), answer_integer(job, "id", 0), why ? ": " : "", why ? why : "");
    }
}

/* ---- All ---- */

typedef void kind_of_problem(const struct top_model *model, const json_t *one, struct top_problems *problems);

static void each(const struct top_model *model, const json_t *list, kind_of_problem *kind,
                 struct top_problems *problems)
{
    json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        kind(model, one, problems);
}

static int by_weight(const void *a, const void *b)
{
    const struct top_problem *x = a, *y = b;

    return x->is_grave != y->is_grave ? y->is_grave - x->is_grave : x->order < y->order ? -1 : 1;
}

void top_problems_find(const struct top_model *model, struct top_problems *problems)
{
    const json_t *gpus = json_object_get(model->picture.gpus, "gpus");

    *problems = (struct top_problems){0};
    if (model->cluster)
        return; /* each node's are its own dashboard's */
    each(model, gpus, closed, problems);
    each(model, json_object_get(model->picture.running, "jobs"), beyond, problems);
    each(model, gpus, ailing, problems);
    each(model, gpus, fault, problems);
    each(model, gpus, strangers, problems);
    nothing_running(model, problems);
    for (size_t i = 0; i < problems->count; i++)
        problems->items[i].order = i;
    if (problems->count)
        qsort(problems->items, problems->count, sizeof *problems->items, by_weight);
}

void top_problems_release(struct top_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        free(problems->items[i].text);
    free(problems->items);
}
