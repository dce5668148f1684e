/* bench-stamp FILE: writes when it began, nanoseconds of the monotonic clock, as a job whose start is measured. */
#include <inttypes.h>
#include <stdio.h>

#include "base/nodetime.h"

int main(int argc, char **argv)
{
    int64_t now_ns = nodetime_monotonic_wall_ns();
    FILE *file = argc == 2 ? fopen(argv[1], "w") : NULL;

    return file && fprintf(file, "%" PRId64 "\n", now_ns) > 0 && fclose(file) == 0 ? 0 : 1;
}
