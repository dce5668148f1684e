/* How this file works: core_reason asks what a decision would ask, in its order: is the job eligible (eligible.c, which
 * gives the reason itself), does a pass come to it (waiting/backfill.c), is a decision due, and does a GPU qualify
 * (qualify.c). Of several GPUs' reasons the one nearest to a yes is told (nearness), with its numbers (note_gpu). To
 * add a reason: a row of reasons.def, and where it is of a GPU its nearness here. */
#include "core/reason.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/gpus/allotment.h"
#include "core/gpus/closing.h"
#include "core/gpus/suits.h"
#include "core/need/need.h"
#include "core/place.h"
#include "core/qualify.h"
#include "core/share/seen.h"
#include "core/share/sharing.h"
#include "core/share/slowdown.h"
#include "core/state.h"
#include "core/waiting/backfill.h"
#include "core/waiting/eligible.h"
#include "core/waiting/order.h"

const char *reason_name(uint32_t code)
{
    static const char *const names[REASON_CODE_COUNT] = {
#define REASON(code, name, sentence) name,
#include "core/reasons.def"
    };

    return code < REASON_CODE_COUNT ? names[code] : "unknown";
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static const char *format_hours(int64_t ns, char text[static UNITS_TEXT])
{
    if (ns < 3600 * NS_PER_SEC || ns % (3600 * NS_PER_SEC))
        return format_duration(ns, text);
    snprintf(text, UNITS_TEXT, "%" PRId64 " h", ns / (3600 * NS_PER_SEC));
    return text;
}

static void put(char text[static REASON_TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(char text[static REASON_TEXT], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(text, REASON_TEXT, format, args);
    va_end(args);
}

/* A job's number as people write it. */
static void put_other(const struct reason *reason, char number[static JOB_NUMBER_TEXT])
{
    if (*reason->number)
        memcpy(number, reason->number, JOB_NUMBER_TEXT);
    else
        snprintf(number, JOB_NUMBER_TEXT, "%" PRIu64, reason->other);
}

static void put_depends(char text[static REASON_TEXT], const struct reason *reason)
{
    static const char *const verbs[DEPENDS_KINDS] = {
        [DEPENDS_OK] = "complete", [DEPENDS_ANY] = "end", [DEPENDS_NOT_OK] = "fail", [DEPENDS_START] = "start"};
    const char *verb = reason->depends < DEPENDS_KINDS && verbs[reason->depends] ? verbs[reason->depends] : "end";
    char other[JOB_NUMBER_TEXT];

    put_other(reason, other);
    if (reason->ahead == 1)
        put(text, "job %s has to %s first", other, verb);
    else
        put(text, "job %s has to %s first, and %" PRIu64 " more of the jobs on which it depends", other, verb,
            reason->ahead - 1);
}

/* A word in braces of reasons.def. */
static void put_number(struct strbuf *out, const char *word, const struct reason *reason, int64_t now_ns)
{
    const struct {
        const char *word;
        uint64_t value;
    } numbers[] = {{"ahead", reason->ahead},
                   {"gpu", reason->gpu},
                   {"wanted", reason->wanted},
                   {"qualified", reason->qualified},
                   {"allowed", reason->allowed}};
    int32_t permille = strncmp(word, "cap ", 4) == 0 ? reason->cap_permille : reason->best_permille;
    char text[UNITS_TEXT], other[JOB_NUMBER_TEXT];

    put_other(reason, other);
    if (strcmp(word, "other") == 0)
        strbuf_puts(out, other);
    for (size_t i = 0; i < array_size(numbers); i++)
        if (strcmp(word, numbers[i].word) == 0)
            strbuf_printf(out, "%" PRIu64, numbers[i].value);
        else if (strncmp(word, numbers[i].word, strlen(numbers[i].word)) == 0 && strstr(word, "?s"))
            strbuf_puts(out, plural(numbers[i].value));
    if (strcmp(word, "needed") == 0 || strcmp(word, "best") == 0 || strcmp(word, "held") == 0)
        strbuf_puts(out, format_bytes(*word == 'n'   ? reason->needed_bytes
                                      : *word == 'b' ? reason->best_bytes
                                                     : reason->held_bytes,
                                      text));
    else if (strcmp(word, "wait") == 0)
        strbuf_puts(out, format_duration(reason->until_ns - now_ns, text));
    else if (strcmp(word, "why") == 0)
        strbuf_puts(out, reason->why);
    else if (strstr(word, "times"))
        strbuf_printf(out, "%d.%02dx", permille / 1000, permille % 1000 / 10);
    else if (strstr(word, "percent"))
        strbuf_printf(out, "%d.%d%%", permille / 10, permille % 10);
}

static void put_sentence(char text[static REASON_TEXT], const char *sentence, const struct reason *reason,
                         int64_t now_ns)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    const char *open;

    for (; (open = strchr(sentence, '{')); sentence = strchr(open, '}') + 1) {
        CLEANUP(free_ptr) char *word = xstrndup(open + 1, strcspn(open + 1, "}"));
        strbuf_append(&out, sentence, (size_t)(open - sentence));
        put_number(&out, word, reason, now_ns);
    }
    strbuf_puts(&out, sentence);
    put(text, "%s", out.text);
}

static void put_allotted(char text[static REASON_TEXT], const struct reason *reason, int64_t now_ns)
{
    CLEANUP(free_ptr)
    char *user = reason->owner ? xstrdup(reason->owner) : xasprintf("user %" PRIu64, reason->other);
    CLEANUP(free_ptr)
    char *more = reason->ahead ? xasprintf(" and %" PRIu64 " more", reason->ahead) : xstrdup("");
    char time[UNITS_TEXT], limit[UNITS_TEXT];

    if (reason->from_ns)
        put(text, "GPU %" PRIu32 " will be reserved for %s%s in %s: until then it takes jobs of --time %s or less",
            reason->gpu, user, more, format_duration(reason->from_ns - now_ns, time),
            format_duration(reason->limit_ns, limit));
    else
        put(text, "GPU %" PRIu32 " is reserved for %s%s for %s more", reason->gpu, user, more,
            format_duration(reason->until_ns - now_ns, time));
}

static void put_unsuited(char text[static REASON_TEXT], const struct reason *reason)
{
    CLEANUP(strbuf_release) struct strbuf choice = {0};

    gpu_choice(reason->choice, &choice);
    if (reason->wanted == 0)
        put(text, "is none of those that the job asks for: %s", choice.text);
    else
        put(text, "%" PRIu32 " GPU%s needed of those of %s, the node has %" PRIu32 ": its GPUs are %s", reason->wanted,
            plural(reason->wanted), choice.text, reason->qualified, reason->why);
}

/* Why fewer GPUs count than people see. */
static void add_choice(char text[static REASON_TEXT], const struct reason *reason)
{
    CLEANUP(strbuf_release) struct strbuf choice = {0};
    size_t length = strlen(text);

    gpu_choice(reason->choice, &choice);
    snprintf(text + length, REASON_TEXT - length, "; %s leaves %" PRIu32 " of %" PRIu32 " GPUs", choice.text,
             reason->suited, reason->present);
}

/* Those about one GPU (`wanted` is 0) stand in a row of that GPU. */
static void put_reason(char text[static REASON_TEXT], const struct reason *reason, int64_t now_ns)
{
    static const char *const sentences[REASON_CODE_COUNT] = {
#define REASON(code, name, sentence) sentence,
#include "core/reasons.def"
    };
    char needed[UNITS_TEXT], best[UNITS_TEXT], held[UNITS_TEXT], wait[UNITS_TEXT];
    const char *are = reason->qualified == 1 ? "is" : "are", *s = plural(reason->wanted);
    uint32_t gpu = reason->gpu, wanted = reason->wanted, qualified = reason->qualified;
    char other[JOB_NUMBER_TEXT];

    if (reason->code < REASON_CODE_COUNT && sentences[reason->code]) {
        put_sentence(text, sentences[reason->code], reason, now_ns);
        return;
    }
    put_other(reason, other);
    format_bytes(reason->needed_bytes, needed);
    format_bytes(reason->best_bytes, best);
    format_bytes(reason->held_bytes, held);
    format_duration(reason->until_ns - now_ns, wait);
    switch (reason->code) {
    case REASON_MEMORY:
        if (wanted == 0)
            put(text, "less than the %s needed", needed);
        else if (wanted == 1)
            put(text, "%s free at most, on GPU %" PRIu32 "; %s needed", best, gpu, needed);
        else
            put(text, "%" PRIu32 " of %" PRIu32 " GPUs %s %s free; the next has %s, GPU %" PRIu32, qualified, wanted,
                qualified == 1 ? "has" : "have", needed, best, gpu);
        break;
    case REASON_NO_IDLE_GPU:
        if (wanted == 0)
            put(text, "not idle, and the job needs GPUs to itself");
        else
            put(text, "%" PRIu32 " idle GPU%s needed, %" PRIu32 " %s idle", wanted, s, qualified, are);
        break;
    case REASON_RESERVED:
        put(text, "GPU %" PRIu32 " is reserved for job %s, %s%s", gpu, other,
            reason->waited_ns ? "which has waited over " : "which others have passed",
            reason->waited_ns ? format_hours(reason->waited_ns, wait) : "");
        break;
    case REASON_GPUS_LOST:
        if (wanted == 0) /* of one GPU */
            put(text, "takes no job now: 'carma gpus' says why");
        else
            put(text, "%" PRIu32 " GPU%s needed, %" PRIu32 " of the node's %s usable: 'carma gpus' says why", wanted, s,
                qualified, are);
        break;
    case REASON_CLOSED:
        if (reason->until_ns > now_ns)
            put(text,
                "GPU %" PRIu32
                " does not start programs: it is tried again in %s, or opened by 'carma admin gpu open %" PRIu32 "'",
                gpu, wait, gpu);
        else
            put(text, "GPU %" PRIu32 " failed under this job: it waits for another", gpu);
        break;
    case REASON_ALLOTTED:
        put_allotted(text, reason, now_ns);
        break;
    case REASON_PERIOD:
        if (reason->until_ns - now_ns < NS_PER_SEC)
            put(text, "next decision in less than a second");
        else
            put(text, "next decision in %s", wait);
        break;
    case REASON_OTHER_MODE:
        put(text, "job %s uses GPU %" PRIu32 " %s: all jobs of a GPU share it in one mode", other, gpu,
            reason->share == SHARE_MPS ? "by MPS" : "by time-slicing");
        break;
    case REASON_TURNS:
        put(text, "GPU %" PRIu32 " is in use by %s%sjob %s; time-slicing with it would not pay", gpu,
            reason->owner ? reason->owner : "", reason->owner ? "'s " : "", other);
        break;
    case REASON_PAIR:
        if (reason->cap_permille)
            put(text, "job %s on GPU %" PRIu32 ": one of such a pair ran %d.%02dx slower before; the limit is %d.%02dx",
                other, gpu, reason->best_permille / 1000, reason->best_permille % 1000 / 10,
                reason->cap_permille / 1000, reason->cap_permille % 1000 / 10);
        else
            put(text,
                "job %s on GPU %" PRIu32 ": such a pair did %" PRId64
                "%% of the work of one job before; the least is %" PRId64 "%%",
                other, gpu, reason->best_ppm / 10000, reason->least_ppm / 10000);
        break;
    case REASON_SLOWED:
        if (!reason->other)
            put(text,
                "runs %d.%02dx slower than alone on GPU %" PRIu32 "; the limit is %d.%02dx: no job joins it meanwhile",
                reason->best_permille / 1000, reason->best_permille % 1000 / 10, gpu, reason->cap_permille / 1000,
                reason->cap_permille % 1000 / 10);
        else
            put(text,
                "job %s on GPU %" PRIu32
                " runs %d.%02dx slower than alone; its limit is %d.%02dx: no job joins it meanwhile",
                other, gpu, reason->best_permille / 1000, reason->best_permille % 1000 / 10,
                reason->cap_permille / 1000, reason->cap_permille % 1000 / 10);
        break;
    case REASON_OTHER_USER:
        if (reason->owner)
            put(text, "%s uses GPU %" PRIu32 " by MPS, whose server is for one user at a time", reason->owner, gpu);
        else
            put(text, "user %" PRIu64 " uses GPU %" PRIu32 " by MPS, whose server is for one user at a time",
                reason->other, gpu);
        break;
    case REASON_NO_MPS:
        if (wanted == 0)
            put(text, "not shared by MPS, which the job asks for");
        else
            put(text,
                "%" PRIu32 " GPU%s with MPS needed, %" PRIu32
                " %s configured for it: leave --share mps out, or set share = mps for carmad",
                wanted, s, qualified, are);
        break;
    case REASON_INSTANCE:
        if (wanted == 0)
            put(text, "a MIG instance, of which a process can use only one");
        else
            put(text, "%" PRIu32 " whole GPUs needed, %" PRIu32 " %s whole: a process can use only one MIG instance",
                wanted, qualified, are);
        break;
    case REASON_USER_GPUS:
        if (wanted > reason->allowed)
            put(text, "%" PRIu32 " GPUs needed, a user's limit is %" PRIu32 " (max_gpus_per_user)", wanted,
                reason->allowed);
        else
            put(text, "%" PRIu32 " GPU%s needed, its user has %" PRIu32 " of at most %" PRIu32 " (max_gpus_per_user)",
                wanted, s, qualified, reason->allowed);
        break;
    case REASON_USER_MEMORY:
        if (reason->needed_bytes > reason->best_bytes)
            put(text, "%s of GPU memory needed%s, a user's limit is %s (max_gpu_memory_per_user)", needed,
                reason->request_unknown ? " (whole GPUs: it requests none)" : "", best);
        else
            put(text, "%s of GPU memory needed%s, its user's jobs have %s of at most %s (max_gpu_memory_per_user)",
                needed, reason->request_unknown ? " (whole GPUs: it requests none)" : "", held, best);
        break;
    case REASON_DEPENDS:
        put_depends(text, reason);
        break;
    case REASON_NEVER_FITS:
        if (qualified == 0)
            put(text, "%s of GPU memory needed, no GPU has that much (largest: %s)", needed, best);
        else
            put(text, "%s of GPU memory needed on %" PRIu32 " GPUs, only %" PRIu32 " %s that much", needed, wanted,
                qualified, qualified == 1 ? "has" : "have");
        break;
    case REASON_UNSUITED:
        put_unsuited(text, reason);
        break;
    default:
        put(text, "does not wait");
        break;
    }
}

char *reason_format(const struct reason *reason, int64_t now_ns, char text[static REASON_TEXT])
{
    put_reason(text, reason, now_ns);
    if (reason->present)
        add_choice(text, reason);
    return text;
}

/* Of several GPUs that say no for several reasons, the reason nearest to a yes is the one to tell. */
static int nearness(uint32_t code)
{
    static const uint32_t order[] = {
        REASON_GPUS_LOST,   REASON_DRAINED,     REASON_CLOSED,     REASON_ALLOTTED,   REASON_NOT_MEASURED,
        REASON_EXCLUSIVE,   REASON_SHARE_FAULT, REASON_OTHER_MODE, REASON_OTHER_USER, REASON_OWN_SERVER,
        REASON_CLIENTS,     REASON_FULL,        REASON_RESERVED,   REASON_MEMORY,     REASON_SETTLING,
        REASON_SM_ACTIVITY, REASON_TURNS,       REASON_SLOWED,     REASON_PAIR,       REASON_SLOWDOWN,
    };

    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (order[i] == code)
            return (int)i + 1;
    return 0;
}

/* The first resident whose sharing mode is in the way. */
static void note_residents(const struct core *core, const struct job *job, const struct gpu *gpu, struct reason *reason)
{
    const struct job *there = gpu->resident_count ? gpu->residents[0] : sharing_client(core, gpu), *other = there;
    enum share_mode way = sharing_mode_of(core, job, gpu);

    for (uint32_t i = 1; i < gpu->resident_count && there->share == way; i++)
        there = gpu->residents[i]->share == way ? there : gpu->residents[i];
    for (uint32_t i = 1; i < gpu->resident_count && other->wants->uid == job->wants->uid; i++)
        other = gpu->residents[i];
    reason->other = reason->code != REASON_OTHER_USER                   ? there->id
                    : gpu->server && gpu->server_uid != job->wants->uid ? gpu->server_uid
                                                                        : other->wants->uid;
    reason->resident = reason->other == other->wants->uid ? other->id : 0;
    reason->share = there->share;
    reason->qualified = reason->code == REASON_CLIENTS ? gpu->resident_count : reason->qualified;
}

/* Whether GPUs with the verdict differ in how near they are; else the first is told. */
static bool is_compared(uint32_t code)
{
    return code == REASON_MEMORY || code == REASON_SM_ACTIVITY || code == REASON_SLOWDOWN || code == REASON_CLOSED ||
           code == REASON_SETTLING;
}

static void note_slowed(const struct core *core, const struct job *slowed, struct reason *reason)
{
    reason->other = slowed->id;
    reason->best_permille = seen_slowdown(core, slowed);
    reason->cap_permille = job_slowdown_bound(core, slowed);
}

/* Keeps the numbers of the GPU that came nearest, within one verdict. */
static void note_gpu(const struct core *core, const struct job *job, const struct gpu *gpu, struct reason *reason)
{
    int64_t free_bytes = gpu_free_bytes(core, gpu), waited_ns;
    struct slowdown with;
    bool first = reason->gpu == UINT32_MAX;

    if (!first && !is_compared(reason->code))
        return;
    switch (reason->code) {
    case REASON_MEMORY:
        if (!first && free_bytes <= reason->best_bytes)
            return;
        reason->best_bytes = free_bytes;
        reason->needed_bytes = job_needed_bytes_on(core, job, gpu);
        break;
    case REASON_SM_ACTIVITY:
        if (!first && gpu->smact_permille >= reason->best_permille)
            return;
        reason->best_permille = gpu->smact_permille;
        break;
    case REASON_SLOWDOWN:
        with = slowdown_predict(core, gpu, job);
        if (!first && with.worst_permille >= reason->best_permille)
            return;
        reason->best_permille = with.worst_permille;
        reason->cap_permille = slowdown_most_predicted(&with, gpu_slowdown_bound(core, job, gpu));
        break;
    case REASON_SLOWED:
        note_slowed(core, seen_beyond_bound(core, gpu), reason);
        break;
    case REASON_PAIR:
        with = slowdown_predict(core, gpu, job);
        reason->other = gpu->residents[0]->id;
        reason->cap_permille = gpu_slowdown_bound(core, job, gpu);
        reason->best_permille = with.worst_permille;
        reason->best_ppm = with.progress_ppm;
        reason->least_ppm = slowdown_least_progress_ppm(core, gpu, &with);
        if (with.worst_permille <= reason->cap_permille)
            reason->cap_permille = 0;
        break;
    case REASON_TURNS:
        reason->other = reason->resident = gpu->residents[0]->id;
        break;
    case REASON_DRAINED:
        reason->why = gpu_drain(core, gpu->drained ? gpu : NULL)->why;
        break;
    case REASON_CLOSED:
        if (!first && closing_until_ns(gpu, job->wants->uid) >= reason->until_ns)
            return;
        reason->until_ns = closing_until_ns(gpu, job->wants->uid);
        break;
    case REASON_ALLOTTED:
        allotment_note(core, job, gpu, reason);
        break;
    case REASON_SETTLING:
        if (!first && gpu->closed_until_ns >= reason->until_ns)
            return;
        reason->until_ns = gpu->closed_until_ns;
        reason->other = gpu->settling_job;
        break;
    case REASON_RESERVED:
        reason->other = gpu->reserved_for;
        waited_ns = gpu->reserved_ns - job_waits_since_ns(core_job_by_id(core, gpu->reserved_for));
        if (waited_ns >= core->config.starvation_timeout_ns)
            reason->waited_ns = core->config.starvation_timeout_ns;
        break;
    case REASON_FULL:
        reason->qualified = gpu->resident_count;
        break;
    case REASON_EXCLUSIVE:
        reason->other = gpu_exclusive_resident(gpu)->id;
        break;
    case REASON_OTHER_MODE:
    case REASON_OTHER_USER:
    case REASON_OWN_SERVER:
    case REASON_CLIENTS:
        note_residents(core, job, gpu, reason);
        break;
    default:
        break;
    }
    reason->gpu = gpu->number;
}

static struct reason reason_of_idle_seeker(const struct core *core, const struct job *job)
{
    struct reason reason = {.code = REASON_NO_IDLE_GPU, .wanted = job->wants->gpus};
    const struct gpu *served = NULL, *closed = NULL, *drained = NULL, *allotted = NULL;
    uint32_t there = 0;

    for (uint32_t i = 0; i < core->gpu_count; i++) {
        const struct gpu *gpu = core->gpus[i];
        there += gpu_is_open(gpu) && sharing_ever(job->wants, gpu) == REASON_NONE;
        if (gpu_is_open(gpu) && closing_is_closed_to(core, job, gpu))
            closed = gpu;
        if (gpu_idle(gpu) && gpu_could_take(job, gpu) && allotment_against(core, job, gpu))
            allotted = gpu;
        if (!drained && gpu_suits(job->wants, gpu) && gpu_closed_reason(gpu) == REASON_DRAINED)
            drained = gpu;
        reason.qualified += gpu_fits_idle(core, job, gpu);
        if (gpu_idle(gpu) && sharing_verdict(core, job, gpu) != sharing_ever(job->wants, gpu))
            served = gpu;
    }
    if (there < job->wants->gpus && drained) {
        reason.code = REASON_DRAINED;
        reason.gpu = UINT32_MAX;
        note_gpu(core, job, drained, &reason);
    } else if (there < job->wants->gpus) {
        reason.code = REASON_GPUS_LOST;
        reason.qualified = there;
    } else if (closed && gpu_idle(closed)) {
        reason.code = REASON_CLOSED;
        reason.gpu = UINT32_MAX;
        note_gpu(core, job, closed, &reason);
    } else if (allotted) {
        reason.code = REASON_ALLOTTED;
        reason.gpu = UINT32_MAX;
        note_gpu(core, job, allotted, &reason);
    } else if (served) { /* idle, but for its MPS server */
        reason.code = sharing_verdict(core, job, served);
        reason.gpu = UINT32_MAX;
        note_gpu(core, job, served, &reason);
    }
    return reason;
}

static struct reason reason_of_mps_client(const struct core *core, const struct job *job, int64_t now_ns)
{
    struct reason reason = {.wanted = job->wants->gpus,
                            .needed_bytes = job_needed_bytes(core, job),
                            .cap_permille = core->config.smact_cap_permille};
    uint32_t qualified = 0, there = 0;

    reason.code = REASON_GPUS_LOST;
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        uint32_t verdict = gpu_verdict(core, job, core->gpus[i], now_ns);
        there += gpu_is_open(core->gpus[i]) && verdict != REASON_NO_MPS && verdict != REASON_INSTANCE &&
                 verdict != REASON_UNSUITED;
        qualified += verdict == REASON_NONE;
        if (nearness(verdict) > nearness(reason.code))
            reason.code = verdict;
    }
    reason.qualified = reason.code == REASON_GPUS_LOST ? there : qualified;
    reason.gpu = UINT32_MAX;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        if (gpu_verdict(core, job, core->gpus[i], now_ns) == reason.code)
            note_gpu(core, job, core->gpus[i], &reason);
    if (reason.gpu == UINT32_MAX)
        reason.gpu = 0;
    return reason;
}

/* Reasons that an idle GPU has too. */
static bool stands_for_itself(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    return !gpu_is_open(gpu) || closing_is_closed_to(core, job, gpu) || allotment_against(core, job, gpu) ||
           sharing_ever(job->wants, gpu) != REASON_NONE ||
           (gpu_idle(gpu) && sharing_verdict(core, job, gpu) != REASON_NONE);
}

struct reason core_gpu_reason(const struct core *core, uint64_t id, uint32_t number, int64_t now_ns)
{
    const struct job *job = core_find_job(core, id);
    const struct gpu *gpu = core_gpu(core, number);
    struct reason reason = {.code = REASON_NONE, .gpu = UINT32_MAX};

    if (!job || !gpu || (job->state != JOB_QUEUED && job->state != JOB_HELD))
        return reason;
    reason.code = gpu_verdict(core, job, gpu, now_ns);
    reason.choice = job->wants;
    if (!stands_for_itself(core, job, gpu) && job_wants_idle(core, job) && !gpu_fits_idle(core, job, gpu))
        reason.code = REASON_NO_IDLE_GPU;
    reason.needed_bytes = job_needed_bytes(core, job);
    reason.cap_permille = core->config.smact_cap_permille;
    note_gpu(core, job, gpu, &reason);
    reason.gpu = number;
    return reason;
}

uint32_t core_gpu_mode(const struct core *core, uint64_t id, uint32_t number)
{
    const struct job *job = core_find_job(core, id);
    const struct gpu *gpu = core_gpu(core, number);

    return job && gpu ? sharing_mode_of(core, job, gpu) : SHARE_ANY;
}

/* It does not wait; what it is slowed by is told as a reason. */
static struct reason reason_of_running(const struct core *core, const struct job *job)
{
    struct reason reason = {.code = REASON_NONE};

    if (!core_gates_slowdown(core) || !seen_is_beyond_bound(core, job))
        return reason;
    reason.code = REASON_SLOWED;
    note_slowed(core, job, &reason);
    reason.other = 0;
    reason.gpu = job->placements[0].gpu;
    return reason;
}

static void note_choice(const struct core *core, const struct job *job, struct reason *reason)
{
    reason->choice = job->wants;
    reason->present = core->gpu_count;
    for (uint32_t i = 0; i < core->gpu_count; i++)
        reason->suited += gpu_suits(job->wants, core->gpus[i]);
}

struct reason core_reason(const struct core *core, uint64_t id, int64_t now_ns)
{
    const struct job *job = core_find_job(core, id);
    const struct job *head = order_head(core, now_ns);
    struct reason kept, allotted = {.code = REASON_ALLOTTED};

    if (job && job->state == JOB_SUSPENDED && allotment_keeps_still(core, job, now_ns, &allotted))
        return allotted;
    if (job && job->placement_count)
        return reason_of_running(core, job);
    if (!job || (job->state != JOB_HELD && job->state != JOB_QUEUED))
        return (struct reason){.code = REASON_NONE};
    if (!job_is_eligible(core, job, &kept))
        return kept;
    if (!backfill_reaches(core, job, now_ns)) {
        if (!job->retry && head->retry)
            return (struct reason){.code = REASON_RETRY_FIRST, .other = head->id};
        return (struct reason){
            .code = REASON_BEHIND, .ahead = order_rank(core, job, now_ns) ? job->rank - 1 : 0, .other = head->id};
    }
    if (!core_decision_due(core, now_ns))
        return (struct reason){.code = REASON_PERIOD, .until_ns = core->next_decision_ns};
    kept = job_wants_idle(core, job) ? reason_of_idle_seeker(core, job) : reason_of_mps_client(core, job, now_ns);
    if (gpu_choosy(job->wants))
        note_choice(core, job, &kept);
    return kept;
}
