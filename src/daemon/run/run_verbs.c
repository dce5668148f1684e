/* How this file works: a row of `verbs` for each record that tells a run something, with what that is for a job that
 * carma starts (local) and for one that somebody else does (lease); NULL: nothing. run_verbs_act() is called once the
 * record is stored. A failure is an input of the engine's current turn, as the run's answer is: STARTED, EXITED.
 *
 * To add a verb: a record (core/records.def), a row here and, where the shepherd has to do it, a word that order()
 * sends and a row of launch/shepherd/orders.c. */
#include "daemon/run/run_verbs.h"

#include <inttypes.h>

#include "base/memory.h"
#include "daemon/log.h"
#include "daemon/run/runs_internal.h"
#include "launch/orders.h"

static void stop(struct runs *runs, const struct record *record)
{
    runs_stop(runs, record->job);
}

/* To the shepherd. One that has just ended needs none. */
static void order(struct runs *runs, uint64_t job, const char *word)
{
    const struct run *run = runs_run_of(runs, job);
    struct error err;

    if (run && run->shepherd && orders_add(run->directory, run->shepherd, run->start_ticks, word, &err) != 0 &&
        launch_alive(run->shepherd, run->start_ticks))
        daemon_log("job %" PRIu64 " was not told '%s': %s", job, word, err.text);
}

static void checkpoint(struct runs *runs, const struct record *record)
{
    order(runs, record->job, "checkpoint");
}

void runs_move(struct runs *runs, uint64_t job)
{
    order(runs, job, "move");
}

static void move(struct runs *runs, const struct record *record)
{
    runs_move(runs, record->job);
}

static const struct {
    uint32_t type;
    void (*local)(struct runs *runs, const struct record *record);
    void (*lease)(struct runs *runs, const struct record *record);
} verbs[] = {
    {RECORD_PLACED, runs_start, runs_start},
    {RECORD_SIGNALLED, stop, stop},
    {RECORD_CHECKPOINT, checkpoint, NULL},
    {RECORD_MOVED, move, NULL},
};

void run_verbs_act(struct runs *runs, const struct record *record)
{
    const struct job_view *view = record->job ? views_find(&runs->daemon->views, record->job) : NULL;

    for (size_t i = 0; view && i < array_size(verbs); i++) {
        if (verbs[i].type != record->type)
            continue;
        if (view->wants->external && verbs[i].lease)
            verbs[i].lease(runs, record);
        else if (!view->wants->external && verbs[i].local)
            verbs[i].local(runs, record);
    }
}
