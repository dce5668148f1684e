/* carma-shepherd: runs one launch of one job, and knows how it ended. See launch.h for its contract with the daemon.
 *
 * One thread and one loop (calls that may hang are made beside it: tree.c). It reads the request and forks the job.
 * Once the daemon has stored the placement, it creates the status and lets the job go; or it ends where the launch was
 * given up. It waits until the job's whole tree has ended, classifies a failure, and writes the last status. Orphans of
 * the tree come to it because it is their subreaper. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kernel/calls.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "launch/cgroup/cgroup.h"
#include "launch/shepherd/checkpoint.h"
#include "launch/shepherd/script.h"
#include "launch/shepherd/shepherd.h"
#include "launch/shepherd/terminal.h"
#include "launch/shepherd/wrap.h"
#include "launch/spawn_shepherd.h"

#define WAKE_WAIT_MS  1000 /* for a daemon with a full socket; after that it must look at the file itself */
#define WRITE_PAUSE_S 1
#define STATE_WAIT_S  10

void shepherd_complain(const struct error *err)
{
    struct error shown = *err; /* it may name the user's paths */

    error_make_printable(&shown);
    fprintf(stderr, "carma-shepherd: %s\n", shown.text);
}

static void wake(const struct shepherd *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CLEANUP(close_fd) int fd = -1;
    struct pollfd ready;
    char text[64];
    int length;

    if (!s->request.notify_socket)
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", s->request.notify_socket);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return; /* no daemon at the moment: it will read the status when it starts */
    length = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu32 "\n", s->request.job, s->request.launch);
    if (send(fd, text, (size_t)length, MSG_NOSIGNAL) >= 0 || errno != EAGAIN)
        return;
    ready = (struct pollfd){.fd = fd, .events = POLLOUT};
    if (poll(&ready, 1, WAKE_WAIT_MS) > 0)
        send(fd, text, (size_t)length, MSG_NOSIGNAL);
}

bool shepherd_stop_is_pending(struct shepherd *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
        s->told |= info.ssi_signo == SIGUSR1;
        if (info.ssi_signo == SIGTERM)
            return true;
    }
    return false;
}

/* How a job ended is known to nobody else: a full disk is waited for, until it is not, or somebody asks us to go. A
 * state directory that was removed is waited for as well, as long as a daemon takes to make it again. */
static void write_last_status(struct shepherd *s)
{
    struct error err;
    bool said = false;

    for (int seconds = 0;; seconds += WRITE_PAUSE_S) {
        int code = status_write(s->request.run_directory, &s->status, STATUS_LAST, &err);
        if (code == 0)
            return;
        if (!said)
            shepherd_complain(&err);
        said = true;
        if ((code == -ENOENT && seconds >= STATE_WAIT_S) || shepherd_stop_is_pending(s))
            return;
        sleep(WRITE_PAUSE_S);
    }
}

static int setup_signals(struct shepherd *s)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGUSR2};
    sigset_t watched;

    for (size_t i = 0; i < array_size(ignored); i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGUSR1); /* orders */
    sigprocmask(SIG_SETMASK, &watched, NULL);
    s->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signal_fd < 0 ? -errno : prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

/* Work that needs no job, in the directory that will be its run directory. -EPIPE: the daemon has ended. */
static int prepare(struct shepherd *s, struct error *err)
{
    ssize_t length = readlink("/proc/self/exe", s->program, sizeof s->program - 1);
    struct proc_stat stat;
    int code;

    if (length <= 0 || proc_read_stat(getpid(), &stat) < 0)
        return error_set(err, ENOENT, "cannot find its own program: is /proc mounted?");
    status_init(&s->status);
    snprintf(s->status.boot, sizeof s->status.boot, "%s", proc_boot());
    s->status.shepherd = getpid();
    s->status.shepherd_start_ticks = stat.start_ticks;
    if (fchdir(DIRECTORY_FD) < 0 && errno != EBADF) /* a carmad from before an upgrade has done it */
        return error_set(err, errno, "cannot enter the directory that carmad opens for it: %s", strerror(errno));
    kernel_close_from(REQUEST_FD + 1, 0);
    fcntl(REQUEST_FD, F_SETFD, FD_CLOEXEC);
    if ((code = setup_signals(s)) < 0)
        return error_set(err, code, "cannot watch its children: %s", strerror(-code));
    s->first_fd = status_open_first(".", err);
    if (s->first_fd < 0)
        return s->first_fd;
    if (chdir("/") < 0) /* hold no file system that somebody wants to unmount */
        return error_set(err, errno, "cannot enter '/': %s", strerror(errno));
    code = spawn_await_place(REQUEST_FD);
    if (code < 0)
        return code == -EPIPE
                   ? code
                   : error_set(err, code, "it is started by carmad, which speaks to it at descriptor %d", REQUEST_FD);
    group_make(s);
    start_fork(s); /* one that fails is tried again for the request */
    return 0;
}

