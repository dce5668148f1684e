/* How this file works: core_apply is the only way in which the state changes. apply() sorts a record by what it is of:
 * the configuration, a GPU (gpus/apply_gpu.c), a snapshot (snapshot.c), a user, a job. A job's record first gets its
 * next state (job.c: job_state_after), then its own case of apply_to_job; enter_state puts the job where that state
 * belongs: a queue (order.c), GPUs left, the end. At last all that the record has taught reaches those that wait
 * (waiting/autocluster.c: autocluster_take_news).
 *
 * To add a record: a row of records.def, which says what to add where it has members; a case here where it has an
 * effect. */
#include "core/apply.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/share.h"
#include "base/units.h"
#include "core/common_wants.h"
#include "core/crash.h"
#include "core/gpus/allotment.h"
#include "core/gpus/apply_gpu.h"
#include "core/gpus/closing.h"
#include "core/idle.h"
#include "core/jobs.h"
#include "core/learn/pairs.h"
#include "core/learn/learn.h"
#include "core/need/fence.h"
#include "core/need/overuse.h"
#include "core/share/seen.h"
#include "core/share/sharing.h"
#include "core/share/slowdown.h"
#include "core/snapshot.h"
#include "core/state.h"
#include "core/use.h"
#include "core/users.h"
#include "core/verdict.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/array.h"
#include "core/waiting/depend.h"
#include "core/waiting/eligible.h"
#include "core/waiting/order.h"
#include "core/waiting/places.h"

static bool is_permille(int32_t value)
{
    return value >= 0 && value <= 1000;
}

static void end_reservation(struct core *core, struct job *job, int64_t at_ns)
{
    if (core->reserved_job != job->id)
        return;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        if (core->gpus[i]->reserved_for == job->id) {
            core->gpus[i]->reserved_for = 0;
            gpu_opens(core, core->gpus[i]);
        }
    core->reserved_job = 0;
    job->user->kept_ns = at_ns;
}

/* A GPU to which its job cannot come, since its starts die there or since it is allotted to others, would be kept free
 * for nothing: others are chosen. */
static void end_reservation_of_closed(struct core *core, int64_t at_ns)
{
    struct job *job = core->reserved_job ? core_job_by_id(core, core->reserved_job) : NULL;

    for (uint32_t i = 0; job && i < core->gpu_count; i++)
        if (core->gpus[i]->reserved_for == job->id &&
            (closing_until_ns(core->gpus[i], job->wants->uid) || allotment_against(core, job, core->gpus[i]))) {
            end_reservation(core, job, at_ns);
            return;
        }
}

static bool resources_are_sane(const struct core_resources *most)
{
#define RESOURCE(member, name, code)                                                                                   \
    if (!is_part_of_resource(most->member))                                                                            \
        return false;
#include "core/resources.def"
    return true;
}

static int apply_allotment(struct core *core, const struct record *record, struct error *err)
{
    int status = allotment_apply(core, record, err);

    if (status == 0)
        end_reservation_of_closed(core, record->at_ns);
    return status;
}

