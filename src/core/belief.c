#include "core/belief.h"

#include <string.h>

#include "base/units.h"
#include "core/core_internal.h"
#include "core/quantum.h"

#define PPM INT64_C(1000000)

/* Variance of a first estimate, which may be anywhere; and the least variance that readings can reach, since runs
 * differ. */
#define PRIOR_VARIANCE (250 * 250)
#define LEAST_VARIANCE (20 * 20)
#define READING_VARIANCE (30 * 30)

/* Readings of the same residents say much the same: one in ten minutes is enough. */
#define LEARNING_PAUSE_NS (600 * NS_PER_SEC)

/* At a submission: number of the oldest workloads examined for some that may be forgotten. */
#define FORGET_STEPS 16

struct history *belief_history(struct core *core, const char *workload)
{
    struct history *history;

    if (!*workload)
        return NULL;
    HASH_FIND_STR(core->histories, workload, history);
    if (!history) {
        history = xcalloc(1, sizeof *history + strlen(workload) + 1);
        memcpy(history->workload, workload, strlen(workload) + 1);
        history->activity_permille = BELIEF_PRIOR_PERMILLE;
        history->variance = PRIOR_VARIANCE;
        history->failure.gpu = RECORD_NO_GPU;
        HASH_ADD_STR(core->histories, workload, history);
    }
    return history;
}

static void make_latest(struct core *core, struct history *history)
{
    HASH_DEL(core->histories, history);
    HASH_ADD_STR(core->histories, workload, history);
}

/* Those with jobs are met again at the end: each step costs the same, however many there are. */
void belief_submitted(struct core *core, const struct job *job)
{
    if (job->history)
        make_latest(core, job->history);
    for (int i = 0; i < FORGET_STEPS && HASH_COUNT(core->histories) > BELIEF_MOST_HISTORIES; i++) {
        struct history *oldest = core->histories;
        if (oldest->jobs > 0) {
            make_latest(core, oldest);
            continue;
        }
        HASH_DEL(core->histories, oldest);
        free(oldest);
    }
}

int32_t belief_activity(const struct job *job)
{
    const struct history *history = job->history;

    if (history && history->variance < PRIOR_VARIANCE)
        return history->activity_permille;
    return job->wants->smact_permille >= 0 ? job->wants->smact_permille : BELIEF_PRIOR_PERMILLE;
}

/* How a completed run's distance from the first is counted, and the farthest that is told apart. */
#define DISTANCE_PARTS 10000
#define DISTANCE_MOST  (10 * DISTANCE_PARTS)

/* Spread of a workload's runs until they show it: 1.6% (cuDNN's choice of algorithms, fragmentation), with the weight
 * of this many runs. An assumption: src/estimate/history.c. */
#define PRIOR_SPREAD 160
#define PRIOR_RUNS   5

/* 1000 t^2, t the 98% quantile of Student's distribution: 0.2% too small to 1.3% too large, from 5 degrees of freedom
 * on. */
static int64_t student_squared(int64_t freedom)
{
    return 4218 + 10400 / freedom + 34400 / (freedom * freedom);
}

static int64_t square_root(int64_t of)
{
    int64_t root = of, next = (of + 1) / 2;

    while (next < root) {
        root = next;
        next = (root + of / root) / 2;
    }
    return root;
}

/* Enough for 98% of the next runs: the predictive quantile mean + t s sqrt(1 + 1/n) of normal runs, s^2 from the prior
 * and the observations, and never less than the largest observation. A quarter more while the only run to go by has not
 * ended. */
