/* Hands events on the GPUs to energy.h's accounts, and the accounts to the store.
 *
 * The store gets each account's sum together with the counter that it goes with, in one transaction. A daemon that is
 * killed loses only the energy shared out since. That energy is shared out again, once, from the counter's value
 * then. */
#include <inttypes.h>
#include <string.h>

#include "base/handle.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "core/learn/learn.h"
#include "core/ledger.h"
#include "core/share/slowdown.h"
#include "daemon/account/totals.h"
#include "daemon/node/job_mapping.h"
#include "daemon/node/node_internal.h"
#include "store/store.h"

/* Wall time from one storing of the accounts to the next; a job that ends is not waited with. */
#define FLUSH_WALL_MS 30000

static struct node_meter *meter_of(const struct node *node, const char *uuid)
{
    struct node_meter *meter = node->meters;

    while (meter && strcmp(meter->uuid, uuid) != 0)
        meter = meter->next;
    return meter;
}

static struct node_meter *meter_open(struct node *node, const char *uuid)
{
    struct node_meter *meter = meter_of(node, uuid);

    if (meter)
        return meter;
    meter = xcalloc(1, sizeof *meter);
    snprintf(meter->uuid, sizeof meter->uuid, "%s", uuid);
    energy_meter_init(&meter->meter);
    meter->next = node->meters;
    node->meters = meter;
    return meter;
}

const struct energy_meter *node_energy_of(const struct node *node, const char *uuid)
{
    const struct node_meter *meter = meter_of(node, uuid);

    return meter ? &meter->meter : NULL;
}

void node_energy_free(struct node *node)
{
    for (struct node_meter *meter = node->meters, *next; meter; meter = next) {
        next = meter->next;
        energy_meter_release(&meter->meter);
        free(meter->set);
        free(meter);
    }
}

/* ---- Presence ---- */

struct residents {
    struct energy_resident items[RECORD_MAX_GPUS * 8];
    size_t count;
};

/* How much of the physical GPU the target is. Of an instance: its share of the memory of all instances, which its
 * slices of the GPU go with, and which every driver tells. */
static int32_t permille_of_gpu(const struct node *node, const struct node_gpu *target)
{
    int64_t all_mib = 0;

    if (target->reading.kind != GPU_INSTANCE)
        return 1000;
    for (uint32_t i = 0; i < node->count; i++)
        if (node->gpus[i]->reading.kind == GPU_INSTANCE &&
            strcmp(node->gpus[i]->reading.parent, target->reading.parent) == 0)
            all_mib += node->gpus[i]->reading.total_bytes / MIB;
    return all_mib ? (int32_t)(target->reading.total_bytes / MIB * 1000 / all_mib) : 1000;
}

/* A job runs nothing before its memory is observed, where it can be observed. `target` NULL: nothing has been read yet.
 * */
static int32_t activity_of(const struct node_gpu *target, const struct job *job)
{
    return target && job->run->first_use_ns == 0 && !*target->attribution.why ? 0 : learned_activity(job);
}

/* Displays and monitors hold a little memory and run nothing. */
static bool unmanaged_works(const struct node_gpu *target, uint32_t residents)
{
    const struct attribution *attribution = target ? &target->attribution : NULL;

    if (!target || !target->there || attribution->unmanaged_count == 0)
        return false;
    return attribution->unmanaged_bytes < 0 ? residents == 0 /* else they may well be the residents' */
                                            : attribution->unmanaged_bytes > GPU_IDLE_UNMANAGED_BYTES;
}

/* Each with the SM activity that it is expected to cause beside the others: those that take turns cause less. */
static void add_those_on(const struct node *node, const struct gpu *gpu, const struct node_gpu *target,
                         struct residents *residents)
{
    uint32_t jobs = gpu ? gpu->resident_count : 0, count = jobs;
    CLEANUP(free_ptr) struct slowdown_party *parties = xcalloc(jobs + 1, sizeof *parties);
    CLEANUP(free_ptr) int32_t *busy = xcalloc(jobs + 1, sizeof *busy);

    for (uint32_t i = 0; i < jobs; i++)
        parties[i] = (struct slowdown_party){.server = slowdown_server(node->daemon->core, gpu->residents[i]),
                                             .activity_permille = activity_of(target, gpu->residents[i]),
                                             .threads_percent = gpu->residents[i]->run->threads_percent};
    if (unmanaged_works(target, jobs))
        parties[count++].activity_permille = LEARN_PRIOR_PERMILLE;
    slowdown_busy(parties, count, gpu ? gpu->part_permille : 1000, busy);
    for (uint32_t i = 0; i < count && residents->count < array_size(residents->items); i++)
        residents->items[residents->count++] =
            (struct energy_resident){.party = i < jobs ? gpu->residents[i]->id : ENERGY_UNMANAGED,
                                     .target_permille = target ? permille_of_gpu(node, target) : 1000,
                                     .residents = count,
                                     .activity_permille = busy[i]};
}

