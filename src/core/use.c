/* How this file works: a user has a figure of a moment and the part of GPUs that he holds since. The figure of a later
 * moment follows: the old one decays, and what he holds comes to its limit, held / rate of decay, in the same way. It
 * is moved on only as what he holds changes (go_to), so that it depends on records alone. apply.c calls use_begins,
 * use_grows and use_ends as a job takes, grows and leaves GPUs; waiting/order.c compares. */
#include "core/use.h"

#include "base/units.h"
#include "core/learn/learn.h"
#include "core/state.h"

#define ONE_BITS 30 /* of fractions */
#define ONE      (INT64_C(1) << ONE_BITS)

#define LN2 INT64_C(744261118) /* in parts of ONE */

/* The time in which it would decay to nothing at the first moment's rate. */
#define DECAY_S (USE_HALF_LIFE_S * ONE / LN2)

/* How long those who run are expected to hold what they have. */
#define AHEAD_S 3600

static int64_t part_of(int64_t value, int64_t part)
{
    return (value >> ONE_BITS) * part + ((value & (ONE - 1)) * part >> ONE_BITS);
}

/* 2 to the power of -x, where x is from 0 to 1: exp(-x ln 2), as a series. */
static int64_t half_to(int64_t x)
{
    int64_t y = x * LN2 >> ONE_BITS, sum = ONE;

    for (int64_t k = 10; k > 0; k--)
        sum = ONE - (y * sum >> ONE_BITS) / k;
    return sum;
}

static int64_t decay(int64_t since_ns, int64_t now_ns)
{
    int64_t seconds = now_ns > since_ns ? (now_ns - since_ns) / NS_PER_SEC : 0, lives = seconds / USE_HALF_LIFE_S;

    return lives >= ONE_BITS ? 0 : half_to(seconds % USE_HALF_LIFE_S * ONE / USE_HALF_LIFE_S) >> lives;
}

int64_t use_until(const struct user *user, int64_t now_ns)
{
    int64_t left = decay(user->use_ns, now_ns);

    return part_of(user->use, left) + part_of(user->held_permille * DECAY_S, ONE - left);
}

int64_t use_expected(const struct user *user, int64_t now_ns)
{
    return use_until(user, now_ns) + use_of_start(user->held_permille);
}

int64_t use_of_start(int64_t held_permille)
{
    return held_permille * AHEAD_S;
}

static void go_to(struct user *user, int64_t at_ns)
{
    user->use_changes++;
    if (at_ns < user->use_ns) { /* the clock was set back */
        user->use_ns = at_ns > 0 ? at_ns : 0;
        return;
    }
    user->use = use_until(user, at_ns);
    user->use_ns = user->use || user->held_permille ? at_ns - (at_ns - user->use_ns) % NS_PER_SEC : at_ns;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t part_on(const struct core *core, const struct job *job, const struct job_placement *placement,
                       const struct gpu *gpu)
{
    int64_t part = larger(learned_activity(job), 0), bytes = larger(job->reserved_bytes, placement->observed_bytes);

    if (job->wants->exclusive || job->reserved_bytes < 0 || gpu->total_bytes <= 0)
        part = 1000;
    else
        part = larger(part, bytes / (gpu->total_bytes / 1000 + 1));
    if (job->wants->max_slowdown_permille > 0) /* more of it others cannot have beside the job */
        part = larger(part, 1000 * 1000 / job->wants->max_slowdown_permille);
    part = larger(part, 1000 / core->config.max_jobs_per_gpu); /* each place there is one that others cannot have */
    return (part < 1000 ? part : 1000) * gpu->part_permille / 1000;
}

void use_begins(const struct core *core, struct job *job, int64_t at_ns)
{
    struct job_run *run = job_run(job);

    run->held_permille = 0;
    for (uint32_t i = 0; i < job->placement_count; i++)
        run->held_permille += part_on(core, job, &job->placements[i], core->gpus[job->placements[i].gpu]);
    go_to(job->user, at_ns);
    job->user->held_permille += run->held_permille;
}

void use_grows(const struct core *core, struct job *job, int64_t at_ns)
{
    use_ends(job, at_ns);
    use_begins(core, job, at_ns);
}

void use_ends(struct job *job, int64_t at_ns)
{
    go_to(job->user, at_ns);
    job->user->held_permille -= job->run->held_permille;
    job_run(job)->held_permille = 0;
}
