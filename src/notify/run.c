#include "notify/run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/kernel/calls.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "base/units.h"

#define LOOK_MS      20
#define OUTPUT_BYTES (1 << 20) /* whoever writes more is killed */

static void become(const struct run *run, int input, int more, int output)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* with whoever is given up, its program is */
    signal(SIGPIPE, SIG_DFL);
    dup2(input, 0);
    dup2(output, 1);
    dup2(output, 2);
    if (more >= 0)
        dup2(more, 3);
    kernel_close_from(more >= 0 ? 4 : 3, 0);
    execvp(run->argv[0], run->argv);
    fprintf(stderr, "%s\n", strerror(errno));
    _exit(127);
}

/* The last line that is not empty. */
struct tail {
    char line[RUN_LINE];
    size_t length, total;
    bool ended; /* the line: the next byte begins another */
};

static void take(struct tail *tail, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n') {
            tail->ended = true;
            continue;
        }
        if (tail->ended)
            tail->length = 0;
        tail->ended = false;
        if (tail->length < sizeof tail->line - 1)
            tail->line[tail->length++] = bytes[i] ? bytes[i] : ' ';
    }
    tail->total += count;
}

/* Until it has ended, and is still to be reaped. 0, or what it is killed for. */
static int watch(pid_t pid, int output, int64_t until_ns, struct tail *tail)
{
    char bytes[4096];
    int rc = 0;

    for (;;) {
        struct pollfd ready = {.fd = output, .events = POLLIN};
        siginfo_t ended = {0};
        bool over = waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == pid;
        ssize_t count = 0;
        while (poll(&ready, 1, 0) > 0 && (count = read(output, bytes, sizeof bytes)) > 0 && tail->total <= OUTPUT_BYTES)
            take(tail, bytes, (size_t)count);
        if (over)
            return rc;
        if (!rc && nodetime_monotonic_wall_ns() >= until_ns)
            rc = -ETIMEDOUT;
        if (!rc && tail->total > OUTPUT_BYTES)
            rc = -EFBIG;
        if (rc)
            kill(-pid, SIGKILL);
        poll(&ready, count > 0 ? 1 : 0, LOOK_MS);
    }
}

int run_program(const struct run *run, struct error *err)
{
    CLEANUP(close_fd) int input = file_in_memory("carma-notify", run->input);
    CLEANUP(close_fd) int more = run->more ? file_in_memory("carma-notify", run->more) : -1;
    struct tail tail = {.length = 0};
    int ends[2], status = 0, rc;
    char most[UNITS_TEXT];
    pid_t pid;

    if (input < 0 || (run->more && more < 0) || pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, errno, "%s", strerror(errno));
    pid = fork();
    if (pid == 0)
        become(run, input, more, ends[1]);
    close(ends[1]);
    rc = pid < 0 ? -errno : watch(pid, ends[0], nodetime_monotonic_wall_ns() + run->most_ns, &tail);
    if (pid > 0) {
        kill(-pid, SIGKILL); /* what it has left behind; its number is nobody else's before it is reaped */
        waitpid(pid, &status, 0);
    }
    close(ends[0]);
    tail.line[tail.length] = '\0';
    printable_replace(tail.line);
    if (rc == -ETIMEDOUT)
        return error_set(err, ETIMEDOUT, "it took more than %s", format_duration(run->most_ns, most));
    if (rc == -EFBIG)
        return error_set(err, EFBIG, "it wrote more than %d bytes", OUTPUT_BYTES);
    if (rc)
        return error_set(err, -rc, "cannot be run: %s", strerror(-rc));
    if (WIFSIGNALED(status))
        return error_set(err, EIO, "it was ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status) == 0
               ? 0
               : error_set(err, EIO, "exit status %d%s%s", WEXITSTATUS(status), tail.length ? ": " : "", tail.line);
}
