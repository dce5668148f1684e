/* How this file works: each part of the state prints its lines, in a fixed order and without caches, so that equal
 * states give equal text. A durable member that is added anywhere belongs here, too. */
#include <inttypes.h>

#include "base/strbuf.h"
#include "core/guess/kin.h"
#include "core/learn/company.h"
#include "core/learn/learn.h"
#include "core/state.h"

static void dump_job(struct strbuf *text, const struct job *job)
{
    strbuf_printf(text,
                  "job %" PRIu64 " %s uid=%" PRIu32 " gpus=%" PRIu32 " wants=%" PRId64 "/%s/%" PRId32
                  " share=%s exclusive=%d workload=%s submitted=%" PRId64 " place=%" PRIu64 " placed=%" PRId64
                  " retried=%d signalled=%d lease=%d/%" PRId64 " suspended=%d"
                  " crashes=%" PRIu32 "/%" PRIu32 "/%" PRIu32 "/%" PRIu32 " cause=%s/%d alone=%d@%" PRId64
                  " needed=%" PRId64 " available=%" PRId64 " retry=%" PRId64 " reserved=%" PRId64 "/%s"
                  " granted=%" PRId64 " fence=%" PRId64 "/%d/%d victim=%" PRIu64 "/%" PRIu32 "/%" PRIu32
                  " counted=%" PRId64 "+%" PRId64 " used=%" PRId64 " bound=%" PRId32 " by=%s"
                  " limit=%" PRId64 " signal=%" PRIu32 "@%" PRId64 " requeue=%d failed=%" PRIu32 "@%" PRId64,
                  job->id, job_state_name(job->state), job->wants->uid, job->wants->gpus, job->wants->request_bytes,
                  memory_source_name(job->wants->request_source), job->wants->smact_permille,
                  share_mode_name(job->wants->share), job->wants->exclusive, job->profile ? job->profile->workload : "",
                  job->submitted_ns, job->place, job->placed_ns, job->retry, job->signalled, job->wants->external,
                  job->wants->max_wait_ns, job->suspended, job->crashes, job->oom_crashes, job->external_failures,
                  job->timeouts, exit_cause_name(job->crash_cause), job->crash_is_oom, job->crashed_alone,
                  job->crashed_ns, job->crash_needed_bytes, job->crash_available_bytes, job->signal_retry_ns,
                  job->reserved_bytes, memory_source_name(job->reservation_source), job->granted_bytes,
                  job->fence_bytes, job->unfenced, job->crash_fenced, job->overuser, job->harmed, job->victims,
                  job->counted_bytes, job->stray_bytes, job->first_use_ns, job->wants->max_slowdown_permille,
                  share_mode_name(job->share), job->wants->time_limit_ns, job->wants->signal,
                  job->wants->signal_before_ns, job->wants->requeue, job->failure.gpu, job->failure.at_ns);
    for (uint32_t i = 0; i < job->placement_count; i++)
        strbuf_printf(text, " on=%" PRIu32 ":%" PRId64, job->placements[i].gpu, job->placements[i].observed_bytes);
    for (uint32_t i = 0; i < job->stray_count; i++)
        strbuf_printf(text, " stray=%" PRIu32 ":%" PRId64, job->strays[i].gpu, job->strays[i].observed_bytes);
    strbuf_puts(text, "\n");
}

