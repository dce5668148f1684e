/* How this file works: crash_note takes down what an end shows while the job still has its GPUs (apply.c calls it), and
 * crash_judge decides later what follows (decide.c). note_memory asks in this order: was memory short at all
 * (borne_out), was a fence the cause, was another job (is_victim); only what is left is charged to the job. The next
 * reservation is need.c's. To add a cause: enum exit_cause (record.h), verdict.c, a case of crash_judge. */
#include "core/crash.h"

#include "base/units.h"
#include "core/gpus/closing.h"
#include "core/learn/learn.h"
#include "core/need/fence.h"
#include "core/need/need.h"
#include "core/need/overuse.h"
#include "core/qualify.h"
#include "core/share/seen.h"
#include "core/state.h"
#include "core/verdict.h"

/* The observed memory of the residents except `job`. */
static int64_t held_by_others(const struct gpu *gpu, const struct job *job)
{
    int64_t held = 0;

    for (uint32_t i = 0; i < gpu->resident_count; i++)
        if (gpu->residents[i] != job)
            held += job_placement_on(gpu->residents[i], gpu->number)->observed_bytes;
    return held;
}

/* How much of a GPU may have been allocated since the last sample before the end, or lie in pieces too small to use. A
 * step of training takes less than the second between two samples. An assumption. */
#define UNSEEN_PART 4

/* A GPU with less than this part free is full: 2.5 GiB of 80. PyTorch's messages name less as a rule, since its cache
 * takes 2 MiB to some hundred at a time. An assumption. */
#define FULL_PART 32

/* A loading job's memory may appear and fill the GPU between two samples. */
static bool still_loading(const struct job *job, int64_t at_ns)
{
    return job->run->first_use_ns == 0 || at_ns - job->run->first_use_ns <= LEARN_LOADING_NS;
}

static int64_t asked_bytes(const struct record *record)
{
    return record->exited.requested_bytes > 0 ? record->exited.requested_bytes : 0;
}

static int64_t smallest_total(const struct core *core, const struct job *job)
{
    int64_t total = INT64_MAX;

    for (uint32_t i = 0; i < job->placement_count; i++)
        if (core->gpus[job->placements[i].gpu]->total_bytes < total)
            total = core->gpus[job->placements[i].gpu]->total_bytes;
    return total;
}

static int64_t used_bytes(const struct job *job, const struct record *record)
{
    int64_t peak = job_peak_bytes(job);

    return record->exited.used_bytes > peak ? record->exited.used_bytes : peak;
}

/* True where its GPU was nearly full, or the failed allocation is larger than the GPU. Where use was not observed, the
 * estimates of the residents count. */
static bool was_full(const struct core *core, const struct job *job, const struct record *record)
{
    int64_t total = smallest_total(core, job), asked = asked_bytes(record);

    if (record->exited.used_bytes < 0)
        return asked > job->run->crash_available_bytes - job_peak_bytes(job);
    return asked > total || used_bytes(job, record) >= total - total / UNSEEN_PART - asked;
}

/* The same, for blaming another: a figure in the job's own message counts for less, since it may say anything. */
static bool was_taken(const struct core *core, const struct job *job, const struct record *record)
{
    int64_t total = smallest_total(core, job), asked = asked_bytes(record), used = used_bytes(job, record);

    return record->exited.used_bytes < 0 ||
           (asked <= total && (used >= total - total / UNSEEN_PART || used > total - asked));
}

/* It may have needed more than its fence, as far as that was observed. */
static bool was_at_fence(const struct job *job, const struct record *record)
{
    return job->run->fence_bytes >= 0 &&
           job_peak_bytes(job) >= job->run->fence_bytes - job->run->fence_bytes / UNSEEN_PART - asked_bytes(record);
}

/* Whether the observed memory confirms that it ran out. Any program can print this message. So the job goes before
 * others only where its GPU was nearly full, or the failed allocation is larger than the GPU. A job that
 * was loading also goes before others once, if memory of its GPU was in use at all. That retry is charged, and a job
 * that a guessed fence has excused gets none. Where nothing was observed, nothing speaks against it. But a library's
 * handle may be missing for other reasons, so there the memory must confirm it. */
