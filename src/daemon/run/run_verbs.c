/* How this file works: a row of `verbs` for each record that tells a run something, with what that is for a job that
 * carma starts (local) and for one that somebody else does (lease); NULL: nothing. run_verbs_act() is called once the
 * record is stored. A failure is an input of the engine's current turn, as the run's answer is: STARTED, EXITED.
 *
 * What people tell a run is one record, COMMANDED: its row in core/commands.def has the word that the shepherd gets,
 * and launch/shepherd/orders.c what that does. Nothing is added here for a verb of that kind. */
#include "daemon/run/run_verbs.h"

#include <errno.h>
#include <inttypes.h>

#include "base/memory.h"
#include "base/units.h"
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

static void move(struct runs *runs, const struct record *record)
{
    order(runs, record->job, "move");
}

/* The record tells how far it has come; the shepherd counts the time that is left in its own. */
static void idle(struct runs *runs, const struct record *record)
{
    const struct job_view *view = views_find(&runs->daemon->views, record->job);
    bool ends = record->idle.step == IDLE_ENDED;
    int64_t limit_ns = view->wants->idle_limit_ns;
    CLEANUP(free_ptr)
    char *word = xasprintf("%s %" PRId64, ends ? "idle" : "idle-warning",
                           (ends ? limit_ns : record->idle.ends_ns - record->at_ns) / NS_PER_SEC);
    char limit[UNITS_TEXT];

    if (ends)
        daemon_log("job %" PRIu64 " of %s has not used its GPUs for %s, its idle limit: it is ended", view->id,
                   job_view_user(view), format_duration(limit_ns, limit));
    order(runs, record->job, word);
}

static void command(struct runs *runs, const struct record *record)
{
    const char *word = command_order(record->commanded.command);
    CLEANUP(free_ptr) char *with = NULL;

    if (!word)
        return;
    if (record->commanded.argument)
        with = xasprintf("%s %" PRIu32, word, record->commanded.argument);
    order(runs, record->job, with ? with : word);
}

int run_verbs_check(const struct runs *runs, uint64_t job, const struct record_commanded *commanded, struct error *err)
{
    const struct run *run = command_order(commanded->command) ? runs_run_of(runs, job) : NULL;

    return run && orders_owner_is_heard_out(run->directory)
               ? error_set(err, EFBIG,
                           "job %" PRIu64 " was told too many things since it began: 'carma requeue' begins it anew",
                           job)
               : 0;
}

void runs_tell_again(struct runs *runs, const struct job_view *view)
{
    const struct job *job = core_find_job(runs->daemon->core, view->id);

    if (view->run->moved_for)
        order(runs, view->id, "move");
    if (job && job->run->idle_step == IDLE_ENDED)
        idle(runs, &(struct record){.job = view->id, .idle = {.step = IDLE_ENDED}});
    if (view->state == JOB_SUSPENDED || view->run->suspended_ns)
        order(runs, view->id, command_order(view->state == JOB_SUSPENDED ? COMMAND_SUSPEND : COMMAND_RESUME));
}

static const struct {
    uint32_t type;
    void (*local)(struct runs *runs, const struct record *record);
    void (*lease)(struct runs *runs, const struct record *record);
} verbs[] = {
    {RECORD_PLACED, runs_start, runs_start},
    {RECORD_SIGNALLED, stop, stop},
    {RECORD_COMMANDED, command, NULL},
    {RECORD_MOVED, move, NULL},
    {RECORD_IDLE, idle, NULL},
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