static void set_residents(struct node_meter *meter, int64_t at_ns, const struct residents *residents)
{
    size_t bytes = residents->count * sizeof *residents->items;

    if (residents->count == meter->set_count && (!bytes || memcmp(meter->set, residents->items, bytes) == 0))
        return;
    energy_meter_set_residents(&meter->meter, at_ns, residents->items, residents->count);
    meter->set = xrealloc(meter->set, residents->count + 1, sizeof *meter->set);
    if (bytes)
        memcpy(meter->set, residents->items, bytes);
    meter->set_count = residents->count;
}

static void follow(struct node *node, int64_t at_ns)
{
    for (struct node_meter *meter = node->meters; meter; meter = meter->next) {
        struct residents residents;
        residents.count = 0;
        memset(residents.items, 0, sizeof residents.items);
        for (uint32_t i = 0; i < node->count; i++) {
            const struct node_gpu *physical = node_physical(node, node->gpus[i]);
            if (physical && node->gpus[i]->reading.kind != GPU_PARTITIONED && strcmp(physical->uuid, meter->uuid) == 0)
                add_those_on(node, core_gpu(node->daemon->core, node->gpus[i]->number), node->gpus[i], &residents);
        }
        set_residents(meter, at_ns, &residents);
    }
}

void node_follow_residents(struct node *node)
{
    int64_t now_ns = nodetime_now_ns();

    follow(node, now_ns);
    node_follow_memory(node, now_ns);
    job_mapping_follow(node->daemon->job_mapping);
}

/* ---- Storing ---- */

struct flush {
    struct node *node;
    size_t count, capacity;
    struct {
        struct node_meter *meter;
        uint64_t party;
        int64_t mj;
    } * items; /* owned */
};

static bool job_has_ended(const struct node *node, uint64_t party)
{
    const struct job_view *view = views_find(&node->daemon->views, party);

    return party != ENERGY_IDLE && party != ENERGY_UNMANAGED && (!view || job_state_ended(view->state));
}

/* Stored values need not be written again, and the account of a job that has ended is closed. */
static void on_stored(int status, const char *error, void *user)
{
    struct flush *flushed = user;

    (void)error; /* the engine, which stores into the same file, says it */
    flushed->node->flushing = false;
    for (size_t i = 0; i < flushed->count && status == 0; i++) {
        struct energy_meter *meter = &flushed->items[i].meter->meter;
        struct energy_account *account = energy_meter_account(meter, flushed->items[i].party);
        account->stored_mj = flushed->items[i].mj;
        if (account->mj == account->stored_mj && job_has_ended(flushed->node, account->party) &&
            !energy_meter_has(meter, account->party))
            energy_meter_close(meter, account->party);
    }
    free(flushed->items);
    free(flushed);
}

/* A job's last energy is known only with the reading after its end. */
static void renew_history(const struct node *node, struct store_batch *batch, uint64_t party)
{
    const struct job_view *view = views_find(&node->daemon->views, party);

    if (view && job_state_ended(view->state))
        store_batch_history_energy(batch, view->id, view->run->energy_mj);
}

static void flush(struct node *node)
{
    struct store_batch *batch;
    struct flush *flushed;

    if (node->flushing)
        return;
    batch = store_batch_new();
    flushed = xcalloc(1, sizeof *flushed);
    flushed->node = node;
    for (struct node_meter *meter = node->meters; meter; meter = meter->next) {
        const struct energy_meter *energy = &meter->meter;
        if (energy->at_ns == 0)
            continue;
        store_batch_meter(batch, &(struct store_meter){.gpu = meter->uuid,
                                                       .at_ns = energy->at_ns,
                                                       .counter_mj = energy->counter_mj,
                                                       .idle_mw = energy->idle_mw});
        for (size_t i = 0; i < energy->count; i++) {
            const struct energy_account *account = &energy->accounts[i];
            if (account->mj == account->stored_mj || (account->mj == 0 && account->stored_mj < 0))
                continue;
            store_batch_energy(batch, meter->uuid, account->party, account->mj);
            renew_history(node, batch, account->party);
            array_reserve(flushed->items, flushed->capacity, flushed->count + 1);
            flushed->items[flushed->count].meter = meter;
            flushed->items[flushed->count].party = account->party;
            flushed->items[flushed->count++].mj = account->mj;
        }
    }
    node_store_memory(node, batch);
    node->flushing = true;
    store_commit(node->daemon->store, batch, on_stored, flushed);
}

static void on_flush(uv_timer_t *timer)
{
    flush(timer->data);
}

void node_energy_stop(struct node *node)
{
    if (!node->flush)
        return;
    uv_close((uv_handle_t *)node->flush, free_handle);
    node->flush = NULL;
    flush(node);
}

/* ---- Readings ---- */

