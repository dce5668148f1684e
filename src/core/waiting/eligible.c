/* How this file works: `rules` has one row for each ground on which a job is kept, and both questions go through it
 * from the top. The first row that keeps the job gives the reason.
 *
 * Who asks: the order of jobs (order.c), the passes (backfill.c), the explanation (reason.c), and the end of a
 * reservation (apply/reserved.c: step_aside). They ask this file alone, so a row is enough.
 *
 * To add a rule: its code and sentence (reasons.def), a function that tests and fills in the numbers, and a row at the
 * end with all records at which the answer may turn. At any other, the job that has GPUs reserved is not asked again,
 * and core-properties fails when such a record turns an answer. */
#include "core/waiting/eligible.h"

#include "core/gpus/allotment.h"
#include "core/gpus/suits.h"
#include "core/need/need.h"
#include "core/share/sharing.h"
#include "core/state.h"
#include "core/waiting/array.h"
#include "core/waiting/depend.h"

struct applicant {
    const struct job *job;   /* NULL: a submission, beside which its user has nothing */
    const struct user *user; /* the jobs that count beside it */
    const struct record_submitted *wants;
};

static bool is_held(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    (void)core;
    (void)why;
    return applicant->job && applicant->job->state == JOB_HELD;
}

static bool depended_in_vain(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    (void)core;
    why->other = applicant->job ? applicant->job->failed_on : 0;
    return why->other;
}

static bool depends_on_another(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    const struct dependency *dependency = applicant->job ? applicant->job->depends : NULL;

    (void)core;
    if (!dependency)
        return false;
    why->other = dependency->on->id;
    why->depends = dependency->kind;
    for (why->ahead = 0; dependency; dependency = dependency->next)
        why->ahead++;
    return true;
}

static bool waits_for_its_array(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    const struct job *job = applicant->job;

    (void)core;
    if (!job || !job->array_waits)
        return false;
    why->allowed = job->array->most;
    why->other = job->array->id;
    return true;
}

static bool begins_later(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    (void)core;
    why->until_ns = applicant->job ? applicant->job->begin_ns : 0;
    return why->until_ns;
}

/* Of a drained node; a job with GPUs is told of these. */
static bool starts_on_drained(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    why->why = core->drain.why;
    return core->drained && applicant->job && applicant->wants->gpus == 0;
}

/* To other users, of the GPUs that could take it. */
static bool are_kept_from_it(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    return core->allotment_count && applicant->job && allotment_keeps(core, applicant->job, why);
}

static bool are_too_many_without(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    why->qualified = core->without_gpu;
    why->allowed = core->config.max_without_gpu;
    return applicant->job && applicant->wants->gpus == 0 && why->allowed && why->qualified >= why->allowed;
}

static bool has_too_many_jobs(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    why->qualified = applicant->user->running;
    why->allowed = core->config.per_user.max_running;
    return why->allowed && why->qualified >= why->allowed;
}

static bool has_too_many_gpus(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    why->qualified = applicant->user->gpus;
    why->allowed = core->config.per_user.max_gpus;
    return applicant->wants->gpus && why->allowed && why->qualified + applicant->wants->gpus > why->allowed;
}

/* Memory on each GPU; -1: a job without a reservation counts with the memory of the largest. */
static int64_t counted_bytes(const struct core *core, const struct applicant *applicant)
{
    const struct record_submitted *wants = applicant->wants;

    if (applicant->job)
        return user_counting(applicant->job, need_memory(core, applicant->job, NULL));
    return wants->request_bytes < 0 ? prior_request(core, wants, core->prior.likely_bytes) : wants->request_bytes;
}