static int apply_reconfigured(struct core *core, const struct core_config *config, struct error *err)
{
    const struct policy *policy;
    bool others; /* lines */

    if (!memchr(config->policy, '\0', sizeof config->policy) || !(policy = policy_find(config->policy)))
        return error_set(err, EINVAL, "there is no policy '%.*s'", CORE_POLICY_NAME_SIZE, config->policy);
    if (config->memory_view > MEMORY_RESERVE || config->floor_bytes < 0 || config->margin_bytes < 0 ||
        !is_permille(config->smact_cap_permille) || !is_permille(config->smocc_cap_permille) ||
        !is_permille(config->dram_cap_permille) || config->statistic > STATISTIC_RISK ||
        !is_interval(config->window_ns) || !is_interval(config->decide_period_ns) ||
        !is_interval(config->collocate_extra_ns) || !is_interval(config->settle_ns) ||
        config->oom_retry > OOM_RETRY_INFORMED || config->memory_fence > 1 || config->max_jobs_per_gpu == 0 ||
        config->per_user.max_memory_bytes < 0 || !resources_are_sane(&config->most) ||
        config->mps_domain >= MPS_DOMAIN_COUNT || config->mps_threads_percent > 100 || config->mps_max_clients == 0 ||
        config->gate > GATE_MEMORY || config->order > ORDER_FAIR || !is_interval(config->starvation_timeout_ns) ||
        !is_slowdown(config->max_slowdown_permille) || !is_interval(config->shrink_after_ns) ||
        !is_permille(config->prior_quantile_permille))
        return error_set(err, EINVAL, "a value of the configuration is out of range");
    others = config->order != core->config.order;
    if (core->reserved_job && (others || !config->backfill)) /* the rule by which it would end is another */
        end_reservation(core, core_job_by_id(core, core->reserved_job), 0);
    if (others)
        autocluster_leave_lines(core);
    core->config = *config;
    core->moves_due = true; /* the bound may be another */
    if (others)
        autocluster_join_lines(core);
    core->policy = policy;
    sharing_reconfigured(core);
    prior_refresh(core);
    autocluster_all_changed(core);
    gpus_open(core);
    return 0;
}

static int apply_submitted(struct core *core, const struct record *record, struct error *err)
{
    struct job *job;
    int status = core_add_job(core, record, &job, err);

    if (status != 0)
        return status;
    if (core->config.paced && !order_head(core, record->at_ns) &&
        core->next_decision_ns < record->at_ns + core->config.decide_period_ns)
        core->next_decision_ns = record->at_ns + core->config.decide_period_ns;
    job->state = job_state_after(JOB_STATE_COUNT, record);
    if (job->state == JOB_QUEUED)
        array_admit(job);
    order_enter(core, job);
    users_submitted(core, job);
    return 0;
}

static int check_gpus(const struct core *core, const struct job *job, uint32_t count, const uint32_t *gpus,
                      struct error *err)
{
    if (count != job->wants->gpus)
        return error_set(err, EINVAL, "job %" PRIu64 " wants %" PRIu32 " GPUs, not %" PRIu32, job->id, job->wants->gpus,
                         count);
    for (uint32_t i = 0; i < count; i++) {
        if (gpus[i] >= core->gpu_count)
            return error_set(err, ENOENT, "there is no GPU %" PRIu32, gpus[i]);
        for (uint32_t k = 0; k < i; k++)
            if (gpus[k] == gpus[i])
                return error_set(err, EINVAL, "GPU %" PRIu32 " is named twice", gpus[i]);
    }
    return 0;
}

/* One job at a time has GPUs reserved; of no GPUs: it has none any more. */
static void apply_reserved(struct core *core, struct job *job, const struct record_reserved *reserved, int64_t at_ns)
{
    struct job *before = core->reserved_job ? core_job_by_id(core, core->reserved_job) : NULL;

    if (before) {
        end_reservation(core, before, at_ns);
        if (core->config.order == ORDER_FAIR)
            before->gave_way_ns = at_ns;
        autocluster_set_examined(core, before->autocluster, 0);
    }
    if (reserved->count == 0)
        return;
    for (uint32_t i = 0; i < reserved->count; i++) {
        struct gpu *gpu = core->gpus[reserved->gpus[i]];
        gpu->reserved_for = job->id;
        gpu->reserved_ns = at_ns;
    }
    core->reserved_job = job->id;
    autocluster_set_examined(core, job->autocluster, 0); /* its gain there counts no more */
}

/* The monitor would offer the GPU again until the new job's memory shows. A job of unknown need may use more than it
 * requested. And a crashed job that runs alone must first have settled. */
static bool closes_gpu(const struct core *core, const struct job *job, const struct record_placed *placed)
{
    return core->config.settle_ns > 0 &&
           (core->config.memory_view == MEMORY_MONITOR || placed->reservation_source == SOURCE_PRIOR ||
            (placed->retry && job->oom_crashes && !placed->shared));
}

