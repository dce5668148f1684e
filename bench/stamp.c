/* bench-stamp FILE: writes the time of its first instruction, nanoseconds of the monotonic clock, as the job of a
 * measured start. That is before the C library begins, which asks the processor for its caches: a hypervisor answers
 * slowly.
 * bench-stamp --then COMMAND...: prints the time, and executes COMMAND: as the client's start, without that of the
 * measuring program's own child. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/nodetime.h"
#include "base/units.h"

#ifdef STAMP_ENTRY /* the linker makes it the entry: clock_gettime(CLOCK_MONOTONIC, &first), and on as usual */
static struct timespec first __attribute__((used));
__asm__(".globl stamp_entry\n"
        "stamp_entry:\n"
        "mov $228, %eax\n"
        "mov $1, %edi\n"
        "lea first(%rip), %rsi\n"
        "syscall\n"
        "jmp _start\n");

static int64_t first_ns(void)
{
    return first.tv_sec * NS_PER_SEC + first.tv_nsec;
}
#else
static int64_t first_ns(void)
{
    return nodetime_monotonic_wall_ns();
}
#endif

static int stamp_then(char **command)
{
    if (printf("%" PRId64 "\n", nodetime_monotonic_wall_ns()) < 0 || fflush(stdout) != 0)
        return 1;
    execvp(command[0], command);
    perror(command[0]);
    return 1;
}

int main(int argc, char **argv)
{
    int64_t now_ns = first_ns();
    FILE *file;

    if (argc > 2 && strcmp(argv[1], "--then") == 0)
        return stamp_then(argv + 2);
    file = argc == 2 ? fopen(argv[1], "w") : NULL;
    return file && fprintf(file, "%" PRId64 "\n", now_ns) > 0 && fclose(file) == 0 ? 0 : 1;
}
