#include "sandbox/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

#define BIT(capability) (1u << (capability)) /* all of them are below 32 */
#define OF_SETUP        (BIT(CAP_SYS_ADMIN) | BIT(CAP_NET_ADMIN) | BIT(CAP_SETPCAP))
#define OF_LAYERS       (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN) | BIT(CAP_FOWNER))

void rights_of_account(const struct sandbox_request *request, struct account *account)
{
    (void)account_look_up(request->uid, account); /* one without an entry has no home */
    account->gid = request->gid;
    if (geteuid() == 0 && request->user)
        account->group_count = account_groups(request->user, request->gid, &account->groups);
}

static int set_capabilities(unsigned permitted, unsigned effective)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{.permitted = permitted, .effective = effective}};

    return syscall(SYS_capset, &head, sets) < 0 ? -errno : 0;
}

static int become(const struct account *account, struct error *err)
{
    return setgroups((size_t)account->group_count, account->groups) < 0 ||
                   setresgid(account->gid, account->gid, account->gid) < 0 ||
                   setresuid(account->uid, account->uid, account->uid) < 0
               ? error_set(err, errno, "cannot become uid %u, gid %u: %s", account->uid, account->gid, strerror(errno))
               : 0;
}

int rights_become_user(const struct account *account, bool by_root, struct error *err)
{
    int rc;

    if (by_root && prctl(PR_SET_KEEPCAPS, 1) < 0)
        return error_set(err, errno, "cannot keep the rights to set up a sandbox: %s", strerror(errno));
    if (by_root && (rc = become(account, err)) < 0)
        return rc;
    rc = set_capabilities(OF_SETUP | OF_LAYERS, OF_SETUP);
    return rc < 0 ? error_set(err, rc, "lacks the rights to set up a sandbox: %s", strerror(-rc)) : 0;
}

int rights_of_layers(bool had, struct error *err)
{
    int rc = set_capabilities(OF_SETUP | OF_LAYERS, had ? OF_SETUP | OF_LAYERS : OF_SETUP);

    return rc < 0 ? error_set(err, rc, "lacks the rights to set up an overlay: %s", strerror(-rc)) : 0;
}

int rights_of_user_alone(const struct account *account, struct error *err)
{
    int rc = geteuid() == 0 ? become(account, err) : 0;

    if (account->uid == 0)
        return error_set(err, EPERM, "root's commands are not run without a sandbox");
    if (rc < 0)
        return rc;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? error_set(err, errno, "cannot give up its rights: %s", strerror(errno))
               : 0;
}

int rights_give_up(struct error *err)
{
    int rc;

    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability) < 0)
            return error_set(err, errno, "cannot drop capability %d: %s", capability, strerror(errno));
    rc = set_capabilities(0, 0);
    if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        rc = -errno;
    return rc < 0 ? error_set(err, rc, "cannot give up its rights: %s", strerror(-rc)) : 0;
}
