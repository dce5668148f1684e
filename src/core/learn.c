#include "core/learn.h"

#include <string.h>
#include <utlist.h>

#include "base/units.h"
#include "core/core_internal.h"
#include "core/fence.h"
#include "core/quantum.h"
#include "core/slowdown.h"

/* Variance of a first estimate, which may be anywhere; and the least variance that readings can reach, since runs
 * differ. */
#define PRIOR_VARIANCE   (250 * 250)
#define LEAST_VARIANCE   (20 * 20)
#define READING_VARIANCE (30 * 30)

/* Readings of the same residents say much the same: one in ten minutes is enough. */
#define LEARNING_PAUSE_NS (600 * NS_PER_SEC)

/* At a submission: number of the oldest workloads examined for some that may be forgotten. */
#define FORGET_STEPS 16

static struct profile *find_profile(const struct user *user, const char *workload)
{
    struct profile *profile = NULL;

    if (user)
        HASH_FIND_STR(user->profiles, workload, profile);
    return profile;
}

void learn_nothing(struct profile *profile)
{
    profile->activity_permille = LEARN_PRIOR_PERMILLE;
    profile->variance = PRIOR_VARIANCE;
    profile->failure = (struct record_failure){.gpu = RECORD_NO_GPU};
}

/* An earlier carma did not say whose runs they were. Names of workloads differ between users (api/workload_key.h), so
 * the first who submits it is that user. */
static struct profile *adopt(struct core *core, struct user *user, const char *workload)
{
    struct profile *profile = find_profile(user_find(core, USER_UNKNOWN), workload);

    if (!profile)
        return NULL;
    kin_forget_profile(core, profile);
    HASH_DEL(profile->user->profiles, profile);
    profile->user = user;
    HASH_ADD_STR(user->profiles, workload, profile);
    profile->kin = kin_of_new(user, workload);
    if (profile->runs)
        kin_completed(core, profile, profile->first_bytes);
    return profile;
}

struct profile *learn_profile(struct core *core, struct user *user, const char *workload)
{
    struct profile *profile = find_profile(user, workload);

    if (!*workload)
        return NULL;
    if (!profile)
        profile = adopt(core, user, workload);
    if (!profile) {
        profile = xcalloc(1, sizeof *profile + strlen(workload) + 1);
        memcpy(profile->workload, workload, strlen(workload) + 1);
        profile->user = user;
        learn_nothing(profile);
        HASH_ADD_STR(user->profiles, workload, profile);
        core->profile_count++;
        profile->kin = kin_of_new(user, workload);
    }
    return profile;
}

static void make_latest(struct profile *profile)
{
    HASH_DEL(profile->user->profiles, profile);
    HASH_ADD_STR(profile->user->profiles, workload, profile);
}

void learn_drop(struct core *core, struct profile *profile)
{
    company_forget_profile(core, profile);
    kin_forget_profile(core, profile);
    HASH_DEL(profile->user->profiles, profile);
    core->profile_count--;
    free(profile);
}

/* That user loses the oldest: nobody pushes out what is known of others. */
static struct user *with_most_profiles(const struct core *core)
{
    struct user *most = core->users;

    for (struct user *user = core->users; user; user = user->hh.next)
        if (HASH_COUNT(user->profiles) > HASH_COUNT(most->profiles))
            most = user;
    return most;
}

/* Those with jobs are met again at the end: each step costs the same for any number of them. */
void learn_submitted(struct core *core, const struct job *job)
{
    if (job->profile)
        make_latest(job->profile);
    for (int i = 0; i < FORGET_STEPS && core->profile_count > LEARN_MOST_PROFILES; i++) {
        struct profile *oldest = with_most_profiles(core)->profiles;
        if (oldest->jobs > 0)
            make_latest(oldest);
        else
            learn_drop(core, oldest);
    }
}

bool learned_activity_is_known(const struct job *job)
{
    return job->wants->smact_permille >= 0 || (job->profile && job->profile->variance < PRIOR_VARIANCE);
}

