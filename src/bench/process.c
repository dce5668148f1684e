#include "bench/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

#define END_TRIES   100
#define END_WAIT_US 10000

/* The environment with some variables set. The strings stay where they are. */
static char **environment_with(const char *const *added)
{
    size_t count = 0, more = 0;
    char **all;

    while (environ[count])
        count++;
    while (added && added[more])
        more++;
    all = xcalloc(count + more + 1, sizeof *all);
    memcpy(all, environ, count * sizeof *all);
    for (size_t i = 0; i < more; i++) {
        size_t at = 0, length = (size_t)(strchr(added[i], '=') - added[i]) + 1;
        while (at < count && strncmp(all[at], added[i], length) != 0)
            at++;
        all[at] = (char *)(uintptr_t)added[i];
        count += at == count;
    }
    return all;
}

int bench_child_start(struct bench_child *child, const char *const *argv, const char *const *environment,
                      const char *out, const char *errors, struct error *err)
{
    CLEANUP(free_ptr) char **variables = environment_with(environment);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int code;

    *child = (struct bench_child){0};
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (strcmp(out, errors) == 0)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    code = posix_spawnp(&child->pid, argv[0], &actions, &attributes, (char *const *)argv, variables);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (code == 0)
        return 0;
    child->pid = 0;
    return error_set(err, code, "cannot start %s: %s", argv[0], strerror(code));
}

bool bench_child_ended(struct bench_child *child)
{
    struct rusage usage;

    if (child->pid && wait4(child->pid, &child->status, WNOHANG, &usage) == child->pid) {
        child->pid = 0;
        child->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    }
    return child->pid == 0;
}

void bench_child_end(struct bench_child *child)
{
    pid_t session = child->pid;

    if (bench_child_ended(child))
        return;
    kill(-session, SIGTERM);
    for (int i = 0; i < END_TRIES && !bench_child_ended(child); i++)
        usleep(END_WAIT_US);
    kill(-session, SIGKILL);
    while (!bench_child_ended(child))
        usleep(END_WAIT_US);
}