static void apply_placed(struct core *core, struct job *job, const struct record *record)
{
    const struct record_placed *placed = &record->placed;
    struct job_run *run = job_run(job);

    job->placed_ns = record->at_ns;
    job->share = placed->share;
    if (job->share == SHARE_ANY)
        job->share = job->wants->exclusive ? SHARE_EXCLUSIVE : SHARE_TIME_SLICE;
    job->retry = placed->retry;
    run->overuser = 0;
    job->reserved_bytes = placed->reserved_bytes;
    job->reservation_source =
        record_memory_source(placed->reservation_source, placed->reserved_bytes, job->wants, SOURCE_LEARNED);
    run->granted_bytes = placed->reserved_bytes;
    run->fence_bytes = placed->fence_bytes;
    run->threads_percent = placed->threads_percent;
    run->first_use_ns = 0;
    run->suspended_ns = 0;
    run->slowed_permille = 0;
    run->fastest = run->fastest_of = 0;
    run->beyond_ns = 0;
    job->placement_count = placed->count;
    job->placements = xcalloc(placed->count, sizeof *job->placements);
    for (uint32_t i = 0; i < placed->count; i++) {
        struct gpu *gpu = core->gpus[placed->gpus[i]];
        job->placements[i] = (struct job_placement){.gpu = placed->gpus[i]};
        gpu_add_resident(gpu, job, record->at_ns);
        if (core_gates_slowdown(core))
            gpu_opens(core, gpu); /* who of several pays, and how much, may be better for another job than before */
        if (closes_gpu(core, job, placed)) {
            gpu_set_settling(core, gpu, job->id);
            gpu->closed_until_ns = record->at_ns + GPU_SETTLE_LIMIT * core->config.settle_ns;
        }
    }
    learn_placed(job);
    user_takes(core, job);
    resources_taken(core, job->wants);
    use_begins(core, job, record->at_ns);
    sharing_begins(core, job);
    if (placed->count)
        core->next_decision_ns = record->at_ns + core->config.decide_period_ns;
    if (placed->shared) {
        core->next_decision_ns += core->config.collocate_extra_ns;
        /* the cycle is that of collocations (thesis 6.2.2) */
        core->round_robin_next = (placed->gpus[placed->count - 1] + 1) % core->gpu_count;
    }
}

static bool seen_everywhere(const struct job *job)
{
    for (uint32_t i = 0; i < job->placement_count; i++)
        if (job->placements[i].observed_bytes == 0)
            return false;
    return true;
}

static int apply_memory(struct core *core, struct job *job, const struct record *record, struct error *err)
{
    struct job_placement *placement = job_placement_on(job, record->memory.gpu);
    struct gpu *gpu;

    if (!placement || record->memory.bytes < 0)
        return error_set(err, EINVAL, "job %" PRIu64 " holds no memory on GPU %" PRIu32, job->id, record->memory.gpu);
    gpu = core->gpus[record->memory.gpu];
    if (record->memory.bytes > placement->observed_bytes) {
        placement->observed_bytes = record->memory.bytes;
        gpu_rebook(gpu);
        if (job->reserved_bytes >= 0 && record->memory.bytes > job->reserved_bytes)
            use_grows(core, job, record->at_ns);
        core->corrections_due |=
            job->reserved_bytes >= 0 && overuse_is_beyond(record->memory.bytes, job->reserved_bytes);
    }
    if (record->type == RECORD_FIRST_USE && gpu->settling_job == job->id)
        gpu->closed_until_ns = record->at_ns + core->config.settle_ns;
    if (job->run->first_use_ns == 0 && seen_everywhere(job)) {
        job_run(job)->first_use_ns = record->at_ns;
        if (core->config.shrink_after_ns > 0 && !job->wants->exclusive && !job->queue)
            queue_push(&core->shrinking, job);
    }
    return 0;
}

static int apply_strayed(const struct core *core, struct job *job, const struct record_memory *strayed,
                         struct error *err)
{
    int64_t in_all = strayed->bytes;

