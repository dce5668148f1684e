/* The decisions that follow from the state: verdicts on crashed jobs, signals, shrunk reservations, and placements.
 * Which GPU qualifies at all is said in qualify.c; which jobs are looked at, in backfill.c. */
#include <string.h>

#include "core/core_internal.h"
#include "core/crash.h"
#include "core/fence.h"
#include "core/need/need.h"
#include "core/gpus/closing.h"
#include "core/waiting/order.h"
#include "core/overuse.h"
#include "core/sharing.h"
#include "core/slowdown.h"
#include "core/waiting/backfill.h"

/* ---- Choosing GPUs ---- */

/* The first `wanted` GPUs that are idle, in index order; false when there are fewer. */
static bool choose_idle(const struct core *core, const struct job *job, struct record_placed *placed)
{
    placed->count = 0;
    for (uint32_t i = 0; i < core->gpu_count && placed->count < job->wants->gpus; i++)
        if (gpu_fits_idle(core, job, core->gpus[i]))
            placed->gpus[placed->count++] = i;
    return placed->count == job->wants->gpus;
}

/* The residents of the GPU may leave too little memory, or too little of the SMs. The full verdict would refuse the
 * GPU, too, but costs more. */
static bool may_qualify(const struct core *core, const struct job *job, const struct gpu *gpu, int64_t needed_bytes)
{
    return gpu->resident_count == 0 ||
           (gpu_free_bytes(core, gpu) >= needed_bytes && (!core_gates_slowdown(core) || job->id == core->reserved_job ||
                                                          company_activity(job) <= slowdown_room(core, gpu)));
}

/* The best `wanted` of the GPUs that qualify, best first: all must qualify at once. */
static bool choose_shared(const struct core *core, const struct job *job, int64_t now_ns, struct record_placed *placed)
{
    int64_t ranks[RECORD_MAX_GPUS], needed_bytes = job_needed_bytes(core, job);

    placed->count = 0;
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        uint32_t at;
        int64_t rank;
        if (!may_qualify(core, job, core->gpus[i], needed_bytes))
            continue;
        rank = core->policy->rank(core, job, core->gpus[i]); /* costs less than the verdict */
        if (placed->count == job->wants->gpus && rank >= ranks[placed->count - 1])
            continue;
        if (gpu_verdict(core, job, core->gpus[i], now_ns) != REASON_NONE)
            continue;
        if (placed->count < job->wants->gpus)
            placed->count++;
        for (at = placed->count - 1; at > 0 && rank < ranks[at - 1]; at--) {
            ranks[at] = ranks[at - 1];
            placed->gpus[at] = placed->gpus[at - 1];
        }
        ranks[at] = rank;
        placed->gpus[at] = i;
    }
    return placed->count == job->wants->gpus;
}

static bool choose_gpus(const struct core *core, const struct job *job, int64_t now_ns, struct record_placed *placed)
{
    bool idle_only = job_wants_idle(core, job);

    if ((idle_only || core->policy->idle_first) && choose_idle(core, job, placed))
        return true;
    return !idle_only && choose_shared(core, job, now_ns, placed);
}

static uint64_t last_look(const struct core *core, const struct alike *alike)
{
    return alike->examined && core->searched > alike->examined ? core->searched : alike->examined;
}

/* Whether anything has changed for the better since the job was last found not to fit: without that, looking again is
 * in vain. This keeps decisions cheap with a long queue and many GPUs. */
static bool worth_another_look(const struct core *core, const struct job *job, int64_t now_ns)
{
    uint64_t since = last_look(core, job->alike);
    int64_t needed_bytes;

    if (since == 0)
        return true;
    needed_bytes = job_needed_bytes(core, job);
    for (const struct gpu *gpu = core->last_opened; gpu && gpu->opened > since; gpu = gpu->opened_before)
        if (may_qualify(core, job, gpu, needed_bytes) && gpu_verdict(core, job, gpu, now_ns) == REASON_NONE)
            return true;
    return false;
}

/* ---- Deciding ---- */