static int64_t with_learned_margin(const struct history *history)
{
    int64_t runs = history->runs, freedom = PRIOR_RUNS + runs - 1, variance, margin, enough;

    if (runs == 0)
        return history->peak_bytes + history->peak_bytes / 4;
    variance = history->distance_squares - history->distance_sum * (history->distance_sum / runs);
    variance = (PRIOR_RUNS * PRIOR_SPREAD * PRIOR_SPREAD + (variance > 0 ? variance : 0)) / freedom;
    margin = square_root(variance * student_squared(freedom) / 1000 * (runs + 1) / runs);
    enough = history->first_bytes +
             history->first_bytes / DISTANCE_PARTS * (history->distance_sum / runs + margin);
    return enough > history->peak_bytes ? enough : history->peak_bytes;
}

static void note_run(struct history *history, int64_t bytes)
{
    int64_t part, distance;

    if (history->runs++ == 0)
        history->first_bytes = bytes;
    part = history->first_bytes / DISTANCE_PARTS;
    distance = (bytes - history->first_bytes) / (part ? part : 1);
    distance = distance > DISTANCE_MOST ? DISTANCE_MOST : distance;
    history->distance_sum += distance;
    history->distance_squares += distance * distance;
}

/* A request is taken at its word, unless the last run of the workload by such a request has shown that it was too small.
 * What a job was observed to need itself says more than that. */
static int64_t declared_claim(const struct core *core, const struct job *job, uint32_t *source)
{
    int64_t outgrown = job->history->outgrown_bytes, most = user_most_bytes(core, job);

    if (outgrown > most)
        outgrown = most;
    if (job->claim_source == CLAIM_SEEN || outgrown <= job->claim_bytes)
        return job->claim_bytes;
    *source = CLAIM_LEARNED;
    return outgrown;
}

int64_t belief_claim(const struct core *core, const struct job *job, uint32_t *source)
{
    const struct history *history = job->history;
    uint32_t ignored;

    source = source ? source : &ignored;
    *source = job->claim_source;
    if (!core->config.learn || !history)
        return job->claim_bytes;
    if (job->wants->claim_source == CLAIM_DECLARED)
        return declared_claim(core, job, source);
    if (job->crashes == 0 && (history->runs || (history->peak_bytes && job->wants->claim_bytes < 0))) {
        *source = CLAIM_LEARNED;
        return with_learned_margin(history);
    }
    if (job->claim_bytes < 0 || history->peak_bytes <= job->claim_bytes)
        return job->claim_bytes;
    *source = CLAIM_LEARNED;
    /* It is known from a crash alone. More than any GPU has would mean to wait for ever: let it be seen. */
    return history->peak_bytes < core->largest_gpu_bytes ? history->peak_bytes : core->largest_gpu_bytes;
}

/* The share of the GPU that the residents except `without` (may be NULL) leave idle: prod(1 - a_i). */
static int64_t idle_ppm(const struct gpu *gpu, const struct job *without)
{
    int64_t idle = PPM;

    for (uint32_t i = 0; i < gpu->resident_count; i++)
        if (gpu->residents[i] != without)
            idle = idle * (1000 - belief_activity(gpu->residents[i])) / 1000;
    return idle;
}

int64_t belief_delivered_ppm(const struct gpu *gpu)
{
    return PPM - idle_ppm(gpu, NULL);
}

int32_t belief_slowdown_permille(const struct gpu *gpu, const struct job *joining)
{
    int64_t idle = idle_ppm(gpu, NULL), sum = 0, slowdown;

    for (uint32_t i = 0; i < gpu->resident_count; i++)
        sum += belief_activity(gpu->residents[i]);
    if (joining) {
        idle = idle * (1000 - belief_activity(joining)) / 1000;
        sum += belief_activity(joining);
    }
    if (gpu->resident_count + (joining != NULL) < 2 || idle == PPM)
        return 1000;
    slowdown = sum * PPM / (PPM - idle);
    return slowdown < 1000 ? 1000 : slowdown > INT32_MAX ? INT32_MAX : (int32_t)slowdown;
}

/* ---- Learning ---- */

static bool alone_everywhere(const struct core *core, const struct job *job)
{
    for (uint32_t i = 0; i < job->placement_count; i++)
        if (core->gpus[job->placements[i].gpu]->resident_count > 1)
            return false;
    return true;
}

