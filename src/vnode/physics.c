#include "vnode/physics.h"

#include <math.h>
#include <stdbool.h>

#include "contention/contention.h"

/* NVML's utilization counts a moment with any kernel, however small: a job's time in it is taken as activity to this
 * power (docs/contention.md). */
#define BUSY_EXPONENT 0.4

static uint32_t slot_count(const struct node_bank *bank)
{
    return bank->slot_high < NODE_MAX_SLOTS ? bank->slot_high : NODE_MAX_SLOTS;
}

static uint32_t use_count(const struct node_slot *slot)
{
    return slot->use_count < NODE_MAX_GPUS ? slot->use_count : NODE_MAX_GPUS;
}

static bool at_place(const struct node_use *use, uint32_t gpu, uint32_t instance)
{
    return use->gpu == gpu && use->instance == instance;
}

/* By all processes on the GPU, or at one place of it where `instance` is not NULL. */
static int64_t used_bytes(const struct node_bank *bank, uint32_t gpu, const uint32_t *instance)
{
    int64_t used = 0;

    for (uint32_t i = 0; i < slot_count(bank); i++) {
        const struct node_slot *slot = &bank->slots[i];

        if (slot->phase == NODE_SLOT_FREE)
            continue;
        for (uint32_t k = 0; k < use_count(slot); k++)
            if (instance ? at_place(&slot->uses[k], gpu, *instance) : slot->uses[k].gpu == gpu)
                used += slot->uses[k].bytes;
    }
    return used;
}

int64_t physics_used_bytes(const struct node_bank *bank, uint32_t gpu)
{
    return used_bytes(bank, gpu, NULL);
}

int64_t physics_instance_used_bytes(const struct node_bank *bank, uint32_t gpu, uint32_t instance)
{
    return used_bytes(bank, gpu, &instance);
}

int64_t physics_usable_bytes(const struct node_file *file, uint32_t gpu, uint32_t instance)
{
    const struct node_gpu *what = &file->gpus[gpu];

    return instance == 0 ? what->total_bytes - what->reserved_bytes : what->instances[instance - 1].total_bytes;
}

double physics_busy_share(const struct node_slot *slot, const struct node_use *use)
{
    return slot->rate > 0 && use->activity > 0 ? slot->rate * pow(use->activity, BUSY_EXPONENT) : 0;
}

/* The clients of one control daemon are one server's. */
static uint64_t server_of(const struct node_slot *slot)
{
    return slot->mps ? slot->mps_domain + 1 : 0;
}

/* The rate of a process that is alone on its GPU, or on an instance of it. */
static double rate_alone(const struct node_file *file, const struct node_use *use)
{
    const struct node_gpu *gpu = &file->gpus[use->gpu];
    const struct node_instance *instance;

    if (use->instance == 0)
        return 1;
    instance = &gpu->instances[use->instance - 1];
    return contention_mig_rate(&contention_default, use->activity, instance->slices,
                               round(8.0 * (double)instance->total_bytes / (double)gpu->total_bytes) / 8);
}

/* Lowers the rate of each process that trains at this place (`slices` of 7; 7: the whole GPU) to its share there. On an
 * instance that is no more than its slices give to one that is alone on it, less its neighbours' part. */
static void share_place(const struct node_file *file, struct node_bank *bank, uint32_t gpu, uint32_t instance,
                        uint32_t slices)
{
    double activities[NODE_MAX_SLOTS], alone[NODE_MAX_SLOTS], threads[NODE_MAX_SLOTS], rates[NODE_MAX_SLOTS];
    uint32_t residents[NODE_MAX_SLOTS], count = 0;
    uint64_t servers[NODE_MAX_SLOTS];
    struct contention_params contention = contention_default;

    for (uint32_t i = 0; i < slot_count(bank); i++) {
        const struct node_slot *slot = &bank->slots[i];

        if (slot->phase != NODE_SLOT_TRAINING)
            continue;
        for (uint32_t k = 0; k < use_count(slot); k++)
            if (at_place(&slot->uses[k], gpu, instance)) {
                servers[count] = server_of(slot);
                threads[count] = slot->mps && slot->threads_percent ? slot->threads_percent / 100.0 : 1;
                alone[count] = rate_alone(file, &slot->uses[k]);
                activities[count] = fmin(1, slot->uses[k].activity * alone[count] * 7 / slices);
                residents[count++] = i;
                break;
            }
    }
    if (count == 0)
        return;
    contention.seed = file->spread_seed;
    contention_rates(&contention, count, activities, servers, threads, rates);
    for (uint32_t i = 0; i < count; i++) {
        struct node_slot *slot = &bank->slots[residents[i]];

        slot->rate = fmin(slot->rate, rates[i] * alone[i]);
    }
}

/* Adds the activity of a process at one of its places. */
static void add_activity(const struct node_file *file, struct node_bank *bank, const struct node_slot *slot,
                         const struct node_use *use)
{
    struct node_gpu_now *gpu = &bank->gpus[use->gpu];
    double busy = physics_busy_share(slot, use);

    gpu->busy += busy;
    if (use->instance > 0 && use->instance <= file->gpus[use->gpu].instance_count) {
        struct node_instance_now *instance = &gpu->instances[use->instance - 1];
        uint32_t slices = file->gpus[use->gpu].instances[use->instance - 1].slices;
        double before = instance->sm_activity;

        instance->sm_activity = fmin(1, before + use->activity * slot->rate * 7 / slices);
        instance->busy = fmin(1, instance->busy + busy);
        gpu->sm_activity += (instance->sm_activity - before) * slices / 7; /* no more than the instance has */
    } else {
        gpu->sm_activity += use->activity * slot->rate;
    }
}

