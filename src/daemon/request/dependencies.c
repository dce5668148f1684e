/* How this file works: the core knows unfinished jobs alone. So what a dependency on one that has ended, or has
 * started, comes to is judged here, by the views. The rest is an input of the core (RECORD_DEPENDS), behind the
 * submission's own, and in the same transaction: no decision comes between. */
#include "daemon/request/dependencies.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/later/begin.h"
#include "api/later/dependency.h"
#include "api/spec.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/daemon.h"
#include "daemon/engine/engine.h"
#include "daemon/view/view.h"

int dependencies_can_be(const struct daemon *daemon, const struct job_spec *spec, struct error *err)
{
    CLEANUP(free_ptr) struct job_dependency *list = NULL;
    size_t count = 0;
    int rc = spec->dependency ? dependency_parse(spec->dependency, &list, &count, err) : 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        const char *word = dependency_word(list[i].kind);
        const struct job_view *on = list[i].job ? views_find(&daemon->views, list[i].job) : NULL;
        bool completed;
        if (!list[i].job)
            continue;
        if (!on || !job_view_is_shown(on))
            return error_set(err, ENOENT, "there is no job %" PRIu64 " for %s:%" PRIu64, list[i].job, word,
                             list[i].job);
        if (on->common->spec->engine)
            return error_set(err, EINVAL,
                             "job %" PRIu64 " is a lease, whose end another scheduler knows: %s needs a job of carma's",
                             list[i].job, word);
        completed = on->state == JOB_COMPLETED;
        if (job_state_ended(on->state) &&
            ((list[i].kind == DEPENDS_OK && !completed) || (list[i].kind == DEPENDS_NOT_OK && completed)))
            return error_set(err, EINVAL, "job %" PRIu64 " is %s: %s:%" PRIu64 " can never come true", list[i].job,
                             job_state_name(on->state), word, list[i].job);
    }
    return rc;
}

static void tell(struct daemon *daemon, uint64_t job, struct record_depends depends)
{
    engine_input(daemon->engine,
                 &(struct record){.type = RECORD_DEPENDS, .at_ns = nodetime_now_ns(), .job = job, .depends = depends},
                 NULL);
}

static void tell_of_one(struct daemon *daemon, const struct job_view *view, const struct job_dependency *dependency)
{
    const struct job_view *on = views_find(&daemon->views, dependency->job);
    bool ended = !on || job_state_ended(on->state);
    int64_t since_ns = on && on->first_started_ns >= 0 ? on->first_started_ns : ended && on ? on->ended_ns : -1;

    if (dependency->kind == DEPENDS_START && since_ns >= 0)
        tell(daemon, view->id,
             (struct record_depends){.kind = DEPENDS_TIME, .delay_ns = since_ns + dependency->delay_ns});
    else if (!ended)
        tell(
            daemon, view->id,
            (struct record_depends){.on = dependency->job, .kind = dependency->kind, .delay_ns = dependency->delay_ns});
}

static bool is_namesake(const struct daemon *daemon, const struct job *job, uid_t uid, const char *name)
{
    const struct job_view *view = job->wants->uid == uid ? views_find(&daemon->views, job->id) : NULL;

    return view && !view->common->spec->engine && strcmp(common_text_first(view->name), name) == 0;
}

/* All earlier jobs of its user and name. */
static void tell_of_namesakes(struct daemon *daemon, const struct job_view *view)
{
    const char *name = common_text_first(view->name);

    for (const struct job *job = core_jobs(daemon->core); job; job = job->hh.next)
        if (job->id < view->id && is_namesake(daemon, job, view->wants->uid, name))
            tell(daemon, view->id, (struct record_depends){.on = job->id, .kind = DEPENDS_ANY});
}

uint64_t dependencies_cost(const struct daemon *daemon, const struct job_spec *spec, uid_t uid, uint64_t before,
                           uint64_t *looks)
{
    CLEANUP(free_ptr) struct job_dependency *list = NULL;
    uint64_t cost = 0;
    size_t count = 0;

    if (!spec->dependency || dependency_parse(spec->dependency, &list, &count, NULL) != 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        cost += list[i].job ? 1 : before;
        for (const struct job *job = list[i].job ? NULL : core_jobs(daemon->core); job; job = job->hh.next, ++*looks)
            cost += is_namesake(daemon, job, uid, spec->name);
    }
    return cost;
}

void dependencies_tell(struct daemon *daemon, const struct job_view *view)
{
    const struct job_spec *spec = view->common->spec;
    CLEANUP(free_ptr) struct job_dependency *list = NULL;
    size_t count = 0;
    int64_t begin_ns;

    if (spec->begin && begin_parse(spec->begin, nodetime_shown_now_ns(), &begin_ns, NULL) == 0)
        tell(daemon, view->id,
             (struct record_depends){.kind = DEPENDS_TIME, .delay_ns = nodetime_of_shown_ns(begin_ns)});
    if (!spec->dependency)
        return;
    dependency_parse(spec->dependency, &list, &count, NULL);
    for (size_t i = 0; i < count; i++)
        if (list[i].job)
            tell_of_one(daemon, view, &list[i]);
        else
            tell_of_namesakes(daemon, view);
}
