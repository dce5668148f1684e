/* Usage: witness FILE STATUS MILLISECONDS [--stray] [-- COMMAND ARGUMENT...]: a job of the fault tests, which keeps a
 * book of its own in FILE, or FILE.INDEX in an array: a line when it starts and one when it ends.
 *
 * All its processes hold one lock on FILE, which the kernel takes away with the last of them. A launch that finds it
 * taken runs at the same time as another, and says so. With a command, that is run and its status counts; --stray
 * leaves behind a process of a session of its own. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"

#define EXIT_WITNESS 99
#define STRAY_S      100000

static int book;

static void note(const char *what, int value)
{
    struct proc_stat stat = {0};
    struct timespec now;
    char line[160];

    proc_read_stat(getpid(), &stat);
    clock_gettime(CLOCK_MONOTONIC, &now);
    int length = snprintf(line, sizeof line, "%s %d %" PRIu64 " %jd.%09ld %d\n", what, (int)getpid(), stat.start_ticks,
                          (intmax_t)now.tv_sec, now.tv_nsec, value);
    if (write(book, line, (size_t)length) != length)
        exit(EXIT_WITNESS);
}

static int run(char **command)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        execvp(command[0], command);
        _exit(EXIT_WITNESS);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_WITNESS;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    const char *restart = getenv("CARMA_RESTART_COUNT"), *index = getenv("CARMA_ARRAY_TASK_ID");
    char path[4096];
    int status, ms, next = 4;

    if (argc < 4)
        return EXIT_WITNESS;
    status = atoi(argv[2]);
    ms = atoi(argv[3]);
    snprintf(path, sizeof path, "%s%s%s", argv[1], index ? "." : "", index ? index : "");
    book = open(path, O_RDWR | O_CREAT | O_APPEND, 0600); /* inherited by all that comes of this */
    if (book < 0)
        return EXIT_WITNESS;
    if (flock(book, LOCK_EX | LOCK_NB) < 0)
        note("twice", 0);
    note("start", restart ? atoi(restart) : -1);
    if (next < argc && strcmp(argv[next], "--stray") == 0) {
        if (fork() == 0) {
            setsid();
            if (fork() == 0)
                sleep(STRAY_S);
            _exit(0);
        }
        next++;
    }
    struct timespec pause = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    while (nanosleep(&pause, &pause) < 0) {
    }
    if (next + 1 < argc && strcmp(argv[next], "--") == 0)
        status = run(argv + next + 1);
    note("end", status);
    return status;
}