static void recompute_gpu(const struct node_file *file, struct node_bank *bank, uint32_t g)
{
    const struct node_gpu *gpu = &file->gpus[g];

    bank->gpus[g].sm_activity = 0;
    bank->gpus[g].busy = 0;
    share_place(file, bank, g, 0, 7);
    for (uint32_t i = 0; i < gpu->instance_count; i++) {
        bank->gpus[g].instances[i].sm_activity = 0;
        bank->gpus[g].instances[i].busy = 0;
        share_place(file, bank, g, 1 + i, gpu->instances[i].slices);
    }
}

void physics_recompute(const struct node_file *file, struct node_bank *bank)
{
    for (uint32_t i = 0; i < slot_count(bank); i++)
        bank->slots[i].rate = bank->slots[i].phase == NODE_SLOT_TRAINING ? 1 : 0;
    for (uint32_t g = 0; g < file->gpu_count; g++)
        recompute_gpu(file, bank, g);
    for (uint32_t i = 0; i < slot_count(bank); i++) {
        const struct node_slot *slot = &bank->slots[i];

        for (uint32_t k = 0; slot->rate > 0 && k < use_count(slot); k++)
            if (slot->uses[k].gpu < file->gpu_count)
                add_activity(file, bank, slot, &slot->uses[k]);
    }
    for (uint32_t g = 0; g < file->gpu_count; g++) {
        bank->gpus[g].sm_activity = fmin(1, bank->gpus[g].sm_activity);
        bank->gpus[g].busy = fmin(1, bank->gpus[g].busy);
    }
}

/* When this process next starts or ends its training; INT64_MAX: not by itself. */
static int64_t next_event(const struct node_slot *slot, int64_t now_ns)
{
    double left;

    if (slot->phase == NODE_SLOT_LOADING)
        return slot->train_from_ns > now_ns ? slot->train_from_ns : now_ns;
    if (slot->phase != NODE_SLOT_TRAINING || !(slot->rate > 0))
        return INT64_MAX;
    left = ceil((slot->work_ns - slot->done_ns) / slot->rate);
    return left <= 0 ? now_ns : left < 4e18 - (double)now_ns ? now_ns + (int64_t)left : INT64_MAX;
}

static void integrate(const struct node_file *file, struct node_bank *bank, int64_t until_ns)
{
    double dt = (double)(until_ns - bank->updated_ns);

    for (uint32_t g = 0; g < file->gpu_count; g++) {
        struct node_gpu_now *now = &bank->gpus[g];
        double watts = contention_power_w(now->sm_activity, file->gpus[g].idle_w, file->gpus[g].full_w);

        now->energy_mj += watts * dt / 1e6; /* W * ns = 1e-9 J */
        now->sm_activity_ns += now->sm_activity * dt;
        now->busy_ns += now->busy * dt;
        for (uint32_t i = 0; i < file->gpus[g].instance_count; i++) {
            now->instances[i].sm_activity_ns += now->instances[i].sm_activity * dt;
            now->instances[i].busy_ns += now->instances[i].busy * dt;
        }
    }
    for (uint32_t i = 0; i < slot_count(bank); i++)
        bank->slots[i].done_ns += bank->slots[i].rate * dt;
    bank->updated_ns = until_ns;
}

/* Starts and ends due work; returns whether there was any. */
static bool pass_events(struct node_bank *bank)
{
    bool changed = false;

    for (uint32_t i = 0; i < slot_count(bank); i++) {
        struct node_slot *slot = &bank->slots[i];

        if (slot->phase == NODE_SLOT_LOADING && slot->train_from_ns <= bank->updated_ns) {
            slot->phase = NODE_SLOT_TRAINING;
            changed = true;
        } else if (slot->phase == NODE_SLOT_TRAINING && slot->done_ns >= slot->work_ns - 0.5) {
            slot->phase = NODE_SLOT_FINISHED;
            slot->done_ns = slot->work_ns;
            slot->finished_ns = bank->updated_ns;
            changed = true;
        }
    }
    return changed;
}

void physics_advance(const struct node_file *file, struct node_bank *bank, int64_t now_ns)
{
    if (now_ns < bank->updated_ns) {
        bank->updated_ns = now_ns;
        return;
    }
    /* Every turn but the last starts or ends some process's training: the bound only holds against a damaged file. */
    for (unsigned int turn = 0; turn < 2 * NODE_MAX_SLOTS + 2; turn++) {
        int64_t until_ns = now_ns;

        for (uint32_t i = 0; i < slot_count(bank); i++) {
            int64_t event_ns = next_event(&bank->slots[i], bank->updated_ns);

            if (event_ns < until_ns)
                until_ns = event_ns;
        }
        integrate(file, bank, until_ns);
        if (pass_events(bank))
            physics_recompute(file, bank);
        else if (until_ns == now_ns)
            return;
    }
    bank->updated_ns = now_ns;
}
