#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The text of one of the process's files. Its length, 0 where nothing can be read, or a negative errno. */
static ssize_t read_text(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    ssize_t length;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    length = read(fd, text, size - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? length : 0;
}

int proc_read_stat(pid_t pid, struct proc_stat *stat)
{
    char text[1024], state;
    const ssize_t length = read_text(pid, "stat", text, sizeof text);
    const char *after;
    unsigned long long start;
    int parent, session, threads;

    if (length <= 0)
        return length < 0 ? (int)length : -ESRCH;
    after = strrchr(text, ')'); /* the command name before it may hold anything, brackets included */
    if (!after || sscanf(after + 1, " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu",
                         &state, &parent, &session, &threads, &start) != 5)
        return -EIO;
    *stat = (struct proc_stat){.parent = parent,
                               .session = session,
                               .state = state,
                               .ended = state == 'X' || (state == 'Z' && threads <= 1),
                               .start_ticks = start};
    return 0;
}

int proc_read_uid(pid_t pid, uid_t *uid)
{
    char text[4096];
    const ssize_t length = read_text(pid, "status", text, sizeof text);
    const char *group, *user;
    int leader;

    if (length <= 0)
        return length < 0 ? (int)length : -ENOENT;
    group = strstr(text, "\nTgid:"); /* the command name in its first line is escaped */
    user = strstr(text, "\nUid:");
    if (!group || !user || sscanf(group + 6, "%d", &leader) != 1 || sscanf(user + 5, "%u", uid) != 1)
        return -EIO;
    return leader == pid ? 0 : -ENOENT;
}

bool proc_shows_signal(const char *status, const char *key, int signal)
{
    const char *line = strstr(status, key);

    return line && (strtoull(line + strlen(key), NULL, 16) >> (signal - 1) & 1); /* signal 1 is the lowest bit */
}

bool proc_alive(pid_t pid, uint64_t start_ticks)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) == 0 && stat.start_ticks == start_ticks && !stat.ended;
}

const char *proc_boot(void)
{
    static char boot[PROC_BOOT];
    int fd = *boot ? -1 : open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return boot;
    if (read(fd, boot, sizeof boot - 1) <= 0)
        *boot = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    close(fd);
    return boot;
}
