/* How this file works: a profile (profile.h) has what a user's workload has shown. learn_memory counts the end of a
 * run, learn_estimate an estimate, readings.c activity; learned_* say what follows. Whoever changes a figure calls
 * learn_note_news, for those that wait, and learn_open_where_placed, where it is of activity. Which figure counts for a
 * job is said in need.c. Workloads are forgotten in users.c. */
#include "core/learn/learn.h"

#include <string.h>
#include <utlist.h>

#include "base/root.h"
#include "base/units.h"
#include "core/guess/program_history.h"
#include "core/quantum.h"
#include "core/state.h"

#define PRIOR_VARIANCE (250 * 250) /* of a first estimate, which may be anywhere */

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
    program_forget_profile(core, profile);
    HASH_DEL(profile->user->profiles, profile);
    profile->user = user;
    HASH_ADD_STR(user->profiles, workload, profile);
    profile->program = program_of_new(user, workload);
    if (profile->runs)
        program_completed(core, profile, profile->first_bytes);
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
        profile->program = program_of_new(user, workload);
    }
    return profile;
}

bool learn_knows(const struct profile *profile)
{
    return profile->runs || profile->peak_bytes || profile->outgrown_bytes || profile->estimated_bytes ||
           profile->measures || profile->variance < PRIOR_VARIANCE || profile->failure.gpu != RECORD_NO_GPU;
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

    if (job->state == JOB_SUSPENDED)
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

/* The list's head has a predecessor, too: the last. */
void learn_placed(struct job *job)
{
    if (job->profile && !job->run->previous)
        DL_APPEND2(job->profile->placed, job_run(job), previous, next);
}

void learn_left(struct job *job)
{
    struct job_run *run;

    if (!job->run->previous)
        return;
    run = job_run(job);
    DL_DELETE2(job->profile->placed, run, previous, next);
    run->previous = run->next = NULL;
}

/* The estimate holds for every GPU on which such a job runs. */
void learn_open_where_placed(struct core *core, struct profile *profile)
{
    for (const struct job_run *run = profile->placed; run; run = run->next)
        for (uint32_t i = 0; i < run->job->placement_count; i++) {
            struct gpu *gpu = core->gpus[run->job->placements[i].gpu];
            gpu->residents_version++;
            gpu_opens(core, gpu);
        }
}

static void memory_is_learned(struct core *core, struct profile *profile)
{
    core->openings++;
    learn_note_news(core, profile, NEWS_FIGURES);
    /* The need of the job for which GPUs are reserved tells how much of them is left for others. */
    if (core->reserved_job && core_job_by_id(core, core->reserved_job)->profile == profile)
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
        if (from == LEARN_RUN)
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

void learn_note_news(struct core *core, struct profile *profile, enum learn_news news)
{
    if (!profile->news) {
        profile->next_news = core->news;
        core->news = profile;
    }
    profile->news = profile->news > news ? profile->news : news;
}

struct record_submitted job_submitted(const struct job *job)
{
    struct record_submitted wants = *job->wants;

    if (job->profile)
        memcpy(wants.workload, job->profile->workload, strlen(job->profile->workload) + 1);
    return wants;
}
