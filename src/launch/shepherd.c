/* carma-shepherd: runs one launch of one job, and knows how it ended. See launch.h for its contract with the daemon.
 *
 * One thread and one loop (what may hang is done beside it: tree.c). Its life: read the request, fork the job, create
 * the status once the daemon has stored the placement (or end: the launch was given up), let the job go, wait until its
 * whole tree has ended, classify a failure, write the last status. Orphans of the tree come to it because it is their
 * subreaper. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/units.h"
#include "launch/cause.h"
#include "launch/cgroup.h"
#include "launch/checkpoint.h"
#include "launch/child.h"
#include "launch/device_filter.h"
#include "launch/request.h"
#include "launch/script.h"
#include "launch/spawn_shepherd.h"
#include "launch/status.h"
#include "launch/tail.h"
#include "launch/tree.h"

#define WAKE_WAIT_MS 1000 /* for a daemon with a full socket; after that it must look at the file itself */
#define EXEC_SETTLE_MS                                                                                                 \
    200 /* "exec" was said, but the report pipe is open: it hangs, or somebody else holds the pipe                     \
         */
#define ABANDON_NS        (5 * NS_PER_SEC) /* after SIGKILL: a start that is still there hangs in the kernel */
#define KILL_PAUSE_MS     20               /* between two rounds of SIGKILL, at first */
#define KILL_PAUSE_MAX_MS 1000             /* ... and after some: a process may hang in a driver for hours */
#define WRITE_PAUSE_S     1
#define MPS_TIMEOUT_NS    (5 * NS_PER_SEC) /* for the daemon, if there is one, to see to a job's MPS clients */
#define GROUP_ROUNDS      100

struct shepherd {
    struct request request;
    struct launch_status status;
    char program[PATH_MAX];
    int signal_fd;
    int first_fd;  /* of the file that will be the first status */
    int report_fd; /* -1: closed */
    char report[1024];
    size_t report_length;
    int handed_fd; /* came with the line of the report that is being read; -1: none */
    bool exec_said;
    bool not_run; /* "failed" was said; the status has the message */
    struct tail_origin output;
    struct tail_origin error;
    pid_t process;
    bool process_ended;
    int wait_status;
    volatile enum child_stage *stage; /* of the child, in memory shared with it */
    int64_t running_at_ns;            /* wall; when it is seen whether the command was executed; 0: not said, or seen */
    int64_t start_until_ns;           /* wall; when the start has taken too long; 0: it may take any time, or is over */
    bool abandoned;     /* the start's processes hang in the kernel; none of the job's resources wait for them */
    int64_t kill_at_ns; /* wall; when SIGTERM's grace is over; 0: the tree was not asked to end */
    int64_t kill_pause_ms;
    int64_t limit_at_ns;  /* wall; when the job's time is up; 0: never */
    int64_t signal_at_ns; /* wall; when it is told that its time will be up; 0: it is not, or was */
    char *memory_group;   /* owned; the control group that the job's memory.events are read from; NULL: unknown */
    int64_t oom_kills;    /* ... when the job began; -1: not known */
    struct tree tree;
};

static void complain(const struct error *err)
{
    fprintf(stderr, "carma-shepherd: %s\n", err->text);
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

static bool stop_is_pending(const struct shepherd *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGTERM)
            return true;
    }
    return false;
}

/* How a job ended is known to nobody else: a full disk is waited for, until it is not, or somebody asks us to go. */
static void write_last_status(struct shepherd *s)
{
    struct error err;
    bool said = false;

    for (;;) {
        int code = status_write(s->request.run_directory, &s->status, STATUS_LAST, &err);
        if (code == 0)
            return;
        if (!said)
            complain(&err);
        said = true;
        if (code == -ENOENT || stop_is_pending(s)) /* ENOENT: the run directory was removed */
            return;
        sleep(WRITE_PAUSE_S);
    }
}