static bool borne_out(const struct core *core, const struct job *job, const struct record *record, bool says_memory)
{
    if (record->exited.used_bytes < 0)
        return says_memory;
    if (was_full(core, job, record) || was_at_fence(job, record))
        return true;
    return says_memory && job->crashes == 0 && !job->run->unfenced && still_loading(job, record->at_ns) &&
           record->exited.used_bytes > GPU_IDLE_UNMANAGED_BYTES;
}

static bool is_collocated(const struct core *core, const struct job *job)
{
    bool collocated = false;

    for (uint32_t i = 0; i < job->placement_count; i++) {
        const struct gpu *gpu = core->gpus[job->placements[i].gpu];
        collocated |= gpu->resident_count > 1 || gpu->unmanaged_bytes > GPU_IDLE_UNMANAGED_BYTES;
    }
    return collocated;
}

bool crash_is_of_full_gpu(const struct core *core, const struct job *job, const struct record *end)
{
    int64_t total = smallest_total(core, job);

    return is_collocated(core, job) && job_peak_bytes(job) > 0 && end->exited.used_bytes >= total - total / FULL_PART;
}

bool crash_is_of_limit(const struct core *core, const struct job *job, const struct record *end)
{
    return (job->run->fence_bytes >= 0 || is_collocated(core, job)) && end->exited.used_bytes >= 0 &&
           borne_out(core, job, end, true);
}

/* Not charged with the crash, but only a limited number of times. A job that prints "out of memory" beside such a
 * neighbour may have another cause. */
static bool is_victim(struct core *core, struct job *job, const struct record *record)
{
    int64_t peak = job_peak_bytes(job);
    uint64_t overuser = overusing_job(
        core, job, job->run->crash_needed_bytes < peak ? peak : job->run->crash_needed_bytes, record->at_ns);
    struct job *other = core_job_by_id(core, overuser);

    if (!overuser || !job->run->crash_is_oom || !was_taken(core, job, record) ||
        job->run->harmed >= core->config.max_retries)
        return false;
    job_run(job)->overuser = overuser;
    job_run(job)->harmed++;
    if (other)
        other->victims++;
    return true;
}

/* It was alone, and its fence left it less than its GPUs did: even nearly full, they say nothing. */
static bool only_its_fence(const struct core *core, const struct job *job, const struct record *record)
{
    bool only = job->run->crashed_alone && record->exited.used_bytes >= 0;

    for (uint32_t i = 0; i < job->placement_count; i++)
        only &= job->run->fence_bytes - job_peak_bytes(job) <
                core->gpus[job->placements[i].gpu]->total_bytes - record->exited.used_bytes;
    return only;
}

static void note_memory(struct core *core, struct job *job, const struct record *record)
{
    int64_t peak = job_peak_bytes(job), requested = record->exited.requested_bytes;
    struct job_run *run = job_run(job);
    bool fenced;

    run->crashed_alone = true;
    run->crash_available_bytes = INT64_MAX;
    for (uint32_t i = 0; i < job->placement_count; i++) {
        const struct gpu *gpu = core->gpus[job->placements[i].gpu];
        int64_t available = gpu_idle_bytes(gpu) - held_by_others(gpu, job);
        if (gpu->resident_count > 1 || gpu->unmanaged_bytes > GPU_IDLE_UNMANAGED_BYTES)
            run->crashed_alone = false;
        if (available < run->crash_available_bytes)
            run->crash_available_bytes = available > 0 ? available : 0;
    }
    fenced = run->fence_bytes >= 0 && (!was_full(core, job, record) || only_its_fence(core, job, record)) &&
             (was_at_fence(job, record) || still_loading(job, record->at_ns));
    if (fenced) {
        run->crashed_alone = false; /* the fence was in its way: that says nothing about the GPU */
        if (run->crash_available_bytes > run->fence_bytes)
            run->crash_available_bytes = run->fence_bytes;
    }
    run->crash_is_oom = borne_out(core, job, record, run->crash_cause == EXIT_GPU_OOM);
    run->crash_fenced = fenced && fence_is_guess(job);
    run->crash_needed_bytes = requested < 0 || requested > INT64_MAX - peak ? -1 : peak + requested;
    if (run->crash_fenced || (!fenced && is_victim(core, job, record))) {
        learn_memory(core, job, run->crash_needed_bytes, LEARN_LEAST);
        return;
    }
    job->crashes++;
    job->oom_crashes += run->crash_is_oom;
    if (run->crash_is_oom)
        learn_memory(core, job, run->crash_needed_bytes, LEARN_LEAST);
}