    if (strayed->bytes < 0)
        return error_set(err, EINVAL, "job %" PRIu64 " cannot hold %" PRId64 " bytes", job->id, strayed->bytes);
    if (strayed->gpu != RECORD_NO_GPU && (strayed->gpu >= core->gpu_count || job_placement_on(job, strayed->gpu)))
        return error_set(err, EINVAL, "job %" PRIu64 " cannot stray to GPU %" PRIu32, job->id, strayed->gpu);
    if (strayed->gpu != RECORD_NO_GPU)
        in_all = job_strays(job, strayed->gpu, strayed->bytes);
    if (in_all > job->run->stray_bytes)
        user_strays(job, in_all);
    return 0;
}

static int check_progressed(const struct record_progressed *progressed, struct error *err)
{
    return progressed->micro_steps_per_s > 0 && progressed->span_ns > 0 && progressed->total >= 0
               ? 0
               : error_set(err, EINVAL, "a job cannot do %" PRId64 " steps in a million seconds",
                           progressed->micro_steps_per_s);
}

/* The job wants something else: it leaves its queue of alike jobs, and no GPU is kept for it. */
static void change_wants(struct core *core, struct job *job, const struct record_submitted *wants, int64_t at_ns)
{
    const struct record_submitted *before = job->wants;

    end_reservation(core, job, at_ns);
    if (job->autocluster)
        autocluster_leave(core, job);
    order_forget_times(core, job);
    job->wants = common_wants_join(&core->wants, wants);
    common_wants_leave(&core->wants, before);
}

/* An estimate for a job of unknown need. */
static int apply_estimated(struct core *core, struct job *job, const struct record_estimated *estimated, int64_t at_ns,
                           struct error *err)
{
    struct record_submitted wants = *job->wants;
    bool waits = job->autocluster;

    if (estimated->request_bytes <= 0 || !is_reading(estimated->smact_permille) || wants.request_bytes >= 0 ||
        wants.gpus == 0)
        return error_set(err, EINVAL, "job %" PRIu64 " cannot be estimated at %" PRId64 " bytes", job->id,
                         estimated->request_bytes);
    wants.request_bytes = estimated->request_bytes;
    wants.request_source = SOURCE_ESTIMATED;
    if (estimated->smact_permille >= 0)
        wants.smact_permille = estimated->smact_permille;
    change_wants(core, job, &wants, at_ns);
    if (!job_state_has_gpus(job->state) && job_need_is_unknown(job)) {
        job->reserved_bytes = wants.request_bytes;
        job->reservation_source = SOURCE_ESTIMATED;
    }
    if (waits)
        autocluster_join(core, job);
    core->corrections_due = true; /* of one that runs, at the next decision */
    core->activity_version++;
    learn_estimate(core, job, wants.request_bytes);
    return 0;
}

/* Of a job that has GPUs. A job that had its GPUs whole is granted its first figure. */
static void set_reservation(struct core *core, struct job *job, const struct record_shrunk *reservation)
{
    job->reserved_bytes = reservation->reserved_bytes;
    job->reservation_source = reservation->reservation_source;
    if (job->run->granted_bytes < 0)
        job_run(job)->granted_bytes = job->reserved_bytes;
    user_recounts(core, job);
    for (uint32_t i = 0; i < job->placement_count; i++)
        gpu_rebook(core->gpus[job->placements[i].gpu]);
}

/* Where only its unknown need kept others away until its memory was observed, they may come now. */
static void end_settling(struct core *core, const struct job *job)
{
    for (uint32_t i = 0; i < job->placement_count; i++) {
        struct gpu *gpu = core->gpus[job->placements[i].gpu];
        if (gpu->settling_job != job->id || core->config.memory_view == MEMORY_MONITOR ||
            (job->retry && job->oom_crashes))
            continue;
        gpu_set_settling(core, gpu, 0);
        gpu_opens(core, gpu);
    }
}

static void apply_reservation(struct core *core, struct job *job, const struct record_shrunk *reservation)
{
    set_reservation(core, job, reservation);
    if (reservation->reservation_source == SOURCE_ESTIMATED)
        end_settling(core, job);
}