static int setup_signals(struct shepherd *s)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
    sigset_t watched;

    for (size_t i = 0; i < array_size(ignored); i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigprocmask(SIG_SETMASK, &watched, NULL);
    s->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signal_fd < 0 ? -errno : prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

/* The mapping stays for the program's life: the request's strings are in it. */
static int read_request(struct shepherd *s, struct error *err)
{
    CLEANUP(close_fd) int fd = spawn_await(REQUEST_FD);
    struct stat st;
    char *text;

    if (fd == -EPIPE)
        exit(EXIT_SUCCESS);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
        return error_set(err, EINVAL, "it is started by carmad, which sends a launch request to descriptor %d",
                         REQUEST_FD);
    text = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED || text[st.st_size - 1] != '\0')
        return error_set(err, EINVAL, "the launch request cannot be read");
    if (request_parse(text, (size_t)st.st_size, &s->request, err) < 0)
        return -EINVAL;
    cgroup_place_is(s->request.cgroup_mounts, s->request.cgroup_base);
    return 0;
}

/* Work that needs no job, in the directory that will be its run directory. */
static int prepare(struct shepherd *s, struct error *err)
{
    ssize_t length = readlink("/proc/self/exe", s->program, sizeof s->program - 1);
    struct proc_stat stat;
    int code;

    if (length <= 0 || proc_read_stat(getpid(), &stat) < 0)
        return error_set(err, ENOENT, "cannot find its own program: is /proc mounted?");
    status_init(&s->status);
    snprintf(s->status.boot, sizeof s->status.boot, "%s", status_boot());
    s->status.shepherd = getpid();
    s->status.shepherd_start_ticks = stat.start_ticks;
    close_range(REQUEST_FD + 1, ~0U, 0);
    fcntl(REQUEST_FD, F_SETFD, FD_CLOEXEC);
    if ((code = setup_signals(s)) < 0)
        return error_set(err, code, "cannot watch its children: %s", strerror(-code));
    s->first_fd = status_open_first(".", err);
    if (s->first_fd < 0)
        return s->first_fd;
    if (chdir("/") < 0) /* hold no file system that somebody wants to unmount */
        return error_set(err, errno, "cannot enter '/': %s", strerror(errno));
    return 0;
}

static int create_status(struct shepherd *s, struct error *err)
{
    s->status.job = s->request.job;
    s->status.launch = s->request.launch;
    return status_write_first(s->first_fd, s->request.run_directory, &s->status, err);
}

static void launch_failed(struct shepherd *s, const char *text)
{
    s->not_run = true;
    status_set_message(&s->status, text, strlen(text));
}

static void write_status(struct shepherd *s)
{
    struct error err;

    if (status_write(s->request.run_directory, &s->status, STATUS_REPLACE, &err) < 0)
        complain(&err); /* the last status matters more, and is tried harder */
    wake(s);
}

/* A job waits while its script cannot be written for lack of space, as with a full disk of the run directories. */
static int write_script(struct shepherd *s, struct error *err)
{
    int code = script_write(&s->request, err);
    struct error why;

    if (!error_is_passing(code))
        return code;
    complain(err);
    error_set(&why, 0, "waits until it can be started: %s", err->text);
    status_set_message(&s->status, why.text, strlen(why.text));
    write_status(s);
    while (error_is_passing(code)) {
        if (stop_is_pending(s))
            return error_set(err, ECANCELED, "cancelled before it was started");
        sleep(WRITE_PAUSE_S);
        code = script_write(&s->request, err);
    }
    status_set_message(&s->status, "", 0);
    return code;
}

/* A job's time counts from here on, its user's login shell included. */
static void set_limits(struct shepherd *s)
{
    int64_t now_ns = nodetime_monotonic_wall_ns(), before_ns = s->request.time_limit_ns - s->request.signal_before_ns;

    if (s->request.start_timeout_ns)
        s->start_until_ns = now_ns + s->request.start_timeout_ns;
    if (s->request.time_limit_ns == 0)
        return;
    s->limit_at_ns = now_ns + nodetime_to_wall_ns(s->request.time_limit_ns);
    if (s->request.signal)
        s->signal_at_ns = now_ns + (before_ns > 0 ? nodetime_to_wall_ns(before_ns) : 0);
}

