#include "cli/job/owner_rights.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

#define NOBODYS_GROUP 65534 /* stands for the group of a user who has no account any more */

/* glibc's setgroups() is for all threads. */
static int set_groups(int count, const gid_t *groups)
{
#ifdef SYS_setgroups32
    return (int)syscall(SYS_setgroups32, (size_t)count, groups);
#else
    return (int)syscall(SYS_setgroups, (size_t)count, groups);
#endif
}

static gid_t account_of(uid_t uid, gid_t **groups, int *count)
{
    char buffer[4096];
    struct passwd entry, *found = NULL;
    int room = 0;

    *groups = NULL;
    *count = 0;
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0 || !found)
        return NOBODYS_GROUP;
    getgrouplist(found->pw_name, found->pw_gid, NULL, &room);
    *groups = xcalloc((size_t)room, sizeof **groups);
    if (getgrouplist(found->pw_name, found->pw_gid, *groups, &room) >= 0)
        *count = room;
    return found->pw_gid;
}

int owner_rights_take(int64_t owner, struct owner_rights *rights, struct error *err)
{
    CLEANUP(free_ptr) gid_t *groups = NULL;
    int count, own = getgroups(0, NULL);
    gid_t gid;

    *rights = (struct owner_rights){0};
    if (geteuid() != 0 || owner == 0)
        return 0;
    if (owner < 0 || owner >= (uid_t)-1)
        return error_set(err, EINVAL, "the daemon does not tell whose job it is");
    rights->groups = xcalloc((size_t)(own > 0 ? own : 0) + 1, sizeof *rights->groups);
    rights->group_count = own > 0 ? getgroups(own, rights->groups) : 0;
    gid = account_of((uid_t)owner, &groups, &count);
    if (rights->group_count >= 0 && set_groups(count, groups) == 0) {
        rights->taken = true;
        setfsgid(gid);
        setfsuid((uid_t)owner);
        /* these tell no errors, only what is */
        if (setfsuid((uid_t)-1) == (int)owner && setfsgid((gid_t)-1) == (int)gid)
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