static void leave_gpus(struct core *core, struct job *job, int64_t at_ns)
{
    struct job_run *run;

    if (job->share == SHARE_ANY) /* it has none */
        return;
    run = job_run(job);
    overuse_left(core, job, at_ns);
    for (uint32_t i = 0; i < job->placement_count; i++)
        gpu_remove_resident(core, core->gpus[job->placements[i].gpu], job, at_ns);
    learn_left(job);
    sharing_ends(core, job);
    user_leaves(job);
    resources_left(core, job->wants);
    use_ends(job, at_ns);
    run->idle_step = IDLE_NOT_TOLD;
    idle_forget(job);
    job->placement_count = 0;
    run->stray_bytes = 0;
    run->stray_count = 0;
    job->share = SHARE_ANY;
    free_ptr(&job->placements);
    free_ptr(&run->strays);
}

/* Its processes keep their memory, and leave the SMs to others. What is observed of it then says nothing of its need.
 */
static void stand_still(struct core *core, struct job *job, bool suspended, int64_t at_ns)
{
    struct job_run *run = job_run(job);

    if (suspended) {
        run->suspended_since_ns = at_ns;
    } else {
        run->suspended_ns += at_ns > run->suspended_since_ns ? at_ns - run->suspended_since_ns : 0;
        run->suspended_since_ns = 0;
        run->resumed_ns = at_ns;
    }
    if (!suspended && job->queue == &core->shrinking) { /* its use is looked at anew */
        run->first_use_ns = at_ns;
        queue_remove(job);
        queue_push(&core->shrinking, job);
    }
    idle_forget(job);
    core->activity_version++;
    for (uint32_t i = 0; i < job->placement_count; i++) {
        struct gpu *gpu = core->gpus[job->placements[i].gpu];
        gpu->changed_ns = at_ns; /* the readings before say nothing of the time after */
        gpu_opens(core, gpu);
    }
}

/* It was requeued: in its place, with its reservation, and charged with nothing. */
static void wait_again(struct core *core, struct job *job, int64_t at_ns)
{
    leave_gpus(core, job, at_ns);
    job->signalled = job->retry = false;
}

/* Puts the job where its new state belongs. */
static void enter_state(struct core *core, struct job *job, uint32_t state, int64_t at_ns)
{
    if (state != JOB_QUEUED)
        end_reservation(core, job, at_ns);
    if (job->autocluster)
        autocluster_leave(core, job);
    order_forget_times(core, job);
    /* that it runs may be known only after its memory, for which it waits to be shrunk */
    if (state != JOB_RUNNING && state != JOB_SUSPENDED)
        queue_remove(job);
    if (job->state == JOB_HELD && state == JOB_QUEUED)
        array_admit(job);
    else if (job->state != JOB_HELD && (state == JOB_HELD || job_state_ended(state)))
        array_dismiss(job);
    if (state == JOB_SUSPENDED || job->state == JOB_SUSPENDED)
        stand_still(core, job, state == JOB_SUSPENDED, at_ns);
    if (job->state == JOB_REQUEUING && state == JOB_QUEUED)
        wait_again(core, job, at_ns);
    job->state = state;
    switch (state) {
    case JOB_HELD:
    case JOB_QUEUED:
        order_enter(core, job);
        break;
    case JOB_CRASHED:
        queue_push(&core->undecided, job);
        break;
    case JOB_STOPPING:
    case JOB_REQUEUING:
        if (!job->signalled)
            queue_push(&core->undecided, job);
        break;
    default:
        break;
    }
    if (state != JOB_QUEUED && state != JOB_HELD)
        depend_forget(job);
    if (state == JOB_CRASHED || job_state_ended(state))
        leave_gpus(core, job, at_ns);
    array_open(core, job->array);
    if (job_state_ended(state)) {
        depend_ended(core, job, state, at_ns);
        if (job->profile)
            job->profile->jobs--;
        job->user->unfinished--;
        core_end_job(core, job);
    }
}