static int fork_job(struct shepherd *s)
{
    struct proc_stat stat;
    bool entered;
    int fds[2];

    s->stage = mmap(NULL, sizeof *s->stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->stage == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    s->process = cgroup_fork(s->status.cgroup, &entered);
    if (s->process == 0)
        child_run(&s->request, s->program, s->status.shepherd, entered || !*s->status.cgroup ? NULL : s->status.cgroup,
                  fds[1], s->stage);
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

/* The job counts from here on. */
static void release_job(struct shepherd *s)
{
    s->status.started_ns = nodetime_now_ns();
    set_limits(s);
    send(s->report_fd, "g", 1, MSG_NOSIGNAL);
}

static void end_tree(struct shepherd *s)
{
    if (s->kill_at_ns)
        return;
    s->kill_at_ns = nodetime_monotonic_wall_ns() + s->request.grace_ns;
    if (*s->status.cgroup)
        cgroup_freeze(s->status.cgroup); /* else a child that is forked meanwhile misses the signal */
    tree_signal(&s->tree, getpid(), SIGTERM);
    tree_signal(&s->tree, getpid(), SIGCONT); /* a stopped process does not act on SIGTERM */
    if (*s->status.cgroup)
        cgroup_thaw(s->status.cgroup);
}

/* A control group for this launch alone, where one can be made; before the first status, which names it: a reader of
 * that status after our death finds the job by its group. */
static void make_cgroup(struct shepherd *s)
{
    CLEANUP(free_ptr)
    char *name = xasprintf("job-%" PRIu64 "-%" PRIu32 "-%d", s->request.job, s->request.launch, (int)getpid());
    CLEANUP(free_ptr) char *path = cgroup_make(name);
    struct error err;

    if (!path)
        return;
    if (strlen(path) >= sizeof s->status.cgroup || strchr(path, '\n')) {
        cgroup_remove(path);
        return;
    }
    memcpy(s->status.cgroup, path, strlen(path) + 1);
    if (cgroup_limit(path, &s->request.limits, &err) < 0)
        complain(&err);
}

/* The daemon has tried that it can be had: else the job goes on without, and the shepherd's log says why. */
static void filter_devices(const struct shepherd *s)
{
    struct device_filter filter;
    struct error err;

    if (!s->request.devices || !*s->status.cgroup)
        return;
    if (device_filter_parse(s->request.devices, &filter) < 0)
        error_set(&err, EINVAL, "the launch request names devices that cannot be: '%.60s'", s->request.devices);
    else if (device_filter_attach(&filter, s->status.cgroup, &err) == 0)
        return;
    complain(&err);
}

/* Kills unmanaged processes left in the control group. */
static void remove_cgroup(struct shepherd *s)
{
    if (!*s->status.cgroup)
        return;
    for (int round = 0; round < GROUP_ROUNDS && cgroup_is_populated(s->status.cgroup); round++) {
        cgroup_kill(s->status.cgroup);
        poll(NULL, 0, KILL_PAUSE_MS);
    }
    cgroup_remove(s->status.cgroup);
}

/* Where a job has no group of its own, all that descends from the daemon shares one: that tells of the kernel's kills
 * too, though maybe of others'. */
static void find_cgroup(struct shepherd *s)
{
    CLEANUP(free_ptr) char *own = cgroup_of(getpid());
    CLEANUP(free_ptr) char *jobs = cgroup_of(s->process);

    if (jobs && strcmp(jobs, s->status.cgroup) != 0) /* it could not enter it */
        *s->status.cgroup = '\0';
    s->memory_group = jobs ? steal_ptr(&jobs) : steal_ptr(&own);
    s->oom_kills = s->memory_group ? cgroup_oom_kills(s->memory_group) : -1;
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
    find_cgroup(s);
    write_status(s);
}

/* Whether the job's main process is still this program: the command's file may be where nothing answers. */
static bool is_still_us(const struct shepherd *s)
{
    CLEANUP(free_ptr) char *link = xasprintf("/proc/%d/exe", (int)s->process);
    char program[sizeof s->program] = "";

    return readlink(link, program, sizeof program - 1) > 0 && strcmp(program, s->program) == 0;
}

/* "exec" was said a while ago, and somebody still holds the pipe. */
static void see_execution(struct shepherd *s)
{
    if (is_still_us(s))
        s->running_at_ns = nodetime_monotonic_wall_ns() + EXEC_SETTLE_MS * NS_PER_MS;
    else
        now_running(s);
}

static void take_origin(struct shepherd *s, const char *size, struct tail_origin *origin)
{
    close_fd(&origin->fd);
    *origin = (struct tail_origin){.fd = s->handed_fd, .size = strtoimax(size, NULL, 10)};
    s->handed_fd = -1;
}

static void take_report(struct shepherd *s, const char *line)
{
    if (strcmp(line, "exec") == 0) {
        s->exec_said = true;
        s->running_at_ns = nodetime_monotonic_wall_ns() + EXEC_SETTLE_MS * NS_PER_MS;
    } else if (strncmp(line, "failed ", 7) == 0) {
        launch_failed(s, line + 7);
    } else if (strncmp(line, "output ", 7) == 0) {
        take_origin(s, line + 7, &s->output);
    } else if (strncmp(line, "error ", 6) == 0) {
        take_origin(s, line + 6, &s->error);
    }
}

static ssize_t receive_report(struct shepherd *s)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof s->handed_fd)];
    } control;
    struct iovec part = {.iov_base = s->report + s->report_length, .iov_len = sizeof s->report - 1 - s->report_length};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t count = recvmsg(s->report_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = count > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
        close_fd(&s->handed_fd);
        memcpy(&s->handed_fd, CMSG_DATA(head), sizeof s->handed_fd);
    }
    return count;
}

