#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/simulate.h"

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
