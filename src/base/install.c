#include "base/install.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash)
        *slash = '\0';
}

/* The folder of the running program. */
static void find_folder(char program[static PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", program, PATH_MAX - 1);

    program[length > 0 ? length : 0] = '\0';
    cut_last(program);
}

char *install_beside(const char *name)
{
    char program[PATH_MAX];

    find_folder(program);
    return xasprintf("%s/%s", program, name);
}

char *install_path(const char *relative)
{
    const char *forced = getenv("CARMA_PREFIX");
    char program[PATH_MAX];

    if (forced && *forced)
        return xasprintf("%s/%s", forced, relative);
    find_folder(program); /* PREFIX/bin or PREFIX/lib/carma */
    if (strlen(program) > 10 && strcmp(program + strlen(program) - 10, "/lib/carma") == 0)
        cut_last(program);
    cut_last(program);
    return xasprintf("%s/%s", program, relative);
}
