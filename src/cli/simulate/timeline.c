#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/show/answer.h"
#include "cli/simulate/simulate.h"

void timeline_init(struct timeline *timeline, uint32_t gpu_count)
{
    *timeline = (struct timeline){.gpu_count = gpu_count, .begin_ns = INT64_MAX, .end_ns = INT64_MIN};
    timeline->last = xcalloc(gpu_count, sizeof *timeline->last);
}

void timeline_release(struct timeline *timeline)
{
    free(timeline->points);
    free(timeline->jobs);
    free(timeline->last);
    *timeline = (struct timeline){0};
}

void timeline_add(void *user, int64_t at_ns, const struct sim_gpu_view *view)
{
    struct timeline *timeline = user;
    struct timeline_point *point;
    size_t last = timeline->last[view->gpu];

    if (last && timeline->points[last - 1].at_ns == at_ns) {
        point = &timeline->points[last - 1];
    } else {
        array_reserve(timeline->points, timeline->capacity, timeline->count + 1);
        point = &timeline->points[timeline->count++];
        timeline->last[view->gpu] = timeline->count;
    }
    array_reserve(timeline->jobs, timeline->job_capacity, timeline->job_count + view->resident_count);
    *point = (struct timeline_point){.at_ns = at_ns,
                                     .gpu = view->gpu,
                                     .used_bytes = view->used_bytes,
                                     .activity = view->activity,
                                     .power_w = view->power_w,
                                     .job_first = timeline->job_count,
                                     .job_count = view->resident_count};
    for (uint32_t i = 0; i < view->resident_count; i++)
        timeline->jobs[timeline->job_count++] = view->residents[i];
    timeline->begin_ns = at_ns < timeline->begin_ns ? at_ns : timeline->begin_ns;
    timeline->end_ns = at_ns > timeline->end_ns ? at_ns : timeline->end_ns;
}

/* ---- As means over steps ---- */

enum { ACTIVITY, POWER, JOBS, QUANTITY_COUNT };

struct steps {
    int64_t begin_ns;
    double step_ns;
    size_t count;
    double *sums[QUANTITY_COUNT]; /* value times nanoseconds, of each step */
};

/* Adds the constant values between two moments. */
static void add_span(struct steps *steps, double from_ns, double to_ns, const double values[static QUANTITY_COUNT])
{
    size_t step = from_ns > 0 ? (size_t)(from_ns / steps->step_ns) : 0;

    for (; step < steps->count && (double)step * steps->step_ns < to_ns; step++) {
        double overlap =
            fmin(to_ns, (double)(step + 1) * steps->step_ns) - fmax(from_ns, (double)step * steps->step_ns);

        for (int q = 0; q < QUANTITY_COUNT; q++)
            steps->sums[q][step] += fmax(overlap, 0) * values[q];
    }
}

/* Walks through the points with each GPU's activity at the moment. */
static void add_points(struct steps *steps, const struct timeline *timeline, double idle_w)
{
    CLEANUP(free_ptr) const struct timeline_point **now = xcalloc(timeline->gpu_count, sizeof *now);
    double values[QUANTITY_COUNT] = {[POWER] = idle_w * timeline->gpu_count}, from_ns = 0;

    for (size_t i = 0; i < timeline->count; i++) {
        const struct timeline_point *point = &timeline->points[i], *was = now[point->gpu];
        double at_ns = (double)(point->at_ns - steps->begin_ns);

        add_span(steps, from_ns, at_ns, values);
        from_ns = at_ns;
        values[ACTIVITY] += point->activity - (was ? was->activity : 0);
        values[POWER] += point->power_w - (was ? was->power_w : idle_w);
        values[JOBS] += (double)point->job_count - (was ? (double)was->job_count : 0);
        now[point->gpu] = point;
    }
}

static json_t *means(const struct steps *steps, int quantity, double divisor)
{
    json_t *list = json_array();

    for (size_t i = 0; i < steps->count; i++)
        json_array_append_new(list, json_real(round(steps->sums[quantity][i] / steps->step_ns / divisor * 1e4) / 1e4 +
                                              0.0)); /* never -0 */
    return list;
}

json_t *timeline_to_json(const struct timeline *timeline, int64_t begin_ns, double idle_w, size_t count)
{
    bool ran = timeline->count && timeline->end_ns > begin_ns;
    struct steps steps = {.begin_ns = begin_ns,
                          .step_ns = ran ? (double)(timeline->end_ns - begin_ns) / (double)count : 1,
                          .count = ran ? count : 0};
    json_t *json;

    for (int q = 0; q < QUANTITY_COUNT; q++)
        steps.sums[q] = xcalloc(count, sizeof *steps.sums[q]);
    add_points(&steps, timeline, idle_w);
    json = json_pack("{s:f, s:o, s:o, s:o}", "step_s", ran ? steps.step_ns / 1e9 : 0.0, "sm_activity",
                     means(&steps, ACTIVITY, timeline->gpu_count), "power_w", means(&steps, POWER, 1), "jobs",
                     means(&steps, JOBS, 1));
    for (int q = 0; q < QUANTITY_COUNT; q++)
        free(steps.sums[q]);
    return json;
}

int timeline_write_csv(const struct timeline *timeline, const char *path, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    strbuf_puts(&out, "time_s,gpu,memory_bytes,sm_activity,power_w,jobs\n");
    for (size_t i = 0; i < timeline->count; i++) {
        const struct timeline_point *point = &timeline->points[i];
        strbuf_printf(&out, "%.3f,%" PRIu32 ",%" PRId64 ",%.4f,%.1f,", (double)point->at_ns / 1e9, point->gpu,
                      point->used_bytes, point->activity, point->power_w);
        for (size_t k = 0; k < point->job_count; k++)
            strbuf_printf(&out, "%s%" PRIu64, k ? " " : "", timeline->jobs[point->job_first + k]);
        strbuf_puts(&out, "\n");
    }
    return file_write_atomic(path, out.text, out.length, 0644, err);
}