static void dump_gpu(struct strbuf *text, const struct gpu *gpu)
{
    strbuf_printf(text,
                  "gpu %" PRIu32 " %s total=%" PRId64 " share=%s/%d server=%" PRIu64 "/%" PRIu32
                  " instance=%d lost=%d measured=%d used=%" PRId64 " unmanaged=%" PRId64 "/%d smact=%" PRId32
                  "/%" PRId32 "/%" PRId32 " reserved=%" PRIu64 "/%" PRId64 " settling=%" PRIu64 " until=%" PRId64
                  " changed=%" PRId64 " learned=%" PRId64 " overused=%" PRIu64 ":%" PRId64 "@%" PRId64 " residents=",
                  gpu->number, gpu->uuid, gpu->total_bytes, share_mode_name(gpu->share), gpu->share_faulted,
                  gpu->server, gpu->server_uid, gpu->instance, gpu->lost, gpu->measured, gpu->used_bytes,
                  gpu->unmanaged_bytes, gpu->others, gpu->smact_permille, gpu->smocc_permille, gpu->dram_permille,
                  gpu->reserved_for, gpu->reserved_for ? gpu->reserved_ns : 0, gpu->settling_job,
                  gpu->settling_job ? gpu->closed_until_ns : 0, gpu->changed_ns, gpu->learned_ns, gpu->overused.job,
                  gpu->overused.bytes, gpu->overused.left_ns);
    for (uint32_t i = 0; i < gpu->resident_count; i++)
        strbuf_printf(text, "%" PRIu64 ",", gpu->residents[i]->id);
    strbuf_puts(text, " dead=");
    for (uint32_t i = 0; i < gpu->closing.count; i++)
        strbuf_printf(text, "%" PRIu32 ",", ((const uint32_t *)gpu->closing.users)[i]);
    strbuf_puts(text, "\n");
}

/* Its jobs of these classes. */
static void dump_queue(struct strbuf *text, const char *name, const struct queue *queue, enum order_class first,
                       enum order_class last)
{
    strbuf_printf(text, "%s:", name);
    for (const struct job *job = queue->head; job; job = job->next)
        if (job->turn.class >= first && job->turn.class <= last)
            strbuf_printf(text, " %" PRIu64, job->id);
    strbuf_puts(text, "\n");
}

static void dump_prior(struct strbuf *text, const char *name, const struct prior *prior)
{
    if (!prior)
        return;
    strbuf_printf(text, "%s:", name);
    for (uint32_t bin = 0; bin < PRIOR_BINS; bin++)
        strbuf_printf(text, " %" PRIu32, prior->parts[bin]);
    strbuf_puts(text, "\n");
}

static void dump_learned(struct strbuf *text, const struct user *user)
{
    if (user->own || user->unfinished)
        strbuf_printf(text, "user %" PRIu32 " likely=%" PRId64 " careful=%" PRId64 "\n", user->uid, user->likely_bytes,
                      user->careful_bytes);
    dump_prior(text, "own", user->own);
    dump_prior(text, "told", user->told);
    for (const struct profile *profile = user->profiles; profile; profile = profile->hh.next) {
        strbuf_printf(text,
                      "history %" PRIu32 "/%s runs=%" PRIu32 "/%d first=%" PRId64 " sum=%" PRId64 " squares=%" PRId64
                      " outgrown=%" PRId64 " peak=%" PRId64 " estimated=%" PRId64 " activity=%" PRId32
                      " variance=%" PRId64 " failed=%" PRIu32 "@%" PRId64 "\n",
                      user->uid, profile->workload, profile->runs, profile->tells, profile->first_bytes,
                      profile->distance_sum, profile->distance_squares, profile->outgrown_bytes, profile->peak_bytes,
                      profile->estimated_bytes, profile->activity_permille, profile->variance, profile->failure.gpu,
                      profile->failure.at_ns);
        if (profile->kin)
            strbuf_printf(text, "kin %" PRIu32 "/%" PRIu32 " likely=%" PRId64 "\n", profile->kin->completed,
                          profile->kin->profiles, profile->kin->likely_bytes);
    }
}

