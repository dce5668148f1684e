#include "core/user.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "core/core_internal.h"

#define RETRY_WINDOW_NS (3600 * NS_PER_SEC)

/* Users are ordered by their numbers, not by arrival. */
static int by_uid(const struct user *a, const struct user *b)
{
    return a->uid < b->uid ? -1 : a->uid > b->uid;
}

struct user *user_find(const struct core *core, uint32_t uid)
{
    struct user *user;

    HASH_FIND(hh, core->users, &uid, sizeof uid, user);
    return user;
}

struct user *user_of(struct core *core, uint32_t uid)
{
    struct user *user = user_find(core, uid);

    if (user)
        return user;
    user = xcalloc(1, sizeof *user);
    user->uid = uid;
    HASH_ADD_INORDER(hh, core->users, uid, sizeof user->uid, user, by_uid);
    prior_refresh(core);
    return user;
}

void users_free(struct core *core)
{
    struct user *user, *next;

    HASH_ITER (hh, core->users, user, next) {
        struct profile *profile, *other;
        HASH_DEL(core->users, user);
        kins_free(user);
        HASH_ITER (hh, user->profiles, profile, other) {
            HASH_DEL(user->profiles, profile);
            free(profile);
        }
        prior_forget(user);
        free(user);
    }
}

/* ---- What was learned of them, taken back ---- */

/* One with jobs stays, and its jobs are of unknown need again. */
static void forget_workload(struct core *core, struct profile *profile)
{
    struct user *user = profile->user;

    if (profile->runs && user->own)
        prior_take_back(user->own, profile->first_bytes);
    if (profile->tells && user->told)
        prior_take_back(user->told, profile->first_bytes);
    if (profile->jobs == 0) {
        learn_drop(core, profile);
        return;
    }
    company_forget_profile(core, profile);
    kin_forget_profile(core, profile);
    profile->runs = 0;
    profile->tells = false;
    profile->first_bytes = profile->distance_sum = profile->distance_squares = 0;
    profile->outgrown_bytes = profile->peak_bytes = profile->estimated_bytes = 0;
    learn_nothing(profile);
    profile->kin = kin_of_new(user, profile->workload);
    core->openings++;
    alike_workload_changed(core, profile);
    learn_open_where_placed(core, profile);
}

static void forget_of(struct core *core, struct user *user, const char *workload)
{
    struct profile *profile, *next;

    if (!*workload)
        prior_forget(user);
    HASH_ITER (hh, user->profiles, profile, next)
        if (!*workload || strcmp(profile->workload, workload) == 0)
            forget_workload(core, profile);
}

int users_forget(struct core *core, const struct record_forgotten *forgotten, struct error *err)
{
    if (!memchr(forgotten->workload, '\0', sizeof forgotten->workload) ||
        (!forgotten->of_user && !*forgotten->workload))
        return error_set(err, EINVAL, "neither a user nor a workload is named to be forgotten");
    for (struct user *user = core->users; user; user = user->hh.next)
        if (!forgotten->of_user || user->uid == forgotten->uid)
            forget_of(core, user, forgotten->workload);
    if (forgotten->of_user && forgotten->uid == USER_UNKNOWN && !*forgotten->workload)
        prior_init(&core->prior);
    prior_refresh(core);
    return 0;
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
    job->user->memory_bytes += (uint64_t)job->counted_bytes + (uint64_t)job->stray_bytes;
}

void user_leaves(struct job *job)
{
    job->user->running--;
    job->user->gpus -= job->wants->gpus;
    job->user->memory_bytes -= (uint64_t)job->counted_bytes + (uint64_t)job->stray_bytes;
    job->counted_bytes = 0;
}

void user_strays(struct job *job, int64_t bytes)
{
    job->user->memory_bytes += (uint64_t)bytes - (uint64_t)job->stray_bytes;
    job->stray_bytes = bytes;
}

void user_takes(const struct core *core, struct job *job)
{
    job->counted_bytes = user_bytes_in_all(core, job->wants->gpus, user_counting(job, job->reserved_bytes));
    user_counts(job);
}

void user_recounts(const struct core *core, struct job *job)
{
    user_leaves(job);
    user_takes(core, job);
}

int64_t user_most_bytes(const struct core *core, const struct record_submitted *wants)
{
    int64_t allowed = core->config.per_user.max_memory_bytes / wants->gpus;

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
