/* What the GPUs do: who shares them, at which rates, and what the monitor sees of it. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "core/ledger.h"
#include "core/quantum.h"
#include "sim/sim_internal.h"

#define MIG_SLICES 7.0

const struct sim_use *sim_use_of(const struct sim_job *job, uint32_t side)
{
    return &job->uses[side < job->use_count ? side : job->use_count - 1];
}

int64_t sim_mig_bytes(int64_t total_bytes, uint32_t slices)
{
    static const int eighths[] = {0, 1, 2, 4, 4, 0, 0, 8}; /* MIG's profiles: 1g.5gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb */

    return slices < array_size(eighths) ? total_bytes / 8 * eighths[slices] : 0;
}

uint32_t sim_mig_instances(uint32_t slices)
{
    return sim_mig_bytes(8, slices) ? (uint32_t)MIG_SLICES / slices : 0;
}

/* The part of a board that one GPU of the core is. */
static double part(const struct sim *sim)
{
    return sim->options->mig_slices ? sim->options->mig_slices / MIG_SLICES : 1;
}

/* ---- Notes of what has changed ---- */

static void unsettle(struct sim *sim, uint32_t gpu)
{
    if (sim->gpus[gpu].unsettled)
        return;
    sim->gpus[gpu].unsettled = true;
    sim->unsettled[sim->unsettled_count++] = gpu;
}

static void touch(struct sim *sim, uint32_t gpu)
{
    if (sim->is_touched[gpu])
        return;
    sim->is_touched[gpu] = true;
    sim->touched[sim->touched_count++] = gpu;
}

static struct sim_board *board_of(struct sim *sim, uint32_t gpu)
{
    return &sim->boards[gpu / sim->instances];
}

/* Brings the integrals to now: to be called before anything that they are of changes. */
static void integrate(struct sim *sim, struct sim_board *board)
{
    double seconds = (double)(sim->now_ns - board->updated_ns) / 1e9;

    if (seconds <= 0)
        return;
    board->energy_j += seconds * contention_power_w(board->activity, sim->node->idle_w, sim->node->full_w);
    board->activity_ns += seconds * 1e9 * board->activity;
    board->byte_seconds += seconds * (double)board->used_bytes;
    board->updated_ns = sim->now_ns;
}

static void show(struct sim *sim, uint32_t gpu)
{
    uint32_t number = gpu / sim->instances, count = 0;
    const struct sim_board *board = &sim->boards[number];
    CLEANUP(free_ptr) uint64_t *ids = NULL;
    struct sim_gpu_view view = {.gpu = number, .used_bytes = board->used_bytes, .activity = board->activity};
    size_t capacity = 0;

    if (!sim->observer || !sim->observer->on_gpu)
        return;
    for (uint32_t g = number * sim->instances; g < (number + 1) * sim->instances; g++)
        for (uint32_t i = 0; i < sim->gpus[g].resident_count; i++) {
            array_reserve(ids, capacity, count + 1);
            ids[count++] = sim->gpus[g].residents[i].run->job + 1;
        }
    view.power_w = contention_power_w(board->activity, sim->node->idle_w, sim->node->full_w);
    view.resident_count = count;
    view.residents = ids;
    sim->observer->on_gpu(sim->observer->user, sim->now_ns, &view);
}

static void set_memory(struct sim *sim, uint32_t gpu, int64_t change)
{
    struct sim_board *board = board_of(sim, gpu);

    integrate(sim, board);
    board->used_bytes += change;
    sim->gpus[gpu].used_bytes += change;
    unsettle(sim, gpu);
}

/* ---- The window ---- */

static const struct sim_change *change_at(const struct sim_gpu *gpu, size_t i)
{
    return &gpu->changes[gpu->change_first + i];
}

static double integral_at(const struct sim_change *change, int64_t at_ns)
{
    return change->integral_ns + change->activity * (double)(at_ns - change->at_ns);
}

