#include "vnode/physics.h"

#include <math.h>

#include "contention/contention.h"

static uint32_t slot_count(const struct node_bank *bank)
{
    return bank->slot_high < NODE_MAX_SLOTS ? bank->slot_high : NODE_MAX_SLOTS;
}

static uint32_t use_count(const struct node_slot *slot)
{
    return slot->use_count < NODE_MAX_GPUS ? slot->use_count : NODE_MAX_GPUS;
}

int64_t physics_used_bytes(const struct node_bank *bank, uint32_t gpu)
{
    int64_t used = 0;

    for (uint32_t i = 0; i < slot_count(bank); i++) {
        const struct node_slot *slot = &bank->slots[i];

        if (slot->phase == NODE_SLOT_FREE)
            continue;
        for (uint32_t k = 0; k < use_count(slot); k++)
            if (slot->uses[k].gpu == gpu)
                used += slot->uses[k].bytes;
    }
    return used;
}

double physics_busy_share(const struct node_slot *slot, const struct node_use *use)
{
    /* What the streams model takes as a job's share of time (docs/contention.md). */
    return slot->rate > 0 && use->activity > 0 ? slot->rate * pow(use->activity, contention_default.streams_exponent)
                                               : 0;
}

/* Lowers the rate of each process that trains on this GPU to what it gets here. */
static void share_gpu(struct node_bank *bank, uint32_t gpu)
{
    double activities[NODE_MAX_SLOTS], rates[NODE_MAX_SLOTS];
    uint32_t residents[NODE_MAX_SLOTS], count = 0;
    enum share_mode mode = SHARE_MPS;

    for (uint32_t i = 0; i < slot_count(bank); i++) {
        const struct node_slot *slot = &bank->slots[i];

        if (slot->phase != NODE_SLOT_TRAINING)
            continue;
        for (uint32_t k = 0; k < use_count(slot); k++)
            if (slot->uses[k].gpu == gpu) {
                if (!slot->mps)
                    mode = SHARE_STREAMS;
                activities[count] = slot->uses[k].activity;
                residents[count++] = i;
                break;
            }
    }
    if (count == 0)
        return;
    contention_rates(&contention_default, mode, count, activities, rates);
    for (uint32_t i = 0; i < count; i++) {
        struct node_slot *slot = &bank->slots[residents[i]];

        if (rates[i] < slot->rate)
            slot->rate = rates[i];
    }
}

void physics_recompute(const struct node_file *file, struct node_bank *bank)
{
    for (uint32_t i = 0; i < slot_count(bank); i++)
        bank->slots[i].rate = bank->slots[i].phase == NODE_SLOT_TRAINING ? 1 : 0;
    for (uint32_t g = 0; g < file->gpu_count; g++) {
        bank->gpus[g].sm_activity = 0;
        bank->gpus[g].busy = 0;
        share_gpu(bank, g);
    }
    for (uint32_t i = 0; i < slot_count(bank); i++) {
        const struct node_slot *slot = &bank->slots[i];

        for (uint32_t k = 0; slot->rate > 0 && k < use_count(slot); k++) {
            const struct node_use *use = &slot->uses[k];

            if (use->gpu < file->gpu_count) {
                bank->gpus[use->gpu].sm_activity += use->activity * slot->rate;
                bank->gpus[use->gpu].busy += physics_busy_share(slot, use);
            }
        }
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
    }
    for (uint32_t i = 0; i < slot_count(bank); i++)
        bank->slots[i].done_ns += bank->slots[i].rate * dt;
    bank->updated_ns = until_ns;
}

/* Starts and ends what is due; returns whether anything was. */
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
