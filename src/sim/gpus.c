/* The GPUs' state: their residents, the residents' rates, and the monitor's view of it. */
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
    static const int eighths[] = {0, 1, 2, 4,
                                  4, 0, 0, 8}; /* MIG's profiles: 1g.5gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb */

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

/* ---- Notes of changes ---- */

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
    board->held_s += board->resident_count ? seconds : 0;
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

static int32_t permille_of(struct sim *sim, uint32_t gpu, enum sim_signal signal)
{
    return quantum_activity((int32_t)lround(window_statistic(sim, &sim->gpus[gpu], signal) * 1000));
}

void gpus_sample(struct sim *sim, uint32_t gpu, struct record_sample *sample)
{
    *sample = (struct record_sample){
        .gpu = gpu,
        .used_bytes = quantum_memory(sim->gpus[gpu].used_bytes),
        .smact_permille = permille_of(sim, gpu, SIGNAL_ACTIVITY),
        .smocc_permille = permille_of(sim, gpu, SIGNAL_OCCUPANCY),
        .dram_permille = permille_of(sim, gpu, SIGNAL_DRAM),
    };
}

/* ---- Rates ---- */

double sim_threads(const struct record *placed)
{
    return placed->placed.threads_percent ? placed->placed.threads_percent / 100.0 : 1;
}

uint64_t sim_server(enum share_mode share, uint32_t uid, bool for_all_users)
{
    return share != SHARE_MPS ? 0 : for_all_users ? 1 : UINT64_C(1) + uid;
}

/* The rate of a resident that is alone on its GPU. */
static double rate_alone(const struct sim *sim, double activity)
{
    const struct sim_options *options = sim->options;

    if (options->mig_slices == 0)
        return 1;
    return contention_mig_rate(&options->contention, activity, options->mig_slices,
                               (double)sim_mig_bytes(8, options->mig_slices) / 8);
}

static double resident_activity(const struct sim *sim, const struct sim_resident *resident)
{
    return sim_use_of(&sim->jobs[resident->run->job], resident->side)->activity;
}

/* The possible rate of each job that trains on the GPU; a job with a new rate touches all its GPUs. */
static void share_gpu(struct sim *sim, uint32_t number)
{
    struct sim_gpu *gpu = &sim->gpus[number];
    const struct core_config *core = sim_config(sim);
    bool for_all_users = core->mps_multiuser || core->mps_domain == MPS_DOMAIN_NODE;
    size_t count = 0, next = 0;

    if (sim->scratch_capacity < gpu->resident_count) {
        size_t capacity = sim->scratch_capacity;
        array_reserve(sim->activities, capacity, gpu->resident_count);
        capacity = sim->scratch_capacity;
        array_reserve(sim->servers, capacity, gpu->resident_count);
        capacity = sim->scratch_capacity;
        array_reserve(sim->threads, capacity, gpu->resident_count);
        array_reserve(sim->rates, sim->scratch_capacity, gpu->resident_count);
    }
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct sim_run *run = gpu->residents[i].run;
        double activity = resident_activity(sim, &gpu->residents[i]);
        if (run->phase == SIM_LOADING)
            continue;
        sim->threads[count] = run->threads;
        sim->servers[count] = sim_server(run->share, sim->jobs[run->job].uid, for_all_users);
        sim->activities[count++] = fmin(1, activity * rate_alone(sim, activity) / part(sim));
    }
    contention_rates(&sim->options->contention, count, sim->activities, sim->servers, sim->threads, sim->rates);
    touch(sim, number);
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        struct sim_run *run = gpu->residents[i].run;
        double rate = 1;
        if (run->phase == SIM_LOADING)
            continue;
        run->sides[gpu->residents[i].side].rate =
            sim->rates[next++] * rate_alone(sim, resident_activity(sim, &gpu->residents[i]));
        for (uint32_t k = 0; k < run->gpu_count; k++)
            rate = fmin(rate, run->sides[k].rate);
        if (rate == run->rate)
            continue;
        run_set_rate(sim, run, rate);
        for (uint32_t k = 0; k < run->gpu_count; k++)
            touch(sim, run->sides[k].gpu);
    }
}

/* The GPU's activity now is the sum of its jobs' at their rates. */
static void sum_up(struct sim *sim, struct sim_gpu *gpu, double levels[SIGNAL_COUNT])
{
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct sim_run *run = gpu->residents[i].run;
        const struct sim_use *use = sim_use_of(&sim->jobs[run->job], gpu->residents[i].side);
        levels[SIGNAL_ACTIVITY] += use->activity * run->rate;
        levels[SIGNAL_OCCUPANCY] += use->occupancy * run->rate;
        levels[SIGNAL_DRAM] += use->dram * run->rate;
    }
    for (enum sim_signal s = 0; s < SIGNAL_COUNT; s++)
        levels[s] = fmin(1, levels[s] / part(sim));
}

static void set_levels(struct sim *sim, uint32_t number, const double levels[SIGNAL_COUNT])
{
    struct sim_gpu *gpu = &sim->gpus[number];
    struct sim_board *board = board_of(sim, number);
    const struct sim_gpu *first = &sim->gpus[number / sim->instances * sim->instances];
    double total = 0;

    memcpy(gpu->levels, levels, sizeof gpu->levels);
    window_note(sim, gpu);
    unsettle(sim, number);
    integrate(sim, board);
    for (uint32_t i = 0; i < sim->instances; i++)
        total += first[i].levels[SIGNAL_ACTIVITY] * part(sim);
    board->activity = fmin(1, total);
}

static void settle_touched(struct sim *sim)
{
    for (uint32_t t = 0; t < sim->touched_count; t++) {
        uint32_t number = sim->touched[t];
        double levels[SIGNAL_COUNT] = {0};
        sim->is_touched[number] = false;
        sum_up(sim, &sim->gpus[number], levels);
        /* Whether they are other bits: NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
        if (memcmp(levels, sim->gpus[number].levels, sizeof levels) != 0)
            set_levels(sim, number, levels);
        show(sim, number);
    }
    sim->touched_count = 0;
}

static void share_gpus_of(struct sim *sim, const struct sim_run *run)
{
    for (uint32_t k = 0; k < run->gpu_count; k++)
        share_gpu(sim, run->sides[k].gpu);
    settle_touched(sim);
}

/* ---- Coming and going ---- */

void gpus_add(struct sim *sim, struct sim_run *run)
{
    for (uint32_t k = 0; k < run->gpu_count; k++) {
        struct sim_gpu *gpu = &sim->gpus[run->sides[k].gpu];
        array_reserve(gpu->residents, gpu->resident_capacity, gpu->resident_count + 1);
        integrate(sim, board_of(sim, run->sides[k].gpu));
        board_of(sim, run->sides[k].gpu)->resident_count++;
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
        integrate(sim, board_of(sim, run->sides[k].gpu));
        board_of(sim, run->sides[k].gpu)->resident_count--;
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
        unsettle(sim, i); /* the core has no sample of it yet */
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
    free(sim->threads);
    free(sim->rates);
    free(sim->servers);
    free(sim->parts);
}

void gpus_finish(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node->gpu_count; i++)
        integrate(sim, &sim->boards[i]);
}
