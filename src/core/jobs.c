/* How this file works: core_add_job() makes a job of a submission, or of a snapshot's record, once all that others than
 * our own code could break is in range: a new row of wants.def is checked there. core_end_job() takes it off the table;
 * it is kept until the next input, for core_recall_job(), and freed then. Whoever calls these also moves the job
 * between queues and GPUs (apply.c). */
#include "core/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "core/common_wants.h"
#include "core/gpus/suits.h"
#include "core/learn/learn.h"
#include "core/state.h"
#include "core/users.h"
#include "core/waiting/array.h"
#include "core/waiting/depend.h"

/* A signal comes before the limit that it warns of. */
static bool is_time_limit(const struct record_submitted *wants)
{
    return wants->time_limit_ns >= 0 && wants->signal_before_ns >= 0 &&
           (wants->signal ? wants->signal_before_ns < wants->time_limit_ns : wants->signal_before_ns == 0);
}

/* Only a lease has a time to wait; it is never held. */
static bool is_lease_or_local(const struct record_submitted *wants)
{
    return is_interval(wants->max_wait_ns) && is_interval(wants->waited_ns) &&
           (wants->external ? !wants->held : wants->max_wait_ns == 0 && wants->waited_ns == 0);
}

/* A lease stands by itself. */
static bool is_array(const struct record_submitted *wants, uint64_t job)
{
    return wants->array ? wants->array <= job && !wants->external : wants->array_most == 0;
}

static bool takes_possible(const struct record_submitted *wants)
{
#define RESOURCE(member, name, code)                                                                                   \
    if (!is_part_of_resource(wants->member))                                                                           \
        return false;
#include "core/resources.def"
    return true;
}

/* Nothing is said of GPUs by a job that needs none. */
static bool is_without_gpu(const struct record_submitted *wants)
{
    return wants->request_bytes < 0 && !wants->exclusive && wants->share == SHARE_ANY && !wants->external &&
           !gpu_choosy(wants);
}

static bool is_possible(const struct record_submitted *wants, uint64_t job)
{
    return (wants->gpus > 0 || is_without_gpu(wants)) && wants->gpus <= RECORD_MAX_GPUS && wants->request_bytes >= -1 &&
           is_reading(wants->smact_permille) && is_slowdown(wants->max_slowdown_permille) &&
           wants->request_source < SOURCE_LEARNED && wants->share <= SHARE_MPS && is_time_limit(wants) &&
           is_interval(wants->idle_limit_ns) && wants->deadline_ns >= 0 && is_lease_or_local(wants) &&
           is_array(wants, job) && wants->priority >= -PRIORITY_MOST && wants->priority <= PRIORITY_MOST &&
           takes_possible(wants) &&
           (!*wants->gpu_type || (memchr(wants->gpu_type, '\0', sizeof wants->gpu_type) != NULL &&
                                  gpu_type_check(wants->gpu_type, NULL) == 0));
}

int core_check_edit(const struct job *job, const struct record_edited *edited, struct error *err)
{
    const struct record_submitted *wants = &edited->wants, *before = job->wants;

    if (!is_possible(wants, job->id) || edited->begin_ns < -1 || wants->uid != before->uid ||
        wants->external != before->external || wants->array != before->array ||
        wants->array_most != before->array_most || wants->held != before->held)
        return error_set(err, EINVAL, "job %" PRIu64 " asks for something that does not exist", job->id);
    if (!wants->gpus != !before->gpus)
        return error_set(err, EINVAL, "job %" PRIu64 " was submitted %s GPUs: submit another job", job->id,
                         before->gpus ? "with" : "without");
    if (job->placed_ns && (wants->gpus != before->gpus || wants->request_bytes != before->request_bytes ||
                           wants->request_source != before->request_source || edited->begin_ns != -1))
        return error_set(err, EINVAL, "job %" PRIu64 " has run: its GPUs, memory and begin stay", job->id);
    return 0;
}

int core_add_job(struct core *core, const struct record *record, struct job **added, struct error *err)
{
    const struct record_submitted *wants = &record->submitted;
    struct job *job;

    if (record->job == 0 || !is_possible(wants, record->job) || !memchr(wants->workload, '\0', sizeof wants->workload))
        return error_set(err, EINVAL, "job %" PRIu64 " asks for something that does not exist", record->job);
    if (core_job_by_id(core, record->job))
        return error_set(err, EEXIST, "job %" PRIu64 " is already there", record->job);
    job = xcalloc(1, sizeof *job);
    job->id = record->job;
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title) IF_JOB_##part(job->member = absent;)
#include "core/job_state.def"
    job->wants = common_wants_join(&core->wants, wants);
    job->reserved_bytes = wants->request_bytes;
    job->reservation_source = wants->request_source;
    job->run = &job_never_ran;
    job->submitted_ns = record->at_ns;
    job->place = ++core->last_place;
    array_join(core, job);
    job->user = user_of(core, wants->uid);
    job->user->unfinished++;
    if (wants->gpus) /* a run without GPUs teaches nothing about them */
        job->profile = learn_profile(core, job->user, wants->workload);
    if (job->profile)
        job->profile->jobs++;
    HASH_ADD(hh, core->jobs, id, sizeof job->id, job);
    *added = job;
    return 0;
}

const struct job *core_recall_job(const struct core *core, uint64_t id)
{
    const struct job *job = core_job_by_id(core, id);

    for (size_t i = core->ended_count; !job && i-- > 0;)
        if (core->ended[i]->id == id)
            job = core->ended[i];
    return job;
}

void core_end_job(struct core *core, struct job *job)
{
    depend_free(core, job);
    array_leave(core, job);
    HASH_DEL(core->jobs, job);
    array_reserve(core->ended, core->ended_capacity, core->ended_count + 1);
    core->ended[core->ended_count++] = job;
}

void core_forget_ended(struct core *core)
{
    while (core->ended_count > 0) {
        struct job *job = core->ended[--core->ended_count];

        common_wants_leave(&core->wants, job->wants);
        free(job->placements);
        job_run_free(job);
        free(job);
    }
}
