/* Where things are when nobody says: the system's directories for root, the XDG base directories for others. */
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "config/config.h"
#include "config/paths.h"

/* The specification asks to ignore a relative path. */
static const char *absolute_variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value == '/' ? value : NULL;
}

static const char *home(void)
{
    const char *value = absolute_variable("HOME");
    const struct passwd *entry = value ? NULL : getpwuid(geteuid());

    return value ? value : entry && entry->pw_dir && *entry->pw_dir == '/' ? entry->pw_dir : "/";
}

char *config_default_path(void)
{
    const char *base = absolute_variable("XDG_CONFIG_HOME");

    if (geteuid() == 0)
        return xstrdup("/etc/carma/carma.conf");
    return base ? xasprintf("%s/carma/carma.conf", base) : xasprintf("%s/.config/carma/carma.conf", home());
}

char *config_default_state_directory(void)
{
    const char *base = absolute_variable("XDG_STATE_HOME");

    if (geteuid() == 0)
        return xstrdup(CONFIG_SYSTEM_STATE_DIRECTORY);
    return base ? xasprintf("%s/carma", base) : xasprintf("%s/.local/state/carma", home());
}

char *config_default_socket(void)
{
    const char *socket = absolute_variable("CARMA_SOCKET"), *base = absolute_variable("XDG_RUNTIME_DIR");
    CLEANUP(free_ptr) char *runtime = NULL, *state = NULL;
    struct stat st;

    if (socket)
        return xstrdup(socket);
    if (geteuid() == 0)
        return xstrdup(CONFIG_SYSTEM_SOCKET);
    if (base)
        return xasprintf("%s/carma/carma.sock", base);
    runtime = xasprintf("/run/user/%u", (unsigned)geteuid());
    if (stat(runtime, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
        return xasprintf("%s/carma/carma.sock", runtime);
    state = config_default_state_directory();
    return xasprintf("%s/carma.sock", state);
}
