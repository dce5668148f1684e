/* The speed of running jobs, from the counts that their shepherds publish (launch/progress.h). It is shown, and an
 * input of the core, which learns from it how jobs get on with one another. */
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "core/learn/learn.h"
#include "core/ledger.h"
#include "daemon/run/runs_internal.h"

/* A count is read up to 10 s late: over this time that makes a twentieth, as does a step too few or too many. */
#define SPEED_SPAN_NS (200 * NS_PER_SEC)
#define SPEED_STEPS   20

/* Speeds beside the same neighbours say nearly nothing new. */
#define TEACH_PAUSE_NS (600 * NS_PER_SEC)

/* When the last resident that came to or left one of its GPUs had loaded. While a job or a neighbour loads, the job has
 * another speed than later. */
static int64_t settled_ns(const struct core *core, const struct job_view *view)
{
    int64_t changed_ns = 0;

    for (uint32_t i = 0; i < view->placement_count; i++) {
        const struct gpu *gpu = core_gpu(core, view->placements[i].gpu);
        if (gpu && gpu->changed_ns > changed_ns)
            changed_ns = gpu->changed_ns;
    }
    return changed_ns + LEARN_LOADING_NS;
}

static bool goes_on_from(const struct progress_count *count, const struct progress_count *earlier)
{
    return earlier->at_ns && count->total == earlier->total && count->done >= earlier->done;
}

static void teach(struct runs *runs, struct run *run, int64_t speed, int64_t settled, int64_t from_ns)
{
    const struct progress_count *count = &run->status.progress;
    int64_t now_ns = nodetime_now_ns(); /* the clock may have been set back */

    if (speed <= 0 || (run->taught_settled_ns == settled && count->at_ns - run->taught_ns < TEACH_PAUSE_NS))
        return;
    run->taught_settled_ns = settled;
    run->taught_ns = count->at_ns;
    runs_input(runs, &(struct record){.type = RECORD_PROGRESSED,
                                      .at_ns = count->at_ns < now_ns ? count->at_ns : now_ns,
                                      .job = run->job,
                                      .progressed = {.micro_steps_per_s = speed,
                                                     .span_ns = count->at_ns - from_ns,
                                                     .total = count->total}});
}

void runs_take_progress(struct runs *runs, struct run *run)
{
    const struct progress_count *count = &run->status.progress, from = run->counted_from;
    struct job_view *view = views_find(&runs->daemon->views, run->job);
    int64_t settled, speed;

    if (!view || !count->at_ns || (view->run->progress && view->run->progress->count.at_ns == count->at_ns))
        return;
    if (!view->run->progress) {
        job_view_run(view)->progress = xmalloc(sizeof *view->run->progress);
        view->run->progress->micro_steps_per_s = -1;
    }
    view->run->progress->count = *count;
    settled = settled_ns(runs->daemon->core, view);
    if (!goes_on_from(count, &from) || from.at_ns < settled) {
        run->counted_from = count->at_ns < settled ? (struct progress_count){0} : *count;
        return;
    }
    if (count->at_ns - from.at_ns < SPEED_SPAN_NS || count->done - from.done < SPEED_STEPS)
        return;
    speed = (int64_t)((double)(count->done - from.done) / ((double)(count->at_ns - from.at_ns) / NS_PER_SEC) * 1e6);
    view->run->progress->micro_steps_per_s = speed;
    run->counted_from = *count;
    teach(runs, run, speed, settled, from.at_ns);
}
