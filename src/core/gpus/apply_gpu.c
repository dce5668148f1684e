/* How this file works: apply_gpu() applies each record of a GPU by one function: it comes or goes, is sampled, is
 * drained or resumed, its MPS server fails or serves. A GPU gets its place in the table with its first record (gpu_at),
 * and keeps it. What may let a waiting job in ends with gpu_opens() for that GPU, or gpus_open(), or nobody looks there
 * again. Restoring a snapshot takes the same way, so that both check the same. To add a record of GPUs: a case here and
 * in apply() (apply.c); to add a ground on which one is closed: closed.def. */
#include "core/gpus/apply_gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/gpus/suits.h"
#include "core/learn/pairs.h"
#include "core/learn/readings.h"
#include "core/share/sharing.h"
#include "core/share/slowdown.h"
#include "core/state.h"
#include "core/users.h"
#include "core/waiting/autocluster.h"

static int no_such_gpu(const struct core *core, uint32_t gpu, struct error *err)
{
    return gpu < core->gpu_count ? 0 : error_set(err, ENOENT, "there is no GPU %" PRIu32, gpu);
}

static struct gpu *gpu_at(struct core *core, uint32_t number)
{
    if (number == core->gpu_count) {
        array_reserve(core->gpus, core->gpu_capacity, core->gpu_count + 1);
        core->gpus[core->gpu_count] = xcalloc(1, sizeof(struct gpu));
        *core->gpus[core->gpu_count++] = (struct gpu){.number = number,
                                                      .takers = slowdown_takers_new(),
                                                      .part_permille = 1000,
                                                      .node_drained = core->drained,
                                                      .unmanaged_bytes = -1,
                                                      .smact_permille = -1,
                                                      .smocc_permille = -1,
                                                      .dram_permille = -1};
    }
    return core->gpus[number];
}

/* The smallest and the largest GPU, among those whose memory is known; and what they are. */
static void refresh_sizes(struct core *core)
{
    core->smallest_gpu_bytes = core->largest_gpu_bytes = 0;
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        int64_t total = core->gpus[i]->total_bytes;
        if (total && (core->smallest_gpu_bytes == 0 || total < core->smallest_gpu_bytes))
            core->smallest_gpu_bytes = total;
        if (total > core->largest_gpu_bytes)
            core->largest_gpu_bytes = total;
    }
    strbuf_clear(&core->kinds);
    gpu_kinds(core->gpus, core->gpu_count, &core->kinds);
}

int core_apply_gpu_back(struct core *core, const struct record_gpu *record, struct error *err)
{
    struct gpu *gpu;

    if (record->gpu > core->gpu_count || record->total_bytes <= 0 || record->share >= SHARE_MODE_COUNT ||
        record->part_permille < 0 || record->part_permille > 1000 || !memchr(record->uuid, '\0', sizeof record->uuid) ||
        !memchr(record->name, '\0', sizeof record->name))
        return error_set(err, EINVAL, "GPU %" PRIu32 " with %" PRId64 " bytes cannot be taken up", record->gpu,
                         record->total_bytes);
    gpu = gpu_at(core, record->gpu);
    memcpy(gpu->uuid, record->uuid, sizeof gpu->uuid);
    memcpy(gpu->name, record->name, sizeof gpu->name);
    gpu->compute = record->compute;
    gpu->total_bytes = record->total_bytes;
    gpu->share = record->share;
    gpu->instance = record->instance;
    gpu->part_permille = record->part_permille ? record->part_permille : 1000;
    gpu->residents_version++;
    refresh_sizes(core);
    core->instance_count = core->mps_count = 0;
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        core->instance_count += core->gpus[i]->instance;
        core->mps_count += sharing_serves(core->gpus[i]);
    }
    gpu->lost = false;
    prior_refresh(core);
    autocluster_all_changed(core); /* no request is larger than the largest GPU */
    gpus_open(core);               /* it may take jobs of several GPUs, or from a smaller instance */
    return 0;
}

/* One that is not known yet gets its number with that: total_bytes 0, until it can be used. */
int core_apply_gpu_lost(struct core *core, const struct record_gpu *record, struct error *err)
{
    struct gpu *gpu;

    if (record->gpu > core->gpu_count)
        return no_such_gpu(core, record->gpu, err);
    if (record->gpu == core->gpu_count) {
        if (!record->uuid[0] || !memchr(record->uuid, '\0', sizeof record->uuid))
            return error_set(err, EINVAL, "GPU %" PRIu32 " cannot be taken up without its UUID", record->gpu);
        memcpy(gpu_at(core, record->gpu)->uuid, record->uuid, sizeof record->uuid);
    }
    gpu = core->gpus[record->gpu];
    gpu->lost = true;
    gpu->measured = false;
    gpus_open(core); /* a job that waited for it may take a smaller instance */
    return 0;
}