static void note_activity(struct sim *sim, struct sim_gpu *gpu)
{
    struct sim_change change = {.at_ns = sim->now_ns, .activity = gpu->activity};

    if (gpu->change_count) {
        struct sim_change *last = &gpu->changes[gpu->change_first + gpu->change_count - 1];
        if (last->at_ns == sim->now_ns) {
            last->activity = gpu->activity;
            return;
        }
        change.integral_ns = integral_at(last, sim->now_ns);
    }
    if (gpu->change_first + gpu->change_count == gpu->change_capacity) {
        if (gpu->change_first > 0 && gpu->change_first >= gpu->change_count) { /* half of it is past: move instead of growing */
            memmove(gpu->changes, gpu->changes + gpu->change_first, gpu->change_count * sizeof *gpu->changes);
            gpu->change_first = 0;
        } else {
            array_reserve(gpu->changes, gpu->change_capacity, gpu->change_capacity + 1);
        }
    }
    gpu->changes[gpu->change_first + gpu->change_count++] = change;
}

/* The mean over the window that ends now; what lies before the begin counts as idle. */
static double window_mean(struct sim *sim, struct sim_gpu *gpu)
{
    int64_t from_ns = sim->now_ns - sim->options->window_ns;
    double before;

    if (gpu->change_count == 0)
        return 0;
    while (gpu->change_count > 1 && change_at(gpu, 1)->at_ns <= from_ns) {
        gpu->change_first++;
        gpu->change_count--;
    }
    before = from_ns >= change_at(gpu, 0)->at_ns ? integral_at(change_at(gpu, 0), from_ns) : 0;
    return (integral_at(change_at(gpu, gpu->change_count - 1), sim->now_ns) - before) /
           (double)sim->options->window_ns;
}

bool gpus_settled(const struct sim *sim, uint32_t gpu)
{
    const struct sim_gpu *entry = &sim->gpus[gpu];

    return entry->change_count == 0 ||
           change_at(entry, entry->change_count - 1)->at_ns <= sim->now_ns - sim->options->window_ns;
}

void gpus_sample(struct sim *sim, uint32_t gpu, struct record_sample *sample)
{
    *sample = (struct record_sample){
        .gpu = gpu,
        .used_bytes = quantum_memory(sim->gpus[gpu].used_bytes),
        .smact_permille = quantum_activity((int32_t)lround(window_mean(sim, &sim->gpus[gpu]) * 1000)),
        .smocc_permille = -1,
        .dram_permille = -1,
    };
}

/* ---- Rates ---- */

/* An instance is to its job as a smaller GPU. */
static double activity_on(const struct sim *sim, const struct sim_resident *resident)
{
    return fmin(1, sim_use_of(&sim->jobs[resident->run->job], resident->side)->activity / part(sim));
}

/* What each job that trains on the GPU could do there; those whose rate changes touch all their GPUs. */
static void share_gpu(struct sim *sim, uint32_t number)
{
    struct sim_gpu *gpu = &sim->gpus[number];
    size_t count = 0, next = 0;

    if (sim->scratch_capacity < gpu->resident_count) {
        size_t capacity = sim->scratch_capacity;
        array_reserve(sim->activities, capacity, gpu->resident_count);
        array_reserve(sim->rates, sim->scratch_capacity, gpu->resident_count);
    }
    for (uint32_t i = 0; i < gpu->resident_count; i++)
        if (gpu->residents[i].run->phase != SIM_LOADING)
            sim->activities[count++] = activity_on(sim, &gpu->residents[i]);
    contention_rates(&sim->options->contention, sim->options->share, count, sim->activities, sim->rates);
    touch(sim, number);
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        struct sim_run *run = gpu->residents[i].run;
        const struct sim_use *use = sim_use_of(&sim->jobs[run->job], gpu->residents[i].side);
        double rate = 1;
        if (run->phase == SIM_LOADING)
            continue;
        run->sides[gpu->residents[i].side].rate =
            sim->rates[next++] * (sim->options->mig_slices
                                      ? contention_mig_rate(use->activity, (int)sim->options->mig_slices)
                                      : 1);
        for (uint32_t k = 0; k < run->gpu_count; k++)
            rate = fmin(rate, run->sides[k].rate);
        if (rate == run->rate)
            continue;
        run_set_rate(sim, run, rate);
        for (uint32_t k = 0; k < run->gpu_count; k++)
            touch(sim, run->sides[k].gpu);
    }
}

