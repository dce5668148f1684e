#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "launch/cause.h"
#include "launch/cgroup/cgroup.h"
#include "launch/cgroup/device_filter.h"
#include "launch/request.h"
#include "launch/spawn_shepherd.h"
#include "launch/status.h"
#include "launch/tree.h"

#define GRACE_MAX_NS      (365 * 24 * 3600 * NS_PER_SEC)
#define TIME_LIMIT_MAX_NS (100 * GRACE_MAX_NS)

static int check_request(const struct launch_request *request, struct error *err)
{
    const struct sockaddr_un address;

    if (geteuid() != 0 && request->uid != geteuid())
        return error_set(err, EPERM,
                         "job %" PRIu64 " wants to run as uid %u, but the daemon runs as uid %u: only root "
                         "can start other users' jobs",
                         request->job, request->uid, geteuid());
    if (request->uid != geteuid() && !request->user)
        return error_set(err, EINVAL, "job %" PRIu64 ": uid %u has no user name, which its groups need", request->job,
                         request->uid);
    if (!request->argument_count || !request->name || !request->directory || !request->output)
        return error_set(err, EINVAL, "job %" PRIu64 " has no command, name, directory or output", request->job);
    if (request->grace_ns < 0 || request->grace_ns > GRACE_MAX_NS || request->start_timeout_ns < 0 ||
        request->start_timeout_ns > GRACE_MAX_NS)
        return error_set(err, EINVAL,
                         "job %" PRIu64 ": the grace of %" PRId64 " ns or the start_timeout of %" PRId64
                         " ns is not between 0 and a year",
                         request->job, request->grace_ns, request->start_timeout_ns);
    if (request->time_limit_ns < 0 || request->time_limit_ns > TIME_LIMIT_MAX_NS || request->signal_before_ns < 0 ||
        request->signal < 0 || request->signal >= NSIG)
        return error_set(err, EINVAL,
                         "job %" PRIu64 ": the time limit of %" PRId64
                         " ns is not between 0 and 100 years, or there is no "
                         "signal %d that can come %" PRId64 " ns before it",
                         request->job, request->time_limit_ns, request->signal, request->signal_before_ns);
    if (request->notify_socket && strlen(request->notify_socket) >= sizeof address.sun_path)
        return error_set(err, ENAMETOOLONG,
                         "the socket path '%s' is longer than %zu bytes: choose a shorter state directory",
                         request->notify_socket, sizeof address.sun_path - 1);
    return 0;
}

/* The request as an unnamed file. */
static int request_open(const struct launch_request *request, const char *mps_pipe_directory, struct error *err)
{
    CLEANUP(close_fd) int fd = memfd_create("carma-launch", MFD_CLOEXEC);
    CLEANUP(strbuf_release) struct strbuf text = {0};

    request_print(request, mps_pipe_directory, &text);
    for (size_t at = 0; fd >= 0 && at < text.length;) {
        ssize_t count = write(fd, text.text + at, text.length - at);
        if (count < 0 && errno != EINTR)
            break;
        at += count > 0 ? (size_t)count : 0;
        if (at == text.length) {
            int written = fd;
            fd = -1;
            return written;
        }
    }
    return error_set(err, errno, "cannot hand job %" PRIu64 " to its shepherd: %s", request->job, strerror(errno));
}

int launch_begin(const struct launch_request *request, struct launch_begun *begun, struct error *err)
{
    CLEANUP(free_ptr) char *no_mps = xasprintf("%s/" SPAWN_NO_MPS, request->run_directory);
    CLEANUP(close_fd) int fd = -1;
    int code = check_request(request, err), filter;

    if (code < 0)
        return code;
    filter = request->devices ? device_filter_kept(request->devices) : -1;
    fd = request_open(request, request->mps_pipe_directory ? request->mps_pipe_directory : no_mps, err);
    return fd < 0 ? fd : spawn_shepherd(request->shepherd, request->run_directory, fd, filter, begun, err);
}

