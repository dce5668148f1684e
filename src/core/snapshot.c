/* How this file works: take_* turn each part of the state into records, in the order in which restore_* can apply them:
 * settings, GPUs, workloads, users, jobs, residents, queues. A restored job enters its queue as any other (order.c), so
 * caches are made, and not stored. core_check asks once at the end whether the parts agree. */
#include "core/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/gpus/allotment.h"
#include "core/gpus/apply_gpu.h"
#include "core/guess/program_history.h"
#include "core/jobs.h"
#include "core/learn/pairs.h"
#include "core/learn/learn.h"
#include "core/share/sharing.h"
#include "core/state.h"
#include "core/users.h"
#include "core/waiting/array.h"
#include "core/waiting/depend.h"
#include "core/waiting/order.h"

/* ---- Taking one ---- */

/* The members that a record has by the same names. One that is added to a record belongs into its list. */
#define GPU_MEMBERS(X)                                                                                                 \
    X(share_faulted), X(server), X(server_uid), X(measured), X(reserved_for), X(reserved_ns), X(closed_until_ns),      \
        X(changed_ns), X(learned_ns), X(closing), X(overused)
#define SAMPLE_MEMBERS(X)                                                                                              \
    X(used_bytes), X(unmanaged_bytes), X(smact_permille), X(smocc_permille), X(dram_permille), X(others)
#define PROFILE_MEMBERS(X)                                                                                             \
    X(runs), X(tells), X(first_bytes), X(distance_sum), X(distance_squares), X(outgrown_bytes), X(peak_bytes),         \
        X(estimated_bytes), X(activity_permille), X(variance), X(failure)

/* Numbers in the record: the order of waiting jobs is stored in two parts. */
enum queue_number { QUEUE_MAIN, QUEUE_APART, QUEUE_HELD, QUEUE_UNDECIDED, QUEUE_SHRINKING, QUEUE_KEPT, QUEUE_VAIN };

static struct queue *queue_numbered(struct core *core, uint32_t number)
{
    struct queue *const queues[RECORD_QUEUES] = {&core->waiting,   &core->waiting, &core->held, &core->undecided,
                                                 &core->shrinking, &core->kept,    &core->vain};

    return number < RECORD_QUEUES ? queues[number] : NULL;
}

/* Whether a job of the queue with this number is of its part. */
static bool is_of_part(uint32_t number, const struct job *job)
{
    return number > QUEUE_APART || order_is_apart(job) == (number == QUEUE_APART);
}

static void take_core(const struct core *core, int64_t at_ns, struct record_list *out)
{
    struct record record = {.type = RECORD_STATE_CORE, .at_ns = at_ns};

    record.state_core = (struct record_state_core){.next_decision_ns = core->next_decision_ns,
                                                   .last_place = core->last_place,
                                                   .round_robin_next = core->round_robin_next,
                                                   .reserved_job = core->reserved_job,
                                                   .prior_count = PRIOR_BINS,
                                                   .last_allotment = core->last_allotment,
                                                   .allotted_ns = core->allotted_ns};
    memcpy(record.state_core.prior, core->prior.parts, sizeof record.state_core.prior);
    record_list_add(out, &record);
}

static void take_gpu(const struct gpu *gpu, int64_t at_ns, struct record_list *out)
{
    struct record record = {.type = RECORD_STATE_GPU, .at_ns = at_ns};
    struct record_state_gpu *state = &record.state_gpu;

    state->gpu = (struct record_gpu){.gpu = gpu->number,
                                     .total_bytes = gpu->total_bytes,
                                     .share = gpu->share,
                                     .instance = gpu->instance,
                                     .part_permille = gpu->part_permille,
                                     .compute = gpu->compute};
    state->settling_job = gpu->settling_job;
#define TAKE(member) state->member = gpu->member
    GPU_MEMBERS(TAKE);
#define CLOSED(member, reason) TAKE(member);
#include "core/gpus/closed.def"
#undef TAKE
#define TAKE(member) state->sample.member = gpu->member
    SAMPLE_MEMBERS(TAKE);
#undef TAKE
    memcpy(state->gpu.uuid, gpu->uuid, sizeof state->gpu.uuid);
    memcpy(state->gpu.name, gpu->name, sizeof state->gpu.name);
    record_list_add(out, &record);
}

