#include "daemon/forgetting.h"

#include "base/memory.h"
#include "daemon/engine/snapshotter.h"
#include "daemon/run/run_directories.h"
#include "daemon/run/runs.h"
#include "store/store.h"

#define AT_ONCE 200 /* in some milliseconds */

struct forgotten {
    uint64_t job;
    uint32_t attempts;
};

struct forgetting {
    struct daemon *daemon;
    uint64_t *jobs; /* owned; NULL: none */
    size_t count;
    size_t next;
    char *directory; /* owned */
    struct forgotten gone[AT_ONCE];
    size_t gone_count;
    uv_work_t work;
    bool working, stopping;
};

struct forgetting *forgetting_new(struct daemon *daemon)
{
    struct forgetting *forgetting = xcalloc(1, sizeof *forgetting);

    forgetting->daemon = daemon;
    forgetting->work.data = forgetting;
    return forgetting;
}

static void end(struct forgetting *forgetting)
{
    free(forgetting->jobs);
    free(forgetting->directory);
    free(forgetting);
}

void forgetting_free(struct forgetting *forgetting)
{
    if (!forgetting)
        return;
    forgetting->stopping = true;
    if (!forgetting->working)
        end(forgetting);
}

static void on_pool(uv_work_t *work)
{
    struct forgetting *forgetting = work->data;

    for (size_t i = 0; i < forgetting->gone_count; i++)
        run_directories_remove(forgetting->directory, forgetting->gone[i].job, forgetting->gone[i].attempts);
}

static void forget_some(struct forgetting *forgetting);

static void on_removed(uv_work_t *work, int status)
{
    struct forgetting *forgetting = work->data;

    (void)status;
    forgetting->working = false;
    if (forgetting->stopping)
        end(forgetting);
    else
        forget_some(forgetting);
}

/* Jobs stay in memory for as long as their submissions are in the store: what a user has there is counted by them. */
static void on_stored(int status, const char *error, void *user)
{
    struct forgetting *forgetting = user;
    struct views *views = &forgetting->daemon->views;

    (void)error;
    forgetting->working = false;
    if (status != 0 || forgetting->daemon->stopping)
        return; /* they are found again */
    for (size_t i = 0; i < forgetting->gone_count; i++)
        views_remove(views, views_find(views, forgetting->gone[i].job));
    forgetting->working = true;
    uv_queue_work(forgetting->daemon->loop, &forgetting->work, on_pool, on_removed);
}

static void forget_some(struct forgetting *forgetting)
{
    const struct views *views = &forgetting->daemon->views;
    struct store_batch *batch;

    forgetting->gone_count = 0;
    while (forgetting->next < forgetting->count && forgetting->gone_count < AT_ONCE) {
        const struct job_view *view = views_find(views, forgetting->jobs[forgetting->next++]);

        if (!view || job_view_is_changed(view))
            continue;
        forgetting->gone[forgetting->gone_count++] = (struct forgotten){.job = view->id, .attempts = view->attempts};
    }
    if (!forgetting->gone_count)
        return;
    batch = store_batch_new();
    for (size_t i = 0; i < forgetting->gone_count; i++)
        store_batch_drop_spec(batch, forgetting->gone[i].job);
    forgetting->working = true;
    store_commit(forgetting->daemon->store, batch, on_stored, forgetting);
}

void forgetting_begin(struct forgetting *forgetting, int64_t before_ns)
{
    if (forgetting->working)
        return;
    free(forgetting->jobs);
    forgetting->jobs = views_surplus(&forgetting->daemon->views, SNAPSHOTTER_MOST_ENDED, before_ns, &forgetting->count);
    forgetting->next = 0;
    if (!forgetting->directory)
        forgetting->directory = xstrdup(runs_directory(forgetting->daemon->runs));
    forget_some(forgetting);
}