const struct profile *learn_find(const struct core *core, uint32_t uid, const char *workload)
{
    return find_profile(user_find(core, uid), workload);
}

int32_t core_observed_activity(const struct core *core, uint32_t uid, const char *workload)
{
    const struct profile *profile = learn_find(core, uid, workload);

    return profile && profile->variance < PRIOR_VARIANCE ? profile->activity_permille : 0;
}

int32_t learned_activity(const struct job *job)
{
    const struct profile *profile = job->profile;

    if (job->suspended)
        return 0;
    if (profile && profile->variance < PRIOR_VARIANCE)
        return profile->activity_permille;
    return job->wants->smact_permille >= 0 ? job->wants->smact_permille : LEARN_PRIOR_PERMILLE;
}

/* How a completed run's distance from the first is counted, and the farthest that is told apart. */
#define DISTANCE_PARTS 10000
#define DISTANCE_MOST  (10 * DISTANCE_PARTS)

/* Spread of a workload's runs until they show it: 1.6% (cuDNN's choice of algorithms, fragmentation), with the weight
 * of this many runs. An assumption: src/estimate/earlier_runs.c. */
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

/* Enough for 98% of the next runs: the predictive quantile mean + t s sqrt(1 + 1/n) of normal runs. s^2 comes from the
 * prior and the observations; the answer is never less than the largest observation. A quarter more while the only run
 * to go by has not ended. */
int64_t learned_bytes(const struct profile *profile)
{
    int64_t runs = profile->runs, freedom = PRIOR_RUNS + runs - 1, variance, margin, enough;

    if (runs == 0)
        return profile->peak_bytes + profile->peak_bytes / 4;
    variance = profile->distance_squares - profile->distance_sum * (profile->distance_sum / runs);
    variance = (PRIOR_RUNS * PRIOR_SPREAD * PRIOR_SPREAD + (variance > 0 ? variance : 0)) / freedom;
    margin = square_root(variance * student_squared(freedom) / 1000 * (runs + 1) / runs);
    enough = profile->first_bytes + profile->first_bytes / DISTANCE_PARTS * (profile->distance_sum / runs + margin);
    return enough > profile->peak_bytes ? enough : profile->peak_bytes;
}

static void note_run(struct profile *profile, int64_t bytes)
{
    int64_t part, distance;

    if (profile->runs++ == 0)
        profile->first_bytes = bytes;
    part = profile->first_bytes / DISTANCE_PARTS;
    distance = (bytes - profile->first_bytes) / (part ? part : 1);
    distance = distance > DISTANCE_MOST ? DISTANCE_MOST : distance;
    profile->distance_sum += distance;
    profile->distance_squares += distance * distance;
}

/* ---- Learning ---- */

static bool alone_everywhere(const struct core *core, const struct job *job)
{
    for (uint32_t i = 0; i < job->placement_count; i++) {
        const struct gpu *gpu = core->gpus[job->placements[i].gpu];
        if (gpu->resident_count > 1 || gpu->others)
            return false;
    }
    return true;
}

/* A job on several GPUs runs at the pace of its slowest. So the idle share of its other GPUs tells little, unless the
 * job is alone. */
static bool can_tell(const struct core *core, const struct gpu *gpu)
{
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct job *job = gpu->residents[i];
        if (job->suspended || !job->profile || job->user != gpu->residents[0]->user ||
            (job->placement_count > 1 && !alone_everywhere(core, job)))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (gpu->residents[k]->profile == job->profile)
                return false; /* two of a kind: their estimates are not independent */
    }
    return gpu->resident_count > 0;
}

static int32_t clamp_activity(int64_t permille)
{
    return permille < 10 ? 10 : permille > 990 ? 990 : (int32_t)permille;
}

bool learn_sample_is_due(const struct core *core, const struct gpu *gpu, int64_t at_ns)
{
    return core->config.learn && gpu_is_of_residents(gpu) && at_ns - gpu->changed_ns >= core_learning_delay_ns(core) &&
           at_ns - gpu->learned_ns >= core->config.window_ns + LEARNING_PAUSE_NS && can_tell(core, gpu);
}

