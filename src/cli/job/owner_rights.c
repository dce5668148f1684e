#include "cli/job/owner_rights.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/trust/account.h"
#include "base/memory.h"

/* glibc's setgroups() is for all threads. */
static int set_groups(int count, const gid_t *groups)
{
#ifdef SYS_setgroups32
    return (int)syscall(SYS_setgroups32, (size_t)count, groups);
#else
    return (int)syscall(SYS_setgroups, (size_t)count, groups);
#endif
}

/* Without an entry it has no groups. */
static void account_of(uid_t uid, struct account *account)
{
    if (account_look_up(uid, account) < 0)
        account->gid = ACCOUNT_NOBODYS_GROUP;
    else
        account->group_count = account_groups(account->name, account->gid, &account->groups);
}

int owner_rights_take(int64_t owner, struct owner_rights *rights, struct error *err)
{
    CLEANUP(account_release) struct account account = {0};
    int own = getgroups(0, NULL);

    *rights = (struct owner_rights){0};
    if (geteuid() != 0 || owner == 0)
        return 0;
    if (owner < 0 || owner >= (uid_t)-1)
        return error_set(err, EINVAL, "the daemon does not tell whose job it is");
    rights->groups = xcalloc((size_t)(own > 0 ? own : 0) + 1, sizeof *rights->groups);
    rights->group_count = own > 0 ? getgroups(own, rights->groups) : 0;
    account_of((uid_t)owner, &account);
    if (rights->group_count >= 0 && set_groups(account.group_count, account.groups) == 0) {
        rights->taken = true;
        setfsgid(account.gid);
        setfsuid((uid_t)owner);
        /* these tell no errors, only what is */
        if (setfsuid((uid_t)-1) == (int)owner && setfsgid((gid_t)-1) == (int)account.gid)
            return 0;
    }
    owner_rights_give_back(rights);
    return error_set(err, EPERM, "cannot take the rights of its user (uid %" PRId64 ")", owner);
}

void owner_rights_give_back(struct owner_rights *rights)
{
    if (rights->taken) {
        setfsuid(geteuid());
        setfsgid(getegid());
        if (setfsuid((uid_t)-1) != (int)geteuid() || set_groups(rights->group_count, rights->groups) < 0)
            abort(); /* nothing may go on with another's rights */
    }
    free(rights->groups);
    *rights = (struct owner_rights){0};
}