/* What it is worth beside others is compared with what was known before. */
static void take_report(struct core *core, struct job *job, const struct record *record)
{
    seen_note(core, job, record);
    pairs_learn_speed(core, job, record);
}

/* A signal that could not be delivered is not worth trying again at once. */
#define SIGNAL_RETRY_NS (5 * NS_PER_SEC)

static int apply_depends(struct core *core, struct job *job, const struct record_depends *depends, int64_t at_ns,
                         struct error *err)
{
    int status;

    order_forget_times(core, job);
    status = depend_add(core, job, depends, err);
    if (status)
        return status;
    end_reservation(core, job, at_ns);
    order_moves(core, job);
    return 0;
}

/* It comes back to the waiting jobs in another turn. */
static int apply_edited(struct core *core, struct job *job, const struct record_edited *edited, int64_t at_ns,
                        struct error *err)
{
    int status = core_check_edit(job, edited, err);

    if (status)
        return status;
    change_wants(core, job, &edited->wants, at_ns);
    if (!job->placed_ns) {
        job->reserved_bytes = job->wants->request_bytes;
        job->reservation_source = job->wants->request_source;
    }
    if (edited->begin_ns >= 0)
        job->begin_ns = edited->begin_ns;
    order_moves(core, job);
    return 0;
}

/* The change of state is enter_state's; what the processes do is the run's matter. */
static int apply_commanded(const struct core *core, struct job *job, const struct record *record, struct error *err)
{
    const struct record_commanded *commanded = &record->commanded;
    bool by_owner = commanded->uid == job->wants->uid;
    struct reason why;
    char left[UNITS_TEXT];

    switch (commanded->command) {
    case COMMAND_CHECKPOINT:
        if (!job->wants->signal)
            return error_set(err, EINVAL, "job %" PRIu64 " has not said what signal that is: --signal", job->id);
        break;
    case COMMAND_SIGNAL:
        if (commanded->argument < 1 || commanded->argument > RECORD_MAX_SIGNAL)
            return error_set(err, EINVAL, "there is no signal %" PRIu32, commanded->argument);
        break;
    case COMMAND_SUSPEND: /* an administrator's stays his */
        if (job->state != JOB_SUSPENDED || !by_owner)
            job_run(job)->suspended_by = commanded->uid;
        break;
    case COMMAND_RESUME:
        if (by_owner && commanded->uid != 0 && job->run->suspended_by != commanded->uid)
            return error_set(err, EACCES, "job %" PRIu64 " was suspended by an administrator: only one can resume it",
                             job->id);
        if (allotment_keeps_still(core, job, record->at_ns, &why))
            return error_set(err, EBUSY,
                             "GPU %" PRIu32 " is reserved for others for %s more: resume it after that, or let it "
                             "begin anew on others by 'carma requeue'",
                             why.gpu, format_duration(why.until_ns - record->at_ns, left));
        break;
    }
    return 0;
}

