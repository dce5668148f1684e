/* The speed of running jobs, from the counts that their shepherds publish (launch/progress.h). */
#include "base/memory.h"
#include "base/units.h"
#include "daemon/run/runs_internal.h"

/* A count is seen up to 10 s late, and at most as often: over this time that makes a tenth at the most, and a step too
 * few or too many a twentieth. */
#define SPEED_SPAN_NS (120 * NS_PER_SEC)
#define SPEED_STEPS   20

static bool goes_on_from(const struct progress_count *count, const struct progress_count *earlier)
{
    return earlier->at_ns && count->total == earlier->total && count->done >= earlier->done;
}

void runs_take_progress(struct runs *runs, struct run *run)
{
    const struct progress_count *count = &run->status.progress, *from = &run->counted_from;
    struct job_view *view = views_find(&runs->daemon->views, run->job);
    double steps, span_s;

    if (!view || !count->at_ns || (view->progress && view->progress->count.at_ns == count->at_ns))
        return;
    if (!view->progress) {
        view->progress = xmalloc(sizeof *view->progress);
        view->progress->micro_steps_per_s = -1;
    }
    view->progress->count = *count;
    if (!goes_on_from(count, from)) {
        run->counted_from = *count;
        return;
    }
    if (count->at_ns - from->at_ns < SPEED_SPAN_NS || count->done - from->done < SPEED_STEPS)
        return;
    steps = (double)(count->done - from->done);
    span_s = (double)(count->at_ns - from->at_ns) / NS_PER_SEC;
    view->progress->micro_steps_per_s = (int64_t)(steps / span_s * 1e6);
    run->counted_from = *count;
}
