/* A carma-monitor that hangs and that SIGKILL does not end, as one in a driver call that never returns. To its parent
 * it looks alive while the directory exists that the environment variable STUCK_WHILE names. A process that traces it
 * sees to that: a killed process that is traced is its tracer's to reap first.
 *
 * STUCK_TIMES says how many of those that are started with this directory get stuck, the later ones become the real
 * carma-monitor. Each leaves a file named by its number there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

static int number_of_this_start(const char *dir)
{
    char path[300];
    int fd = -1, number = 0;

    while (fd < 0 && number < 100) {
        snprintf(path, sizeof path, "%s/%d", dir, ++number);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    }
    close(fd);
    return number;
}

int main(int argc, char **argv)
{
    const char *dir = getenv("STUCK_WHILE");

    if (argc < 1 || !dir || !getenv("STUCK_TIMES"))
        return 2;
    if (number_of_this_start(dir) > atoi(getenv("STUCK_TIMES"))) {
        execv(CARMA_MONITOR, argv);
        return 3;
    }
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (fork() == 0) {
        if (ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) != 0) {
            perror("ptrace");
            _exit(1);
        }
        while (access(dir, F_OK) == 0)
            usleep(5000);
        _exit(0);
    }
    for (;;)
        pause();
}
