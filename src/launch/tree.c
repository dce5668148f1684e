#include "launch/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/kernel/calls.h"
#include "base/memory.h"
#include "base/proc.h"

#define MEMORY_WAIT_MS 1000
#define STATUS_LIMIT   65536 /* of /proc/PID/status; a user in thousands of groups has a long one */

void tree_read(struct tree *tree)
{
    DIR *directory = opendir("/proc");
    struct dirent *entry;

    tree->count = 0;
    if (!directory)
        return;
    while ((entry = readdir(directory))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10); /* 0 for a text that is not a pid */
        struct proc_stat stat;
        if (pid <= 0 || proc_read_stat(pid, &stat) < 0)
            continue;
        array_reserve(tree->items, tree->capacity, tree->count + 1);
        tree->items[tree->count++] = (struct tree_process){.pid = pid,
                                                           .parent = stat.parent,
                                                           .session = stat.session,
                                                           .ended = stat.ended,
                                                           .stopped = stat.state == 'T' || stat.state == 't',
                                                           .start_ticks = stat.start_ticks};
    }
    closedir(directory);
}

void tree_release(struct tree *tree)
{
    free(tree->items);
    *tree = (struct tree){0};
}

static int compare_pids(const void *left, const void *right)
{
    pid_t a = ((const struct tree_process *)left)->pid, b = ((const struct tree_process *)right)->pid;

    return (a > b) - (a < b);
}

static bool parent_is_member(const struct tree *tree, pid_t parent)
{
    const struct tree_process key = {.pid = parent};
    const struct tree_process *found =
        tree->count ? bsearch(&key, tree->items, tree->count, sizeof key, compare_pids) : NULL;

    return found && found->member;
}

void tree_select_descendants(struct tree *tree, pid_t root)
{
    bool more = true;

    if (tree->count)
        qsort(tree->items, tree->count, sizeof *tree->items, compare_pids);
    while (more) { /* a child mostly has a higher pid than its parent, so one or two rounds do */
        more = false;
        for (size_t i = 0; i < tree->count; i++) {
            struct tree_process *p = &tree->items[i];
            if (!p->member && p->pid != root && p->pid != tree->spared &&
                (p->parent == root || parent_is_member(tree, p->parent)))
                more = p->member = true;
        }
    }
}

int tree_signal_one(pid_t pid, uint64_t start_ticks, int signal)
{
    CLEANUP(close_fd) int fd = kernel_pidfd_open(pid);
    struct proc_stat stat;

    if (fd < 0 && errno != ENOSYS)
        return -errno;
    if (proc_read_stat(pid, &stat) < 0 || stat.start_ticks != start_ticks || stat.ended)
        return -ESRCH;
    if (fd >= 0 ? kernel_pidfd_signal(fd, signal) < 0 : kill(pid, signal) < 0)
        return -errno;
    return 0;
}

/* A thread's reading of a process's memory. */
struct look {
    pid_t pid;
    uint64_t set;
    bool found;
    int done; /* an eventfd, which it writes to in the end */
};

static struct look *hanging; /* that of a thread which has been left to itself, and still has it; NULL: there is none */

/* The set of a process that is in sigwait: the call's first argument, in the process's own memory. */
static bool find_set(pid_t pid, uint64_t *set)
{
    CLEANUP(free_ptr) char *call_path = xasprintf("/proc/%d/syscall", (int)pid);
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/mem", (int)pid);
    CLEANUP(free_ptr) char *text = NULL;
    CLEANUP(close_fd) int memory = -1;
    unsigned long address;
    size_t length;
    long call;

    if (file_read(call_path, STATUS_LIMIT, &text, &length, NULL) < 0 ||
        sscanf(text, "%ld 0x%lx", &call, &address) != 2 || call != SYS_rt_sigtimedwait ||
        (memory = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return false;
    return pread(memory, set, sizeof *set, (off_t)address) == sizeof *set;
}

static void *read_memory(void *closure)
{
    struct look *look = closure;

    look->found = find_set(look->pid, &look->set);
    eventfd_write(look->done, 1);
    return NULL;
}

/* By a thread, which is left to itself where it takes too long. The owner of the memory may have mapped it from a file
 * system that never answers, and a hanging reader cannot end a job. After the first, nobody's is read any more. */
static bool read_set(pid_t pid, uint64_t *set)
{
    struct look *look = xcalloc(1, sizeof *look);
    struct pollfd done;
    pthread_t thread;
    int ready;
    bool found;

    *look = (struct look){.pid = pid, .done = eventfd(0, EFD_CLOEXEC)};
    done = (struct pollfd){.fd = look->done, .events = POLLIN};
    if (hanging || look->done < 0 || pthread_create(&thread, NULL, read_memory, look) != 0) {
        close_fd(&look->done);
        free(look);
        return false;
    }
    while ((ready = poll(&done, 1, MEMORY_WAIT_MS)) < 0 && errno == EINTR)
        ;
    if (ready != 1) {
        hanging = look;
        pthread_detach(thread);
        return false;
    }
    pthread_join(thread, NULL);
    close(look->done);
    found = look->found;
    *set = look->set;
    free(look);
    return found;
}

/* Whether it is in sigwait for the signal: the kernel then shows the signal as not blocked, and it would be taken, not
 * kill. */
static bool awaits(const struct tree_process *process, int signal)
{
    uint64_t set;

    return read_set(process->pid, &set) && (set >> (signal - 1) & 1);
}

static bool heeds(const struct tree_process *process, int signal)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/status", (int)process->pid);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;

    if (file_read(path, STATUS_LIMIT, &text, &length, NULL) < 0)
        return false;
    return proc_shows_signal(text, "\nSigCgt:", signal) || proc_shows_signal(text, "\nSigBlk:", signal) ||
           awaits(process, signal);
}

enum whom { ALL, WHO_HEEDS, WHO_RUNS };

static bool is_meant(const struct tree_process *process, int signal, enum whom whom)
{
    return whom == WHO_HEEDS ? heeds(process, signal) : whom == WHO_RUNS ? !process->stopped : true;
}

static int signal_others(const struct tree *tree, int signal, enum whom whom, bool (*spares)(pid_t pid))
{
    int count = 0;

    for (size_t i = 0; i < tree->count; i++) {
        const struct tree_process *p = &tree->items[i];
        if (p->member && !p->ended && !(spares && spares(p->pid)) && is_meant(p, signal, whom)) {
            tree_signal_one(p->pid, p->start_ticks, signal);
            count++;
        }
    }
    return count;
}

static int signal_members(struct tree *tree, pid_t root, int signal, enum whom whom)
{
    int count;

    tree_read(tree);
    tree_select_descendants(tree, root);
    count = signal_others(tree, signal, whom, signal == SIGKILL ? NULL : tree->spares);
    if (count == 0 && tree->spares && whom == ALL)
        count = signal_others(tree, signal, ALL, NULL);
    return count;
}

int tree_signal(struct tree *tree, pid_t root, int signal)
{
    return signal_members(tree, root, signal, ALL);
}

int tree_signal_who_heeds(struct tree *tree, pid_t root, int signal)
{
    return signal_members(tree, root, signal, WHO_HEEDS);
}

int tree_stop(struct tree *tree, pid_t root)
{
    return signal_members(tree, root, SIGSTOP, WHO_RUNS);
}
