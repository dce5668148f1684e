#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/kernel/aside.h"
#include "base/kernel/calls.h"
#include "base/memory.h"
#include "base/proc.h"
#include "launch/cgroup.h"
#include "launch/hanging.h"
#include "launch/launch.h"
#include "launch/tree.h"

#define ENVIRONMENT_LIMIT (4 << 20)
#define LOOK_MS           500 /* for the environment of one process */
#define SEARCH_LIMIT_S    30  /* for those of all */

/* A session keeps its number from being reused, but where ours is empty the number may be a later session's. */
static bool session_is_ours(const struct tree *tree, const struct launch_status *status)
{
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->items[i].pid == status->process)
            return tree->items[i].start_ticks == status->process_start_ticks;
    }
    return status->process > 0;
}

/* By its real user: a set-user-ID program that a job runs is the job's. */
static bool is_owned_by(const struct tree_process *process, uid_t uid)
{
    uid_t owner;

    return process->pid != getpid() && proc_read_uid(process->pid, &owner) == 0 && owner == uid;
}

/* The shepherd itself, 0 where it is none of the processes: not to be selected. */
static pid_t shepherd_in(const struct tree *tree, const struct launch_status *status)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->items[i].pid == status->shepherd && tree->items[i].start_ticks == status->shepherd_start_ticks)
            return status->shepherd;
    return 0;
}

static bool is_left(const struct tree_process *process, int signal)
{
    return !process->ended && (signal != SIGKILL || !process_only_hangs(process->pid));
}

/* With their descendants, and those of `root` (-1: none); how many are left. */
static int signal_members(struct tree *tree, pid_t root, int signal)
{
    int count = 0;

    tree_select_descendants(tree, root);
    for (size_t i = 0; i < tree->count; i++) {
        const struct tree_process *p = &tree->items[i];
        if (p->member && is_left(p, signal)) {
            tree_signal_one(p->pid, p->start_ticks, signal);
            count++;
        }
    }
    return count;
}

static bool group_is_left(const struct tree *tree, const char *group, int signal)
{
    bool seen = false, left = false;

    if (!cgroup_is_populated(group))
        return false;
    for (size_t i = 0; i < tree->count && !left; i++) {
        CLEANUP(free_ptr) char *path = cgroup_of(tree->items[i].pid);
        if (path && cgroup_is_within(path, group)) {
            seen = true;
            left = is_left(&tree->items[i], signal);
        }
    }
    return left || !seen; /* none was there yet when the tree was read */
}

int launch_sweep(const struct launch_status *status, uid_t uid, int signal)
{
    CLEANUP(tree_release) struct tree tree = {0};
    bool session;
    pid_t shepherd;
    int count = 0;

    if (*status->cgroup && signal == SIGKILL)
        cgroup_kill(status->cgroup);
    tree_read(&tree);
    if (*status->cgroup) {
        count = group_is_left(&tree, status->cgroup, signal);
        if (signal == SIGKILL && count == 0)
            cgroup_remove(status->cgroup);
    }
    session = session_is_ours(&tree, status);
    shepherd = shepherd_in(&tree, status);
    for (size_t i = 0; i < tree.count; i++) {
        struct tree_process *p = &tree.items[i];
        p->member = session && p->session == status->process && is_owned_by(p, uid);
    }
    return count + signal_members(&tree, shepherd ? shepherd : -1, signal);
}

/* ---- In a program of its own, as reading an environment may take for ever ---- */

struct search {
    pid_t pid;
    const char *mark;
};

static void find_mark(const void *user, int fd)
{
    const struct search *search = user;
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/environ", (int)search->pid);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length, size = strlen(search->mark) + 1;

    if (file_read(path, ENVIRONMENT_LIMIT, &text, &length, NULL) < 0)
        return;
    for (size_t at = 0; at + size <= length; at += strlen(text + at) + 1) {
        if (memcmp(text + at, search->mark, size) == 0) {
            (void)!write(fd, "1", 1);
            return;
        }
    }
}

static bool carries_mark(const struct tree_process *process, const char *mark)
{
    CLEANUP(free_ptr)
    char *found = aside_ask(find_mark, &(struct search){.pid = process->pid, .mark = mark}, LOOK_MS);

    return found && *found;
}

int sweep_main(char **argv)
{
    const uid_t uid = (uid_t)strtoul(argv[1], NULL, 10);
    const uint64_t since_ticks = strtoull(argv[2], NULL, 10);
    CLEANUP(free_ptr) char *mark = xasprintf("CARMA_RUN=%s", argv[0]);
    CLEANUP(tree_release) struct tree tree = {0};

    kernel_close_from(STDERR_FILENO + 1, 0);
    alarm(SEARCH_LIMIT_S);
    tree_read(&tree);
    for (size_t i = 0; i < tree.count; i++) {
        struct tree_process *p = &tree.items[i];
        p->member = p->start_ticks >= since_ticks && is_owned_by(p, uid) && carries_mark(p, mark);
    }
    return signal_members(&tree, -1, SIGKILL) > 0;
}

/* ---- */

static void spawn_sweeper(const char *program, const char *run_directory, const struct launch_status *status, uid_t uid,
                          pid_t *sweeper)
{
    CLEANUP(free_ptr) char *directory = xstrdup(run_directory), *user = xasprintf("%u", uid);
    CLEANUP(free_ptr) char *since = xasprintf("%" PRIu64, status->process_start_ticks);
    char *arguments[] = {(char[]){"carma-shepherd"}, (char[]){"sweep"}, directory, user, since, NULL};
    posix_spawnattr_t attributes;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    if (posix_spawn(sweeper, program, NULL, &attributes, arguments, environ) != 0)
        *sweeper = 0;
    posix_spawnattr_destroy(&attributes);
}

int launch_sweep_marked(const char *shepherd, const char *run_directory, const struct launch_status *status, uid_t uid,
                        pid_t *sweeper)
{
    int ended, said;

    if (status->rebooted)
        return 0;
    if (*sweeper <= 0) {
        spawn_sweeper(shepherd, run_directory, status, uid, sweeper);
        return 1;
    }
    ended = waitpid(*sweeper, &said, WNOHANG);
    if (ended == 0)
        return 1;
    *sweeper = 0;
    return ended < 0 ||
           !((WIFEXITED(said) && WEXITSTATUS(said) == 0) || (WIFSIGNALED(said) && WTERMSIG(said) == SIGALRM));
}