/* `gpu` NULL: of the node. */
static void take_drained(const struct core *core, const struct gpu *gpu, int64_t at_ns, struct record_list *out)
{
    struct record record = {.type = RECORD_STATE_DRAINED, .at_ns = at_ns};

    record.state_drained = (struct record_state_drained){gpu ? gpu->number : RECORD_NO_GPU, *gpu_drain(core, gpu)};
    if (gpu ? gpu->drained : core->drained)
        record_list_add(out, &record);
}

static void take_profile(const struct profile *profile, int64_t at_ns, struct record_list *out)
{
    struct record record = {.type = RECORD_STATE_PROFILE, .at_ns = at_ns};

    record.state_profile.uid = profile->user->uid;
#define TAKE(member) record.state_profile.member = profile->member
    PROFILE_MEMBERS(TAKE);
#undef TAKE
    memcpy(record.state_profile.workload, profile->workload, strlen(profile->workload) + 1);
    record_list_add(out, &record);
}

static void take_measure(const struct measure *measure, int64_t at_ns, struct record_list *out)
{
    const struct pairs_key *key = &measure->key;
    struct record record = {.type = RECORD_STATE_MEASURE, .at_ns = at_ns};

    record.state_measure = (struct record_state_measure){.uid = key->of->user->uid,
                                                         .beside_uid = key->beside ? key->beside->user->uid : 0,
                                                         .share = key->share,
                                                         .kind = key->kind,
                                                         .value = measure->value,
                                                         .unit = measure->unit,
                                                         .gpu_bytes = measure->gpu_bytes,
                                                         .readings = measure->readings,
                                                         .measured_ns = measure->at_ns};
    memcpy(record.state_measure.workload, key->of->workload, strlen(key->of->workload) + 1);
    if (key->beside)
        memcpy(record.state_measure.beside, key->beside->workload, strlen(key->beside->workload) + 1);
    record_list_add(out, &record);
}

static void take_prior(const struct user *user, const struct prior *prior, int64_t at_ns, struct record_list *out)
{
    struct record record = {.type = RECORD_STATE_PRIOR, .at_ns = at_ns};

    if (!prior)
        return;
    record.state_prior =
        (struct record_state_prior){.uid = user->uid, .told = prior == user->told, .count = PRIOR_BINS};
    memcpy(record.state_prior.parts, prior->parts, sizeof record.state_prior.parts);
    record_list_add(out, &record);
}

static void take_user(const struct user *user, int64_t at_ns, struct record_list *out)
{
    struct record record = {.type = RECORD_STATE_USER, .at_ns = at_ns};

    take_prior(user, user->own, at_ns, out);
    take_prior(user, user->told, at_ns, out);
    if (!user->retries && !user->share_faulted && !user->use && !user->use_ns && !user->held_permille &&
        user->share == 1 && !user->kept_ns && !user->group)
        return;
    record.state_user = (struct record_state_user){.uid = user->uid,
                                                   .retries_ns = user->retries_ns,
                                                   .retries = user->retries,
                                                   .share_faulted = user->share_faulted,
                                                   .use = user->use,
                                                   .use_ns = user->use_ns,
                                                   .share = user->share,
                                                   .kept_ns = user->kept_ns};
    if (user->group) {
        memcpy(record.state_user.group, user->group->name, sizeof record.state_user.group);
        record.state_user.group_share = user->group->share;
    }
    record_list_add(out, &record);
}