char *core_dump(const struct core *core)
{
    const struct core_config *config = &core->config;
    struct strbuf text = {0};

    strbuf_printf(&text,
                  "config policy=%s view=%s floor=%" PRId64 " margin=%" PRId64 " cap=%" PRId32 " period=%" PRId64
                  " settle=%" PRId64 " retries=%" PRIu32 " requeues=%" PRIu32 "/%d per_gpu=%" PRIu32 " caps=%" PRId32
                  "/%" PRId32 "/%d"
                  " statistic=%" PRIu32 " window=%" PRId64 " extra=%" PRId64 " paced=%d oom_retry=%" PRIu32
                  " fence=%" PRIu32 " backfill=%" PRIu32 " starvation_timeout=%" PRId64 " slowdown=%" PRId32
                  " learn=%d prior=%" PRId32 " shrink_after=%" PRId64 " multiuser=%d domain=%" PRIu32
                  " clients=%" PRIu32 " gate=%" PRIu32 " per_user=%" PRIu32 "/%" PRIu32 "/%" PRIu32 "/%" PRId64
                  "/%" PRIu32 "\n",
                  config->policy, memory_view_name(config->memory_view), config->floor_bytes, config->margin_bytes,
                  config->smact_cap_permille, config->decide_period_ns, config->settle_ns, config->max_retries,
                  config->max_requeues, config->requeue_lost, config->max_jobs_per_gpu, config->smocc_cap_permille,
                  config->dram_cap_permille, config->caps_together, config->statistic, config->window_ns,
                  config->collocate_extra_ns, config->paced, config->oom_retry, config->memory_fence, config->backfill,
                  config->starvation_timeout_ns, config->max_slowdown_permille, config->learn,
                  config->prior_quantile_permille, config->shrink_after_ns, config->mps_multiuser, config->mps_domain,
                  config->mps_max_clients, config->gate, config->per_user.max_queued, config->per_user.max_running,
                  config->per_user.max_gpus, config->per_user.max_memory_bytes, config->per_user.max_retries);
    strbuf_printf(&text, "next_decision=%" PRId64 " round_robin_next=%" PRIu32 "\n", core->next_decision_ns,
                  core->round_robin_next);
    dump_prior(&text, "prior", &core->prior);
    for (uint32_t i = 0; i < core->gpu_count; i++)
        dump_gpu(&text, core->gpus[i]);
    dump_queue(&text, "waiting", &core->waiting, CLASS_MAIN, CLASS_MAIN);
    dump_queue(&text, "retrying", &core->waiting, CLASS_NONE, CLASS_MAIN - 1);
    dump_queue(&text, "held", &core->held, CLASS_NONE, CLASS_MAIN);
    dump_queue(&text, "undecided", &core->undecided, CLASS_NONE, CLASS_MAIN);
    for (const struct user *user = core->users; user; user = user->hh.next)
        dump_learned(&text, user);
    for (const struct measure *measure = core->measures; measure; measure = measure->hh.next)
        strbuf_printf(&text,
                      "measure %" PRIu32 "/%s beside=%" PRIu32 "/%s by=%s kind=%" PRIu32 " value=%" PRId64 "/%" PRId64
                      " gpu=%" PRId64 " readings=%" PRIu32 "@%" PRId64 "\n",
                      measure->key.of->user->uid, measure->key.of->workload,
                      measure->key.beside ? measure->key.beside->user->uid : 0,
                      measure->key.beside ? measure->key.beside->workload : "", share_mode_name(measure->key.share),
                      measure->key.kind, measure->value, measure->unit, measure->gpu_bytes, measure->readings,
                      measure->at_ns);
    for (const struct user *user = core->users; user; user = user->hh.next)
        if (user->unfinished || user->retries || user->share_faulted)
            strbuf_printf(&text,
                          "user %" PRIu32 " unfinished=%" PRIu32 " running=%" PRIu32 " gpus=%" PRIu32 " memory=%" PRIu64
                          " retries=%" PRIu32 "/%" PRId64 " share_faulted=%d\n",
                          user->uid, user->unfinished, user->running, user->gpus, user->memory_bytes, user->retries,
                          user->retries_ns, user->share_faulted);
    for (const struct job *job = core->jobs; job; job = job->hh.next)
        dump_job(&text, job);
    return strbuf_steal(&text);
}