static void read_report(struct shepherd *s)
{
    while (s->report_fd >= 0) {
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

/* Returns whether somebody is left. */
static bool reap(struct shepherd *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == s->process) {
            s->process_ended = true;
            s->wait_status = status;
        }
    }
    if (pid < 0 && errno == ECHILD)
        return false;
    if (s->process_ended)
        end_tree(s);
    return true;
}

/* How long poll() may sleep: until the next thing that nobody will wake us for; -1: there is none. */
static int wait_ms(const struct shepherd *s)
{
    int64_t now_ns = nodetime_monotonic_wall_ns(), until_ns = INT64_MAX, ms;

    if (s->running_at_ns)
        until_ns = s->running_at_ns;
    if (s->kill_at_ns && s->kill_at_ns < until_ns)
        until_ns = s->kill_at_ns > now_ns ? s->kill_at_ns : now_ns + s->kill_pause_ms * NS_PER_MS;
    if (s->start_until_ns && s->start_until_ns < until_ns && !s->kill_at_ns)
        until_ns = s->start_until_ns;
    if (s->limit_at_ns && s->limit_at_ns < until_ns && !s->kill_at_ns)
        until_ns = s->limit_at_ns;
    if (s->signal_at_ns && s->signal_at_ns < until_ns && !s->kill_at_ns)
        until_ns = s->signal_at_ns;
    if (until_ns == INT64_MAX)
        return -1;
    ms = until_ns <= now_ns ? 0 : (until_ns - now_ns) / NS_PER_MS + 1;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Without MPS the job has an empty directory in that of its run. */
static bool is_under_mps(const struct shepherd *s)
{
    return strncmp(s->request.mps_pipe_directory, s->request.run_directory, strlen(s->request.run_directory)) != 0;
}

/* In words, the step of a start that takes too long. */
static char *stage_in_words(const struct shepherd *s)
{
    const struct request *request = &s->request;
    enum child_stage stage = *s->stage;

    if (stage == CHILD_BECOMES_USER)
        return xasprintf("looking up the groups of '%s'", request->user ? request->user : "its user");
    if (stage == CHILD_ENTERS_DIRECTORY)
        return xasprintf("entering the directory '%.120s'", request->directory);
    if (stage == CHILD_OPENS_OUTPUT || stage == CHILD_OPENS_ERROR) {
        bool output = stage == CHILD_OPENS_OUTPUT;
        CLEANUP(free_ptr) char *path = launch_output_path(output ? request->output : request->error, request->job);
        return xasprintf("opening the %s file '%.120s'", output ? "output" : "error", path);
    }
    if (stage == CHILD_MAKES_CHECKPOINTS)
        return xasprintf("making the checkpoint directory in '%.120s'", request->directory);
    if (stage == CHILD_RUNS_LOGIN_SHELL)
        return xstrdup("in the login shell, its profile and conda");
    return xasprintf("executing '%.120s'", request->arguments[0]);
}

static void give_up_start(struct shepherd *s)
{
    CLEANUP(free_ptr) char *stage = stage_in_words(s);
    CLEANUP(free_ptr) char *text = NULL;
    char duration[UNITS_TEXT];

    s->start_until_ns = 0;
    text = xasprintf("the start took longer than the start_timeout of %s: it was %s",
                     format_duration(s->request.start_timeout_ns, duration), stage);
    launch_failed(s, text);
    end_tree(s);
}

static void tell_time(struct shepherd *s, int64_t now_ns)
{
    if (s->kill_at_ns)
        return;
    if (s->start_until_ns && now_ns >= s->start_until_ns) {
        give_up_start(s);
        return;
    }
    if (s->signal_at_ns && now_ns >= s->signal_at_ns) {
        s->signal_at_ns = 0;
        s->status.warned = tree_signal_who_heeds(&s->tree, getpid(), s->request.signal) > 0;
    }
    if (s->limit_at_ns && now_ns >= s->limit_at_ns) {
        bool told = s->status.timed_out;
        s->status.stopped = s->status.timed_out = true;
        if (is_under_mps(s) && !told) /* the daemon ends its clients first, and then asks for the rest */
            s->limit_at_ns = now_ns + MPS_TIMEOUT_NS;
        else
            end_tree(s);
        if (!told)
            write_status(s);
    }
}

/* All at once by the control group, also those that fork; and one by one those that have left it, or where there is
 * none. */
static void kill_tree(struct shepherd *s)
{
    /* A process that hangs in the kernel with SIGKILL pending runs no instruction of a program any more: a job with no
     * other processes has ended, and its GPUs are free. */
    if (s->status.phase == LAUNCH_STARTING && nodetime_monotonic_wall_ns() >= s->kill_at_ns + ABANDON_NS)
        s->abandoned = true;
    if (*s->status.cgroup)
        cgroup_kill(s->status.cgroup);
    tree_signal(&s->tree, getpid(), SIGKILL);
    s->kill_pause_ms = s->kill_pause_ms < KILL_PAUSE_MAX_MS ? 2 * s->kill_pause_ms : KILL_PAUSE_MAX_MS;
}

static void watch(struct shepherd *s)
{
    do {
        struct pollfd ready[2] = {{.fd = s->signal_fd, .events = POLLIN}, {.fd = s->report_fd, .events = POLLIN}};

        poll(ready, 2, wait_ms(s));
        read_report(s);
        if (stop_is_pending(s)) {
            s->status.stopped = true;
            end_tree(s);
        }
        tell_time(s, nodetime_monotonic_wall_ns());
        if (s->running_at_ns && nodetime_monotonic_wall_ns() >= s->running_at_ns)
            see_execution(s);
        if (s->kill_at_ns && nodetime_monotonic_wall_ns() >= s->kill_at_ns)
            kill_tree(s);
    } while (reap(s) && !s->abandoned);
    read_report(s); /* the child's last message */
}

static void tell_host_oom(struct shepherd *s)
{
    CLEANUP(free_ptr) char *text = NULL;
    char limit[UNITS_TEXT];

    if (s->request.limits.memory_bytes)
        text = xasprintf("out of host memory: the kernel killed it, its limit is %s (--memory, job_memory_max)",
                         format_bytes(s->request.limits.memory_bytes, limit));
    else
        text = xstrdup("out of host memory: the kernel killed it, though it had no limit of its own (--memory)");
    status_set_message(&s->status, text, strlen(text));
}

/* The facts to find out about a job that failed. */
static void examine(struct shepherd *s)
{
    struct launch_status *status = &s->status;
    struct classify_verdict verdict;

    status->host_oom_kill = s->oom_kills >= 0 && cgroup_oom_kills(s->memory_group) > s->oom_kills;
    status->host_oom_own = status->host_oom_kill && *status->cgroup && cgroup_counts_memory(status->cgroup);
    tail_classify(&s->request, &s->output, &s->error, &verdict);
    status->output = verdict.kind;
    status->requested_bytes = verdict.requested_bytes;
    status->free_bytes = verdict.free_bytes;
    status->tenant_count = verdict.tenant_count;
    memcpy(status->tenants, verdict.tenants, sizeof status->tenants);
    status_set_message(status, verdict.line, strnlen(verdict.line, sizeof verdict.line));
    if (status->host_oom_own)
        tell_host_oom(s);
}

static void conclude(struct shepherd *s)
{
    struct launch_status *status = &s->status;
    struct cause_evidence evidence;
    static const char hangs[] = "; a process of the start hangs in the kernel, and is killed when it returns";
    const char *who = s->request.conda_environment ? "conda: the login shell" : "the launch";
    char text[128], duration[UNITS_TEXT];

    status->ended_ns = nodetime_now_ns();
    if (!s->not_run && status->phase == LAUNCH_STARTING && !status->timed_out && (!s->exec_said || s->abandoned)) {
        if (status->stopped)
            snprintf(text, sizeof text, "stopped before the command was run%s", s->abandoned ? hangs : "");
        else if (WIFSIGNALED(s->wait_status))
            snprintf(text, sizeof text, "%s was ended by signal %d before the command was run", who,
                     WTERMSIG(s->wait_status));
        else
            snprintf(text, sizeof text, "%s ended with status %d before the command was run", who,
                     WEXITSTATUS(s->wait_status));
        launch_failed(s, text);
    }
    if (s->not_run) {
        status->phase = LAUNCH_FAILED;
        return;
    }
    status->phase = LAUNCH_ENDED;
    if (!s->process_ended)
        status->signal = SIGKILL; /* which waits for it in the kernel */
    else if (WIFSIGNALED(s->wait_status))
        status->signal = WTERMSIG(s->wait_status);
    else
        status->exit_status = WEXITSTATUS(s->wait_status);
    if (status->exit_status != 0 && !status->stopped)
        examine(s);
    evidence = launch_evidence(status);
    evidence.requeue = s->request.requeue;
    status->cause = cause_decide(&evidence);
    if (status->cause == EXIT_TIMEOUT) {
        snprintf(text, sizeof text,
                 !status->timed_out ? "it ended after the signal before its time limit of %s"
                 : s->exec_said     ? "time limit of %s reached"
                                    : "time limit of %s reached before the command was run",
                 format_duration(s->request.time_limit_ns, duration));
        status_set_message(status, text, strlen(text));
    }
}

/* Once no process of the job is left. */
static void leave_nothing(struct shepherd *s)
{
    script_remove(&s->request);
    remove_cgroup(s);
    checkpoint_remove_empty(&s->request);
}

/* The job is over to all others; we still have to reap hanging processes, and to remove the job's files. */
static void outlive_abandoned(struct shepherd *s)
{
    while (reap(s)) {
        kill_tree(s);
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

static int shepherd_run(struct shepherd *s, struct error *err)
{
    struct error why;
    int code, failed;

    if ((code = prepare(s, err)) < 0 || (code = read_request(s, err)) < 0)
        return code;
    make_cgroup(s);
    failed = script_place(&s->request, &why);
    if (failed == 0 && (failed = fork_job(s)) < 0)
        error_set(&why, failed, "cannot fork the job: %s", strerror(-failed));
    filter_devices(s); /* while the job's process becomes its user */
    if (!spawn_await_go(REQUEST_FD) || (code = create_status(s, err)) < 0) {
        withdraw(s);
        return code;
    }
    close(REQUEST_FD);
    if (failed == 0)
        failed = write_script(s, &why);
    if (failed == 0) {
        release_job(s);
    } else {
        launch_failed(s, why.text);
        kill_job(s);
    }
    status_close_first(s->first_fd, s->request.run_directory);
    if (s->process > 0)
        watch(s);
    conclude(s);
    if (!s->abandoned)
        leave_nothing(s);
    write_last_status(s);
    wake(s);
    if (s->abandoned)
        outlive_abandoned(s);
    return 0;
}

int main(int argc, char **argv)
{
    static struct shepherd shepherd = {.report_fd = -1,
                                       .handed_fd = -1,
                                       .output = {.fd = -1},
                                       .error = {.fd = -1},
                                       .kill_pause_ms = KILL_PAUSE_MS,
                                       .oom_kills = -1};
    struct error err;
    int code;

    if (argc > 1)
        return strcmp(argv[1], "exec") == 0 ? child_exec_main(argc, argv) : EXIT_FAILURE;
    code = nodetime_init(&err);
    if (code == 0)
        code = shepherd_run(&shepherd, &err);
    if (code < 0)
        complain(&err);
    tree_release(&shepherd.tree);
    free(shepherd.memory_group);
    request_release(&shepherd.request);
    return code < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
