#include "daemon/request/user_named.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "daemon/account/totals.h"

static void compare(const struct total *total, void *data)
{
    struct user_named *user = data;
    CLEANUP(free_ptr) char *number = xasprintf("%" PRIu32, total->uid);

    if (user->found || (strcmp(total->user, user->name) != 0 && strcmp(number, user->name) != 0))
        return;
    user->found = true;
    user->uid = total->uid;
    user->user = xstrdup(total->user);
}

bool user_find_named(const struct daemon *daemon, struct user_named *user)
{
    int64_t uid;

    totals_read(daemon, nodetime_now_ns(), compare, user);
    if (!user->found && parse_integer(user->name, 0, UINT32_MAX - 1, &uid, NULL) == 0) {
        user->found = true;
        user->uid = (uint32_t)uid;
        user->user = xstrdup(user->name);
    }
    return user->found;
}
