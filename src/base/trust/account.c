#include "base/trust/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

#define ENTRY_MAX_BYTES (1 << 20)
#define GROUPS_MAX      65536 /* the kernel's NGROUPS_MAX */

/* Errors of getpwuid_r(3) that only mean that an entry is missing. */
static bool means_none(int code)
{
    return code == 0 || code == ENOENT || code == ESRCH || code == EBADF || code == EPERM;
}

int account_look_up(uid_t uid, struct account *account)
{
    CLEANUP(free_ptr) char *buffer = NULL;
    struct passwd entry, *found = NULL;
    int code = ERANGE;

    for (size_t size = 4096; (code == ERANGE && size <= ENTRY_MAX_BYTES) || code == EINTR; size *= 4) {
        buffer = xrealloc(buffer, size, 1);
        code = getpwuid_r(uid, &entry, buffer, size, &found);
    }
    *account = (struct account){.uid = uid};
    if (!found)
        return means_none(code) ? -ENOENT : -code;
    account->gid = found->pw_gid;
    account->name = xstrdup(found->pw_name);
    account->home = found->pw_dir ? xstrdup(found->pw_dir) : NULL;
    return 0;
}

int account_groups(const char *name, gid_t gid, gid_t **groups)
{
    int count = 64, room;

    *groups = NULL;
    do {
        room = count;
        *groups = xrealloc(*groups, (size_t)room, sizeof **groups);
    } while (getgrouplist(name, gid, *groups, &count) < 0 && count > room && count <= GROUPS_MAX);
    return count <= room ? count : 0;
}

void account_release(struct account *account)
{
    free(account->name);
    free(account->home);
    free(account->groups);
}