static void take_job(const struct job *job, int64_t at_ns, struct record_list *out)
{
    struct record record = {.type = RECORD_STATE_JOB, .at_ns = at_ns, .job = job->id};

    record.state_job.wants = job_submitted(job);
    record.state_job.failure = job->run->failure;
#define STATE(part, type, member, kind, name)                                                                          \
    record.state_job.member = IF_JOB_##part(job->member) IF_RUN_##part(job->run->member);
#include "core/job_state.def"
    record_list_add(out, &record);
    for (uint32_t i = 0; i < job->placement_count; i++)
        record_list_add(out, &(struct record){.type = RECORD_STATE_PLACEMENT,
                                              .at_ns = at_ns,
                                              .job = job->id,
                                              .state_placement = {.gpu = job->placements[i].gpu,
                                                                  .bytes = job->placements[i].observed_bytes}});
    for (uint32_t i = 0; i < job->run->stray_count; i++)
        record_list_add(out, &(struct record){.type = RECORD_STATE_PLACEMENT,
                                              .at_ns = at_ns,
                                              .job = job->id,
                                              .state_placement = {.gpu = job->run->strays[i].gpu,
                                                                  .bytes = job->run->strays[i].observed_bytes,
                                                                  .strayed = true}});
}

static void take_depends(const struct job *job, int64_t at_ns, struct record_list *out)
{
    for (const struct dependency *dependency = job->depends; dependency; dependency = dependency->next) {
        struct depend_news news = depend_news(dependency);
        struct record record = {.type = RECORD_STATE_DEPENDS, .at_ns = at_ns, .job = job->id};
        record.state_depends = (struct record_state_depends){
            .depends = {.on = dependency->on->id, .kind = dependency->kind, .delay_ns = dependency->delay_ns},
            .told_as = news.state,
            .told_ns = news.at_ns};
        record_list_add(out, &record);
    }
}

static bool takes_any(const struct job *job, void *data)
{
    (void)job;
    (void)data;
    return true;
}

void core_snapshot(const struct core *core, int64_t at_ns, struct record_list *out)
{
    core_snapshot_of(core, at_ns, takes_any, NULL, out);
}

void core_snapshot_of(const struct core *core, int64_t at_ns, bool (*takes)(const struct job *job, void *data),
                      void *data, struct record_list *out)
{
    record_list_add(out, &(struct record){.type = RECORD_RECONFIGURED, .at_ns = at_ns, .config = core->config});
    take_core(core, at_ns, out);
    for (uint32_t i = 0; i < core->gpu_count; i++)
        take_gpu(core->gpus[i], at_ns, out);
    take_drained(core, NULL, at_ns, out);
    for (uint32_t i = 0; i < core->gpu_count; i++)
        take_drained(core, core->gpus[i], at_ns, out);
    for (uint32_t i = 0; i < core->allotment_count; i++)
        record_list_add(
            out, &(struct record){.type = RECORD_STATE_ALLOTTED, .at_ns = at_ns, .allotted = core->allotments[i]});
    for (const struct user *user = core->users; user; user = user->hh.next)
        for (const struct profile *profile = user->profiles; profile; profile = profile->hh.next)
            if (takes == takes_any || learn_knows(profile))
                take_profile(profile, at_ns, out);
    for (const struct measure *measure = core->measures; measure; measure = measure->hh.next)
        take_measure(measure, at_ns, out);
    for (const struct user *user = core->users; user; user = user->hh.next)
        take_user(user, at_ns, out);
    for (const struct job *job = core->jobs; job; job = job->hh.next)
        if (takes(job, data))
            take_job(job, at_ns, out);
    for (const struct job *job = core->jobs; job; job = job->hh.next)
        if (job->depends && takes(job, data))
            take_depends(job, at_ns, out);
    for (uint32_t i = 0; i < core->gpu_count; i++)
        for (uint32_t k = 0; k < core->gpus[i]->resident_count; k++)
            record_list_add(out, &(struct record){.type = RECORD_STATE_RESIDENT,
                                                  .at_ns = at_ns,
                                                  .job = core->gpus[i]->residents[k]->id,
                                                  .state_resident = {.gpu = i}});
    for (uint32_t q = 0; q < RECORD_QUEUES; q++)
        for (const struct job *job = queue_numbered((struct core *)core, q)->head; job; job = job->next)
            if (is_of_part(q, job) && takes(job, data))
                record_list_add(out, &(struct record){.type = RECORD_STATE_QUEUED,
                                                      .at_ns = at_ns,
                                                      .job = job->id,
                                                      .state_queued = {.queue = q}});
}

