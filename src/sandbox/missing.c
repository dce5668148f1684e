#include "sandbox/missing.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#define TEXT_LIMIT   64
#define FOR_ROOT_TOO 1 /* settings: the first */

static const struct {
    const char *file, *forbids, *hint;
} settings[] = {
    {"/proc/sys/user/max_user_namespaces", "0\n", ": user namespaces are off: sysctl user.max_user_namespaces=10000"},
    {"/proc/sys/kernel/unprivileged_userns_clone", "0\n",
     ": users may make no user namespaces: sysctl kernel.unprivileged_userns_clone=1"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n",
     ": AppArmor gives user namespaces no rights: an AppArmor profile with 'userns,' for carma-sandbox, or sysctl "
     "kernel.apparmor_restrict_unprivileged_userns=0"},
};

const char *missing_hint(void)
{
    const bool by_root = geteuid() == 0;

    for (size_t i = 0; i < (by_root ? FOR_ROOT_TOO : array_size(settings)); i++) {
        CLEANUP(free_ptr) char *text = NULL;
        size_t length;
        if (file_read(settings[i].file, TEXT_LIMIT, &text, &length, NULL) == 0 &&
            strcmp(text, settings[i].forbids) == 0)
            return settings[i].hint;
    }
    if (by_root)
        return ": a container needs CAP_SYS_ADMIN for it, and a seccomp profile that allows mounts and namespaces";
    return ": a container's seccomp profile may forbid it, or a kernel before Linux 5.12";
}