/* Sums up anew what the touched GPUs do. */
static void settle_activity(struct sim *sim)
{
    for (uint32_t t = 0; t < sim->touched_count; t++) {
        uint32_t number = sim->touched[t];
        struct sim_gpu *gpu = &sim->gpus[number];
        struct sim_board *board = board_of(sim, number);
        double activity = 0, total = 0;

        sim->is_touched[number] = false;
        for (uint32_t i = 0; i < gpu->resident_count; i++)
            activity += sim_use_of(&sim->jobs[gpu->residents[i].run->job], gpu->residents[i].side)->activity *
                        gpu->residents[i].run->rate;
        activity = fmin(1, activity / part(sim));
        if (activity != gpu->activity) {
            gpu->activity = activity;
            note_activity(sim, gpu);
            unsettle(sim, number);
            integrate(sim, board);
            for (uint32_t g = 0; g < sim->instances; g++)
                total += sim->gpus[number / sim->instances * sim->instances + g].activity * part(sim);
            board->activity = fmin(1, total);
        }
        show(sim, number);
    }
    sim->touched_count = 0;
}

static void share_gpus_of(struct sim *sim, const struct sim_run *run)
{
    for (uint32_t k = 0; k < run->gpu_count; k++)
        share_gpu(sim, run->sides[k].gpu);
    settle_activity(sim);
}

/* ---- Coming and going ---- */

void gpus_add(struct sim *sim, struct sim_run *run)
{
    for (uint32_t k = 0; k < run->gpu_count; k++) {
        struct sim_gpu *gpu = &sim->gpus[run->sides[k].gpu];
        array_reserve(gpu->residents, gpu->resident_capacity, gpu->resident_count + 1);
        gpu->residents[gpu->resident_count++] = (struct sim_resident){.run = run, .side = k};
        show(sim, run->sides[k].gpu);
    }
}

void gpus_remove(struct sim *sim, struct sim_run *run)
{
    for (uint32_t k = 0; k < run->gpu_count; k++) {
        struct sim_gpu *gpu = &sim->gpus[run->sides[k].gpu];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < gpu->resident_count; i++)
            if (gpu->residents[i].run != run)
                gpu->residents[kept++] = gpu->residents[i];
        gpu->resident_count = kept;
        if (run->phase == SIM_SETTLED)
            set_memory(sim, run->sides[k].gpu, -sim_use_of(&sim->jobs[run->job], k)->resident_bytes);
    }
    share_gpus_of(sim, run);
}

void gpus_train(struct sim *sim, struct sim_run *run)
{
    run->phase = SIM_CLIMBING;
    share_gpus_of(sim, run);
}

void gpus_hold(struct sim *sim, struct sim_run *run)
{
    run->phase = SIM_SETTLED;
    for (uint32_t k = 0; k < run->gpu_count; k++) {
        set_memory(sim, run->sides[k].gpu, sim_use_of(&sim->jobs[run->job], k)->resident_bytes);
        show(sim, run->sides[k].gpu);
    }
}

int64_t gpus_free_bytes(const struct sim *sim, uint32_t gpu)
{
    return sim->gpu_bytes - sim->gpus[gpu].used_bytes;
}

/* ---- Life ---- */

void gpus_init(struct sim *sim)
{
    sim->boards = xcalloc(sim->node->gpu_count, sizeof *sim->boards);
    for (uint32_t i = 0; i < sim->node->gpu_count; i++)
        sim->boards[i].updated_ns = sim->begin_ns;
    sim->gpus = xcalloc(sim->gpu_count, sizeof *sim->gpus);
    sim->unsettled = xcalloc(sim->gpu_count, sizeof *sim->unsettled);
    sim->touched = xcalloc(sim->gpu_count, sizeof *sim->touched);
    sim->is_touched = xcalloc(sim->gpu_count, sizeof *sim->is_touched);
    for (uint32_t i = 0; i < sim->gpu_count; i++)
        unsettle(sim, i); /* the core has not seen it yet */
}

void gpus_release(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->gpu_count && sim->gpus; i++) {
        free(sim->gpus[i].residents);
        free(sim->gpus[i].changes);
    }
    free(sim->boards);
    free(sim->gpus);
    free(sim->unsettled);
    free(sim->dues);
    free(sim->touched);
    free(sim->is_touched);
    free(sim->activities);
    free(sim->rates);
}

void gpus_finish(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node->gpu_count; i++)
        integrate(sim, &sim->boards[i]);
}
