/* An MPS control daemon for the runs under MPS: in the foreground, a child of ours, with directories of its own, so
 * that a machine's own daemon is neither used nor disturbed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/bench_collocate.h"

#define PATIENCE_NS (10 * NS_PER_SEC) /* wall clock */
#define POLL_US     20000

/* The program with our directories in its environment; `input`: a descriptor, or -1 for none. */
static pid_t start_program(const struct collocate_mps *mps, const char *argument, const char *gpu, int input)
{
    pid_t pid, parent = getpid();
    CLEANUP(free_ptr) char *log = xasprintf("%s/log", mps->directory);
    CLEANUP(free_ptr) char *output = xasprintf("%s/output", mps->directory);

    pid = fork();
    if (pid != 0)
        return pid;
    int null = open("/dev/null", O_RDWR), file = open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
    sigset_t none;
    dup2(input >= 0 ? input : null, STDIN_FILENO);
    dup2(file >= 0 ? file : null, STDOUT_FILENO);
    dup2(file >= 0 ? file : null, STDERR_FILENO);
    close_range(3, ~0U, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid(); /* Ctrl-C is for us: the daemon is asked to quit once its clients have gone */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setenv("CUDA_MPS_PIPE_DIRECTORY", mps->pipe, 1);
    setenv("CUDA_MPS_LOG_DIRECTORY", log, 1);
    if (gpu)
        setenv("CUDA_VISIBLE_DEVICES", gpu, 1);
    if (getppid() == parent)
        execl(mps->program, mps->program, argument, (char *)NULL);
    _exit(127);
}

/* Whether it ended within the time. */
static bool wait_end(pid_t pid, int64_t patience_ns)
{
    int64_t until_ns = nodetime_monotonic_wall_ns() + patience_ns;

    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (nodetime_monotonic_wall_ns() > until_ns)
            return false;
        usleep(POLL_US);
    }
    return true;
}

static int make_directories(struct collocate_mps *mps, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    CLEANUP(free_ptr)
    char *directory = xasprintf("%s/carma-mps-XXXXXX", temporary && *temporary == '/' ? temporary : "/tmp");

    if (!mkdtemp(directory))
        return error_set(err, errno, "%s: %s", directory, strerror(errno));
    mps->directory = steal_ptr(&directory);
    mps->pipe = xasprintf("%s/pipe", mps->directory);
    CLEANUP(free_ptr) char *log = xasprintf("%s/log", mps->directory);
    if (mkdir(mps->pipe, 0755) || mkdir(log, 0755))
        return error_set(err, errno, "%s: %s", mps->directory, strerror(errno));
    return 0;
}

int collocate_mps_start(struct collocate_mps *mps, const char *program, const char *gpu, struct error *err)
{
    CLEANUP(free_ptr) char *control = NULL;
    int64_t until_ns = nodetime_monotonic_wall_ns() + PATIENCE_NS;
    int rc = make_directories(mps, err);

    if (rc)
        return rc;
    mps->program = xstrdup(program);
    control = xasprintf("%s/control", mps->pipe);
    mps->pid = start_program(mps, "-f", gpu, -1);
    if (mps->pid < 0)
        return error_set(err, errno, "no process for %s: %s", program, strerror(errno));
    while (access(control, F_OK)) {
        int status;
        if (waitpid(mps->pid, &status, WNOHANG) == mps->pid) {
            mps->pid = 0;
            return error_set(err, EIO, "%s -f ended with status %d instead of staying", program,
                             WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        }
        if (nodetime_monotonic_wall_ns() > until_ns)
            return error_set(err, ETIMEDOUT, "%s -f made no %s within 10 s", program, control);
        usleep(POLL_US);
    }
    return 0;
}

static void ask_to_quit(const struct collocate_mps *mps)
{
    static const char quit[] = "quit\n";
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return;
    pid = write(ends[1], quit, sizeof quit - 1) == sizeof quit - 1 ? start_program(mps, NULL, NULL, ends[0]) : -1;
    close(ends[0]);
    close(ends[1]);
    if (pid > 0 && !wait_end(pid, PATIENCE_NS)) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

void collocate_mps_stop(struct collocate_mps *mps)
{
    if (mps->pid > 0) {
        ask_to_quit(mps);
        if (!wait_end(mps->pid, PATIENCE_NS)) {
            kill(-mps->pid, SIGKILL); /* with its server, which is of its session */
            waitpid(mps->pid, NULL, 0);
        }
    }
    if (mps->directory)
        file_remove_tree(mps->directory);
    free_ptr(&mps->directory);
    free_ptr(&mps->pipe);
    free_ptr(&mps->program);
    mps->pid = 0;
}
