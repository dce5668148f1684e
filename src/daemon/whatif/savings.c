#include "daemon/whatif/savings.h"

#include <math.h>
#include <stdbool.h>

#include "base/json/moment.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"

#define DAY_S 86400

static int64_t figure_ns(const json_t *outcome, const char *name)
{
    const json_t *mean = json_object_get(json_object_get(outcome, name), "mean");

    return json_is_number(mean) ? (int64_t)(json_number_value(mean) * NS_PER_SEC) : 0;
}

static json_t *pack(json_t *jobs, const json_t *shared, const json_t *alone, const char *text, int64_t at_ns)
{
    json_t *json = json_pack("{s:I, s:I, s:o, s:s}", "at_ns", (json_int_t)nodetime_shown_ns(at_ns), "window_ns",
                             (json_int_t)SAVINGS_DAYS * DAY_S * NS_PER_SEC, "jobs", jobs, "text", text);
    const struct {
        const char *member, *figure;
        const json_t *outcome;
    } members[] = {{"gpu_ns", "gpu_held_s", shared},
                   {"gpu_alone_ns", "gpu_held_s", alone},
                   {"wait_ns", "wait_s", shared},
                   {"wait_alone_ns", "wait_s", alone}};

    for (size_t i = 0; i < array_size(members); i++)
        json_object_set_new(json, members[i].member,
                            alone ? json_integer(figure_ns(members[i].outcome, members[i].figure)) : json_null());
    return moment_twin(json, "at_ns");
}

json_t *savings_unknown(const char *why, int64_t at_ns)
{
    CLEANUP(free_ptr) char *text = xasprintf("not known: %s", why);

    return pack(json_null(), NULL, NULL, text, at_ns);
}

json_t *savings_to_json(const json_t *outcomes, int64_t at_ns)
{
    const json_t *shared = json_array_get(outcomes, 0), *alone = json_array_get(outcomes, 1);
    json_int_t jobs = json_integer_value(json_object_get(shared, "jobs"));
    double of_h = (double)figure_ns(alone, "gpu_held_s") / 3.6e12;
    double saved_h = of_h - (double)figure_ns(shared, "gpu_held_s") / 3.6e12;
    char wait[UNITS_TEXT], wait_alone[UNITS_TEXT];
    CLEANUP(free_ptr) char *text = NULL;

    if (jobs < SAVINGS_LEAST_JOBS) {
        text = xasprintf("of the last %d days %lld job%s run to an end, and %d are needed", SAVINGS_DAYS,
                         (long long)jobs, jobs == 1 ? " has" : "s have", SAVINGS_LEAST_JOBS);
        return savings_unknown(text, at_ns);
    }
    if (json_is_true(json_object_get(shared, "incomplete")) || json_is_true(json_object_get(alone, "incomplete")))
        return savings_unknown("some job would not run to its end in the simulation", at_ns);
    text = xasprintf("%s %.1f of %.1f GPU hours; the mean wait is %s instead of %s (%lld jobs of the last %d days)",
                     saved_h < 0 ? "costs" : "saves", fabs(saved_h), of_h,
                     format_duration(figure_ns(shared, "wait_s"), wait),
                     format_duration(figure_ns(alone, "wait_s"), wait_alone), (long long)jobs, SAVINGS_DAYS);
    return pack(json_integer(jobs), shared, alone, text, at_ns);
}
