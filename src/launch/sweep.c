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
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/units.h"
#include "launch/cgroup/cgroup.h"
#include "launch/hanging.h"
#include "launch/launch.h"
#include "launch/status.h"
#include "launch/tree.h"

#define ENVIRONMENT_LIMIT (4 << 20)
#define LOOK_MS           500 /* for the environment of one process */
#define SEARCH_LIMIT_S    30  /* for those of all */
#define SWEEPERS_MAX      4   /* at a time: each reads all of /proc */
#define PAUSE_NS          (NS_PER_SEC / 4)
#define PAUSE_MAX_NS      (8 * NS_PER_SEC)

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

static enum launch_left worse(enum launch_left left, enum launch_left other)
{
    return left == LEFT_SOME || other == LEFT_NONE ? left : other;
}

static enum launch_left left_of(const struct tree_process *process)
{
    if (process->ended)
        return LEFT_NONE;
    return process_only_hangs(process->pid) ? LEFT_HANGING : LEFT_SOME;
}

/* With their descendants, and those of `root` (-1: none); what was left of them. */
static enum launch_left signal_members(struct tree *tree, pid_t root, int signal)
{
    enum launch_left left = LEFT_NONE;

    tree_select_descendants(tree, root);
    for (size_t i = 0; i < tree->count; i++) {
        const struct tree_process *p = &tree->items[i];
        if (!p->member || p->ended)
            continue;
        left = worse(left, left_of(p));
        tree_signal_one(p->pid, p->start_ticks, signal);
    }
    return left;
}

static enum launch_left left_in_group(const struct tree *tree, const char *group)
{
    enum launch_left left = LEFT_NONE;

    if (!cgroup_is_populated(group))
        return LEFT_NONE;
    for (size_t i = 0; i < tree->count && left != LEFT_SOME; i++) {
        CLEANUP(free_ptr) char *path = cgroup_of(tree->items[i].pid);
        if (path && cgroup_is_within(path, group))
            left = worse(left, left_of(&tree->items[i]));
    }
    return left ? left : LEFT_SOME; /* none was there yet when the tree was read */
}

enum launch_left launch_sweep(const struct launch_status *status, uid_t uid, int signal)
{
    CLEANUP(tree_release) struct tree tree = {0};
    enum launch_left left = LEFT_NONE;
    bool session;
    pid_t shepherd;

    if (*status->cgroup && signal == SIGKILL)
        cgroup_kill(status->cgroup);
    tree_read(&tree);
    if (*status->cgroup) {
        left = left_in_group(&tree, status->cgroup);
        if (signal == SIGKILL && left == LEFT_NONE)
            cgroup_remove(status->cgroup);
    }
    session = session_is_ours(&tree, status);
    shepherd = shepherd_in(&tree, status);
    for (size_t i = 0; i < tree.count; i++) {
        struct tree_process *p = &tree.items[i];
        p->member = session && p->session == status->process && is_owned_by(p, uid);
    }
    return worse(left, signal_members(&tree, shepherd ? shepherd : -1, signal));
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

static enum launch_left kill_marked(const char *mark, uid_t uid, uint64_t since_ticks)
{
    CLEANUP(free_ptr) char *wanted = xasprintf("CARMA_RUN=%s", mark);
    CLEANUP(tree_release) struct tree tree = {0};

    tree_read(&tree);
    for (size_t i = 0; i < tree.count; i++) {
        struct tree_process *p = &tree.items[i];
        p->member = p->start_ticks >= since_ticks && is_owned_by(p, uid) && carries_mark(p, wanted);
    }
    return signal_members(&tree, -1, SIGKILL);
}

int sweep_main(char **argv)
{
    const uid_t uid = (uid_t)strtoul(argv[0], NULL, 10);
    const int signal = (int)strtol(argv[1], NULL, 10);
    struct launch_status status;
    enum launch_left left;

    status_init(&status);
    status.shepherd = (pid_t)strtol(argv[2], NULL, 10);
    status.shepherd_start_ticks = strtoull(argv[3], NULL, 10);
    status.process = (pid_t)strtol(argv[4], NULL, 10);
    status.process_start_ticks = strtoull(argv[5], NULL, 10);
    snprintf(status.cgroup, sizeof status.cgroup, "%s", argv[6]);
    kernel_close_from(STDERR_FILENO + 1, 0);
    left = launch_sweep(&status, uid, signal);
    if (signal == SIGTERM) /* a stopped process does not act on it */
        launch_sweep(&status, uid, SIGCONT);
    if (left == LEFT_SOME || !*argv[7])
        return left;
    alarm(SEARCH_LIMIT_S);
    return worse(left, kill_marked(argv[7], uid, status.process_start_ticks));
}

/* ---- */

static int sweepers; /* that run */

static void spawn_sweeper(const char *program, const struct launch_status *status, const char *mark, uid_t uid,
                          int signal, pid_t *sweeper)
{
    char *arguments[SWEEP_ARGUMENTS + 3] = {(char[]){"carma-shepherd"},
                                            (char[]){"sweep"},
                                            xasprintf("%u", uid),
                                            xasprintf("%d", signal),
                                            xasprintf("%d", (int)status->shepherd),
                                            xasprintf("%" PRIu64, status->shepherd_start_ticks),
                                            xasprintf("%d", (int)status->process),
                                            xasprintf("%" PRIu64, status->process_start_ticks),
                                            xstrdup(status->cgroup),
                                            xstrdup(mark ? mark : "")};
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
    for (int i = 2; arguments[i]; i++)
        free(arguments[i]);
}

/* A search for marked processes that takes too long is given up: then none was found. */
static enum launch_left answer_of(int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) < LEFT_UNKNOWN)
        return (enum launch_left)WEXITSTATUS(status);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? LEFT_NONE : LEFT_SOME;
}

bool launch_sweeper_is_over(struct sweeper *sweeper)
{
    int said, ended = sweeper->pid > 0 ? waitpid(sweeper->pid, &said, WNOHANG) : 0;

    if (sweeper->pid <= 0)
        return true;
    if (ended == 0)
        return false;
    sweeper->left = ended > 0 ? answer_of(said) : LEFT_SOME;
    sweeper->pid = 0;
    sweepers--;
    return true;
}

enum launch_left launch_sweep_aside(const char *shepherd, const struct launch_status *status, const char *mark,
                                    uid_t uid, int signal, struct sweeper *sweeper)
{
    int64_t now_ns = nodetime_monotonic_wall_ns();

    if (status->rebooted)
        return LEFT_NONE;
    if (sweeper->pid <= 0) {
        sweeper->signal = signal;
        if (now_ns >= sweeper->next_wall_ns && sweepers < SWEEPERS_MAX)
            spawn_sweeper(shepherd, status, mark, uid, signal, &sweeper->pid);
        sweepers += sweeper->pid > 0;
        return LEFT_UNKNOWN;
    }
    if (!launch_sweeper_is_over(sweeper) || sweeper->signal != signal)
        return LEFT_UNKNOWN;
    sweeper->pause_ns = sweeper->pause_ns < PAUSE_MAX_NS ? 2 * sweeper->pause_ns + PAUSE_NS : PAUSE_MAX_NS;
    sweeper->next_wall_ns = now_ns + sweeper->pause_ns;
    return sweeper->left;
}
