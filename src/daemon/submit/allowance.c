#include "daemon/submit/allowance.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "daemon/daemon.h"

#define CHANGE_NS (86400 * NS_PER_SEC / ALLOWANCE_A_DAY)

struct allowance {
    uid_t uid;
    int64_t due_ns; /* monotonic wall time at which all are back */
    UT_hash_handle hh;
};

/* Whoever has all of them back is not kept. */
static void forget_whole(struct daemon *daemon, int64_t now_ns)
{
    struct allowance *user, *next;

    HASH_ITER (hh, daemon->allowances, user, next)
        if (user->due_ns <= now_ns) {
            HASH_DEL(daemon->allowances, user);
            free(user);
        }
}

int allowance_take(struct daemon *daemon, uid_t uid, uint64_t changes, struct error *err)
{
    int64_t now_ns = nodetime_monotonic_wall_ns(), due_ns;
    struct allowance *user;

    if (uid == 0 || uid == geteuid())
        return 0;
    HASH_FIND(hh, daemon->allowances, &uid, sizeof uid, user);
    due_ns = (user && user->due_ns > now_ns ? user->due_ns : now_ns) + (int64_t)changes * CHANGE_NS;
    if (due_ns - now_ns > ALLOWANCE_A_DAY * CHANGE_NS)
        return error_set(
            err, EDQUOT,
            "you have submitted, held or released too many jobs: %d a day are recorded of a user; try again "
            "in %" PRId64 " s",
            ALLOWANCE_A_DAY, (due_ns - now_ns - ALLOWANCE_A_DAY * CHANGE_NS) / NS_PER_SEC + 1);
    if (!user) {
        forget_whole(daemon, now_ns);
        user = xcalloc(1, sizeof *user);
        user->uid = uid;
        HASH_ADD(hh, daemon->allowances, uid, sizeof user->uid, user);
    }
    user->due_ns = due_ns;
    return 0;
}

void allowances_release(struct daemon *daemon)
{
    forget_whole(daemon, INT64_MAX);
}
