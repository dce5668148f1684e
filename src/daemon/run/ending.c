#include "daemon/run/ending.h"

#include <inttypes.h>

#include "api/or_null.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "base/xid.h"
#include "core/crash.h"
#include "core/need/fence.h"
#include "core/ledger.h"
#include "core/verdict.h"
#include "daemon/node/node.h"
#include "daemon/run/mps_jobs.h"
#include "launch/cause.h"

/* For a reading of GPUs that do not answer; the monitor's own timeout is longer. */
#define WAIT_WALL_NS (3 * NS_PER_SEC)

/* Clients of one MPS server that a fault ends, end together: within this wall time. */
#define TOGETHER_WALL_NS (10 * NS_PER_SEC)

/* The cause is known without a reading of the GPUs: the job completed, was stopped, or its output says that memory ran
 * out. Any other failure may be the fault of a GPU. */
static bool is_plain(const struct launch_status *status)
{
    return status->cause == EXIT_COMPLETED || status->stopped || status->cause == EXIT_GPU_OOM ||
           status->cause == EXIT_GPU_HANDLE || status->cause == EXIT_HOST_OOM;
}

static struct node_evidence evidence_of(const struct daemon *daemon, const struct job_view *view,
                                        const struct launch_status *status)
{
    return node_evidence_of(daemon->node, view, status->started_ns, status->ended_ns);
}

bool ending_is_known(const struct daemon *daemon, const struct job_view *view, const struct launch_status *status,
                     int64_t asked_wall_ns)
{
    bool looked = status->cause == EXIT_COMPLETED || mps_jobs_has_looked(daemon->mps_jobs, view->id);

    if (!looked || is_plain(status))
        return looked;
    return evidence_of(daemon, view, status).complete || nodetime_monotonic_wall_ns() - asked_wall_ns > WAIT_WALL_NS;
}

bool ending_is_fault(const struct daemon *daemon, const struct job_view *view, const struct launch_status *status)
{
    return status->phase == LAUNCH_ENDED && status->output == OUTPUT_GPU_FAULT && mps_jobs_is_for(daemon, view);
}

static bool share_a_gpu(const struct job_view *a, const struct job_view *b)
{
    for (uint32_t i = 0; i < a->placement_count; i++)
        for (uint32_t k = 0; k < b->placement_count; k++)
            if (a->placements[i].gpu == b->placements[k].gpu)
                return true;
    return false;
}

/* Whether another client on its GPUs ended with a kernel's fault while it ran, a moment before its end. A server that
 * was asked for its state before and after may have failed in between. */
static bool neighbour_faulted(const struct daemon *daemon, const struct job_view *view, int64_t started_ns,
                              int64_t ended_ns)
{
    int64_t together_ns = (int64_t)((double)TOGETHER_WALL_NS * nodetime_scale());

    for (const struct job_view *other = daemon->views.jobs; other; other = other->hh.next)
        if (other != view && other->run->fault_ns > started_ns && other->run->fault_ns <= ended_ns &&
            ended_ns - other->run->fault_ns <= together_ns && share_a_gpu(view, other))
            return true;
    return false;
}

static void weigh_mps(struct daemon *daemon, struct job_view *view, const struct launch_status *status,
                      const struct mps_words *words, struct cause_evidence *evidence)
{
    bool followed = neighbour_faulted(daemon, view, status->started_ns, status->ended_ns);

    evidence->mps = true;
    evidence->mps_fault = followed || mps_jobs_faulted_since(daemon->mps_jobs, view->id, status->started_ns);
    if (!evidence->mps_fault)
        return;
    if (status->output == OUTPUT_GPU_FAULT)
        evidence->first_fault = mps_jobs_first_to_fault(daemon->mps_jobs, view->id) && !followed;
    if (words->faulted != words->other_faulted) /* its server knows better */
        evidence->first_fault = words->faulted;
}

/* What its processes could still have had below its fence, which may be less than its GPU has. */
static void weigh_fence(const struct job *job, struct cause_evidence *evidence)
{
    int64_t left;

    if (!job || job->run->fence_bytes < 0)
        return;
    left = job->run->fence_bytes - job_peak_bytes(job);
    left = left > 0 ? left : 0;
    if (evidence->free_bytes >= 0 && left > evidence->free_bytes)
        return;
    evidence->free_bytes = left;
    evidence->short_bytes =
        job->run->fence_bytes / 4 > CAUSE_SHORT_BYTES ? job->run->fence_bytes / 4 : CAUSE_SHORT_BYTES;
}

/* What speaks of GPU memory, beyond what the shepherd sees. */
static uint32_t evidence_of_core(const struct core *core, const struct job *job, const struct record *end)
{
    if (!job)
        return 0;
    return (fence_was_met(job) ? EVIDENCE_FENCE : 0) | (crash_is_of_limit(core, job, end) ? EVIDENCE_LIMITED : 0) |
           (crash_is_of_full_gpu(core, job, end) ? EVIDENCE_FULL : 0);
}

/* Of a run that ran out of GPU memory without a word. */
static const char *silent_message(uint32_t evidence)
{
    return evidence & EVIDENCE_FENCE    ? "it said nothing, and had all the GPU memory that its limit allowed"
           : evidence & EVIDENCE_SERVER ? "it said nothing, and its MPS server had refused it GPU memory"
                                        : "it said nothing, and a GPU that it shared was full";
}

