/* How this file works: sharing_ever goes by a GPU's configuration alone, sharing_verdict by its residents and MPS
 * servers as well; qualify.c asks both. sharing_begins and sharing_ends remember the servers as their clients come and
 * go. */
#include "core/share/sharing.h"

#include "base/share.h"
#include "core/gpus/suits.h"
#include "core/state.h"

enum share_mode sharing_configured(const struct gpu *gpu)
{
    return gpu->share == SHARE_ANY ? SHARE_TIME_SLICE : gpu->share;
}

bool sharing_serves(const struct gpu *gpu)
{
    return gpu->share == SHARE_MPS || gpu->share == SHARE_AUTO;
}

/* Jobs share it in several modes at once, and clients of several servers. Where each GPU has its own server, it is one
 * user's. */
static bool mixes(const struct core *core, const struct gpu *gpu)
{
    return gpu->share == SHARE_AUTO && core->config.mps_domain != MPS_DOMAIN_GPU;
}

uint32_t sharing_ever(const struct record_submitted *wants, const struct gpu *gpu)
{
    if (!gpu_suits(wants, gpu))
        return REASON_UNSUITED;
    if (gpu->instance && wants->gpus > 1)
        return REASON_INSTANCE;
    if (wants->share == SHARE_MPS && !wants->exclusive && !sharing_serves(gpu))
        return REASON_NO_MPS;
    return REASON_NONE;
}

/* A job of several GPUs may join clients where its server is there already, on all its GPUs. It may also where it
 * cannot come to share the others of them in another way. */
static bool may_join(const struct core *core, const struct job *job)
{
    return job->wants->gpus == 1 || (core->config.mps_domain != MPS_DOMAIN_GPU &&
                                     (job->wants->share == SHARE_MPS || core->mps_count == core->gpu_count));
}

enum share_mode sharing_mode_of(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    if (job->wants->exclusive || gpu->share == SHARE_EXCLUSIVE)
        return SHARE_EXCLUSIVE;
    if (!sharing_serves(gpu) || job->wants->share == SHARE_TIME_SLICE)
        return SHARE_TIME_SLICE;
    if (mixes(core, gpu))
        return may_join(core, job) ? SHARE_MPS : SHARE_TIME_SLICE;
    if (job->wants->share == SHARE_ANY && gpu->resident_count && (job->wants->gpus == 1 || !may_join(core, job)))
        return gpu->residents[0]->share == SHARE_MPS ? SHARE_MPS : SHARE_TIME_SLICE;
    return SHARE_MPS;
}

/* Residents of several modes are there only where they came before a change of the settings: nobody joins these. */
static bool all_share_by(const struct gpu *gpu, enum share_mode way)
{
    for (uint32_t i = 0; i < gpu->resident_count; i++)
        if (gpu->residents[i]->share != way)
            return false;
    return true;
}

static bool all_of_user(const struct gpu *gpu, uint32_t uid)
{
    for (uint32_t i = 0; i < gpu->resident_count; i++)
        if (gpu->residents[i]->wants->uid != uid)
            return false;
    return true;
}

/* As a further client of the residents' server. */
static uint32_t client_verdict(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    bool others = (gpu->server && gpu->server_uid != job->wants->uid) || !all_of_user(gpu, job->wants->uid);

    if (!mixes(core, gpu) && !core->config.mps_multiuser && core->config.mps_domain != MPS_DOMAIN_NODE && others)
        return REASON_OTHER_USER;
    if (!mixes(core, gpu) && !may_join(core, job))
        return core->config.mps_domain == MPS_DOMAIN_GPU ? REASON_OWN_SERVER : REASON_OTHER_MODE;
    return gpu->resident_count >= core->config.mps_max_clients ? REASON_CLIENTS : REASON_NONE;
}

uint32_t sharing_verdict(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    uint32_t ever = sharing_ever(job->wants, gpu), way = sharing_mode_of(core, job, gpu);

    if (ever)
        return ever;
    /* A job that leaves the choice to carma waits too: time-slicing it would keep others from the server once that
     * serves again. */
    if ((gpu->share_faulted || (job->user->share_faulted && !gpu->instance)) && sharing_serves(gpu) &&
        !job->wants->exclusive && job->wants->share != SHARE_TIME_SLICE)
        return REASON_SHARE_FAULT;
    if (gpu->resident_count == 0)
        return way == SHARE_MPS && gpu->server ? client_verdict(core, job, gpu) : REASON_NONE;
    if (way == SHARE_EXCLUSIVE)
        return REASON_NO_IDLE_GPU;
    if (!mixes(core, gpu) && !all_share_by(gpu, way))
        return REASON_OTHER_MODE;
    return way == SHARE_MPS ? client_verdict(core, job, gpu) : REASON_NONE;
}

