/* How this file works: the core knows unfinished jobs alone. So what a dependency on one that has ended, or has
 * started, comes to is judged here, by the views. The rest is an input of the core (RECORD_DEPENDS), behind the
 * submission's own, and in the same transaction: no decision comes between. All jobs are looked at once for each name
 * that jobs of a submission wait for (singleton). */
#include "daemon/submit/dependencies.h"

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

/* Its jobs: itself, all of an array, or the one of the array that is named, or has the waiting job's `own` index;
 * -ENOENT. */
static int jobs_of(const struct daemon *daemon, const struct job_dependency *dependency, int64_t own, uint64_t *first,
                   uint64_t *last, struct error *err)
{
    const struct job_view *view = views_find(&daemon->views, dependency->job);
    struct array_words words;
    bool is_array = view && view->wants->array == view->id && job_view_array_words(view, &words);
    int64_t index = dependency->index == DEPENDENCY_OWN_INDEX ? own : dependency->index;
    int64_t position = is_array && index >= 0 ? array_position(&words, (uint32_t)index) : -1;

    *first = *last = dependency->job;
    if (index < 0) {
        *last += is_array ? words.jobs - 1 : 0;
        return 0;
    }
    if (position < 0)
        return error_set(err, ENOENT, "there is no job %" PRIu64 "_%" PRId64 " for %s", dependency->job, index,
                         index == own ? "aftercorr" : dependency_word(dependency->kind));
    *first = *last = dependency->job + (uint64_t)position;
    return 0;
}

#define RECORDS_MOST 20000  /* of a submission: some tens of milliseconds */
#define LOOKS_MOST   100000 /* likewise */

/* A user's unfinished jobs of a name, and those that come with the submission. */
struct namesakes {
    char *name;     /* owned: the key */
    uint64_t *jobs; /* owned */
    size_t count, capacity;
    uint64_t coming; /* of the submission, judged so far */
    UT_hash_handle hh;
};

static void add_namesake(struct namesakes *namesakes, uint64_t job)
{
    array_reserve(namesakes->jobs, namesakes->capacity, namesakes->count + 1);
    namesakes->jobs[namesakes->count++] = job;
}

static struct namesakes *find_namesakes(const struct dependencies *all, const char *name)
{
    struct namesakes *found;

    HASH_FIND_STR(all->namesakes, name, found);
    return found;
}

static struct namesakes *namesakes_of(struct dependencies *all, const struct daemon *daemon, uid_t uid,
                                      const char *name, const struct awaited_name *before, size_t before_count)
{
    struct namesakes *namesakes = find_namesakes(all, name);

    if (namesakes)
        return namesakes;
    namesakes = xcalloc(1, sizeof *namesakes);
    namesakes->name = xstrdup(name);
    HASH_ADD_KEYPTR(hh, all->namesakes, namesakes->name, strlen(namesakes->name), namesakes);
    for (size_t i = 0; i < before_count; i++)
        namesakes->coming += strcmp(before[i].name, name) == 0 ? before[i].jobs : 0;
    all->looks += core_job_count(daemon->core);
    for (const struct job *job = all->looks <= LOOKS_MOST ? core_jobs(daemon->core) : NULL; job; job = job->hh.next) {
        const struct job_view *view = job->wants->uid == uid ? views_find(&daemon->views, job->id) : NULL;
        if (view && !view->common->spec->engine && strcmp(common_text_first(view->name), name) == 0)
            add_namesake(namesakes, job->id);
    }
    return namesakes;
}

/* Whether it can come true. */
static int can_be(const struct daemon *daemon, const struct job_dependency *dependency, uint64_t job, struct error *err)
{
    const struct job_view *on = views_find(&daemon->views, job);
    const char *word = dependency_word(dependency->kind);
    char number[JOB_NUMBER_TEXT];
    bool completed;

    job_number(&daemon->views, job, number);

    if (job == DEPENDENCY_LAST)
        return error_set(err, EINVAL, "'@' is for carma submit and carma run: %s needs the number of a job", word);
    if (!on || !job_view_is_shown(on))
        return error_set(err, ENOENT, "there is no job %s for %s:%s", number, word, number);
    if (on->common->spec->engine)
        return error_set(err, EINVAL, "job %s is a lease, whose end another scheduler knows: %s needs a job of carma's",
                         number, word);
    completed = on->state == JOB_COMPLETED;
    if (job_state_ended(on->state) &&
        ((dependency->kind == DEPENDS_OK && !completed) || (dependency->kind == DEPENDS_NOT_OK && completed)))
        return error_set(err, EINVAL, "job %s is %s: %s:%s can never come true", number, job_state_name(on->state),
                         word, number);
    return 0;
}