static int apply_to_job(struct core *core, const struct record *record, struct error *err)
{
    struct job *job = core_job_by_id(core, record->job);
    uint32_t state;
    int status = 0;

    if (!job)
        return error_set(err, ENOENT, "there is no unfinished job %" PRIu64, record->job);
    state = job_state_after(job->state, record);
    if (state == JOB_STATE_COUNT || !job_suits(job, record))
        return error_set(err, EPERM, "job %" PRIu64 " is %s: '%s' does not apply", job->id, job_state_name(job->state),
                         record_type_name(record->type));

    switch (record->type) {
    case RECORD_PLACED:
        status = check_gpus(core, job, record->placed.count, record->placed.gpus, err);
        if (status == 0 && record->placed.share >= SHARE_MODE_COUNT)
            status =
                error_set(err, EINVAL, "job %" PRIu64 " cannot run by way %" PRIu32, job->id, record->placed.share);
        if (status == 0 && record->placed.reservation_source > SOURCE_COUNT)
            status = error_set(err, EINVAL, "job %" PRIu64 " has a reservation from nowhere", job->id);
        if (status == 0)
            apply_placed(core, job, record);
        break;
    case RECORD_RESERVED:
        if (record->reserved.count || core->reserved_job != job->id)
            status = check_gpus(core, job, record->reserved.count, record->reserved.gpus, err);
        if (status == 0)
            apply_reserved(core, job, &record->reserved, record->at_ns);
        break;
    case RECORD_FIRST_USE:
    case RECORD_OBSERVED:
        status = apply_memory(core, job, record, err);
        break;
    case RECORD_STRAYED:
        status = apply_strayed(core, job, &record->strayed, err);
        break;
    case RECORD_PROGRESSED:
        status = check_progressed(&record->progressed, err);
        if (status == 0)
            take_report(core, job, record);
        break;
    case RECORD_EXITED:
        if (record->exited.cause >= EXIT_CAUSE_COUNT)
            return error_set(err, EINVAL, "exit cause %" PRIu32 " does not exist", record->exited.cause);
        if (record->exited.cause == EXIT_GPU_ERROR && record->exited.failed_gpu != RECORD_NO_GPU &&
            record->exited.failed_gpu >= core->gpu_count)
            return error_set(err, EINVAL, "there is no GPU %" PRIu32 " that failed", record->exited.failed_gpu);
        closing_note_end(core, job, record);
        end_reservation_of_closed(core, record->at_ns);
        if (state == JOB_CRASHED) {
            crash_note(core, job, record);
        } else if (state == JOB_COMPLETED) {
            bool this = verdict_of(&record->exited).teaches == TEACHES_THIS && !fence_was_met(job);
            if (this)
                prior_completed(core, job, job_peak_bytes(job), record->at_ns);
            learn_memory(core, job, job_peak_bytes(job), this ? LEARN_RUN : LEARN_LIMITED_RUN);
            crash_forgive(job);
        }
        break;
    case RECORD_LOST:
        if (state == JOB_CRASHED)
            crash_note(core, job, record);
        break;
    case RECORD_REQUEUED:
        job->retry = record->requeued.retry;
        job_run(job)->unfenced |= record->requeued.unfenced;
        job->reserved_bytes = record->requeued.reserved_bytes;
        job->reservation_source =
            record_memory_source(record->requeued.reservation_source, job->reserved_bytes, job->wants, SOURCE_RAISED);
        /* Its turn is over: the others have theirs first. */
        if (job->run->crash_cause == EXIT_TIMEOUT && !seen_was_moved(job))
            job->place = ++core->last_place;
        if (job->retry)
            user_retries(job, record->at_ns);
        break;
    case RECORD_ESTIMATED:
        status = apply_estimated(core, job, &record->estimated, record->at_ns, err);
        break;
    case RECORD_SHRUNK:
        apply_reservation(core, job, &record->shrunk);
        if (record->shrunk.reservation_source == SOURCE_OBSERVED) { /* an estimate may still prove too large */
            learn_memory(core, job, job_peak_bytes(job), LEARN_LEAST);
            queue_remove(job);
        }
        for (uint32_t i = 0; i < job->placement_count; i++)
            gpu_opens(core, core->gpus[job->placements[i].gpu]);
        break;
    case RECORD_GROWN:
        apply_reservation(core, job, &record->grown);
        break;
    case RECORD_EDITED:
        status = apply_edited(core, job, &record->edited, record->at_ns, err);
        break;
    case RECORD_ORDERED:
        status = place_put(core, job, &record->ordered, err);
        break;
    case RECORD_DEPENDS:
        status = apply_depends(core, job, &record->depends, record->at_ns, err);
        break;
    case RECORD_EXPIRED:
        if (!job->wants->external && !job->wants->deadline_ns)
            status = error_set(err, EINVAL, "job %" PRIu64 " has no deadline", job->id);
        break;
    case RECORD_DUE:
        job->begin_ns = 0;
        order_moves(core, job);
        break;
    case RECORD_STARTED:
    case RECORD_ADOPTED:
        depend_started(core, job, record->at_ns);
        break;
    case RECORD_COMMANDED:
        status = apply_commanded(core, job, record, err);
        break;
    case RECORD_MOVED:
        job_run(job)->moved_ns = record->at_ns;
        break;
    case RECORD_UNUSED:
        status = idle_note(core, job, record, err);
        break;
    case RECORD_IDLE:
        status = idle_take_step(job, &record->idle, err);
        break;
    case RECORD_SIGNALLED:
        job->signalled = true;
        queue_remove(job);
        break;
    case RECORD_SIGNAL_FAILED:
        job->signalled = false;
        job_run(job)->signal_retry_ns = record->at_ns + SIGNAL_RETRY_NS;
        queue_remove(job);
        queue_push(&core->undecided, job);
        break;
    default:
        break;
    }
    if (status == 0 && state != job->state)
        enter_state(core, job, state, record->at_ns);
    return status;
}