enum share_mode sharing_together(const struct core *core, const struct job *job, const uint32_t *gpus, uint32_t count)
{
    enum share_mode way = sharing_mode_of(core, job, core->gpus[gpus[0]]);

    for (uint32_t i = 1; i < count; i++)
        if (sharing_mode_of(core, job, core->gpus[gpus[i]]) != way)
            return SHARE_TIME_SLICE;
    return way;
}

/* The jobs that it was begun for, or that joined it. A client from a time when servers did not belong to GPUs does not
 * count. Such a job of several GPUs may be on this GPU, but this server does not serve all of its GPUs. */
static bool is_client(const struct core *core, const struct job *job, uint64_t server)
{
    bool client = job->share == SHARE_MPS;

    for (uint32_t i = 0; i < job->placement_count; i++)
        client &= core->gpus[job->placements[i].gpu]->server == server;
    return client;
}

const struct job *sharing_client(const struct core *core, const struct gpu *gpu)
{
    for (uint32_t i = 0; gpu->server && i < core->gpu_count; i++) {
        const struct gpu *other = core->gpus[i];
        for (uint32_t k = 0; other->server == gpu->server && k < other->resident_count; k++)
            if (is_client(core, other->residents[k], gpu->server))
                return other->residents[k];
    }
    return NULL;
}

void sharing_begins(struct core *core, const struct job *job)
{
    const struct gpu *first = job->placement_count ? core->gpus[job->placements[0].gpu] : NULL;

    for (uint32_t i = 0; i < job->placement_count && job->share == SHARE_TIME_SLICE; i++)
        if (core->gpus[job->placements[i].gpu]->server) /* others had to wait for its user, and may take turns now */
            gpu_opens(core, core->gpus[job->placements[i].gpu]);
    if (job->share != SHARE_MPS || core->config.mps_domain != MPS_DOMAIN_GPU || first->server)
        return;
    for (uint32_t i = 0; i < job->placement_count; i++) {
        core->gpus[job->placements[i].gpu]->server = job->id;
        core->gpus[job->placements[i].gpu]->server_uid = job->wants->uid;
    }
}

static void end_server(struct core *core, uint64_t server)
{
    for (uint32_t i = 0; i < core->gpu_count; i++)
        if (core->gpus[i]->server == server) {
            core->gpus[i]->server = 0;
            core->gpus[i]->server_uid = 0;
            gpu_opens(core, core->gpus[i]);
        }
}

void sharing_ends(struct core *core, const struct job *job)
{
    for (uint32_t i = 0; i < job->placement_count; i++) {
        const struct gpu *gpu = core->gpus[job->placements[i].gpu];
        if (job->share == SHARE_MPS && gpu->server && !sharing_client(core, gpu))
            end_server(core, gpu->server);
    }
}

void sharing_reconfigured(struct core *core)
{
    for (uint32_t i = 0; core->config.mps_domain != MPS_DOMAIN_GPU && i < core->gpu_count; i++)
        if (core->gpus[i]->server)
            end_server(core, core->gpus[i]->server);
}

static bool lets_follow(const struct core *core, const struct job *guest, enum share_mode way, const struct job *next,
                        struct gpu *gpu)
{
    struct job there = *guest;
    uint32_t verdict;

    there.share = way;
    gpu->residents[gpu->resident_count++] = &there;
    verdict = sharing_verdict(core, next, gpu);
    gpu->residents[--gpu->resident_count] = NULL;
    return verdict == REASON_NONE;
}

bool sharing_lets_follow(const struct core *core, const struct job *guest, const struct job *next, struct gpu *gpu)
{
    enum share_mode way = sharing_mode_of(core, guest, gpu);

    /* The state of its other GPUs may still bring it there by time-slicing. */
    if (way == SHARE_MPS && guest->wants->share == SHARE_ANY && !may_join(core, guest) &&
        !lets_follow(core, guest, SHARE_TIME_SLICE, next, gpu))
        return false;
    return lets_follow(core, guest, way, next, gpu);
}

bool gpu_could_take(const struct job *job, const struct gpu *gpu)
{
    return gpu_is_open(gpu) && gpu->total_bytes >= job->wants->request_bytes &&
           sharing_ever(job->wants, gpu) == REASON_NONE;
}
