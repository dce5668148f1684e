/* How this file works: a speed on an instance is kept as a measure of the workload alone there (pairs.h: PAIRS_PART);
 * pairs.c keeps that on a whole GPU. A job of the activity a on the part p of the SMs is slowed by
 * sqrt(1 - a^2 + (a / p)^2) (share/rates.h). So the ratio R of the speeds on the parts q > p gives
 * a^2 = (R^2 - 1) / (c(p) - R^2 c(q)), with c(p) = 1 / p^2 - 1. The activity takes it as a reading. */
#include "core/learn/parts.h"

#include "base/root.h"
#include "core/learn/learn.h"
#include "core/learn/pairs.h"
#include "core/learn/readings.h"
#include "core/share/slowdown.h"
#include "core/state.h"

#define WHOLE 1000
#define PPM   INT64_C(1000000)

/* The formula's rate is off by 0.06 where it was tried (docs/contention.md): on the smallest instance that is an error
 * of the activity of about 60 permille. */
#define PART_VARIANCE (60 * 60)

/* c(p), in ppm. */
static int64_t cost_ppm(int64_t part_permille)
{
    return PPM * PPM / (part_permille * part_permille) - PPM;
}

/* In permille; 0: the speeds tell nothing. */
static int64_t activity_of(int64_t part, int64_t speed, int64_t larger, int64_t speed_there)
{
    int64_t ratio = speed_there / speed < 1000 ? speed_there * 1000 / speed : 0,
            below = cost_ppm(part) - ratio * ratio / 1000 * cost_ppm(larger) / 1000;

    if (ratio <= 1000)
        return ratio ? 1 : 0;
    /* It gains as much as the parts differ, or more: as if its kernels were all of its time. */
    return below > 0 && ratio * ratio - PPM < below ? square_root((ratio * ratio - PPM) * PPM / below) : WHOLE;
}

/* The speed alone on the part, of passes of as many steps. NULL: it is not known. */
static const struct measure *speed_on(const struct core *core, const struct profile *of, int32_t part, int64_t unit)
{
    const struct measure *speed = pairs_speed_alone(core, of, part);

    return speed && speed->unit == unit ? speed : NULL;
}

/* The other one that differs most in size. */
static const struct measure *farthest(const struct core *core, const struct profile *of, const struct measure *from,
                                      int32_t part, int32_t *there)
{
    const struct measure *found = NULL;
    int32_t most = 0;

    for (uint32_t i = 0; i < core->gpu_count; i++) {
        int32_t other = core->gpus[i]->part_permille, apart = other > part ? other - part : part - other;
        const struct measure *speed = apart > most ? speed_on(core, of, other, from->unit) : NULL;
        if (!speed)
            continue;
        found = speed;
        most = apart;
        *there = other;
    }
    return found;
}

static bool is_alone_there(const struct gpu *gpu, const struct job *job, const struct record *record)
{
    return gpu->resident_count == 1 && gpu_is_of_residents(gpu) && gpu->smact_permille < 0 &&
           gpu->changed_ns + LEARN_LOADING_NS <= record->at_ns - record->progressed.span_ns &&
           !job->run->threads_percent && job->state != JOB_SUSPENDED;
}

void parts_learn(struct core *core, struct job *job, const struct record *record)
{
    const struct gpu *gpu = job->placement_count == 1 ? core->gpus[job->placements[0].gpu] : NULL;
    const struct measure *latest, *other;
    int64_t activity;
    int32_t part, there;

    if (!core->config.learn || !job->profile || !gpu || !is_alone_there(gpu, job, record))
        return;
    part = gpu->part_permille;
    if (part < WHOLE)
        pairs_note(core, &(struct measure){.key = pairs_key_alone(job->profile, part),
                                           .readings = 1,
                                           .value = record->progressed.micro_steps_per_s,
                                           .unit = record->progressed.total,
                                           .gpu_bytes = gpu->total_bytes,
                                           .at_ns = record->at_ns});
    latest = speed_on(core, job->profile, part, record->progressed.total);
    other = latest ? farthest(core, job->profile, latest, part, &there) : NULL;
    if (!other)
        return;
    activity = there > part ? activity_of(part, latest->value, there, other->value)
                            : activity_of(there, other->value, part, latest->value);
    if (activity)
        learn_from_reading(core, job, activity - learned_activity(job), PART_VARIANCE);
}