/* aftercorr: each job of this array waits for that one of the other which has its index. */
static int judge_each(struct dependencies *all, const struct daemon *daemon, const struct job_dependency *dependency,
                      const struct job_spec *spec, struct error *err)
{
    struct array_words own;
    uint64_t first, last;
    int rc = 0;

    if (!spec->array || array_parse(spec->array, &own, NULL) != 0)
        return error_set(err, EINVAL, "aftercorr:%" PRIu64 " is for the jobs of an array: say --array, or afterok",
                         dependency->job);
    all->count += own.jobs;
    for (uint32_t i = 0; i < own.jobs && rc == 0; i++) {
        rc = jobs_of(daemon, dependency, array_index(&own, i), &first, &last, err);
        rc = rc ? rc : can_be(daemon, dependency, first, err);
    }
    return rc;
}

/* Of one that names a job: its records for each job that waits, or an error. */
static int judge_one(struct dependencies *all, const struct daemon *daemon, const struct job_dependency *dependency,
                     uint32_t jobs, struct error *err)
{
    uint64_t first, last;
    int rc = jobs_of(daemon, dependency, -1, &first, &last, err);

    if (rc == 0 && first < last && dependency->kind == DEPENDS_NOT_OK)
        return error_set(err, EINVAL, "%" PRIu64 " is an array: afternotok needs one job of it, such as %" PRIu64 "_0",
                         first, first);
    all->count += rc == 0 ? (last - first + 1) * jobs : 0;
    for (uint64_t job = first; rc == 0 && job <= last && all->count <= RECORDS_MOST; job++)
        rc = can_be(daemon, dependency, job, err);
    return rc;
}

int dependencies_judge(struct dependencies *all, const struct daemon *daemon, const struct job_spec *spec, uid_t uid,
                       uint32_t jobs, const struct awaited_name *before, size_t before_count, struct error *err)
{
    CLEANUP(free_ptr) struct job_dependency *list = NULL;
    struct namesakes *namesakes;
    size_t count = 0;
    int rc = spec->dependency ? dependency_parse(spec->dependency, &list, &count, err) : 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        if (list[i].index == DEPENDENCY_OWN_INDEX) {
            rc = judge_each(all, daemon, &list[i], spec, err);
        } else if (list[i].job) {
            rc = judge_one(all, daemon, &list[i], jobs, err);
        } else {
            namesakes = namesakes_of(all, daemon, uid, spec->name, before, before_count);
            all->count += (namesakes->count + namesakes->coming) * jobs;
        }
        if (rc == 0 && (all->count > RECORDS_MOST || all->looks > LOOKS_MOST))
            rc =
                error_set(err, E2BIG,
                          "the jobs of a request may depend on %d jobs in all, each of an array for itself (singleton: "
                          "on each earlier one of the name), and it has more, or too many names to look for: submit "
                          "fewer at once",
                          RECORDS_MOST);
    }
    namesakes = find_namesakes(all, spec->name);
    if (namesakes)
        namesakes->coming += jobs;
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
    int64_t since_ns = on && on->run->first_started_ns >= 0 ? on->run->first_started_ns
                       : ended && on                        ? on->ended_ns
                                                            : -1;

    if (dependency->kind == DEPENDS_START && since_ns >= 0)
        tell(daemon, view->id,
             (struct record_depends){.kind = DEPENDS_TIME, .delay_ns = since_ns + dependency->delay_ns});
    else if (!ended)
        tell(daemon, view->id,
             (struct record_depends){.on = job, .kind = dependency->kind, .delay_ns = dependency->delay_ns});
}

/* Of its array, whose jobs come one after the other, and have one name. */
static bool is_sibling(const struct job_view *view, uint64_t earlier)
{
    return view->wants->array && earlier >= view->wants->array;
}

void dependencies_tell(struct dependencies *all, struct daemon *daemon, const struct job_view *view)
{
    const struct job_spec *spec = view->common->spec;
    CLEANUP(free_ptr) struct job_dependency *list = NULL;
    struct namesakes *namesakes;
    size_t count = 0;
    int64_t begin_ns;

    if (spec->begin && begin_parse(spec->begin, nodetime_shown_now_ns(), &begin_ns, NULL) == 0)
        tell(daemon, view->id,
             (struct record_depends){.kind = DEPENDS_TIME, .delay_ns = nodetime_of_shown_ns(begin_ns)});
    namesakes = find_namesakes(all, common_text_first(view->name));
    if (spec->dependency)
        dependency_parse(spec->dependency, &list, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        uint64_t first, last;
        for (size_t k = 0; !list[i].job && k < namesakes->count && !is_sibling(view, namesakes->jobs[k]); k++)
            tell(daemon, view->id, (struct record_depends){.on = namesakes->jobs[k], .kind = DEPENDS_ANY});
        if (list[i].job && jobs_of(daemon, &list[i], job_view_array(view).index, &first, &last, NULL) == 0)
            for (uint64_t job = first; job <= last; job++)
                tell_of_one(daemon, view, &list[i], job);
    }
    if (namesakes)
        add_namesake(namesakes, view->id);
}

void dependencies_release(struct dependencies *all)
{
    struct namesakes *namesakes, *next;

    HASH_ITER (hh, all->namesakes, namesakes, next) {
        HASH_DEL(all->namesakes, namesakes);
        free(namesakes->name);
        free(namesakes->jobs);
        free(namesakes);
    }
}