void launch_go(struct launch_begun *begun)
{
    send(begun->fd, "g", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    close_fd(&begun->fd);
}

void launch_drop(struct launch_begun *begun, const char *run_directory)
{
    spawn_end(begun);
    file_remove_tree(run_directory);
}

int launch_settle(const char *run_directory, struct launch_status *status, struct error *err)
{
    static const char why[] = "given up: the daemon ended before the job's shepherd began";
    int code = launch_read_status(run_directory, status, NULL);

    if (code != -ENOENT)
        return code < 0 ? launch_read_status(run_directory, status, err) : 0;
    status_init(status);
    status->phase = LAUNCH_FAILED;
    status->ended_ns = nodetime_now_ns();
    status_set_message(status, why, sizeof why - 1);
    if (access(run_directory, F_OK) < 0 && errno == ENOENT)
        return 0; /* launch_begin() failed before that, so there is no shepherd */
    code = status_write(run_directory, status, STATUS_EXCLUSIVE, err);
    return code == -EEXIST ? launch_read_status(run_directory, status, err) : code;
}

int launch_stop(pid_t shepherd, uint64_t start_ticks, struct error *err)
{
    int code = tree_signal_one(shepherd, start_ticks, SIGTERM);

    return code < 0 ? error_set(err, code, "cannot stop the job of shepherd %d: %s", (int)shepherd, strerror(-code))
                    : 0;
}

bool launch_alive(pid_t shepherd, uint64_t start_ticks)
{
    struct proc_stat stat;

    if (proc_read_stat(shepherd, &stat) < 0 || stat.start_ticks != start_ticks)
        return false;
    if (!stat.ended)
        return true;
    waitpid(shepherd, NULL, WNOHANG); /* ECHILD where it belongs to somebody else: as good */
    return false;
}

const char *launch_hindrance(pid_t shepherd, uint64_t start_ticks)
{
    struct proc_stat stat;

    if (proc_read_stat(shepherd, &stat) < 0 || stat.start_ticks != start_ticks)
        return NULL;
    return stat.state == 'T' || stat.state == 't' ? "is stopped" : stat.state == 'D' ? "waits in the kernel" : NULL;
}

int launch_conclude(const char *run_directory, struct launch_status *status, const char *message, struct error *err)
{
    struct cause_evidence evidence;

    tree_signal_one(status->shepherd, status->shepherd_start_ticks, SIGKILL);
    status->phase = status->phase == LAUNCH_RUNNING || status->timed_out ? LAUNCH_ENDED : LAUNCH_FAILED;
    status->ended_ns = nodetime_now_ns();
    status_set_message(status, message, strlen(message));
    evidence = launch_evidence(status);
    status->cause = cause_decide(&evidence);
    return status_write(run_directory, status, STATUS_LAST, err);
}

char *launch_progress_file(const char *script_directory)
{
    return script_directory ? xasprintf("%s.progress", script_directory) : NULL;
}

char *launch_terminal_socket(const char *script_directory)
{
    return script_directory ? xasprintf("%s.terminal", script_directory) : NULL;
}

char *launch_output_path(const char *pattern, uint64_t job, const struct launch_array *array)
{
    struct strbuf path = {0};
    const char *at = pattern;

    for (const char *mark; (mark = strchr(at, '%')); at = mark + 2) {
        strbuf_append(&path, at, (size_t)(mark - at));
        if (mark[1] == 'j' || (mark[1] == 'A' && !array->id))
            strbuf_printf(&path, "%" PRIu64, job);
        else if (mark[1] == 'A')
            strbuf_printf(&path, "%" PRIu64, array->id);
        else if (mark[1] == 'a' && array->id)
            strbuf_printf(&path, "%" PRIu32, array->index);
        else
            strbuf_append(&path, mark--, 1); /* as it is */
    }
    strbuf_puts(&path, at);
    return strbuf_steal(&path);
}
