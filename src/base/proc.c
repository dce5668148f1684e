#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int proc_read_stat(pid_t pid, struct proc_stat *stat)
{
    char path[64], text[1024];
    const char *after;
    unsigned long long start;
    int fd, parent, session;
    ssize_t length;
    char state;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return -ESRCH;
    text[length] = '\0';
    after = strrchr(text, ')'); /* the command name before it may hold anything, brackets included */
    if (!after || sscanf(after + 1, " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                         &state, &parent, &session, &start) != 4)
        return -EIO;
    *stat = (struct proc_stat){.parent = parent, .session = session, .state = state, .start_ticks = start};
    return 0;
}

int proc_read_uid(pid_t pid, uid_t *uid)
{
    char path[64], text[4096];
    const char *group, *user;
    int fd, leader;
    ssize_t length;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return -ENOENT;
    text[length] = '\0'; /* the command name in its first line is escaped */
    group = strstr(text, "\nTgid:");
    user = strstr(text, "\nUid:");
    if (!group || !user || sscanf(group + 6, "%d", &leader) != 1 || sscanf(user + 5, "%u", uid) != 1)
        return -EIO;
    return leader == pid ? 0 : -ENOENT;
}

bool proc_alive(pid_t pid, uint64_t start_ticks)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) == 0 && stat.start_ticks == start_ticks && stat.state != 'Z' && stat.state != 'X';
}