/* ---- Restoring one ---- */

static int nonsense(const struct record *record, struct error *err)
{
    return error_set(err, EINVAL, "the snapshot's %s of job %" PRIu64 " describes no state that there can be",
                     record_type_name(record->type), record->job);
}

static int restore_core(struct core *core, const struct record *record, struct error *err)
{
    if (core->gpu_count || core->jobs || core->profile_count)
        return error_set(err, EPERM, "a snapshot cannot be applied to a core that has a state");
    if (record->state_core.last_place > ORDER_LAST_PLACE)
        return nonsense(record, err);
    if (record->state_core.prior_count && !prior_is_sane(record->state_core.prior, record->state_core.prior_count))
        return nonsense(record, err);
    core->next_decision_ns = record->state_core.next_decision_ns;
    core->last_place = record->state_core.last_place;
    core->round_robin_next = record->state_core.round_robin_next;
    core->reserved_job = record->state_core.reserved_job;
    core->last_allotment = record->state_core.last_allotment;
    core->allotted_ns = record->state_core.allotted_ns;
    if (record->state_core.prior_count)
        memcpy(core->prior.parts, record->state_core.prior, sizeof core->prior.parts);
    core->restoring = core->corrections_due = core->moves_due = true;
    core->next_idle_ns = 0;
    return 0;
}

static int restore_gpu(struct core *core, const struct record *record, struct error *err)
{
    const struct record_state_gpu *state = &record->state_gpu;
    struct record part = {.type = RECORD_GPU_BACK, .at_ns = record->at_ns, .gpu = state->gpu};
    struct gpu *gpu;

    if (state->gpu.gpu != core->gpu_count || core->jobs ||
        (state->gpu.total_bytes ? core_apply_gpu_back : core_apply_gpu_lost)(core, &part.gpu, err) != 0)
        return nonsense(record, err);
    gpu = core->gpus[state->gpu.gpu];
    part.type = RECORD_SAMPLE;
    part.sample = state->sample;
    part.sample.gpu = gpu->number;
    if (core_check_sample(core, &part.sample, err) != 0)
        return nonsense(record, err);
    gpu_set_settling(core, gpu, state->settling_job);
#define RESTORE(member) gpu->member = state->member
    GPU_MEMBERS(RESTORE);
#define CLOSED(member, reason) RESTORE(member);
#include "core/gpus/closed.def"
#undef RESTORE
#define RESTORE(member) gpu->member = state->sample.member
    SAMPLE_MEMBERS(RESTORE);
#undef RESTORE
    return 0;
}

static int restore_drained(struct core *core, const struct record *record, struct error *err)
{
    const struct record_state_drained *state = &record->state_drained;
    bool whole = state->gpu == RECORD_NO_GPU;

    if (core->jobs || !memchr(state->drain.why, '\0', sizeof state->drain.why) ||
        (!whole && (state->gpu >= core->gpu_count || !core->gpus[state->gpu]->drained)))
        return nonsense(record, err);
    core->drained |= whole;
    *(whole ? &core->drain : &core->gpus[state->gpu]->drain) = state->drain;
    return 0;
}

static bool failure_is_sane(const struct core *core, const struct record_failure *failure)
{
    return failure->gpu == RECORD_NO_GPU || failure->gpu < core->gpu_count;
}