static void tell_views(struct node *node, struct energy_meter *meter)
{
    for (size_t i = 0; i < meter->count; i++) {
        struct energy_account *account = &meter->accounts[i];
        struct job_view *view =
            account->mj != account->told_mj ? views_find(&node->daemon->views, account->party) : NULL;
        if (view)
            job_view_run(view)->energy_mj += account->mj - account->told_mj;
        if (view && job_state_ended(view->state))
            totals_add_energy(node->daemon->totals, view->wants->uid, account->mj - account->told_mj);
        account->told_mj = account->mj;
    }
}

/* A job that has ended gets nothing more: its energy is stored now. */
static bool some_job_is_done(const struct node *node, const struct energy_meter *meter)
{
    for (size_t i = 0; i < meter->count; i++)
        if (meter->accounts[i].mj != meter->accounts[i].stored_mj && job_has_ended(node, meter->accounts[i].party) &&
            !energy_meter_has(meter, meter->accounts[i].party))
            return true;
    return false;
}

void node_energy_read(struct node *node, const struct node_gpu *gpu)
{
    const struct gpu_reading *reading = &gpu->reading;
    struct node_meter *meter;

    if (reading->kind == GPU_INSTANCE || !(reading->valid & (GPU_HAS_ENERGY | GPU_HAS_POWER)))
        return;
    meter = meter_open(node, gpu->uuid);
    if (meter->meter.at_ns == 0) /* a new one */
        follow(node, nodetime_now_ns());
    energy_meter_read(&meter->meter, nodetime_now_ns(), reading->valid & GPU_HAS_ENERGY ? reading->energy_mj : -1,
                      reading->valid & GPU_HAS_POWER ? reading->power_mw : -1);
    tell_views(node, &meter->meter);
    if (!node->flush) {
        node->flush = xmalloc(sizeof *node->flush);
        uv_timer_init(node->daemon->loop, node->flush);
        node->flush->data = node;
        uv_timer_start(node->flush, on_flush, FLUSH_WALL_MS, FLUSH_WALL_MS);
    }
    if (some_job_is_done(node, &meter->meter))
        flush(node);
}

void node_energy_unstored(const struct node *node, void (*take)(uint64_t party, int64_t mj, void *user), void *user)
{
    for (const struct node_meter *meter = node->meters; meter; meter = meter->next)
        for (size_t i = 0; i < meter->meter.count; i++) {
            const struct energy_account *account = &meter->meter.accounts[i];
            take(account->party, account->mj - (account->stored_mj > 0 ? account->stored_mj : 0), user);
        }
}

struct node_energy node_energy_of_nobody(const struct node *node)
{
    struct node_energy sum = {0};

    for (struct node_meter *meter = node->meters; meter; meter = meter->next)
        for (size_t i = 0; i < meter->meter.count; i++) {
            if (meter->meter.accounts[i].party == ENERGY_IDLE)
                sum.idle_mj += meter->meter.accounts[i].mj;
            else if (meter->meter.accounts[i].party == ENERGY_UNMANAGED)
                sum.unmanaged_mj += meter->meter.accounts[i].mj;
        }
    return sum;
}

/* ---- After a restart ---- */

static int load_meter(const struct store_meter *stored, void *user)
{
    struct node *node = user;
    struct node_meter *meter = meter_open(node, stored->gpu);

    energy_meter_restore(&meter->meter, stored->at_ns, stored->counter_mj, stored->idle_mw);
    return 0;
}

static int load_account(const char *gpu, uint64_t party, int64_t mj, void *user)
{
    struct node *node = user;
    struct job_view *view = views_find(&node->daemon->views, party);
    struct energy_meter *meter = &meter_open(node, gpu)->meter;

    if (view)
        job_view_run(view)->energy_mj += mj;
    if (job_has_ended(node, party))
        return 0;
    energy_meter_restore_account(meter, party, mj);
    energy_meter_account(meter, party)->told_mj = mj;
    return 0;
}

/* The parties that were there when the store was written, as far as it says: they share the energy counted without a
 * daemon. */
int node_load_energy(struct node *node, struct error *err)
{
    int rc = store_load_energy(node->daemon->store, load_meter, load_account, node, err);

    if (!rc)
        rc = node_load_memory(node, err);

    for (struct node_meter *meter = node->meters; meter && !rc; meter = meter->next) {
        const struct core *core = node->daemon->core;
        struct residents residents;
        residents.count = 0;
        memset(residents.items, 0, sizeof residents.items);
        for (uint32_t g = 0; g < core_gpu_count(core); g++) {
            if (strcmp(core_gpu(core, g)->uuid, meter->uuid) == 0)
                add_those_on(node, core_gpu(core, g), NULL, &residents);
        }
        if (meter->meter.at_ns)
            set_residents(meter, meter->meter.at_ns, &residents);
    }
    return rc;
}
