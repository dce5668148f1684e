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

char *install_path(const char *relative)
{
    const char *forced = getenv("CARMA_PREFIX");
    char program[PATH_MAX];
    ssize_t length;

    if (forced && *forced)
        return xasprintf("%s/%s", forced, relative);
    length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    cut_last(program); /* PREFIX/bin or PREFIX/lib/carma */
    if (strlen(program) > 10 && strcmp(program + strlen(program) - 10, "/lib/carma") == 0)
        cut_last(program);
    cut_last(program);
    return xasprintf("%s/%s", program, relative);
}
