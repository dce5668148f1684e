/* How this file works: the core knows unfinished jobs alone. So what a dependency on one that has ended, or has
 * started, comes to is judged here, by the views. The rest is an input of the core (RECORD_DEPENDS), behind the
 * submission's own, and in the same transaction: no decision comes between. */
#include "daemon/request/dependencies.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/array.h"
#include "api/later/begin.h"
#include "api/later/dependency.h"
#include "api/spec.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/daemon.h"
#include "daemon/engine/engine.h"
#include "daemon/view/view.h"

/* Of the array whose first job it is; NULL: of none. */
static const struct array_words *array_of(const struct job_view *view, struct array_words *words)
{
    bool is_first = view && view->wants->array == view->id && view->common->spec->array;

    return is_first && array_parse(view->common->spec->array, words, NULL) == 0 ? words : NULL;
}

/* Its jobs: itself, all of an array, or the one of the array that is named; -ENOENT. */
static int jobs_of(const struct daemon *daemon, const struct job_dependency *dependency, uint64_t *first,
                   uint64_t *last, struct error *err)
{
    const struct job_view *view = views_find(&daemon->views, dependency->job);
    struct array_words found;
    const struct array_words *words = array_of(view, &found);
    int64_t position = words && dependency->index >= 0 ? array_position(words, (uint32_t)dependency->index) : -1;

    *first = *last = dependency->job;
    if (dependency->index < 0) {
        *last += words ? words->jobs - 1 : 0;
        return 0;
    }
    if (position < 0)
        return error_set(err, ENOENT, "there is no job %" PRIu64 "_%" PRId64 " for %s", dependency->job,
                         dependency->index, dependency_word(dependency->kind));
    *first = *last = dependency->job + (uint64_t)position;
    return 0;
}

static int can_be(const struct daemon *daemon, const struct job_dependency *dependency, uint64_t job, struct error *err)
{
    const struct job_view *on = views_find(&daemon->views, job);
    const char *word = dependency_word(dependency->kind);
    bool completed;

    if (!on || !job_view_is_shown(on))
        return error_set(err, ENOENT, "there is no job %" PRIu64 " for %s:%" PRIu64, job, word, job);
    if (on->common->spec->engine)
        return error_set(err, EINVAL,
                         "job %" PRIu64 " is a lease, whose end another scheduler knows: %s needs a job of carma's",
                         job, word);
    completed = on->state == JOB_COMPLETED;
    if (job_state_ended(on->state) &&
        ((dependency->kind == DEPENDS_OK && !completed) || (dependency->kind == DEPENDS_NOT_OK && completed)))
        return error_set(err, EINVAL, "job %" PRIu64 " is %s: %s:%" PRIu64 " can never come true", job,
                         job_state_name(on->state), word, job);
    return 0;
}

int dependencies_can_be(const struct daemon *daemon, const struct job_spec *spec, struct error *err)
{
    CLEANUP(free_ptr) struct job_dependency *list = NULL;
    size_t count = 0;
    uint64_t first, last;
    int rc = spec->dependency ? dependency_parse(spec->dependency, &list, &count, err) : 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = list[i].job ? jobs_of(daemon, &list[i], &first, &last, err) : 0;
        if (rc == 0 && list[i].job && first < last && list[i].kind == DEPENDS_NOT_OK)
            rc =
                error_set(err, EINVAL, "%" PRIu64 " is an array: afternotok needs one job of it, such as %" PRIu64 "_0",
                          first, first);
        for (uint64_t job = first; list[i].job && rc == 0 && job <= last; job++)
            rc = can_be(daemon, &list[i], job, err);
    }
    return rc;
}

static void tell(struct daemon *daemon, uint64_t job, struct record_depends depends)
{
    engine_input(daemon->engine,
                 &(struct record){.type = RECORD_DEPENDS, .at_ns = nodetime_now_ns(), .job = job, .depends = depends},
                 NULL);
}

static void tell_of_one(struct daemon *daemon, const struct job_view *view, const struct job_dependency *dependency,
                        uint64_t job)
{
    const struct job_view *on = views_find(&daemon->views, job);
    bool ended = !on || job_state_ended(on->state);
    int64_t since_ns = on && on->first_started_ns >= 0 ? on->first_started_ns : ended && on ? on->ended_ns : -1;

    if (dependency->kind == DEPENDS_START && since_ns >= 0)
        tell(daemon, view->id,
             (struct record_depends){.kind = DEPENDS_TIME, .delay_ns = since_ns + dependency->delay_ns});
    else if (!ended)
        tell(daemon, view->id,
             (struct record_depends){.on = job, .kind = dependency->kind, .delay_ns = dependency->delay_ns});
}

/* The jobs of an array all have one name. */
static bool is_sibling(const struct job *job, const struct job_view *view)
{
    return view->wants->array && job->wants->array == view->wants->array;
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
        if (job->id < view->id && !is_sibling(job, view) && is_namesake(daemon, job, view->wants->uid, name))
            tell(daemon, view->id, (struct record_depends){.on = job->id, .kind = DEPENDS_ANY});
}

uint64_t dependencies_cost(const struct daemon *daemon, const struct job_spec *spec, uid_t uid, uint64_t before,
                           uint64_t *looks)
{
    CLEANUP(free_ptr) struct job_dependency *list = NULL;
    uint64_t cost = 0, first, last;
    size_t count = 0;

    if (!spec->dependency || dependency_parse(spec->dependency, &list, &count, NULL) != 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].job && jobs_of(daemon, &list[i], &first, &last, NULL) == 0)
            cost += last - first + 1;
        else if (!list[i].job)
            cost += before;
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
    for (size_t i = 0; i < count; i++) {
        uint64_t first, last;
        if (!list[i].job)
            tell_of_namesakes(daemon, view);
        else if (jobs_of(daemon, &list[i], &first, &last, NULL) == 0)
            for (uint64_t job = first; job <= last; job++)
                tell_of_one(daemon, view, &list[i], job);
    }
}