bool core_decided(struct core *core, struct record_list *out, const struct record *decision)
{
    if (core_apply(core, decision, NULL) != 0)
        return false;
    record_list_add(out, decision);
    return true;
}

static void decide_undecided(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct record verdict;
    struct job *next;

    for (struct job *job = core->undecided.head; job; job = next) {
        next = job->next;
        if (job->state == JOB_CRASHED) {
            crash_judge(core, job, now_ns, &verdict);
            core_decided(core, out, &verdict);
        } else if (now_ns >= job->signal_retry_ns) {
            core_decided(core, out, &(struct record){.type = RECORD_SIGNALLED, .at_ns = now_ns, .job = job->id});
        }
    }
}

/* INT64_MAX: never. */
static int64_t expires_ns(const struct job *job)
{
    return job->wants->max_wait_ns ? job->submitted_ns + job->wants->max_wait_ns : INT64_MAX;
}

/* The one who asked for the lease has given it up by then. */
static void expire_leases(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct job *next;

    for (struct job *job = core->waiting.head; job && job->turn.class == CLASS_LEASE; job = next) {
        next = job->next;
        if (now_ns >= expires_ns(job))
            core_decided(core, out, &(struct record){.type = RECORD_EXPIRED, .at_ns = now_ns, .job = job->id});
    }
}

static void shrink_reservations(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct job *job;

    while ((job = core->shrinking.head) && now_ns - job->first_use_ns >= core->config.shrink_after_ns) {
        struct record shrunk = {
            .type = RECORD_SHRUNK, .at_ns = now_ns, .job = job->id, .shrunk.reservation_source = SOURCE_OBSERVED};

        shrunk.shrunk.reserved_bytes = need_settled(core, job);
        if ((job->reserved_bytes >= 0 && shrunk.shrunk.reserved_bytes >= job->reserved_bytes) ||
            core->config.shrink_after_ns == 0)
            queue_remove(job);
        else if (!core_decided(core, out, &shrunk))
            return;
    }
}

static int32_t predicted_slowdown(const struct core *core, const struct job *job, const struct record_placed *placed)
{
    int32_t worst = 1000;

    for (uint32_t i = 0; i < placed->count; i++) {
        int32_t slowdown = slowdown_predict(core, core->gpus[placed->gpus[i]], job).worst_permille;
        if (slowdown > worst)
            worst = slowdown;
    }
    return worst;
}

bool core_place(struct core *core, struct job *job, int64_t now_ns, struct record_list *out)
{
    struct record decision = {.type = RECORD_PLACED, .at_ns = now_ns, .job = job->id};
    struct record_placed *placed = &decision.placed;
    struct reason why;

    if (!core_could_ever_run(core, job->wants, &why)) {
        decision.type = RECORD_REFUSED;
        return core_decided(core, out, &decision);
    }
    if (!worth_another_look(core, job, now_ns))
        return false;
    if (!choose_gpus(core, job, now_ns, placed)) {
        alike_set_examined(core, job->alike, core->openings);
        return false;
    }
    placed->reserved_bytes = need_memory(core, job, &placed->reservation_source);
    placed->share = sharing_together(core, job, placed->gpus, placed->count);
    placed->retry = job->retry;
    placed->slowdown_permille = predicted_slowdown(core, job, placed);
    for (uint32_t i = 0; i < placed->count; i++) {
        const struct gpu *gpu = core->gpus[placed->gpus[i]];
        placed->shared |= gpu->resident_count > 0;
        if (placed->reserved_bytes > gpu_idle_bytes(gpu)) /* a learned margin beyond the card */
            placed->reserved_bytes = gpu_idle_bytes(gpu);
    }
    placed->fence_bytes = fence_for(core, job, placed);
    return core_decided(core, out, &decision);
}

/* GPUs whose new job has settled are open again, without a record. */
static void open_settled(struct core *core, int64_t now_ns)
{
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        struct gpu *gpu = core->gpus[i];
        if (gpu_settling(core, gpu, now_ns)) {
            gpu->opened_settled_ns = 0; /* with another clock or setting it was open before */
        } else if (gpu->settling_job && gpu->opened_settled_ns != gpu->closed_until_ns) {
            gpu->opened_settled_ns = gpu->closed_until_ns;
            gpu_opens(core, gpu);
        }
    }
}

