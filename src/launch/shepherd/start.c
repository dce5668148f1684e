#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kernel/handed.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/units.h"
#include "launch/cgroup/cgroup.h"
#include "launch/shepherd/shepherd.h"
#include "launch/shepherd/terminal.h"
#include "launch/spawn_shepherd.h"

/* "exec" was said, but the report pipe is open: it hangs, or somebody else holds the pipe */
#define EXEC_SETTLE_MS 200
#define READS_A_TURN   16

int start_fork(struct shepherd *s)
{
    struct proc_stat stat;
    bool entered;
    int fds[2];

    s->stage = mmap(NULL, sizeof *s->stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->stage == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    s->process = cgroup_fork(s->status.cgroup, &entered);
    if (s->process == 0) {
        close(fds[0]);
        close(REQUEST_FD); /* its other end shows that the shepherd is gone */
        child_run(s->program, s->status.shepherd, entered || !*s->status.cgroup ? NULL : s->status.cgroup, fds[1],
                  s->stage);
    }
    close(fds[1]);
    if (s->process < 0) {
        close(fds[0]);
        return -errno;
    }
    s->report_fd = fds[0];
    s->status.process = s->process;
    if (proc_read_stat(s->process, &stat) == 0) /* our child, not reaped: it is there */
        s->status.process_start_ticks = stat.start_ticks;
    return 0;
}

void start_withdraw(struct shepherd *s)
{
    if (s->process > 0) {
        kill(s->process, SIGKILL);
        waitpid(s->process, NULL, 0);
        close_fd(&s->report_fd);
        s->report_fd = -1;
    }
    s->process = s->status.process = 0;
    group_remove(s);
    *s->status.cgroup = '\0';
}

int start_hand(struct shepherd *s, int request_fd)
{
    int code = s->process > 0 ? spawn_hand(s->report_fd, request_fd, -1) : -ESRCH;

    if (code == 0)
        return 0;
    start_withdraw(s); /* it was killed while it waited, or could not be forked */
    group_make(s);
    code = start_fork(s);
    return code < 0 ? code : spawn_hand(s->report_fd, request_fd, -1);
}

static void now_running(struct shepherd *s)
{
    close_fd(&s->report_fd);
    s->report_fd = -1;
    s->running_at_ns = 0;
    if (s->status.phase != LAUNCH_STARTING || s->not_run || !s->exec_said)
        return;
    s->status.phase = LAUNCH_RUNNING;
    s->start_until_ns = 0; /* the command may take any time */
    group_find(s);
    shepherd_write_status(s);
}

/* Whether the job's main process is still this program: the command's file may be where nothing answers. */
static bool is_still_us(const struct shepherd *s)
{
    CLEANUP(free_ptr) char *link = xasprintf("/proc/%d/exe", (int)s->process);
    char program[sizeof s->program] = "";

    return readlink(link, program, sizeof program - 1) > 0 && strcmp(program, s->program) == 0;
}

void start_see_execution(struct shepherd *s)
{
    if (is_still_us(s))
        s->running_at_ns = nodetime_monotonic_wall_ns() + EXEC_SETTLE_MS * NS_PER_MS;
    else
        now_running(s);
}

static void take_origin(struct shepherd *s, const char *size, struct tail_origin *origin)
{
    if (s->handed_fd < 0)
        return;
    close_fd(&origin->fd);
    *origin = (struct tail_origin){.fd = s->handed_fd, .size = strtoimax(size, NULL, 10)};
    s->handed_fd = -1;
}

/* From here on the reports are those of a login shell, which runs what its user wrote, and come by a pipe: no
 * descriptor comes by that, which could take any time to close. */
static void follow_login(struct shepherd *s)
{
    if (s->handed_fd < 0 || fcntl(s->handed_fd, F_SETFL, O_NONBLOCK) < 0)
        return;
    close_fd(&s->report_fd);
    s->report_fd = s->handed_fd;
    s->handed_fd = -1;
}

static void take_report(struct shepherd *s, const char *line)
{
    int words = 0;

    if (strcmp(line, "exec") == 0) {
        s->exec_said = true;
        s->running_at_ns = nodetime_monotonic_wall_ns() + EXEC_SETTLE_MS * NS_PER_MS;
    } else if (strncmp(line, "failed ", 7) == 0) {
        shepherd_launch_failed(s, line + 7);
    } else if (sscanf(line, "unrun %d %n", &s->unrun_status, &words) == 1) {
        shepherd_launch_failed(s, line + words);
    } else if (strncmp(line, "output ", 7) == 0) {
        take_origin(s, line + 7, &s->output);
    } else if (strncmp(line, "error ", 6) == 0) {
        take_origin(s, line + 6, &s->error);
    } else if (strcmp(line, "terminal") == 0) {
        terminal_begin(s, s->handed_fd);
        close_fd(&s->handed_fd);
        s->handed_fd = -1;
    } else if (strcmp(line, "login") == 0) {
        follow_login(s);
    } else if (strncmp(line, "note ", 5) == 0) {
        status_set_message(&s->status, line + 5, strlen(line + 5));
    }
}

static ssize_t receive_report(struct shepherd *s)
{
    char *end = s->report + s->report_length;
    size_t room = sizeof s->report - 1 - s->report_length;
    int handed;
    ssize_t count = handed_receive(s->report_fd, end, room, &handed, 1, MSG_DONTWAIT);

    if (count < 0 && errno == ENOTSOCK)
        return read(s->report_fd, end, room);
    if (handed >= 0) {
        close_fd(&s->handed_fd);
        s->handed_fd = handed;
    }
    return count;
}

/* Some of it: the writer may be a login shell that never stops, and deadlines are looked at in between. */
void start_read_report(struct shepherd *s)
{
    for (int reads = 0; reads < READS_A_TURN && s->report_fd >= 0; reads++) {
        ssize_t count = receive_report(s);
        char *line = s->report, *newline;

        if (count < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (count <= 0) { /* closed by the execution, or by the child's end */
            now_running(s);
            return;
        }
        s->report_length += (size_t)count;
        s->report[s->report_length] = '\0';
        if (s->report_length == sizeof s->report - 1 && !strchr(s->report, '\n'))
            s->report[s->report_length - 1] = '\n'; /* a line too long ends here */
        while ((newline = strchr(line, '\n'))) {
            *newline = '\0';
            take_report(s, line);
            line = newline + 1;
        }
        s->report_length = (size_t)(s->report + s->report_length - line);
        memmove(s->report, line, s->report_length + 1);
    }
}

/* In words, the step of a start that takes too long. */
static char *stage_in_words(const struct shepherd *s)
{
    const struct shepherd_request *request = &s->request;
    enum child_stage stage = *s->stage;

    if (stage == CHILD_BECOMES_USER)
        return xasprintf("looking up the groups of '%s'", request->user ? request->user : "its user");
    if (stage == CHILD_ENTERS_DIRECTORY)
        return xasprintf("entering the directory '%.120s'", request->directory);
    if (stage == CHILD_OPENS_OUTPUT || stage == CHILD_OPENS_ERROR) {
        bool output = stage == CHILD_OPENS_OUTPUT;
        CLEANUP(free_ptr)
        char *path = launch_output_path(output ? request->output : request->error, request->job, &request->array);
        return xasprintf("opening the %s file '%.120s'", output ? "output" : "error", path);
    }
    if (stage == CHILD_MAKES_CHECKPOINTS)
        return xasprintf("making the checkpoint directory in '%.120s'", request->directory);
    if (stage == CHILD_RUNS_LOGIN_SHELL)
        return xstrdup("in the login shell, its profile and conda");
    return xasprintf("executing '%.120s'", request->arguments[0]);
}

void start_give_up(struct shepherd *s)
{
    CLEANUP(free_ptr) char *stage = stage_in_words(s);
    CLEANUP(free_ptr) char *text = NULL;
    char duration[UNITS_TEXT];

    s->start_until_ns = 0;
    text = xasprintf("the start took longer than the start_timeout of %s: it was %s",
                     format_duration(s->request.start_timeout_ns, duration), stage);
    shepherd_launch_failed(s, text);
    ending_begin(s);
}
