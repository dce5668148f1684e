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

static int64_t bytes_in_all(const struct core *core, uint32_t gpus, int64_t reserved_bytes)
{
    int64_t each = reserved_bytes < 0 ? core->largest_gpu_bytes : reserved_bytes;

    return each > INT64_MAX / RECORD_MAX_GPUS ? INT64_MAX : gpus * each;
}

/* The part of its reservation on each GPU that counts: at least its user's whole request, however little it was
 * observed to use. */
static int64_t counting(const struct job *job, int64_t reserved_bytes)
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
    job->counted_bytes = bytes_in_all(core, job->wants->gpus, counting(job, job->reserved_bytes));
    user_counts(job);
}

void user_recounts(const struct core *core, struct job *job)
{
    user_leaves(job);
    user_takes(core, job);
}

/* ---- Limits ---- */

static bool beyond(const struct core *core, const struct user *user, const struct record_submitted *wants,
                   int64_t reserved_bytes, struct reason *why)
{
    const struct core_limits *limits = &core->config.per_user;
    struct reason ignored;

    why = why ? why : &ignored;
    *why = (struct reason){.wanted = wants->gpus, .request_unknown = reserved_bytes < 0};
    if (limits->max_running && user->running >= limits->max_running) {
        why->code = REASON_USER_JOBS;
        why->qualified = user->running;
        why->allowed = limits->max_running;
    } else if (limits->max_gpus && user->gpus + wants->gpus > limits->max_gpus) {
        why->code = REASON_USER_GPUS;
        why->qualified = user->gpus;
        why->allowed = limits->max_gpus;
    } else if (limits->max_memory_bytes) {
        why->needed_bytes = bytes_in_all(core, wants->gpus, reserved_bytes);
        why->held_bytes = (int64_t)user->memory_bytes;
        why->best_bytes = limits->max_memory_bytes;
        if (why->needed_bytes > limits->max_memory_bytes ||
            user->memory_bytes > (uint64_t)(limits->max_memory_bytes - why->needed_bytes))
            why->code = REASON_USER_MEMORY;
    }
    return why->code != REASON_NONE;
}

int64_t user_most_bytes(const struct core *core, const struct record_submitted *wants)
{
    int64_t allowed = core->config.per_user.max_memory_bytes / wants->gpus;

    return allowed && allowed < core->largest_gpu_bytes ? allowed : core->largest_gpu_bytes;
}

bool users_are_limited(const struct core *core)
{
    const struct core_limits *limits = &core->config.per_user;

    return limits->max_running || limits->max_gpus || limits->max_memory_bytes;
}

bool user_is_limited(const struct core *core, const struct job *job, struct reason *why)
{
    if (!users_are_limited(core))
        return false;
    return beyond(core, job->user, job->wants,
                  core->config.per_user.max_memory_bytes ? counting(job, learned_reservation(core, job, NULL)) : 0,
                  why);
}

bool user_is_limited_ever(const struct core *core, const struct record_submitted *wants, struct reason *why)
{
    int64_t request =
        wants->request_bytes < 0 ? prior_request(core, wants, core->prior.likely_bytes) : wants->request_bytes;

    return beyond(core, &(struct user){0}, wants, request, why);
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