static bool has_too_much_memory(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    int64_t each;

    why->best_bytes = core->config.per_user.max_memory_bytes;
    if (!why->best_bytes || applicant->wants->gpus == 0)
        return false;
    each = counted_bytes(core, applicant);
    why->request_unknown = each < 0;
    why->needed_bytes = user_bytes_in_all(core, applicant->wants->gpus, each);
    why->held_bytes = (int64_t)applicant->user->memory_bytes;
    return why->needed_bytes > why->best_bytes ||
           applicant->user->memory_bytes > (uint64_t)(why->best_bytes - why->needed_bytes);
}

/* Jobs hold so much of the node's that this one's part would be too much. */
#define RESOURCE(member, name, code)                                                                                   \
    static bool is_given_##member(const struct core *core)                                                             \
    {                                                                                                                  \
        return core->config.most.member;                                                                               \
    }                                                                                                                  \
    static bool lacks_##member(const struct core *core, const struct applicant *applicant, struct reason *why)         \
    {                                                                                                                  \
        why->best_bytes = core->config.most.member;                                                                    \
        why->needed_bytes = applicant->wants->member;                                                                  \
        why->held_bytes = applicant->job ? core->taken.member : 0;                                                     \
        return why->needed_bytes && why->needed_bytes > why->best_bytes - why->held_bytes;                             \
    }
#include "core/resources.def"

#define AT(type) (UINT64_C(1) << (type))

/* Jobs get GPUs, or leave them. */
#define AT_USE (AT(RECORD_PLACED) | AT(RECORD_EXITED) | AT(RECORD_LAUNCH_FAILED) | AT(RECORD_LOST) | AT(RECORD_EXPIRED))

/* The memory that they count with changes, or that the job itself is known to need. */
#define AT_MEMORY                                                                                                      \
    (AT(RECORD_GPU_BACK) | AT(RECORD_GPU_LOST) | AT(RECORD_SUBMITTED) | AT(RECORD_ESTIMATED) | AT(RECORD_STRAYED) |    \
     AT(RECORD_FORGOTTEN) | AT(RECORD_REQUEUED) | AT(RECORD_SHRUNK) | AT(RECORD_GROWN))

/* Jobs start and end, or a job begins to depend on them. */
#define AT_OTHERS                                                                                                      \
    (AT(RECORD_DEPENDS) | AT(RECORD_DUE) | AT(RECORD_TOLD) | AT(RECORD_STARTED) | AT(RECORD_EXITED) |                  \
     AT(RECORD_LAUNCH_FAILED) | AT(RECORD_LOST) | AT(RECORD_CANCELLED) | AT(RECORD_GAVE_UP) | AT(RECORD_REFUSED) |     \
     AT(RECORD_EXPIRED) | AT(RECORD_RETURNED))

/* GPUs come and go, and are allotted to users. */
#define AT_GPUS                                                                                                        \
    (AT(RECORD_GPU_BACK) | AT(RECORD_GPU_LOST) | AT(RECORD_GPU_DRAINED) | AT(RECORD_GPU_RESUMED) |                     \
     AT(RECORD_GPUS_ALLOTTED) | AT(RECORD_ALLOTMENT_ENDED) | AT(RECORD_ALLOTMENTS_DUE))

static bool users_are_limited(const struct core *core)
{
    const struct core_limits *limits = &core->config.per_user;

    return limits->max_running || limits->max_gpus || limits->max_memory_bytes;
}

