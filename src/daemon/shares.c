/* How this file works: a user's share is what an administrator said last, or the settings'; his group comes from the
 * settings alone. The core learns of both by inputs (record SHARE_GIVEN). shares_tell sends one before a job of his is
 * an input, where what the core knows differs (submission_take.c, lease/leases.c). An administrator's word is
 * shares_given's record, and shares_set says what the settings hold (request/share_table.c). */
#include "daemon/shares.h"

#include "base/nodetime.h"
#include "config/user_shares.h"
#include "core/user.h"
#include "daemon/account/totals.h"
#include "daemon/engine/engine.h"

uint32_t shares_of(const struct daemon *daemon, uint32_t uid)
{
    const struct user *user = user_find(daemon->core, uid);

    return user ? user->share : 1;
}

uint32_t shares_set(const struct daemon *daemon, uint32_t uid, const char *user)
{
    return user_shares_find(daemon->config.user_shares, uid, user);
}

struct record shares_given(const struct daemon *daemon, uint32_t uid, const char *user, uint32_t share)
{
    struct record input = {.type = RECORD_SHARE_GIVEN, .at_ns = nodetime_now_ns()};
    struct record_share_given *given = &input.share_given;

    given->uid = uid;
    given->share = share;
    user_groups_find(daemon->config.share_groups, uid, user, given->group);
    given->group_share = *given->group ? user_groups_share(daemon->config.user_shares, given->group) : 0;
    return input;
}

void shares_tell(struct daemon *daemon, uint32_t uid, const char *user)
{
    uint32_t set = shares_set(daemon, uid, user);
    struct record input = shares_given(daemon, uid, user, set ? set : shares_of(daemon, uid));
    const struct record_share_given *given = &input.share_given;

    if (given->share != shares_of(daemon, uid) ||
        !user_is_in(user_find(daemon->core, uid), given->group, given->group_share))
        engine_input(daemon->engine, &input, NULL);
}

static void tell(const struct total *total, void *daemon)
{
    shares_tell(daemon, total->uid, total->user);
}

void shares_tell_all(struct daemon *daemon)
{
    totals_read(daemon, nodetime_now_ns(), tell, daemon);
}
