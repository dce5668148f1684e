/* bench-stamp FILE: writes its start time, nanoseconds of the monotonic clock, as the job of a measured start.
 * bench-stamp --then COMMAND...: prints the time, and executes COMMAND: as the client's start, without that of the
 * measuring program's own child. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/nodetime.h"

static int stamp_then(char **command, int64_t now_ns)
{
    if (printf("%" PRId64 "\n", now_ns) < 0 || fflush(stdout) != 0)
        return 1;
    execvp(command[0], command);
    perror(command[0]);
    return 1;
}

int main(int argc, char **argv)
{
    int64_t now_ns = nodetime_monotonic_wall_ns();
    FILE *file;

    if (argc > 2 && strcmp(argv[1], "--then") == 0)
        return stamp_then(argv + 2, now_ns);
    file = argc == 2 ? fopen(argv[1], "w") : NULL;
    return file && fprintf(file, "%" PRId64 "\n", now_ns) > 0 && fclose(file) == 0 ? 0 : 1;
}
