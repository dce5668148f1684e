#include "sandbox/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/kernel/calls.h"
#include "base/kernel/handed.h"
#include "base/memory.h"
#include "base/program.h"
#include "base/signals.h"
#include "sandbox/filter.h"
#include "sandbox/limits.h"
#include "sandbox/orphans.h"
#include "sandbox/tree.h"
#include "sandbox/unowned.h"
#include "sandbox/users.h"

#define RESULT_FD       3
#define LOWEST_PRIORITY 19
#define IDLE_DISK_CLASS (3 << 13) /* ioprio_set(2) */
#define ONE_PROCESS     1

static void report(const struct inside *inside, char kind, const char *text)
{
    CLEANUP(free_ptr) char *line = xasprintf("%c%s", kind, text);
    ssize_t ignored = send(inside->report, line, strlen(line), MSG_NOSIGNAL); /* nobody to tell: we end anyway */

    (void)ignored;
}

static void give_up(const struct inside *inside, char kind, const struct error *err) __attribute__((noreturn));
static void give_up(const struct inside *inside, char kind, const struct error *err)
{
    report(inside, kind, err->text);
    _exit(1);
}

static void report_ready(const struct inside *inside, const struct tree_ends *ends)
{
    const int handed[] = {ends->proc, ends->scratch};
    const char kind = REPORT_READY;

    handed_send(inside->report, &kind, 1, handed, array_size(handed), 0);
}

/* ---- Setting up ---- */

static int write_text(const char *path, const char *text)
{
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

static int map_user(const struct account *account, struct error *err)
{
    CLEANUP(free_ptr) char *users = xasprintf("%u %u 1", account->uid, account->uid);
    CLEANUP(free_ptr) char *groups = xasprintf("%u %u 1", account->gid, account->gid);
    int rc;

    if ((rc = write_text("/proc/self/setgroups", "deny")) < 0 || (rc = write_text("/proc/self/uid_map", users)) < 0 ||
        (rc = write_text("/proc/self/gid_map", groups)) < 0)
        return error_set(err, rc, "the user namespace gets no users: %s", strerror(-rc));
    return 0;
}

/* Rendezvous of processes of one training go by it; it reaches nobody outside. Its connections get bounded buffers
 * (unowned.h), unless a container forbids that. */
static int raise_loopback(struct error *err)
{
    CLEANUP(free_ptr) char *bounds = xasprintf("4096 65536 %d", UNOWNED_TCP_BYTES);
    CLEANUP(close_fd) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq interface = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    write_text("/proc/sys/net/ipv4/tcp_rmem", bounds);
    write_text("/proc/sys/net/ipv4/tcp_wmem", bounds);
    return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &interface) < 0
               ? error_set(err, errno, "the loopback interface cannot be used: %s", strerror(errno))
               : 0;
}

static int limit(int resource, rlim_t most, struct error *err)
{
    struct rlimit value;

    if (getrlimit((__rlimit_resource_t)resource, &value) < 0)
        return error_set(err, errno, "a limit cannot be read: %s", strerror(errno));
    value.rlim_max = value.rlim_max < most ? value.rlim_max : most;
    value.rlim_cur = value.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &value) < 0
               ? error_set(err, errno, "a limit cannot be set: %s", strerror(errno))
               : 0;
}

/* Limits it to `cores` of the processors that the caller may use; other runs get others. */
static void pin(int64_t cores)
{
    cpu_set_t allowed, chosen;
    int first = 0;

    CPU_ZERO(&chosen);
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return;
    first = (int)(syscall(SYS_gettid) % CPU_SETSIZE);
    for (int i = 0; i < CPU_SETSIZE && cores > 0; i++) {
        int cpu = (first + i) % CPU_SETSIZE;
        if (CPU_ISSET(cpu, &allowed)) {
            CPU_SET(cpu, &chosen);
            cores--;
        }
    }
    sched_setaffinity(0, sizeof chosen, &chosen);
}

/* Of the command, not of this process: it has to be quick to end a command that has taken the CPU. Without rights to
 * raise its niceness the command cannot leave the last place. */
static int put_last(const struct inside *inside, struct error *err)
{
    int rc;

    if (setpriority(PRIO_PROCESS, 0, LOWEST_PRIORITY) < 0 ||
        syscall(SYS_ioprio_set, ONE_PROCESS, 0, IDLE_DISK_CLASS) < 0)
        return error_set(err, errno, "the lowest priority cannot be had: %s", strerror(errno));
    if (inside->pinned)
        pin(inside->request->cores);
    /* A dump of 1 byte: a handler of dumps, which runs outside, is not called then (core(5)). */
    if ((rc = limit(RLIMIT_CORE, 1, err)) < 0 || (rc = limit(RLIMIT_NICE, 0, err)) < 0 ||
        (rc = limit(RLIMIT_RTPRIO, 0, err)) < 0 || (rc = limit(RLIMIT_NOFILE, LIMIT_FILES, err)) < 0 ||
        (rc = limit(RLIMIT_MEMLOCK, LIMIT_LOCKED, err)) < 0)
        return rc;
    if (inside->watched && (rc = limit(RLIMIT_NPROC, (rlim_t)inside->threads + LIMIT_PROCESSES, err)) < 0)
        return rc;
    if (!inside->request->bare)
        return 0;
    /* Nobody adds up what its processes have, nor what they write. */
    if ((rc = limit(RLIMIT_DATA, (rlim_t)inside->request->memory_bytes, err)) < 0)
        return rc;
    return limit(RLIMIT_FSIZE, (rlim_t)inside->request->memory_bytes, err);
}

