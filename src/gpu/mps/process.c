#include "gpu/mps/process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/kernel/aside.h"
#include "base/kernel/calls.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/units.h"

#define ENVIRONMENT_LIMIT (4 << 20)
#define LOOK_MS           2
#define END_ALL_MS        10000 /* a process that is killed may take its time */
#define ASK_MS            500
#define MOST_SILENT       8 /* processes that do not answer; then the search ends */

/* The process at the other end of the socket: the caller of listen(). 0: none. */
static pid_t listener_of(const struct sockaddr_un *address, int type)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred peer = {0};
    socklen_t length = sizeof peer;
    pid_t pid;

    if (fd < 0)
        return 0;
    kernel_refuse_descriptors(fd);
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) < 0)
        pid = errno == EPROTOTYPE ? -1 : 0;
    else
        pid = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
    close_fd(&fd);
    return pid;
}

pid_t mps_process_find(const char *pipe_directory, struct mps_process *known)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct proc_stat stat;
    pid_t pid;

    if (known->pid && proc_alive(known->pid, known->start_ticks))
        return known->pid;
    *known = (struct mps_process){0};
    if (snprintf(address.sun_path, sizeof address.sun_path, "%s/control", pipe_directory) >=
        (int)sizeof address.sun_path)
        return 0;
    pid = listener_of(&address, SOCK_SEQPACKET); /* as the drivers' from 470 to 555 */
    if (pid < 0)
        pid = listener_of(&address, SOCK_STREAM);
    if (pid > 0 && proc_read_stat(pid, &stat) == 0 && proc_alive(pid, stat.start_ticks))
        *known = (struct mps_process){.pid = pid, .start_ticks = stat.start_ticks};
    return known->pid;
}

static bool has_variable(pid_t pid, const char *variable)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/environ", (int)pid);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;

    if (file_read(path, ENVIRONMENT_LIMIT, &text, &length, NULL) < 0)
        return false;
    for (const char *at = text; at < text + length; at += strlen(at) + 1)
        if (strcmp(at, variable) == 0)
            return true;
    return false;
}

static int kill_one(int fd, pid_t pid)
{
    return fd >= 0 ? kernel_pidfd_signal(fd, SIGKILL) : kill(pid, SIGKILL);
}

/* Goes once over the processes; shared with the child that does it. */
struct round {
    const char *variable;
    volatile pid_t at; /* it is being looked at: the next child, if this one hangs there, goes on behind it */
    volatile unsigned count;
};

static void kill_from(const void *user, int fd)
{
    struct round *round = *(struct round *const *)user;
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    uid_t uid;

    (void)fd;
    while (processes && (entry = readdir(processes))) { /* in the order of their pids */
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        CLEANUP(close_fd) int process = -1;

        if (pid <= round->at || pid == getpid() || proc_read_uid(pid, &uid) < 0 || uid != geteuid())
            continue;
        round->at = pid;
        process = kernel_pidfd_open(pid);
        if ((process >= 0 || errno == ENOSYS) && has_variable(pid, round->variable) && kill_one(process, pid) == 0)
            round->count++;
    }
    if (processes)
        closedir(processes);
}

/* How many it has killed. */
static unsigned kill_once(struct round *round)
{
    char *answer = NULL;

    round->at = 0;
    round->count = 0;
    for (int silent = 0; !answer && silent < MOST_SILENT; silent++)
        answer = aside_ask(kill_from, &round, ASK_MS);
    free(answer);
    return round->count;
}

void mps_process_end_all(const char *pipe_directory)
{
    CLEANUP(free_ptr) char *variable = xasprintf("CUDA_MPS_PIPE_DIRECTORY=%s", pipe_directory);

    const int64_t until_ns = nodetime_monotonic_wall_ns() + END_ALL_MS * NS_PER_MS;
    struct round *round = mmap(NULL, sizeof *round, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (round == MAP_FAILED)
        return;
    round->variable = variable;
    while (kill_once(round) && nodetime_monotonic_wall_ns() < until_ns)
        usleep(LOOK_MS * 1000);
    munmap(round, sizeof *round);
}

unsigned mps_process_signal_servers(pid_t daemon, int signal_number)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    struct proc_stat stat;
    unsigned count = 0;

    while (processes && (entry = readdir(processes))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || proc_read_stat(pid, &stat) < 0 || stat.parent != daemon || stat.ended)
            continue;
        kill(pid, signal_number);
        count++;
    }
    if (processes)
        closedir(processes);
    return count;
}
