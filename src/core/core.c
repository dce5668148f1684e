/* How this file works: core_new() makes an empty state with default settings; everything else comes by records
 * (apply.c). core_free() frees what struct core owns, part by part: a new member that is owned is freed here. The other
 * functions look at the state for the driver, which sees no more of it than core.h shows. core_sample_is_due() spares
 * the store the samples that would change nothing. */
#include "core/core.h"

#include "base/units.h"
#include "core/jobs.h"
#include "core/learn/pairs.h"
#include "core/learn/readings.h"
#include "core/need/need.h"
#include "core/state.h"
#include "core/users.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/depend.h"
#include "core/waiting/order.h"

struct core *core_new(void)
{
    struct core *core = xcalloc(1, sizeof *core);

    core_config_default(&core->config);
    core->policy = policy_find(core->config.policy);
    prior_init(&core->prior);
    core->activity_version = 1;
    core->next_begin_ns = INT64_MAX;
    core->next_idle_ns = INT64_MAX;
    core->next_late_ns = INT64_MAX;
    order_begin(core);
    return core;
}

void core_free(struct core *core)
{
    struct measure *measure, *next_measure;
    struct job *job, *next;

    if (!core)
        return;
    autocluster_free(core);
    depend_free_tellers(core);
    HASH_ITER (hh, core->jobs, job, next)
        core_end_job(core, job);
    core_forget_ended(core);
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        free(core->gpus[i]->residents);
        free(core->gpus[i]->takers);
        free(core->gpus[i]);
    }
    HASH_ITER (hh, core->measures, measure, next_measure) {
        HASH_DEL(core->measures, measure);
        free(measure);
    }
    strbuf_release(&core->kinds);
    users_free(core);
    free(core->widths);
    free(core->ended);
    free(core->spaces);
    free(core->allotments);
    free(core->gpus);
    order_free(core);
    free(core);
}

int64_t core_reservation(const struct core *core, const struct job *job, uint32_t *source)
{
    return need_memory(core, job, source);
}

const struct job *core_find_job(const struct core *core, uint64_t id)
{
    return core_job_by_id(core, id);
}

const struct user *core_users(const struct core *core)
{
    return core->users;
}

const struct job *core_jobs(const struct core *core)
{
    return core->jobs;
}

const struct gpu *core_gpu(const struct core *core, uint32_t gpu)
{
    return gpu < core->gpu_count ? core->gpus[gpu] : NULL;
}

uint32_t core_gpu_count(const struct core *core)
{
    return core->gpu_count;
}

const struct core_config *core_configuration(const struct core *core)
{
    return &core->config;
}

uint64_t core_waiting_count(const struct core *core)
{
    return core->waiting.count + core->kept.count;
}

uint64_t core_job_count(const struct core *core)
{
    return HASH_COUNT(core->jobs);
}

bool core_sample_is_due(const struct core *core, const struct record *record)
{
    const struct record_sample *sample = &record->sample;
    const struct gpu *gpu = core_gpu(core, sample->gpu);
    bool news;

    if (!gpu)
        return false;
    /* Compared with the core's own figure, not with the last sample: the core itself subtracts the memory of a job that
     * has ended. */
    news = !gpu->measured || gpu->used_bytes != sample->used_bytes || gpu->unmanaged_bytes != sample->unmanaged_bytes ||
           gpu->smact_permille != sample->smact_permille || gpu->smocc_permille != sample->smocc_permille ||
           gpu->dram_permille != sample->dram_permille;
    if (!core_watches_load(core) && gpu->unmanaged_bytes >= 0)
        news = !gpu->measured || gpu->unmanaged_bytes != sample->unmanaged_bytes;
    return (news && (!gpu->measured || order_head(core, record->at_ns) || core->undecided.head)) ||
           (core->config.learn && gpu->others != sample->others) || learn_sample_is_due(core, gpu, record->at_ns);
}

bool core_share_faulted_user(const struct core *core, uint32_t *uid)
{
    for (const struct user *user = core->users; user; user = user->hh.next)
        if (user->share_faulted) {
            *uid = user->uid;
            return true;
        }
    return false;
}

uint32_t core_job_count_of(const struct core *core, uint32_t uid)
{
    const struct user *user = user_find(core, uid);

    return user ? user->unfinished : 0;
}