static int restore_profile(struct core *core, const struct record *record, struct error *err)
{
    const struct record_state_profile *state = &record->state_profile;
    struct profile *profile;

    if (core->jobs || !*state->workload || !memchr(state->workload, '\0', sizeof state->workload) ||
        state->activity_permille < 0 || state->activity_permille > 1000 || state->variance <= 0 ||
        !failure_is_sane(core, &state->failure))
        return nonsense(record, err);
    profile = learn_profile(core, user_of(core, state->uid), state->workload);
#define RESTORE(member) profile->member = state->member
    PROFILE_MEMBERS(RESTORE);
#undef RESTORE
    if (profile->runs)
        program_completed(core, profile, profile->first_bytes);
    return 0;
}

static int restore_measure(struct core *core, const struct record *record, struct error *err)
{
    const struct record_state_measure *state = &record->state_measure;
    struct measure measure = {.value = state->value,
                              .unit = state->unit,
                              .gpu_bytes = state->gpu_bytes,
                              .readings = state->readings,
                              .at_ns = state->measured_ns};
    const struct profile *of = NULL, *beside = NULL;

    if (memchr(state->workload, '\0', sizeof state->workload) && memchr(state->beside, '\0', sizeof state->beside)) {
        of = learn_find(core, state->uid, state->workload);
        beside = learn_find(core, state->beside_uid, state->beside);
    }
    measure.key = (struct pairs_key){.of = of, .beside = beside, .share = state->share, .kind = state->kind};
    if (core->jobs || !of || (!beside && *state->beside) || state->kind >= PAIRS_KINDS ||
        state->share >= (state->kind == PAIRS_PART ? 1000 : SHARE_MODE_COUNT) || !pairs_note(core, &measure))
        return nonsense(record, err);
    return 0;
}

static int restore_prior(struct core *core, const struct record *record, struct error *err)
{
    const struct record_state_prior *state = &record->state_prior;
    struct user *user = user_of(core, state->uid);
    struct prior **prior = state->told ? &user->told : &user->own;

    if (core->jobs || *prior || !prior_is_sane(state->parts, state->count))
        return nonsense(record, err);
    *prior = xcalloc(1, sizeof **prior);
    memcpy((*prior)->parts, state->parts, sizeof(*prior)->parts);
    prior_refresh(core);
    return 0;
}

static int restore_user(struct core *core, const struct record *record, struct error *err)
{
    const struct record_state_user *state = &record->state_user;
    struct user *user = user_of(core, state->uid);

    if (core->jobs || user->retries || user->share_faulted || user->use || state->use < 0 ||
        state->use > INT64_MAX / 4 || state->use_ns < 0 || user->share != 1 || state->share < 1 ||
        state->share > USER_MOST_SHARE || state->kept_ns < 0 ||
        users_put_in_group(core, user, state->group, state->group_share, NULL))
        return nonsense(record, err);
    user->retries_ns = state->retries_ns;
    user->retries = state->retries;
    user->share_faulted = state->share_faulted;
    user->use = state->use;
    user->use_ns = state->use_ns;
    user->share = state->share;
    user->kept_ns = state->kept_ns;
    return 0;
}

static int restore_job(struct core *core, const struct record *record, struct error *err)
{
    const struct record_state_job *state = &record->state_job;
    struct record submitted = {.type = RECORD_SUBMITTED, .at_ns = state->submitted_ns, .job = record->job};
    uint64_t last_place;
    struct job *job;
    int rc;

    if (state->state >= JOB_STATE_COUNT || state->place > ORDER_LAST_PLACE || job_state_ended(state->state) ||
        state->share >= SHARE_MODE_COUNT || job_state_has_gpus(state->state) != (state->share != SHARE_ANY) ||
        state->crash_cause >= EXIT_CAUSE_COUNT || state->counted_bytes < 0 || state->stray_bytes < 0 ||
        state->held_permille < 0 || state->held_permille > INT64_C(1000) * RECORD_MAX_GPUS || state->gave_way_ns < 0 ||
        state->begin_ns < 0 || (state->array_waits && (state->state != JOB_QUEUED || !state->wants.array_most)) ||
        (state->held_permille && !job_state_has_gpus(state->state)) ||
        (state->stray_bytes && !job_state_has_gpus(state->state)) || state->reservation_source >= SOURCE_COUNT ||
        !failure_is_sane(core, &state->failure))
        return nonsense(record, err);
    submitted.submitted = state->wants;
    last_place = core->last_place;
    rc = core_add_job(core, &submitted, &job, err);
    if (rc != 0)
        return rc;
#define STATE(part, type, member, kind, name)                                                                          \
    IF_JOB_##part(job->member = state->member;)                                                                        \
        IF_RUN_##part(if (state->member != job->run->member) job_run(job)->member = state->member;)
#include "core/job_state.def"
    if (state->failure.gpu != job->run->failure.gpu || state->failure.at_ns != job->run->failure.at_ns)
        job_run(job)->failure = state->failure;
    core->last_place = job->place > last_place ? job->place : last_place;
    array_count(job);
    if (job_state_has_gpus(job->state)) {
        user_counts(job);
        resources_taken(core, job->wants);
    }
    job->user->held_permille += job->run->held_permille;
    job->user->use_changes++;
    return 0;
}

