/* How this file works: a sample of a GPU that is due (learn_sample_is_due) corrects the activity of each resident's
 * workload by what the prediction (slowdown.c) did not expect, and is a measure of the residents together
 * (pairs.c). It is due where nothing but the residents caused it, and some time after the last. */
#include "core/learn/readings.h"

#include "base/units.h"
#include "core/learn/pairs.h"
#include "core/learn/learn.h"
#include "core/share/slowdown.h"
#include "core/state.h"

/* The least variance that readings can reach, since runs differ; and their own. */
#define LEAST_VARIANCE   (20 * 20)
#define READING_VARIANCE (30 * 30)

/* Readings of the same residents say much the same: one in ten minutes is enough. */
#define LEARNING_PAUSE_NS (600 * NS_PER_SEC)

int64_t core_learning_delay_ns(const struct core *core)
{
    return core->config.window_ns + LEARN_LOADING_NS;
}

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
        if (job->state == JOB_SUSPENDED || !job->profile || job->user != gpu->residents[0]->user ||
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

/* A step of the filter, of one workload. */
static void correct(struct core *core, const struct job *job, int64_t covariance, int64_t innovation, int64_t spread)
{
    struct profile *profile = job->profile;

    profile->activity_permille = clamp_activity(learned_activity(job) + covariance * innovation / spread);
    profile->variance -= covariance * covariance / spread;
    if (profile->variance < LEAST_VARIANCE)
        profile->variance = LEAST_VARIANCE;
    learn_note_news(core, profile, NEWS_FIGURES);
}

void learn_from_reading(struct core *core, struct job *job, int64_t differs_permille, int64_t variance)
{
    core->openings++;
    correct(core, job, job->profile->variance, differs_permille, job->profile->variance + variance);
    learn_open_where_placed(core, job->profile);
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
        correct(core, job, job->profile->variance * sensitivities[i] / 1000, innovation, spread);
    }
    for (uint32_t i = 0; i < gpu->resident_count; i++)
        learn_open_where_placed(core, gpu->residents[i]->profile);
    gpu->learned_ns = record->at_ns;
    pairs_learn_activity(core, gpu, record);
}