/* A GPU that fails takes its jobs with it; a workload under which one GPU fails after the other is the cause. Only a
 * run that began after the first failure shows that: a fault of the machine may fail many GPUs at once. */
uint32_t crash_other_gpu(const struct core *core, const struct job *job, const struct record_exited *exited)
{
    const struct record_failure *before = closing_failure_of(job);
    bool followed = exited->cause == EXIT_GPU_ERROR && exited->failed_gpu != RECORD_NO_GPU &&
                    before->gpu != RECORD_NO_GPU && before->gpu != exited->failed_gpu &&
                    job->placed_ns >= before->at_ns && !closing_is_suspect(core->gpus[exited->failed_gpu], job);

    return followed ? before->gpu : RECORD_NO_GPU;
}

static void note_failure(const struct core *core, struct job *job, const struct record *record)
{
    if (record->exited.failed_gpu == RECORD_NO_GPU)
        return;
    if (crash_other_gpu(core, job, &record->exited) != RECORD_NO_GPU)
        job_run(job)->crash_cause = EXIT_FAILED;                                /* its own doing */
    closing_look_at_avoided(core, closing_failure_of(job)->gpu, record->at_ns); /* others of its workload may wait */
    closing_set_failure(job, record->exited.failed_gpu, record->at_ns);
    closing_look_at_avoided(core, record->exited.failed_gpu, record->at_ns);
}

void crash_forgive(struct job *job)
{
    closing_set_failure(job, RECORD_NO_GPU, 0);
}

static bool is_of_memory(const struct job *job)
{
    return job->run->crash_cause == EXIT_GPU_OOM || job->run->crash_cause == EXIT_GPU_HANDLE;
}

void crash_note(struct core *core, struct job *job, const struct record *record)
{
    struct job_run *run = job_run(job);

    run->crash_fenced = false;
    run->crash_cause = record->type == RECORD_LOST ? EXIT_LOST : verdict_of(&record->exited).cause;
    run->crashed_ns = record->at_ns;
    if (is_of_memory(job))
        note_memory(core, job, record);
    else if (run->crash_cause == EXIT_TIMEOUT)
        run->timeouts += !seen_was_moved(job);
    else if (run->crash_cause != EXIT_IDLE)
        run->external_failures++;
    if (run->crash_cause == EXIT_GPU_ERROR)
        note_failure(core, job, record);
}

/* The memory that is free on as many GPUs as the job wants, where it could run. */
static int64_t free_somewhere(const struct core *core, const struct job *job)
{
    int64_t most[RECORD_MAX_GPUS] = {0};

    for (uint32_t i = 0; i < core->gpu_count; i++) {
        int64_t bytes = gpu_is_for(core, job, core->gpus[i]) ? gpu_free_bytes(core, core->gpus[i]) : 0;
        for (uint32_t k = 0; k < job->wants->gpus; k++)
            if (bytes > most[k]) {
                int64_t less = most[k];
                most[k] = bytes;
                bytes = less;
            }
    }
    return most[job->wants->gpus - 1];
}

static void requeue(const struct job *job, bool retry, int64_t reserved_bytes, struct record *verdict)
{
    verdict->type = RECORD_REQUEUED;
    verdict->requeued = (struct record_requeued){
        .retry = retry,
        .crashes = job->crashes,
        .reserved_bytes = reserved_bytes,
        .reservation_source = reserved_bytes == job->reserved_bytes         ? job->reservation_source
                              : reserved_bytes == job->wants->request_bytes ? job->wants->request_source
                                                                            : SOURCE_RAISED,
        .unfenced = job->run->crash_fenced,
        .overuser = job->run->overuser,
    };
}