/* A job on several GPUs runs at the pace of its slowest, so the idle share of its other GPUs tells little, unless the
 * job is alone. */
static bool can_tell(const struct core *core, const struct gpu *gpu)
{
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct job *job = gpu->residents[i];
        if (!job->history || (job->placement_count > 1 && !alone_everywhere(core, job)))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (gpu->residents[k]->history == job->history)
                return false; /* two of a kind: their beliefs are not independent */
    }
    return gpu->resident_count > 0;
}

static int32_t clamp_activity(int64_t permille)
{
    return permille < 10 ? 10 : permille > 990 ? 990 : (int32_t)permille;
}

bool belief_sample_is_due(const struct core *core, const struct gpu *gpu, int64_t at_ns)
{
    return core->config.learn && gpu->foreign_bytes <= GPU_IDLE_FOREIGN_BYTES &&
           at_ns - gpu->changed_ns >= core_learning_delay_ns(core) &&
           at_ns - gpu->learned_ns >= core->config.window_ns + LEARNING_PAUSE_NS && can_tell(core, gpu);
}

/* The estimate holds for every GPU on which such a job runs. */
static void open_where_believed(struct core *core, uint64_t changed)
{
    for (uint32_t i = 0; i < core->gpu_count; i++)
        for (uint32_t k = 0; k < core->gpus[i]->resident_count; k++) {
            const struct history *history = core->gpus[i]->residents[k]->history;
            if (history && history->changed >= changed) {
                gpu_opens(core, core->gpus[i]);
                break;
            }
        }
}

void belief_learn_activity(struct core *core, struct gpu *gpu, const struct record *record)
{
    CLEANUP(free_ptr) int64_t *sensitivities = NULL; /* of the reading to each activity, in permille */
    int64_t innovation, spread = READING_VARIANCE;

    if (record->sample.smact_permille < 0 || !belief_sample_is_due(core, gpu, record->at_ns))
        return;
    innovation = record->sample.smact_permille - belief_delivered_ppm(gpu) / 1000;
    sensitivities = xcalloc(gpu->resident_count, sizeof *sensitivities);
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        sensitivities[i] = idle_ppm(gpu, gpu->residents[i]) / 1000;
        spread += gpu->residents[i]->history->variance * sensitivities[i] / 1000 * sensitivities[i] / 1000;
    }
    core->openings++;
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        struct job *job = gpu->residents[i];
        struct history *history = job->history;
        int64_t covariance = history->variance * sensitivities[i] / 1000;
        history->activity_permille = clamp_activity(belief_activity(job) + covariance * innovation / spread);
        history->variance -= covariance * covariance / spread;
        if (history->variance < LEAST_VARIANCE)
            history->variance = LEAST_VARIANCE;
        history->changed = core->openings;
    }
    gpu->learned_ns = record->at_ns;
    open_where_believed(core, core->openings);
}

void belief_learn_memory(struct core *core, struct job *job, int64_t bytes, bool completed)
{
    struct history *history = job->history;

    if (!core->config.learn || !history || bytes <= 0)
        return;
    if (completed) {
        note_run(history, bytes);
        if (job->wants->claim_source == CLAIM_DECLARED)
            history->outgrown_bytes = bytes - job->wants->claim_bytes >= QUANTUM_MEMORY_BYTES ? bytes : 0;
    }
    if (bytes > history->peak_bytes)
        history->peak_bytes = bytes;
    history->changed = ++core->openings;
    /* The need of the job for which GPUs are reserved tells how much of them is left for others. */
    if (core->reserved_job && core_find_job(core, core->reserved_job)->history == history)
        for (uint32_t i = 0; i < core->gpu_count; i++)
            if (core->gpus[i]->reserved_for)
                gpu_opens(core, core->gpus[i]);
}