int core_check_sample(const struct core *core, const struct record_sample *sample, struct error *err)
{
    if (no_such_gpu(core, sample->gpu, err))
        return -ENOENT;
    if (sample->used_bytes < 0 || sample->unmanaged_bytes < -1 || !is_reading(sample->smact_permille) ||
        !is_reading(sample->smocc_permille) || !is_reading(sample->dram_permille))
        return error_set(err, EINVAL, "the sample of GPU %" PRIu32 " is out of range", sample->gpu);
    return 0;
}

bool core_watches_load(const struct core *core)
{
    return !core->policy->predicts || core->config.memory_view == MEMORY_MONITOR;
}

static int apply_sample(struct core *core, const struct record *record, struct error *err)
{
    const struct record_sample *sample = &record->sample;
    int status = core_check_sample(core, sample, err);
    struct gpu *gpu;
    bool opens;

    if (status != 0)
        return status;
    gpu = core->gpus[sample->gpu];
    /* Most samples open nothing where use and activity are not looked at. */
    opens = !gpu->measured || core_watches_load(core) || gpu->unmanaged_bytes != sample->unmanaged_bytes ||
            (sample->unmanaged_bytes < 0 && gpu->used_bytes != sample->used_bytes);
    gpu->measured = true;
    gpu->used_bytes = sample->used_bytes;
    gpu->unmanaged_bytes = sample->unmanaged_bytes;
    gpu->smact_permille = sample->smact_permille;
    gpu->smocc_permille = sample->smocc_permille;
    gpu->dram_permille = sample->dram_permille;
    gpu->others = sample->others;
    if (opens)
        gpu_opens(core, gpu);
    pairs_forget_old(core, record->at_ns);
    learn_activity(core, gpu, record);
    return 0;
}

static int apply_share_fault(struct core *core, const struct record_share_fault *fault, struct error *err)
{
    if (fault->of_user) {
        user_of(core, fault->uid)->share_faulted = fault->faulted;
    } else if (no_such_gpu(core, fault->gpu, err)) {
        return -ENOENT;
    } else {
        core->gpus[fault->gpu]->share_faulted = fault->faulted;
    }
    for (uint32_t i = 0; i < core->gpu_count && !fault->faulted; i++)
        if (fault->of_user || i == fault->gpu)
            gpu_opens(core, core->gpus[i]);
    return 0;
}

static int apply_drained(struct core *core, const struct record *record, struct error *err)
{
    const struct record_drained *said = &record->drained;
    bool closes = record->type == RECORD_GPU_DRAINED, whole = said->gpu == RECORD_NO_GPU;
    struct record_drain drain = {0};

    if (!whole && no_such_gpu(core, said->gpu, err))
        return -ENOENT;
    if (!memchr(said->why, '\0', sizeof said->why))
        return error_set(err, EINVAL, "the reason does not end within %zu bytes: shorten it", sizeof said->why);
    if (closes) {
        drain = (struct record_drain){.uid = said->uid, .since_ns = record->at_ns};
        memcpy(drain.why, said->why, strlen(said->why));
    }
    if (whole) {
        core->drained = closes;
        core->drain = drain;
        for (uint32_t i = 0; i < core->gpu_count; i++)
            core->gpus[i]->node_drained = closes;
    } else {
        core->gpus[said->gpu]->drained = closes;
        core->gpus[said->gpu]->drain = drain;
    }
    gpus_open(core); /* a job that waited for one that is closed now may take a smaller instance */
    return 0;
}

int apply_gpu(struct core *core, const struct record *record, struct error *err)
{
    switch (record->type) {
    case RECORD_GPU_BACK:
        return core_apply_gpu_back(core, &record->gpu, err);
    case RECORD_SAMPLE:
        return apply_sample(core, record, err);
    case RECORD_SHARE_FAULT:
        return apply_share_fault(core, &record->share_fault, err);
    case RECORD_GPU_DRAINED:
    case RECORD_GPU_RESUMED:
        return apply_drained(core, record, err);
    default: /* RECORD_GPU_LOST */
        return core_apply_gpu_lost(core, &record->gpu, err);
    }
}
