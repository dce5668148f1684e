/* How this file works: the table of users, and what goes with it. A user is made with the first record that names him
 * (user_of), and his workloads are forgotten in three ways: the oldest beyond LEARN_MOST_PROFILES at a submission,
 * those that an administrator names (users_forget), all with the core. Each way takes a workload back from all who
 * count it: its measures (pairs.c), its program (guess/program_history.c), the distributions (guess/prior.c). */
#include "core/users.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#include "core/guess/program_history.h"
#include "core/learn/pairs.h"
#include "core/learn/learn.h"
#include "core/state.h"

/* At a submission: number of the oldest workloads examined for some that may be forgotten. */
#define FORGET_STEPS 16

/* Users are ordered by their numbers, not by arrival. */
static int by_uid(const struct user *a, const struct user *b)
{
    return a->uid < b->uid ? -1 : a->uid > b->uid;
}

struct user *user_of(struct core *core, uint32_t uid)
{
    struct user *user = user_find(core, uid);

    if (user)
        return user;
    user = xcalloc(1, sizeof *user);
    user->uid = uid;
    user->share = 1;
    HASH_ADD_INORDER(hh, core->users, uid, sizeof user->uid, user, by_uid);
    prior_refresh(core);
    return user;
}

static bool is_group(const char *name, uint32_t share)
{
    return memchr(name, '\0', RECORD_GROUP_SIZE) && (*name ? share >= 1 && share <= USER_MOST_SHARE : share == 0);
}

int users_put_in_group(struct core *core, struct user *user, const char *name, uint32_t share, struct error *err)
{
    struct user_group *group = core->groups;

    if (!is_group(name, share))
        return error_set(err, EINVAL, "a group cannot have a share of %" PRIu32 ": of a name, one from 1 to %d", share,
                         USER_MOST_SHARE);
    user->group = NULL;
    if (!*name)
        return 0;
    while (group && strcmp(group->name, name) != 0)
        group = group->next;
    if (!group) {
        group = xcalloc(1, sizeof *group);
        memcpy(group->name, name, strlen(name));
        LL_PREPEND(core->groups, group);
    }
    group->share = share;
    user->group = group;
    return 0;
}

int users_give_share(struct core *core, const struct record_share_given *given, struct error *err)
{
    if (given->share < 1 || given->share > USER_MOST_SHARE)
        return error_set(err, EINVAL, "a share of %" PRIu32 " is not one from 1 to %d", given->share, USER_MOST_SHARE);
    if (!is_group(given->group, given->group_share))
        return users_put_in_group(core, NULL, given->group, given->group_share, err);
    user_of(core, given->uid)->share = given->share;
    return users_put_in_group(core, user_of(core, given->uid), given->group, given->group_share, err);
}

static void make_latest(struct profile *profile)
{
    HASH_DEL(profile->user->profiles, profile);
    HASH_ADD_STR(profile->user->profiles, workload, profile);
}

static void drop(struct core *core, struct profile *profile)
{
    pairs_forget_profile(core, profile);
    program_forget_profile(core, profile);
    if (profile->news)
        LL_DELETE2(core->news, profile, next_news);
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
void users_submitted(struct core *core, const struct job *job)
{
    if (job->profile)
        make_latest(job->profile);
    for (int i = 0; i < FORGET_STEPS && core->profile_count > LEARN_MOST_PROFILES; i++) {
        struct profile *oldest = with_most_profiles(core)->profiles;
        if (oldest->jobs > 0)
            make_latest(oldest);
        else
            drop(core, oldest);
    }
}

void users_free(struct core *core)
{
    struct user_group *group, *next_group;
    struct user *user, *next;

    HASH_ITER (hh, core->users, user, next) {
        struct profile *profile, *other;
        HASH_DEL(core->users, user);
        programs_free(user);
        HASH_ITER (hh, user->profiles, profile, other) {
            HASH_DEL(user->profiles, profile);
            free(profile);
        }
        prior_forget(user);
        free(user);
    }
    LL_FOREACH_SAFE(core->groups, group, next_group)
    {
        free(group);
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
        drop(core, profile);
        return;
    }
    pairs_forget_profile(core, profile);
    program_forget_profile(core, profile);
    profile->runs = 0;
    profile->tells = false;
    profile->first_bytes = profile->distance_sum = profile->distance_squares = 0;
    profile->outgrown_bytes = profile->peak_bytes = profile->estimated_bytes = 0;
    learn_nothing(profile);
    profile->program = program_of_new(user, profile->workload);
    core->openings++;
    learn_note_news(core, profile, NEWS_COMPANY); /* a GPU that failed is avoided no longer, either */
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
