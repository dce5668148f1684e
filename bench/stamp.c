/* bench-stamp FILE: writes its start time, nanoseconds of the monotonic clock, as the job of a measured start. */
#include <inttypes.h>
#include <stdio.h>

#include "base/nodetime.h"

int main(int argc, char **argv)
{
    int64_t now_ns = nodetime_monotonic_wall_ns();
    FILE *file = argc == 2 ? fopen(argv[1], "w") : NULL;

    return file && fprintf(file, "%" PRId64 "\n", now_ns) > 0 && fclose(file) == 0 ? 0 : 1;
}
