/* How this file works: core_apply is the only way in which the state changes. apply() sorts a record by what it is of:
 * the configuration, a GPU (gpus/apply_gpu.c), a snapshot (snapshot.c), a user, a job. A job's record first gets its
 * next state (job.c: job_state_after), then its own case of apply_to_job; enter_state (apply/) puts the job where that
 * state belongs: a queue (order.c), GPUs left, the end. At last all that the record has taught reaches those that wait
 * (waiting/autocluster.c: autocluster_take_news). The folder apply/ has what more than a few lines do: a file for the
 * configuration, for each of a job's matters, and for its states.
 *
 * To add a record: a row of records.def, which says what to add where it has members; a case here where it has an
 * effect. */
#include "core/apply.h"

#include <errno.h>
#include <inttypes.h>

#include "base/units.h"
#include "core/apply/enter_state.h"
#include "core/apply/memory.h"
#include "core/apply/placed.h"
#include "core/apply/reconfigured.h"
#include "core/apply/reserved.h"
#include "core/apply/wants.h"
#include "core/crash.h"
#include "core/gpus/allotment.h"
#include "core/gpus/apply_gpu.h"
#include "core/gpus/closing.h"
#include "core/idle.h"
#include "core/jobs.h"
#include "core/learn/pairs.h"
#include "core/learn/parts.h"
#include "core/learn/learn.h"
#include "core/need/fence.h"
#include "core/share/seen.h"
#include "core/snapshot.h"
#include "core/state.h"
#include "core/users.h"
#include "core/verdict.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/array.h"
#include "core/waiting/depend.h"
#include "core/waiting/eligible.h"
#include "core/waiting/order.h"
#include "core/waiting/places.h"

static int apply_allotment(struct core *core, const struct record *record, struct error *err)
{
    int status = allotment_apply(core, record, err);

    if (status == 0)
        end_reservation_of_closed(core, record->at_ns);
    return status;
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

static int check_progressed(const struct record_progressed *progressed, struct error *err)
{
    return progressed->micro_steps_per_s > 0 && progressed->span_ns > 0 && progressed->total >= 0
               ? 0
               : error_set(err, EINVAL, "a job cannot do %" PRId64 " steps in a million seconds",
                           progressed->micro_steps_per_s);
}

/* What it is worth beside others is compared with what was known before. */
static void take_report(struct core *core, struct job *job, const struct record *record)
{
    seen_note(core, job, record);
    pairs_learn_speed(core, job, record);
    parts_learn(core, job, record);
}

/* A signal that could not be delivered is not worth trying again at once. */
#define SIGNAL_RETRY_NS (5 * NS_PER_SEC)

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
        if (status == 0 && record->placed.reservation_source >= SOURCE_COUNT)
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
        job->reservation_source = record->requeued.reservation_source;
        /* Its turn is over: it goes behind the others of its class (round robin). */
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

int core_apply(struct core *core, const struct record *record, struct error *err)
{
    int status;

    if (!record_is_decision(record->type))
        core_forget_ended(core);
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
