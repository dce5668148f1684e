/* A SPANK plugin that measures another: plugstack.conf names it before and after that one, each time with a file and a
 * word. When a task starts, it adds a line to the file: job, word, nanoseconds of the monotonic clock. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* Slurm looks these names up */
#include <slurm/spank.h>
SPANK_PLUGIN(carma_bench_stamp, 1)
#pragma GCC visibility pop

int slurm_spank_task_init_privileged(spank_t spank, int count, char **arguments)
{
    struct timespec now;
    uint32_t job = 0;
    char line[96];
    int length, fd;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (count != 2 || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
        return 0;
    fd = open(arguments[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    length = snprintf(line, sizeof(line), "%" PRIu32 " %.16s %lld\n", job, arguments[1],
                      (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    if (fd < 0 || write(fd, line, (size_t)length) != length)
        slurm_error("carma_bench_stamp: %s cannot be written", arguments[0]);
    if (fd >= 0)
        close(fd);
    return 0;
}