/* With what its end left behind, whatever the end was. Takes `message`, which may be NULL. */
static char *add_left(char *message, const struct launch_status *status)
{
    CLEANUP(free_ptr) char *left = launch_left_text(status);
    CLEANUP(free_ptr) char *before = message;

    if (!left)
        return steal_ptr(&before);
    if (before && *before)
        return xasprintf("%s; %s", before, left);
    return status->exit_status > 0 ? xasprintf("exit status %" PRId32 "; %s", status->exit_status, left)
                                   : steal_ptr(&left);
}

/* One line for people: the output's message, and the facts beyond it. */
static char *message_of(const struct launch_status *status, const struct cause_evidence *evidence,
                        const struct record_exited *exited, const struct node_evidence *gpus, uint32_t other_gpu)
{
    uint32_t cause = verdict_of(exited).cause;
    struct strbuf text = {0};
    char bytes[UNITS_TEXT];

    strbuf_puts(&text, status->message);
    if (!text.length && cause == EXIT_GPU_OOM)
        strbuf_puts(&text, silent_message(exited->evidence));
    if (evidence->gpu_lost && cause == EXIT_GPU_ERROR)
        strbuf_printf(&text, "%sGPU %" PRIu32 " was lost", text.length ? "; " : "", gpus->lost_gpu);
    if (evidence->xid && (cause == EXIT_GPU_ERROR || status->output == OUTPUT_GPU_FAULT))
        strbuf_printf(&text, "%sGPU %" PRIu32 " reported Xid %" PRIu32 "%s%s%s", text.length ? "; " : "", gpus->xid_gpu,
                      evidence->xid, *xid_text(evidence->xid) ? " (" : "", xid_text(evidence->xid),
                      *xid_text(evidence->xid) ? ")" : "");
    if (other_gpu != RECORD_NO_GPU)
        strbuf_printf(&text, "%sGPU %" PRIu32 " failed under this workload before: taken for its own failure",
                      text.length ? "; " : "", other_gpu);
    if (status->output == OUTPUT_GPU_HANDLE_MAYBE && evidence->free_bytes >= 0)
        strbuf_printf(&text, "; %s were free", format_bytes(evidence->free_bytes, bytes));
    return strbuf_steal(&text);
}

struct record_exited ending_judge(struct daemon *daemon, struct job_view *view, const struct launch_status *status)
{
    struct node_evidence gpus = evidence_of(daemon, view, status);
    struct cause_evidence evidence = launch_evidence(status);
    const struct job *job = core_find_job(daemon->core, view->id);
    CLEANUP(free_ptr) char *message = NULL;
    struct record_exited exited;
    struct mps_words words;

    evidence.requeue = view->wants->requeue;
    evidence.free_bytes = gpus.free_bytes;
    evidence.xid = gpus.xid;
    evidence.gpu_lost = gpus.lost;
    weigh_fence(job, &evidence);
    mps_jobs_words_of(daemon->mps_jobs, view->id, status->ended_ns, &words);
    if (mps_jobs_is_for(daemon, view) && status->cause != EXIT_COMPLETED)
        weigh_mps(daemon, view, status, &words, &evidence);
    exited = (struct record_exited){.cause = cause_decide(&evidence),
                                    .status = status->signal ? 128 + status->signal : status->exit_status,
                                    .requested_bytes = status->requested_bytes,
                                    .free_bytes = status->free_bytes,
                                    .used_bytes = gpus.used_bytes,
                                    .failed_gpu = gpus.failed_gpu,
                                    .evidence = status->evidence | (words.refused ? EVIDENCE_SERVER : 0)};
    exited.evidence |=
        evidence_of_core(daemon->core, job, &(struct record){.at_ns = status->ended_ns, .exited = exited});
    if (exited.cause == EXIT_GPU_ERROR && exited.failed_gpu == RECORD_NO_GPU && view->placement_count == 1)
        exited.failed_gpu = view->placements[0].gpu; /* it said so itself, of the only one that it has */
    if (ending_is_fault(daemon, view, status))
        job_view_run(view)->fault_ns = status->ended_ns;
    if (verdict_of(&exited).cause != EXIT_COMPLETED)
        message = message_of(status, &evidence, &exited, &gpus,
                             job ? crash_other_gpu(daemon->core, job, &exited) : RECORD_NO_GPU);
    else if (!(exited.evidence & (EVIDENCE_OUTPUT | EVIDENCE_FILE)) && *status->message) /* its start's note */
        message = xstrdup(status->message);
    if (message || !(exited.evidence & (EVIDENCE_OUTPUT | EVIDENCE_FILE))) /* it has another note */
        message = add_left(message, status);
    job_view_set_message(view, message);
    views_touch(&daemon->views, view);
    return exited;
}

json_t *ending_to_json(const struct job_view *view, const struct launch_status *status)
{
    json_t *tenants;

    if (!view->run->exited || view->run->exit.cause == EXIT_COMPLETED)
        return json_null();
    tenants = json_array();
    for (uint32_t i = 0; i < status->tenant_count; i++)
        json_array_append_new(tenants, json_pack("{s:i, s:I}", "pid", (int)status->tenants[i].pid, "used_bytes",
                                                 (json_int_t)status->tenants[i].used_bytes));
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "output", output_kind_name(status->output), "requested_bytes",
                     natural_or_null(view->run->exit.requested_bytes), "free_bytes",
                     natural_or_null(view->run->exit.free_bytes), "used_bytes",
                     natural_or_null(view->run->exit.used_bytes), "tenants", tenants);
}