static int apply(struct core *core, const struct record *record, struct error *err)
{
    switch (record->type) {
    case RECORD_RECONFIGURED:
        return apply_reconfigured(core, &record->config, err);
    case RECORD_GPU_BACK:
    case RECORD_GPU_LOST:
    case RECORD_SAMPLE:
    case RECORD_SHARE_FAULT:
    case RECORD_GPU_DRAINED:
    case RECORD_GPU_RESUMED:
        return apply_gpu(core, record, err);
    case RECORD_GPUS_ALLOTTED:
    case RECORD_ALLOTMENT_ENDED:
    case RECORD_ALLOTMENTS_DUE:
        return apply_allotment(core, record, err);
    case RECORD_SUBMITTED:
        return apply_submitted(core, record, err);
    case RECORD_TIMER:
        return 0;
    case RECORD_GPU_OPENED:
    case RECORD_GPU_TRIED:
        if (record->gpu.gpu >= core->gpu_count)
            return error_set(err, ENOENT, "there is no GPU %" PRIu32, record->gpu.gpu);
        if (record->type == RECORD_GPU_TRIED)
            closing_try(core, core->gpus[record->gpu.gpu], record->at_ns);
        else
            closing_open(core, core->gpus[record->gpu.gpu]);
        return 0;
    case RECORD_FORGOTTEN:
        return users_forget(core, &record->forgotten, err);
    case RECORD_SHARE_GIVEN:
        return users_give_share(core, &record->share_given, err);
    case RECORD_TOLD:
        return depend_tell(core, record->told.count, err);
    case RECORD_WAITED:
        core->next_decision_ns = record->waited.until_ns;
        return 0;
    default:
        if (record->type == RECORD_NONE || record->type >= RECORD_TYPE_COUNT)
            return error_set(err, EINVAL, "record type %" PRIu32 " does not exist", record->type);
        if (record_is_state(record->type))
            return snapshot_apply(core, record, err);
        return apply_to_job(core, record, err);
    }
}

/* A job that is not eligible reserves no GPUs meanwhile. */
static void step_aside(struct core *core, uint64_t id, int64_t at_ns)
{
    struct job *job = id ? core_job_by_id(core, id) : NULL;

    if (job && job->state == JOB_QUEUED && !job_is_eligible(core, job, NULL))
        end_reservation(core, job, at_ns);
}

int core_apply(struct core *core, const struct record *record, struct error *err)
{
    int status;

    if (!record_is_decision(record->type))
        core->ended_count = 0;
    status = apply(core, record, err);
    core->applied++;
    autocluster_take_news(core);
    if (record->type == RECORD_RECONFIGURED || record->type == RECORD_FORGOTTEN || record_is_state(record->type))
        core->activity_version++;
    if (status == 0 && record_is_state(record->type))
        return 0;
    core->restoring &= status != 0;
    if (status == 0 && eligible_turns(core, record->type))
        step_aside(core, core->reserved_job, record->at_ns);
    return status;
}

bool core_decided(struct core *core, struct record_list *out, const struct record *decision)
{
    if (core_apply(core, decision, NULL) != 0)
        return false;
    record_list_add(out, decision);
    return true;
}
