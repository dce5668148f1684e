/* Preloaded into carmad: the user database takes 4 s for $SLOW_UID, named slow; each look-up is noted in $SLOW_LOG.
 * carmad's children ask for themselves, and are not counted: carma-sandbox looks for a home. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

static __attribute__((constructor)) void spare_children(void)
{
    unsetenv("LD_PRELOAD");
}

typedef int look_up(uid_t uid, struct passwd *entry, char *buffer, size_t size, struct passwd **found);

__attribute__((visibility("default"))) int getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size,
                                                      struct passwd **found)
{
    const char *slow = getenv("SLOW_UID"), *path = getenv("SLOW_LOG");
    static char name[] = "slow", root[] = "/";

    if (!slow || uid != (uid_t)strtoul(slow, NULL, 10))
        return ((look_up *)dlsym(RTLD_NEXT, "getpwuid_r"))(uid, entry, buffer, size, found);
    int log = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (log >= 0) {
        if (write(log, "q", 1) != 1)
            return EIO;
        close(log);
    }
    sleep(4);
    *entry = (struct passwd){.pw_name = name, .pw_uid = uid, .pw_gid = getgid() ? getgid() : uid, .pw_dir = root};
    *found = entry;
    return 0;
}

__attribute__((visibility("default"))) struct passwd *getpwuid(uid_t uid)
{
    static struct passwd entry;
    struct passwd *found = NULL;
    static char buffer[65536];

    return getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) == 0 ? found : NULL;
}