void shepherd_launch_failed(struct shepherd *s, const char *text)
{
    s->not_run = true;
    status_set_message(&s->status, text, strlen(text));
}

void shepherd_publish_status(struct shepherd *s)
{
    struct error err;

    if (status_write(s->request.run_directory, &s->status, STATUS_REPLACE, &err) < 0)
        shepherd_complain(&err); /* the last status matters more, and is tried harder */
}

void shepherd_write_status(struct shepherd *s)
{
    shepherd_publish_status(s);
    wake(s);
}

/* A job waits while its script cannot be written for lack of space, as with a full disk of the run directories. */
static int write_script(struct shepherd *s, struct error *err)
{
    int code = script_write(&s->request, err);
    struct error why;

    if (!error_is_passing(code))
        return code;
    shepherd_complain(err);
    error_set(&why, 0, "waits until it can be started: %s", err->text);
    status_set_message(&s->status, why.text, strlen(why.text));
    shepherd_write_status(s);
    while (error_is_passing(code)) {
        if (shepherd_stop_is_pending(s))
            return error_set(err, ECANCELED, "cancelled before it was started");
        sleep(WRITE_PAUSE_S);
        code = script_write(&s->request, err);
    }
    status_set_message(&s->status, "", 0);
    return code;
}

/* The job counts from here on. */
static void release_job(struct shepherd *s, bool filtered)
{
    s->status.started_ns = nodetime_now_ns();
    s->tree.spares = s->request.container ? wrap_is_engine : NULL;
    deadlines_set(s);
    send(s->report_fd, filtered ? CHILD_GO : CHILD_GO_UNFILTERED, 1, MSG_NOSIGNAL);
}

static void watch(struct shepherd *s)
{
    do {
        struct pollfd ready[5] = {
            {.fd = s->signal_fd, .events = POLLIN}, {.fd = s->report_fd, .events = POLLIN}, writers_poll(s)};

        progress_poll(s, ready + 3);
        poll(ready, 5, deadlines_wait_ms(s));
        start_read_report(s);
        progress_turn(s);
        writers_turn(s);
        heal_turn(s);
        deadlines_tell(s); /* before it is stopped: a time that is up is the reason, even where it is seen late */
        if (shepherd_stop_is_pending(s)) {
            s->status.stopped = true;
            ending_begin(s);
            shepherd_publish_status(s); /* else carmad will do it */
        }
        orders_turn(s);
        if (s->running_at_ns && nodetime_monotonic_wall_ns() >= s->running_at_ns)
            start_see_execution(s);
        if (s->kill_at_ns && nodetime_monotonic_wall_ns() >= s->kill_at_ns)
            ending_kill(s);
    } while (ending_reap(s) && !s->abandoned);
    start_read_report(s); /* the child's last message */
}

/* Once no process of the job is left. */
static void leave_nothing(struct shepherd *s)
{
    script_remove(&s->request);
    terminal_remove(&s->request);
    progress_remove(&s->request);
    group_remove(s);
    if (!s->checkpoint_removed)
        checkpoint_remove_empty(&s->request);
}

/* The job is over to all others; we still have to reap hanging processes, and to remove the job's files. */
static void outlive_abandoned(struct shepherd *s)
{
    while (ending_reap(s)) {
        ending_kill(s);
        poll(NULL, 0, KILL_PAUSE_MAX_MS);
    }
    leave_nothing(s);
}

