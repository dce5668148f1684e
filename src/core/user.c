/* How this file works: what a user's jobs hold is counted as they get GPUs, change and leave (apply.c calls), so that a
 * limit is one comparison (eligible.c). Retries ahead of others are counted by the hour (crash.c asks). */
#include "core/user.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "core/state.h"

#define RETRY_WINDOW_NS (3600 * NS_PER_SEC)

struct user *user_find(const struct core *core, uint32_t uid)
{
    struct user *user;

    HASH_FIND(hh, core->users, &uid, sizeof uid, user);
    return user;
}

bool user_is_in(const struct user *user, const char *group, uint32_t share)
{
    if (!user || !user->group)
        return !*group;
    return strcmp(user->group->name, group) == 0 && user->group->share == share;
}

/* ---- Their usage ---- */

int64_t user_bytes_in_all(const struct core *core, uint32_t gpus, int64_t reserved_bytes)
{
    int64_t each = reserved_bytes < 0 ? core->largest_gpu_bytes : reserved_bytes;

    return each > INT64_MAX / RECORD_MAX_GPUS ? INT64_MAX : gpus * each;
}

int64_t user_counting(const struct job *job, int64_t reserved_bytes)
{
    bool kept = job->wants->request_source == SOURCE_DECLARED && reserved_bytes >= 0 &&
                job->wants->request_bytes > reserved_bytes;

    return kept ? job->wants->request_bytes : reserved_bytes;
}

void user_counts(struct job *job)
{
    job->user->running++;
    job->user->gpus += job->wants->gpus;
    job->user->memory_bytes += (uint64_t)job->run->counted_bytes + (uint64_t)job->run->stray_bytes;
}

void user_discharge(struct job *job)
{
    job->user->running--;
    job->user->gpus -= job->wants->gpus;
    job->user->memory_bytes -= (uint64_t)job->run->counted_bytes + (uint64_t)job->run->stray_bytes;
    job_run(job)->counted_bytes = 0;
}

void user_strays(struct job *job, int64_t bytes)
{
    job->user->memory_bytes += (uint64_t)bytes - (uint64_t)job->run->stray_bytes;
    job_run(job)->stray_bytes = bytes;
}

void user_charge(const struct core *core, struct job *job)
{
    job_run(job)->counted_bytes = user_bytes_in_all(core, job->wants->gpus, user_counting(job, job->reserved_bytes));
    user_counts(job);
}

void user_recharge(const struct core *core, struct job *job)
{
    user_discharge(job);
    user_charge(core, job);
}

int64_t user_most_bytes(const struct core *core, const struct record_submitted *wants)
{
    int64_t allowed = core->config.per_user.max_memory_bytes / (wants->gpus ? wants->gpus : 1);

    return allowed && allowed < core->largest_gpu_bytes ? allowed : core->largest_gpu_bytes;
}

/* ---- Retries ---- */

/* The hour that the user's retries count in is over, or lies ahead: the clock was set back. */
static bool is_over(const struct user *user, int64_t at_ns)
{
    return user->retries == 0 || at_ns < user->retries_ns || at_ns - user->retries_ns >= RETRY_WINDOW_NS;
}

void user_retries(struct job *job, int64_t at_ns)
{
    if (is_over(job->user, at_ns)) {
        job->user->retries_ns = at_ns;
        job->user->retries = 0;
    }
    job->user->retries++;
}

bool user_may_retry(const struct core *core, const struct job *job, int64_t at_ns)
{
    uint32_t most = core->config.per_user.max_retries;

    return most == 0 || is_over(job->user, at_ns) || job->user->retries < most;
}
