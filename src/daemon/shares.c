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

void shares_tell(struct daemon *daemon, uint32_t uid, const char *user)
{
    struct record input = {.type = RECORD_SHARE_GIVEN, .at_ns = nodetime_now_ns()};

    input.share_given = (struct record_share_given){.uid = uid, .share = shares_set(daemon, uid, user)};
    if (input.share_given.share && input.share_given.share != shares_of(daemon, uid))
        engine_input(daemon->engine, &input, NULL);
}

static void tell(const struct total *total, void *daemon)
{
    shares_tell(daemon, total->uid, total->user);
}

void shares_tell_all(struct daemon *daemon)
{
    if (daemon->config.user_shares)
        totals_read(daemon, nodetime_now_ns(), tell, daemon);
}