/* The retry of a lease is somebody else's to start. */
static void hand_back(struct record *verdict)
{
    const struct record_requeued requeued = verdict->requeued;

    verdict->type = RECORD_RETURNED;
    verdict->returned = (struct record_returned){.crashes = requeued.crashes,
                                                 .reserved_bytes = requeued.reserved_bytes,
                                                 .reservation_source = requeued.reservation_source,
                                                 .overuser = requeued.overuser};
}

static void give_up(bool memory, struct record *verdict)
{
    verdict->type = RECORD_GAVE_UP;
    verdict->gave_up.memory = memory;
}

/* Needs more than any GPU has, or than its user may have. Or it was alone on its GPUs and crashed all the same: that
 * run was the proof that it does not fit. The first time it gets the benefit of the doubt, since memory of an earlier
 * job may have been on its way out. */
static bool hopeless(const struct core *core, const struct job *job)
{
    return job->run->crash_needed_bytes > user_most_bytes(core, job->wants) ||
           (job->run->crashed_alone && job->retry && job->oom_crashes > job->run->crash_is_oom);
}

static void judge_memory(const struct core *core, const struct job *job, struct record *verdict)
{
    if (job->wants->gpus == 0) /* whatever its output says */
        give_up(false, verdict);
    else if (job->run->overuser || job->run->crash_fenced)
        requeue(job, true, need_after_harm(core, job, free_somewhere(core, job)), verdict);
    else if (job->run->crash_cause == EXIT_GPU_HANDLE && !job->run->crash_is_oom)
        give_up(false, verdict);
    else if (hopeless(core, job))
        give_up(true, verdict);
    else if (job->crashes > core->config.max_retries)
        give_up(job->run->crash_is_oom, verdict);
    else if (job->run->crash_is_oom)
        requeue(job, true, need_after_crash(core, job, free_somewhere(core, job)), verdict);
    else
        requeue(job, false, job->reserved_bytes, verdict);
}

void crash_judge(const struct core *core, const struct job *job, int64_t now_ns, struct record *verdict)
{
    bool asks = job->wants->requeue || (job->run->crash_cause == EXIT_LOST && core->config.requeue_lost);

    *verdict = (struct record){.job = job->id, .at_ns = now_ns};
    switch (job->run->crash_cause) {
    case EXIT_GPU_OOM:
    case EXIT_GPU_HANDLE:
        judge_memory(core, job, verdict);
        break;
    case EXIT_FAILED:
    case EXIT_IDLE:
        give_up(false, verdict);
        break;
    case EXIT_TIMEOUT:
        if (asks && job->run->timeouts <= core->config.max_requeues)
            requeue(job, false, job->reserved_bytes, verdict);
        else
            give_up(false, verdict);
        break;
    case EXIT_LOST:
        if (asks && job->run->external_failures <= core->config.max_retries)
            requeue(job, false, job->reserved_bytes, verdict);
        else
            give_up(false, verdict);
        break;
    default:
        if (job->run->external_failures <= core->config.max_retries)
            requeue(job, true, job->reserved_bytes, verdict);
        else
            give_up(false, verdict);
        break;
    }
    /* A reservation may have grown beyond its user's limit; with it the job would wait for ever. */
    if (verdict->type == RECORD_REQUEUED && verdict->requeued.reserved_bytes > user_most_bytes(core, job->wants))
        verdict->requeued.reserved_bytes = user_most_bytes(core, job->wants);
    if (verdict->type == RECORD_REQUEUED && !user_may_retry(core, job, now_ns))
        verdict->requeued.retry = false;
    if (verdict->type == RECORD_REQUEUED && job->wants->attached)
        give_up(is_of_memory(job) && job->run->crash_is_oom, verdict);
    if (verdict->type == RECORD_GAVE_UP)
        verdict->gave_up.cause = job->run->crash_cause;
    if (verdict->type == RECORD_REQUEUED && job->wants->external)
        hand_back(verdict);
}