/* Of a job that was forked and shall not run. */
static void kill_job(const struct shepherd *s)
{
    if (s->process > 0)
        kill(s->process, SIGKILL);
}

static void withdraw(struct shepherd *s)
{
    kill_job(s);
    if (s->process > 0)
        waitpid(s->process, NULL, 0);
    leave_nothing(s); /* neither of a launch that was given up */
    status_close_first(s->first_fd, s->request.run_directory);
}

/* -EPIPE: the daemon has ended. A job that cannot be started for another reason than the request is `failed`. */
static int read_request(struct shepherd *s, int *failed, struct error *why, struct error *err)
{
    CLEANUP(close_fd) int fd = spawn_await(REQUEST_FD, &s->filter);
    int code;

    if (fd < 0)
        return fd == -EPIPE ? fd : error_set(err, fd, "the launch request cannot be had: %s", strerror(-fd));
    *failed = start_hand(s, fd); /* the job's process reads it, too, meanwhile */
    if (*failed < 0)
        error_set(why, *failed, "cannot fork the job: %s", strerror(-*failed));
    code = request_map(fd, &s->request, err);
    if (code == 0 && *failed == 0)
        *failed = script_place(&s->request, why);
    return code;
}

static int shepherd_run(struct shepherd *s, struct error *err)
{
    struct error why;
    int code, failed = 0;
    bool filtered;

    if ((code = prepare(s, err)) < 0 || (code = read_request(s, &failed, &why, err)) < 0) {
        start_withdraw(s);
        return code == -EPIPE ? 0 : code;
    }
    group_limit(s);
    filtered = group_filter_devices(s, s->status.cgroup); /* while the job's process becomes its user */
    if (s->request.lease)
        failed = lease_prepare(s, &why);
    else if (failed == 0)
        progress_begin(s);
    s->status.job = s->request.job;
    s->status.launch = s->request.launch;
    code = status_write_first(s->first_fd, &s->status, err);
    if (!spawn_await_go(REQUEST_FD) || code < 0 ||
        (code = status_name_first(s->request.run_directory, &s->status, err)) < 0) {
        withdraw(s);
        return code;
    }
    close(REQUEST_FD);
    if (failed == 0 && !s->request.lease)
        failed = write_script(s, &why);
    if (failed == 0 && !s->request.lease)
        failed = terminal_open(s, &why);
    if (failed == 0 && !s->request.lease) {
        release_job(s, filtered);
    } else if (failed != 0) {
        shepherd_launch_failed(s, why.text);
        kill_job(s);
    }
    status_close_first(s->first_fd, s->request.run_directory);
    if (s->process > 0)
        watch(s);
    terminal_end(s);
    if (s->request.lease && failed == 0)
        lease_watch(s);
    else
        ending_conclude(s);
    if (!s->abandoned)
        leave_nothing(s);
    write_last_status(s);
    wake(s);
    if (s->status.phase == LAUNCH_ENDED && s->request.on_end && !s->request.lease && !s->abandoned)
        on_end_run(s);
    if (s->abandoned)
        outlive_abandoned(s);
    return 0;
}

int main(int argc, char **argv)
{
    static struct shepherd shepherd = {.filter = -1,
                                       .report_fd = -1,
                                       .handed_fd = -1,
                                       .progress = {.fifo = -1, .reader = -1},
                                       .writers = {.looker = -1},
                                       .terminal = {.listener = -1, .control = -1},
                                       .output = {.fd = -1},
                                       .error = {.fd = -1},
                                       .kill_pause_ms = KILL_PAUSE_MS,
                                       .oom_kills = -1};
    struct error err;
    int code;

    if (argc == SWEEP_ARGUMENTS + 2 && strcmp(argv[1], "sweep") == 0)
        return sweep_main(argv + 2);
    if (argc > 1)
        return strcmp(argv[1], "exec") == 0 ? child_exec_main(argc, argv) : EXIT_FAILURE;
    code = nodetime_init(&err);
    if (code == 0)
        code = shepherd_run(&shepherd, &err);
    if (code < 0)
        shepherd_complain(&err);
    tree_release(&shepherd.tree);
    free(shepherd.memory_group);
    request_release(&shepherd.request);
    return code < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