static int restore_placement(struct core *core, struct job *job, const struct record *record, struct error *err)
{
    const struct record_state_placement *state = &record->state_placement;

    if (state->gpu >= core->gpu_count || state->bytes < 0 || job_placement_on(job, state->gpu) ||
        job_stray_bytes_on(job, state->gpu) ||
        (state->strayed ? !job_state_has_gpus(job->state) : job->placement_count >= job->wants->gpus))
        return nonsense(record, err);
    if (state->strayed) {
        job_strays(job, state->gpu, state->bytes);
        return 0;
    }
    job->placements = xrealloc(job->placements, job->placement_count + 1, sizeof *job->placements);
    job->placements[job->placement_count++] = (struct job_placement){.gpu = state->gpu, .observed_bytes = state->bytes};
    return 0;
}

static int restore_depends(struct core *core, struct job *job, const struct record *record, struct error *err)
{
    if ((job->state != JOB_HELD && job->state != JOB_QUEUED) || job->queue ||
        record->state_depends.depends.kind == DEPENDS_TIME ||
        depend_restore(core, job, &record->state_depends, NULL) != 0)
        return nonsense(record, err);
    return 0;
}

static bool resides(const struct gpu *gpu, const struct job *job)
{
    for (uint32_t i = 0; i < gpu->resident_count; i++)
        if (gpu->residents[i] == job)
            return true;
    return false;
}

static int restore_resident(struct core *core, struct job *job, const struct record *record, struct error *err)
{
    struct gpu *gpu;

    if (record->state_resident.gpu >= core->gpu_count || !job_placement_on(job, record->state_resident.gpu) ||
        resides(core->gpus[record->state_resident.gpu], job))
        return nonsense(record, err);
    gpu = core->gpus[record->state_resident.gpu];
    gpu_add_resident(gpu, job, gpu->changed_ns);
    learn_placed(job);
    return 0;
}

static int restore_queued(struct core *core, struct job *job, const struct record *record, struct error *err)
{
    uint32_t number = record->state_queued.queue;
    struct queue *queue = queue_numbered(core, number);
    struct order_turn turn = {.class = CLASS_MAIN, .behind = ORDER_BEHIND(job->wants->priority), .place = job->place};

    if (!queue || job->queue || !is_of_part(number, job) || (job->state == JOB_HELD) != (number == QUEUE_HELD) ||
        ((number == QUEUE_MAIN || number == QUEUE_HELD) && queue->tail && !turn_is_before(queue->tail->turn, turn)))
        return nonsense(record, err);
    if (number <= QUEUE_HELD || number >= QUEUE_KEPT)
        order_enter(core, job);
    else
        queue_push(queue, job);
    return 0;
}

