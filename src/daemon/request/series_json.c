#include "daemon/request/series_json.h"

#include <inttypes.h>

#include "base/json/moment.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "core/ledger.h"

/* Gaps begin where readings lie further apart: this many periods, or this long of wall time, where that is more. */
#define HOLD_PERIODS 4
#define HOLD_WALL_NS (10 * NS_PER_SEC)

struct series *series_for(const struct daemon *daemon)
{
    int64_t period_ns = daemon->config.sample_period_ns;
    int64_t hold_ns = (int64_t)((double)HOLD_WALL_NS * nodetime_scale());

    return series_new(period_ns, hold_ns > HOLD_PERIODS * period_ns ? hold_ns : HOLD_PERIODS * period_ns);
}

/* A number of a list, or null; printf would take most of the time. */
static void put(struct strbuf *out, bool is_first, int64_t value)
{
    char text[24];
    size_t at = sizeof text;

    if (value < 0) {
        strbuf_puts(out, is_first ? "null" : ",null");
        return;
    }
    do
        text[--at] = (char)('0' + value % 10);
    while (value /= 10);
    if (!is_first)
        text[--at] = ',';
    strbuf_append(out, text + at, sizeof text - at);
}

/* The steps that are told of: each of `merged` that are kept, of step_ns. */
struct steps {
    int64_t step_ns, merged, from_ns, count;
};

/* The mean over those of the merged steps in which something was read. */
static int64_t mean_at(const struct series *series, uint32_t gpu, const struct steps *steps, int64_t i,
                       enum series_gpu_value value)
{
    int64_t sum = 0, known = 0;

    for (int64_t k = 0; k < steps->merged; k++) {
        int64_t from_ns = steps->from_ns + (i * steps->merged + k) * steps->step_ns;
        int64_t mean = series_gpu_mean(series, gpu, steps->step_ns, from_ns, value);

        sum += mean >= 0 ? mean : 0;
        known += mean >= 0;
    }
    return known ? sum / known : -1;
}

static void put_gpu(struct strbuf *out, const struct series *series, const struct gpu *gpu, const struct steps *steps)
{
    static const char *const names[SERIES_GPU_VALUES] = {
        [SERIES_USED_BYTES] = "used_bytes",
        [SERIES_RESERVED_BYTES] = "reserved_bytes",
        [SERIES_UNMANAGED_BYTES] = "unmanaged_bytes",
        [SERIES_SM_PERMILLE] = "sm_activity_permille",
        [SERIES_POWER_MW] = "power_mw",
    };

    json_t *uuid = json_string(gpu->uuid);
    CLEANUP(free_ptr) char *quoted = json_dumps(uuid, JSON_ENCODE_ANY);

    json_decref(uuid);
    strbuf_printf(out, "{\"index\":%" PRIu32 ",\"uuid\":%s", gpu->number, quoted);
    for (enum series_gpu_value value = 0; value < SERIES_GPU_VALUES; value++) {
        strbuf_printf(out, ",\"%s\":[", names[value]);
        for (int64_t i = 0; i < steps->count; i++)
            put(out, i == 0, mean_at(series, gpu->number, steps, i, value));
        strbuf_puts(out, "]");
    }
    strbuf_puts(out, "}");
}

char *series_of_gpus(const struct daemon *daemon, int64_t span_s, int64_t points, int64_t now_ns)
{
    int64_t most_s = SERIES_POINTS * SERIES_COARSE_NS / NS_PER_SEC;
    int64_t span_ns = (span_s < most_s ? span_s : most_s) * NS_PER_SEC;
    int64_t step_ns = span_ns <= SERIES_POINTS * SERIES_FINE_NS ? SERIES_FINE_NS : SERIES_COARSE_NS;
    int64_t kept = (span_ns + step_ns - 1) / step_ns, merged = (kept + points - 1) / points;
    int64_t told_ns = merged * step_ns, count = (kept + merged - 1) / merged;
    struct steps steps = {step_ns, merged, (now_ns / told_ns + 1 - count) * told_ns, count};
    struct strbuf out = {0};
    char now[MOMENT_TEXT];

    if (steps.from_ns < 0) { /* node time may begin with the machine's */
        steps.count += steps.from_ns / told_ns;
        steps.from_ns = 0;
    }
    strbuf_printf(&out, "{\"now_ns\":%" PRId64 ",\"now\":%s,\"from_ns\":%" PRId64 ",\"step_ns\":%" PRId64 ",\"gpus\":[",
                  nodetime_shown_ns(now_ns), moment_text(nodetime_shown_ns(now_ns), now),
                  nodetime_shown_ns(steps.from_ns), told_ns);
    for (uint32_t i = 0; i < core_gpu_count(daemon->core); i++) {
        strbuf_puts(&out, i ? "," : "");
        put_gpu(&out, daemon->series, core_gpu(daemon->core, i), &steps);
    }
    strbuf_puts(&out, "]}");
    return strbuf_steal(&out);
}

char *series_of_job(const struct daemon *daemon, uint64_t job)
{
    static const char *const names[SERIES_JOB_VALUES] = {
        [SERIES_JOB_RESERVED_BYTES] = "reserved_bytes",
        [SERIES_JOB_USED_BYTES] = "used_bytes",
        [SERIES_JOB_GPU_USED_BYTES] = "gpu_used_bytes",
        [SERIES_JOB_SM_PERMILLE] = "sm_activity_permille",
    };
    struct series_job found = {0};
    struct strbuf out = {0};

    if (series_find_job(daemon->series, job, &found))
        strbuf_printf(&out, "{\"id\":%" PRIu64 ",\"from_ns\":%" PRId64 ",\"step_ns\":%" PRId64, job,
                      nodetime_shown_ns(found.from_ns), found.step_ns);
    else
        strbuf_printf(&out, "{\"id\":%" PRIu64 ",\"from_ns\":null,\"step_ns\":null", job);
    for (enum series_job_value value = 0; value < SERIES_JOB_VALUES; value++) {
        strbuf_printf(&out, ",\"%s\":[", names[value]);
        for (uint32_t i = 0; i < found.count; i++)
            put(&out, i == 0, series_job_at(daemon->series, job, i, value));
        strbuf_puts(&out, "]");
    }
    strbuf_puts(&out, "}");
    return strbuf_steal(&out);
}