/* The list's head has a predecessor, too: the last. */
void learn_placed(struct job *job)
{
    if (job->profile && !job->placed_previous)
        DL_APPEND2(job->profile->placed, job, placed_previous, placed_next);
}

void learn_left(struct job *job)
{
    if (!job->placed_previous)
        return;
    DL_DELETE2(job->profile->placed, job, placed_previous, placed_next);
    job->placed_previous = job->placed_next = NULL;
}

/* The estimate holds for every GPU on which such a job runs. */
void learn_open_where_placed(struct core *core, struct profile *profile)
{
    for (const struct job *job = profile->placed; job; job = job->placed_next)
        for (uint32_t i = 0; i < job->placement_count; i++) {
            struct gpu *gpu = core->gpus[job->placements[i].gpu];
            slowdown_residents_changed(gpu);
            gpu_opens(core, gpu);
        }
}

void learn_activity(struct core *core, struct gpu *gpu, const struct record *record)
{
    CLEANUP(free_ptr) int64_t *sensitivities = NULL; /* of the reading to each activity, in permille */
    int64_t innovation, spread = READING_VARIANCE;

    if (record->sample.smact_permille < 0 || !learn_sample_is_due(core, gpu, record->at_ns))
        return;
    innovation = record->sample.smact_permille - slowdown_predict(core, gpu, NULL).delivered_ppm / 1000;
    sensitivities = xcalloc(gpu->resident_count, sizeof *sensitivities);
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        sensitivities[i] = slowdown_sensitivity(core, gpu, gpu->residents[i]);
        spread += gpu->residents[i]->profile->variance * sensitivities[i] / 1000 * sensitivities[i] / 1000;
    }
    core->openings++;
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        struct job *job = gpu->residents[i];
        struct profile *profile = job->profile;
        int64_t covariance = profile->variance * sensitivities[i] / 1000;
        profile->activity_permille = clamp_activity(learned_activity(job) + covariance * innovation / spread);
        profile->variance -= covariance * covariance / spread;
        if (profile->variance < LEAST_VARIANCE)
            profile->variance = LEAST_VARIANCE;
        alike_workload_changed(core, profile);
    }
    for (uint32_t i = 0; i < gpu->resident_count; i++)
        learn_open_where_placed(core, gpu->residents[i]->profile);
    gpu->learned_ns = record->at_ns;
    company_learn_activity(core, gpu, record);
}

static void memory_is_learned(struct core *core, struct profile *profile)
{
    core->openings++;
    alike_workload_changed(core, profile);
    /* The need of the job for which GPUs are reserved tells how much of them is left for others. */
    if (core->reserved_job && core_find_job(core, core->reserved_job)->profile == profile)
        for (uint32_t i = 0; i < core->gpu_count; i++)
            if (core->gpus[i]->reserved_for)
                gpu_opens(core, core->gpus[i]);
}

void learn_memory(struct core *core, struct job *job, int64_t bytes, enum learn_from from)
{
    struct profile *profile = job->profile;

    if (!core->config.learn || !profile || bytes <= 0)
        return;
    if (from != LEARN_LEAST) {
        if (from == LEARN_RUN && !fence_was_met(job))
            note_run(profile, bytes);
        if (job->wants->request_source == SOURCE_DECLARED)
            profile->outgrown_bytes = bytes - job->wants->request_bytes >= QUANTUM_MEMORY_BYTES ? bytes : 0;
    }
    if (bytes > profile->peak_bytes)
        profile->peak_bytes = bytes;
    memory_is_learned(core, profile);
}

void learn_estimate(struct core *core, struct job *job, int64_t bytes)
{
    if (!core->config.learn || !job->profile)
        return;
    job->profile->estimated_bytes = bytes;
    memory_is_learned(core, job->profile);
}