/* The queue that a job of this state stands in, or may (of those that have GPUs). */
static bool queue_suits(const struct core *core, const struct job *job)
{
    switch (job->state) {
    case JOB_HELD:
        return job->queue == &core->held;
    case JOB_QUEUED:
        return job->queue == (job->failed_on ? &core->vain : job_is_kept(job) ? &core->kept : &core->waiting);
    case JOB_CRASHED:
        return job->queue == &core->undecided;
    case JOB_STOPPING:
    case JOB_REQUEUING:
        return !job->queue || job->queue == &core->undecided || job->queue == &core->shrinking;
    default:
        return !job->queue || job->queue == &core->shrinking;
    }
}

int core_check(const struct core *core, struct error *err)
{
    const struct job *job;

    for (job = core->jobs; job; job = job->hh.next) {
        uint32_t expected = job_state_has_gpus(job->state) ? job->wants->gpus : 0;

        if (job->placement_count != expected)
            return error_set(err, EINVAL, "job %" PRIu64 ", which is %s, has %" PRIu32 " GPUs, not %" PRIu32, job->id,
                             job_state_name(job->state), job->placement_count, expected);
        for (uint32_t i = 0; i < job->placement_count; i++)
            if (!resides(core->gpus[job->placements[i].gpu], job))
                return error_set(err, EINVAL, "job %" PRIu64 " is not among the residents of its GPU %" PRIu32, job->id,
                                 job->placements[i].gpu);
        if (!queue_suits(core, job))
            return error_set(err, EINVAL, "job %" PRIu64 ", which is %s, stands in the wrong queue", job->id,
                             job_state_name(job->state));
    }
    if (core->reserved_job && (!(job = core_find_job(core, core->reserved_job)) || job->state != JOB_QUEUED))
        return error_set(err, EINVAL, "GPUs are reserved for job %" PRIu64 ", which does not wait", core->reserved_job);
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        const struct gpu *gpu = core->gpus[i];

        if (gpu->reserved_for && gpu->reserved_for != core->reserved_job)
            return error_set(err, EINVAL, "GPU %" PRIu32 " is reserved for job %" PRIu64 ", which has none reserved", i,
                             gpu->reserved_for);
        if (gpu->server && !sharing_client(core, gpu))
            return error_set(err, EINVAL, "the MPS server of GPU %" PRIu32 " has no clients", i);
        if (gpu->settling_job && (!(job = core_find_job(core, gpu->settling_job)) || !resides(gpu, job)))
            return error_set(err, EINVAL, "GPU %" PRIu32 " settles for job %" PRIu64 ", which is not there", i,
                             gpu->settling_job);
    }
    return 0;
}

int snapshot_apply(struct core *core, const struct record *record, struct error *err)
{
    struct job *job;

    if (record->type == RECORD_STATE_CORE)
        return restore_core(core, record, err);
    if (!core->restoring)
        return error_set(err, EPERM, "'%s' belongs into a snapshot", record_type_name(record->type));
    switch (record->type) {
    case RECORD_STATE_GPU:
        return restore_gpu(core, record, err);
    case RECORD_STATE_DRAINED:
        return restore_drained(core, record, err);
    case RECORD_STATE_ALLOTTED:
        return core->jobs || allotment_restore(core, &record->allotted, NULL) ? nonsense(record, err) : 0;
    case RECORD_STATE_PROFILE:
        return restore_profile(core, record, err);
    case RECORD_STATE_MEASURE:
        return restore_measure(core, record, err);
    case RECORD_STATE_PRIOR:
        return restore_prior(core, record, err);
    case RECORD_STATE_USER:
        return restore_user(core, record, err);
    case RECORD_STATE_JOB:
        return restore_job(core, record, err);
    }
    HASH_FIND(hh, core->jobs, &record->job, sizeof record->job, job);
    if (!job)
        return nonsense(record, err);
    switch (record->type) {
    case RECORD_STATE_DEPENDS:
        return restore_depends(core, job, record, err);
    case RECORD_STATE_PLACEMENT:
        return restore_placement(core, job, record, err);
    case RECORD_STATE_RESIDENT:
        return restore_resident(core, job, record, err);
    default:
        return restore_queued(core, job, record, err);
    }
}