static const struct rule {
    uint32_t reason;                          /* enum reason_code: the rule's name, too */
    bool (*applies)(const struct core *core); /* NULL: always */
    bool (*keeps)(const struct core *core, const struct applicant *applicant, struct reason *why);
    uint64_t turns; /* at these records */
} rules[] = {
    {REASON_HELD, NULL, is_held, AT(RECORD_HELD) | AT(RECORD_RELEASED)},
    {REASON_NEVER_MET, NULL, depended_in_vain, AT_OTHERS},
    {REASON_DEPENDS, NULL, depends_on_another, AT_OTHERS},
    {REASON_BEGIN, NULL, begins_later, AT_OTHERS},
    {REASON_ARRAY, NULL, waits_for_its_array, AT_OTHERS | AT(RECORD_HELD) | AT(RECORD_RELEASED)},
    {REASON_USER_JOBS, users_are_limited, has_too_many_jobs, AT_USE},
    {REASON_USER_GPUS, users_are_limited, has_too_many_gpus, AT_USE},
    {REASON_USER_MEMORY, users_are_limited, has_too_much_memory, AT_USE | AT_MEMORY},
#define RESOURCE(member, name, code) {REASON_##code, is_given_##member, lacks_##member, AT_USE},
#include "core/resources.def"
    {REASON_NODE_DRAINED, NULL, starts_on_drained, AT(RECORD_GPU_DRAINED) | AT(RECORD_GPU_RESUMED)},
    {REASON_WITHOUT_GPU, NULL, are_too_many_without, AT_USE},
    {REASON_ALLOTTED, NULL, are_kept_from_it, AT_GPUS},
};

static bool passes(const struct core *core, const struct applicant *applicant, struct reason *why)
{
    struct reason ignored; /* written, and not read */

    if (why)
        *why = (struct reason){.wanted = applicant->wants->gpus};
    else
        why = &ignored;
    for (size_t i = 0; i < array_size(rules); i++) {
        if ((rules[i].applies && !rules[i].applies(core)) || !rules[i].keeps(core, applicant, why))
            continue;
        why->code = rules[i].reason;
        return false;
    }
    return true;
}

bool job_is_eligible(const struct core *core, const struct job *job, struct reason *why)
{
    return passes(core, &(struct applicant){.job = job, .user = job->user, .wants = job->wants}, why);
}

bool ever_eligible(const struct core *core, const struct record_submitted *wants, struct reason *why)
{
    return passes(core, &(struct applicant){.user = &(struct user){0}, .wants = wants}, why);
}

bool eligible_turns(const struct core *core, uint32_t type)
{
    if (type == RECORD_RECONFIGURED)
        return true; /* whether a rule applies is a setting */
    for (size_t i = 0; i < array_size(rules); i++)
        if (rules[i].turns & AT(type) && (!rules[i].applies || rules[i].applies(core)))
            return true;
    return false;
}

bool core_could_ever_run(const struct core *core, const struct record_submitted *submitted, struct reason *why)
{
    uint32_t large_enough = 0, possible = 0, impossible = REASON_NONE;
    int64_t largest = 0;

    if (core->gpu_count && !ever_eligible(core, submitted, why))
        return false;
    *why = (struct reason){.wanted = submitted->gpus,
                           .needed_bytes = submitted->request_bytes,
                           .choice = submitted,
                           .why = core->kinds.text};
    if (core->gpu_count == 0 || (submitted->gpus <= core->gpu_count &&
                                 submitted->request_bytes <= core->smallest_gpu_bytes && !gpu_choosy(submitted) &&
                                 submitted->share != SHARE_MPS && (submitted->gpus == 1 || core->instance_count == 0)))
        return true;
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        int64_t total = core->gpus[i]->total_bytes;
        uint32_t ever = sharing_ever(submitted, core->gpus[i]);
        if (ever && !(ever == REASON_UNSUITED && gpu_may_suit(submitted, core->gpus[i]))) {
            impossible = ever;
            continue;
        }
        possible++;
        if (total == 0 || total >= submitted->request_bytes) /* 0: not known yet */
            large_enough++;
        if (total > largest)
            largest = total;
    }
    if (submitted->gpus > core->gpu_count) {
        why->code = REASON_TOO_MANY_GPUS;
        why->qualified = core->gpu_count;
    } else if (possible < submitted->gpus) {
        why->code = impossible;
        why->qualified = possible;
    } else if (large_enough < submitted->gpus) {
        why->code = REASON_NEVER_FITS;
        why->qualified = large_enough;
        why->best_bytes = largest;
    }
    return why->code == REASON_NONE;
}