/* Whoever inherits a session keyring may read its keys: the command must not have that of root's daemon (keyrings(7)).
 * A kernel without keys has nothing to share. */
static void leave_session_keyring(void)
{
    syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
}

static int be_first_killed(struct error *err)
{
    int rc = write_text("/proc/self/oom_score_adj", "1000");

    return rc < 0 ? error_set(err, rc, "it cannot be the first to be killed for memory: %s", strerror(-rc)) : 0;
}

/* The rest of it, where no sandbox can be had. */
static void set_up_bare(const struct inside *inside)
{
    struct error err;

    leave_session_keyring();
    if (be_first_killed(&err) < 0 || rights_of_user_alone(inside->account, &err) < 0)
        give_up(inside, REPORT_MISSING, &err);
}

static void set_up(const struct inside *inside, struct tree_ends *ends)
{
    struct error err;

    leave_session_keyring();
    if ((inside->own_users && map_user(inside->account, &err) < 0) || be_first_killed(&err) < 0 ||
        rights_become_user(inside->account, !inside->own_users, &err) < 0 || raise_loopback(&err) < 0 ||
        tree_build(inside->request, inside->account, inside->own_users, ends, &err) < 0 ||
        (!inside->own_users && users_enter(inside->users, &err) < 0) || rights_give_up(&err) < 0)
        give_up(inside, REPORT_MISSING, &err);
}

/* ---- The command ---- */

static void execute(const struct inside *inside) __attribute__((noreturn));
static void execute(const struct inside *inside)
{
    const struct sandbox_request *request = inside->request;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct error err;

    if (inside->request->bare)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* no namespace ends with its first process */
    setsid();
    signals_reset();
    umask(022);
    if (put_last(inside, &err) < 0)
        give_up(inside, REPORT_MISSING, &err);
    if (chdir(request->directory) < 0) {
        error_set(&err, errno, "cannot enter the directory '%s': %s", request->directory, strerror(errno));
        give_up(inside, REPORT_FAILED, &err);
    }
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(inside->complaints, 2) < 0 ||
        (inside->result == RESULT_FD ? fcntl(RESULT_FD, F_SETFD, 0) : dup2(inside->result, RESULT_FD)) < 0 ||
        kernel_close_from(RESULT_FD + 1, CLOSE_AT_EXEC) < 0) {
        error_set(&err, errno, "the command's files cannot be opened: %s", strerror(errno));
        give_up(inside, REPORT_FAILED, &err);
    }
    if (filter_install(inside->watched, &err) < 0) /* which refuses some of the above */
        give_up(inside, REPORT_MISSING, &err);
    environ = request->environment;
    execvp(request->command[0], request->command);
    CLEANUP(free_ptr) char *why = NULL;
    int code = program_fault(request->command[0], errno, &why);
    error_set(&err, code, "cannot run '%.200s': %s", request->command[0], why);
    give_up(inside, REPORT_FAILED, &err);
}

/* To the parent, which watches by them. */
static void hand_over(const struct inside *inside, const struct tree_ends *ends)
{
    char word;

    report_ready(inside, ends);
    if (recv(inside->report, &word, 1, 0) != 1)
        _exit(1);
    close(ends->proc);
    close(ends->scratch);
}

static void report_end(const struct inside *inside, int status)
{
    struct error err;

    if (WIFEXITED(status))
        error_set(&err, EIO, "ended with exit status %d", WEXITSTATUS(status));
    else
        error_set(&err, EIO, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    report(inside, !WIFEXITED(status) ? REPORT_FAILED : WEXITSTATUS(status) ? REPORT_EXITED : REPORT_ENDED, err.text);
}

/* Without a namespace nothing ends with this process: it ends the others when its parent is gone, of which SIGTERM
 * tells. In a session of its own it is not killed with its parent. */
static void watch_parent(const struct inside *inside, sigset_t *watched)
{
    char word;

    setsid();
    orphans_adopt();
    sigemptyset(watched);
    sigaddset(watched, SIGTERM);
    sigaddset(watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, watched, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (recv(inside->report, &word, 1, MSG_DONTWAIT) == 0)
        _exit(1); /* gone before that */
}

static pid_t wait_or_end_all(const sigset_t *watched, int *status)
{
    pid_t ended;
    int number = 0;

    while ((ended = waitpid(-1, status, WNOHANG)) == 0)
        if (sigwait(watched, &number) == 0 && number == SIGTERM) {
            orphans_end();
            _exit(1);
        }
    return ended;
}

void inside_run(const struct inside *inside)
{
    const bool bare = inside->request->bare;
    struct tree_ends ends;
    pid_t command, ended;
    sigset_t watched;
    char word;
    int status;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (recv(inside->report, &word, 1, 0) != 1)
        _exit(1); /* the parent was gone before we asked for that */
    if (bare)
        set_up_bare(inside);
    else
        set_up(inside, &ends);
    prctl(PR_SET_DUMPABLE, 0);        /* the command shall not look into this process */
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user has cleared it */
    if (bare)
        watch_parent(inside, &watched);
    else
        hand_over(inside, &ends);
    command = fork();
    if (command == 0)
        execute(inside);
    close(inside->result);
    close(inside->complaints);
    do
        ended = bare ? wait_or_end_all(&watched, &status) : waitpid(-1, &status, 0);
    while (ended != command && (ended >= 0 || errno == EINTR));
    if (ended == command)
        report_end(inside, status);
    _exit(0);
}