static void open_closed(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct record tried = {.type = RECORD_GPU_TRIED, .at_ns = now_ns};

    for (uint32_t i = 0; i < core->gpu_count; i++) {
        tried.gpu.gpu = i;
        if (closing_next_ns(core->gpus[i]) && closing_next_ns(core->gpus[i]) <= now_ns)
            core_decided(core, out, &tried);
    }
}

bool core_decision_due(const struct core *core, int64_t now_ns)
{
    /* Further off than any decision puts the next one: the clock was set back since. */
    int64_t off_ns = core->next_decision_ns - now_ns;

    return off_ns <= 0 || off_ns > core->config.decide_period_ns + core->config.collocate_extra_ns;
}

/* The thesis's loop takes its time over a decision that places nothing, too. */
static void wait_for_next(struct core *core, int64_t now_ns, struct record_list *out)
{
    const struct job *head = order_head(core);
    struct record waited = {.type = RECORD_WAITED, .at_ns = now_ns};

    if (!core->config.paced || !head || !core_decision_due(core, now_ns))
        return;
    waited.waited.until_ns =
        now_ns + core->config.decide_period_ns + (job_wants_idle(core, head) ? 0 : core->config.collocate_extra_ns);
    if (waited.waited.until_ns > now_ns)
        core_decided(core, out, &waited);
}

void core_decide(struct core *core, int64_t now_ns, struct record_list *out)
{
    uint64_t openings;
    bool moved;

    closing_end_avoided(core, now_ns);
    expire_leases(core, now_ns, out);
    decide_undecided(core, now_ns, out);
    overuse_correct(core, now_ns, out);
    shrink_reservations(core, now_ns, out);
    open_closed(core, now_ns, out);
    if (!order_head(core))
        return;
    if (core->settling_count)
        open_settled(core, now_ns);
    do { /* a placement that ends a reservation frees memory for jobs examined before */
        openings = core->openings;
        moved = backfill_pass(core, now_ns, out);
    } while (moved || core->openings != openings);
    wait_for_next(core, now_ns, out);
}

static void earlier(int64_t *wake_ns, int64_t candidate_ns, int64_t now_ns)
{
    if (candidate_ns > now_ns && candidate_ns < *wake_ns)
        *wake_ns = candidate_ns;
}

int64_t core_next_wake_ns(const struct core *core, int64_t now_ns)
{
    int64_t wake_ns = INT64_MAX;

    for (const struct job *job = core->undecided.head; job; job = job->next)
        earlier(&wake_ns, job->signal_retry_ns, now_ns);
    for (const struct job *job = core->waiting.head; job && job->turn.class == CLASS_LEASE; job = job->next)
        earlier(&wake_ns, expires_ns(job), now_ns);
    if (!order_head(core))
        return wake_ns;
    earlier(&wake_ns, core->next_decision_ns, now_ns);
    if (core->config.backfill && core->reserved_job != order_head(core)->id)
        earlier(&wake_ns, job_waits_since_ns(order_head(core)) + core->config.starvation_timeout_ns, now_ns);
    if (core->shrinking.head)
        earlier(&wake_ns, core->shrinking.head->first_use_ns + core->config.shrink_after_ns, now_ns);
    for (uint32_t i = 0; i < core->gpu_count && core->settling_count; i++)
        if (core->gpus[i]->settling_job)
            earlier(&wake_ns, core->gpus[i]->closed_until_ns, now_ns);
    for (uint32_t i = 0; i < core->gpu_count; i++)
        earlier(&wake_ns, closing_next_ns(core->gpus[i]), now_ns);
    for (const struct job *job = core->waiting.head; job && turn_is_apart(job->turn); job = job->next)
        earlier(&wake_ns, closing_avoids_until_ns(core, job), now_ns);
    return wake_ns;
}
