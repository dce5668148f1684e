#include "sandbox/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/kernel/calls.h"
#include "base/kernel/handed.h"
#include "base/memory.h"
#include "base/text/last_line.h"
#include "base/units.h"
#include "sandbox/group.h"
#include "sandbox/inside.h"
#include "sandbox/limits.h"
#include "sandbox/missing.h"
#include "sandbox/orphans.h"
#include "sandbox/users.h"
#include "sandbox/watch.h"

#define GRACE_MS 60000 /* for the kernel to kill everything: a process may hang in it */

#define MEASURE_MS 500 /* it costs time on every page */

struct keeper {
    const struct sandbox_request *request;
    struct strbuf *result;
    struct error *err;
    struct group group;
    struct tree_ends ends;
    pid_t pid;      /* the sandbox's first process */
    pid_t measurer; /* 0: none */
    int pidfd;
    int report;
    int users;         /* -1: none of root's */
    int result_fd;     /* -1: its end was read */
    int complaints_fd; /* the same of the command's standard error */
    struct last_line complaint;
    int64_t until_ms, measure_at_ms;
    bool ready;
    bool exited; /* it failed by its exit status alone: its result may say why */
    bool judged;
    bool by_itself; /* not for what it took: its last words may say why */
    bool killed;
    bool maybe; /* the last quick look found too much memory */
    enum verdict verdict;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / NS_PER_MS;
}

/* The first judgement stands: later ends are consequences of the kill. */
static void judge(struct keeper *k, enum verdict verdict, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void judge(struct keeper *k, enum verdict verdict, int code, const char *format, ...)
{
    va_list args;

    if (k->judged)
        return;
    k->judged = true;
    k->verdict = verdict;
    k->by_itself = code == EIO || code == ETIMEDOUT;
    va_start(args, format);
    CLEANUP(free_ptr) char *text = xvasprintf(format, args);
    va_end(args);
    error_set(k->err, code, "%s", text);
    error_make_printable(k->err);
}

static void end_all(struct keeper *k)
{
    if (!k->killed)
        kill(k->pid, SIGKILL); /* the kernel kills the others of its namespace */
    if (!k->killed)
        k->until_ms = now_ms() + GRACE_MS;
    k->killed = true;
}

/* ---- What the inside says ---- */

static void take_ends(struct keeper *k, const int handed[2])
{
    k->ends = (struct tree_ends){.proc = handed[0], .scratch = handed[1]};
    k->ready = true;
    send(k->report, "g", 1, MSG_NOSIGNAL);
}

static void judge_failure(struct keeper *k, char how, const char *text)
{
    char most[UNITS_TEXT];

    if (k->judged)
        return;
    if (group_ran_out_of_memory(&k->group)) {
        judge(k, VERDICT_FAILED, ENOMEM, "needed more than %s", format_bytes(k->request->memory_bytes, most));
    } else if (group_ran_out_of_processes(&k->group)) {
        judge(k, VERDICT_FAILED, EAGAIN, "needed more than %d processes: %s", LIMIT_PROCESSES, text);
    } else {
        judge(k, VERDICT_FAILED, EIO, "%s", text);
        k->exited = how == REPORT_EXITED;
    }
}

/* Whether there was one. */
static bool read_report(struct keeper *k)
{
    char text[sizeof k->err->text + 2];
    int handed[2];
    ssize_t length = handed_receive(k->report, text, sizeof text - 1, handed, array_size(handed), MSG_DONTWAIT);

    if (length <= 0)
        return false;
    text[length] = '\0';
    if (text[0] == REPORT_READY)
        take_ends(k, handed);
    else if (text[0] == REPORT_ENDED)
        judge(k, VERDICT_ENDED, 0, "%s", "");
    else if (text[0] == REPORT_MISSING)
        judge(k, VERDICT_MISSING, ENOTSUP, "%s%s", text + 1, k->request->bare ? "" : missing_hint());
    else
        judge_failure(k, text[0], text + 1);
    return true;
}

/* Whether there may be more to read at once. */
static bool read_result(struct keeper *k)
{
    char block[64 << 10];
    ssize_t count = read(k->result_fd, block, sizeof block);
    char most[UNITS_TEXT];

    if (count > 0 && (int64_t)k->result->length + count > k->request->result_bytes_max) {
        judge(k, VERDICT_FAILED, EFBIG, "wrote more than %s of result",
              format_bytes(k->request->result_bytes_max, most));
        end_all(k);
    }
    if (count > 0 && !k->killed)
        strbuf_append(k->result, block, (size_t)count);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR) || k->killed)
        close_fd(&k->result_fd), k->result_fd = -1;
    return k->result_fd >= 0 && (count > 0 || errno == EINTR);
}

/* The last line stays: a command that fails says there why. Whether there may be more to read at once. */
static bool read_complaints(struct keeper *k)
{
    char block[16 << 10];
    ssize_t count = read(k->complaints_fd, block, sizeof block);

    if (count > 0)
        last_line_add(&k->complaint, block, (size_t)count);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        close_fd(&k->complaints_fd), k->complaints_fd = -1;
    return k->complaints_fd >= 0 && (count > 0 || errno == EINTR);
}

/* ---- Limits ---- */

/* By a process of its own, while the number of threads is watched on. Whether the last one has found too much. `maybe`:
 * the quick look has, so the next one does not wait any longer. */
static bool exceeds_memory(struct keeper *k, bool maybe)
{
    int status;

    if (maybe && !k->maybe)
        k->measure_at_ms = 0;
    k->maybe = maybe;
    if (k->measurer <= 0 && now_ms() >= k->measure_at_ms) {
        k->measure_at_ms = now_ms() + MEASURE_MS;
        k->measurer = fork();
        if (k->measurer == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(watch_exceeds(&k->ends, k->request->memory_bytes));
        }
    }
    if (k->measurer <= 0 || waitpid(k->measurer, &status, WNOHANG) != k->measurer)
        return false;
    k->measurer = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void watch(struct keeper *k)
{
    struct watch_sums sums;
    char most[UNITS_TEXT];

    watch_look(&k->ends, LIMIT_PROCESSES, &sums);
    if (sums.threads > LIMIT_PROCESSES)
        judge(k, VERDICT_FAILED, EAGAIN, "needed more than %d processes", LIMIT_PROCESSES);
    else if (exceeds_memory(k, sums.memory_bytes > k->request->memory_bytes))
        judge(k, VERDICT_FAILED, ENOMEM, "needed more than %s", format_bytes(k->request->memory_bytes, most));
    else
        return;
    end_all(k);
}

static bool is_watched(const struct keeper *k)
{
    return k->ready && !k->group.counts && !k->killed;
}

static void look_at_time(struct keeper *k)
{
    if (now_ms() < k->until_ms || k->killed)
        return;
    judge(k, VERDICT_FAILED, ETIMEDOUT, "took longer than %" PRId64 " s", k->request->time_s);
    end_all(k);
}

/* Until the first process, and with it every other, has ended. */
static void follow(struct keeper *k)
{
    for (;;) {
        int64_t left_ms = k->until_ms - now_ms();
        struct pollfd polled[] = {
            {.fd = k->pidfd, .events = POLLIN},
            {.fd = k->report, .events = POLLIN},
            {.fd = k->result_fd, .events = POLLIN},
            {.fd = k->complaints_fd, .events = POLLIN},
            {.fd = STDOUT_FILENO}, /* its reader has gone: nobody wants the result */
        };
        left_ms = left_ms < 0 ? 0 : left_ms;
        poll(polled, array_size(polled), (int)(is_watched(k) && left_ms > WATCH_MS ? WATCH_MS : left_ms));
        if (polled[2].revents)
            read_result(k);
        if (polled[1].revents)
            read_report(k);
        if (polled[0].revents)
            return;
        if (polled[3].revents)
            read_complaints(k);
        if (polled[4].revents & (POLLERR | POLLHUP | POLLNVAL))
            end_all(k);
        look_at_time(k);
        if (k->killed && now_ms() >= k->until_ms)
            return;
        if (is_watched(k))
            watch(k);
    }
}

/* ---- From the start to the end ---- */

static int start(struct keeper *k, const struct account *account, int report, int result, int complaints)
{
    const bool bare = k->request->bare, own_users = geteuid() != 0 && !bare, counted = k->group.counts && !bare;
    struct clone_args arguments = {
        .flags = CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                 (own_users ? CLONE_NEWUSER : 0) | (k->group.path ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t)(uintptr_t)&k->pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = k->group.path ? (uint64_t)k->group.fd : 0,
    };
    const struct inside inside = {.request = k->request,
                                  .account = account,
                                  .own_users = own_users,
                                  .watched = !counted,
                                  .pinned = bare || !k->group.divides_cpus,
                                  .users = k->users,
                                  .threads = bare ? watch_threads_of(account->uid) : 0,
                                  .report = report,
                                  .result = result,
                                  .complaints = complaints};

    if (bare)
        k->pid = fork(); /* a container may refuse clone3() */
    else
        k->pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (k->pid == 0) {
        close(k->report); /* else it would not see that its parent is gone */
        close(k->result_fd);
        close(k->complaints_fd);
        inside_run(&inside);
    }
    if (k->pid > 0 && bare) {
        k->pidfd = kernel_pidfd_open(k->pid);
        group_enter(&k->group, k->pid);
    }
    return k->pid < 0 || k->pidfd < 0 ? -errno : 0;
}

/* A user may divide a group and yet not move a process there from his own (cgroup-v2.rst, Delegation Containment). */
static int start_in_group_or_not(struct keeper *k, const struct account *account, int report, int result,
                                 int complaints)
{
    int rc = start(k, account, report, result, complaints);

    if (rc == 0 || !k->group.path)
        return rc;
    group_remove(&k->group);
    return start(k, account, report, result, complaints);
}

static int begin(struct keeper *k, const struct account *account)
{
    int report[2], result[2], complaints[2], rc;

    if (geteuid() == 0 && !k->request->bare && (k->users = users_make()) < 0)
        return k->users;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0)
        return -errno;
    if (pipe2(result, O_CLOEXEC) < 0 || pipe2(complaints, O_CLOEXEC) < 0)
        return -errno;
    k->report = report[0];
    k->result_fd = result[0];
    k->complaints_fd = complaints[0];
    rc = start_in_group_or_not(k, account, report[1], result[1], complaints[1]);
    close(report[1]);
    close(result[1]);
    close(complaints[1]);
    fcntl(k->result_fd, F_SETFL, O_NONBLOCK);
    fcntl(k->complaints_fd, F_SETFL, O_NONBLOCK);
    if (rc == 0)
        send(k->report, "g", 1, MSG_NOSIGNAL);
    return rc;
}

static void finish(struct keeper *k)
{
    if (waitpid(k->pid, NULL, WNOHANG) != k->pid)
        judge(k, VERDICT_FAILED, EBUSY, "its processes hang in the kernel and cannot be ended");
    if (k->request->bare)
        orphans_end();
    /* No process is left inside. One outside may hold the other end, which the command has given to it. */
    while (k->result_fd >= 0 && read_result(k))
        ;
    while (k->complaints_fd >= 0 && read_complaints(k))
        ;
    while (!k->judged && read_report(k))
        ;
    judge_failure(k, REPORT_FAILED, "was ended from outside");
}

/* What it was at when it failed. */
static void add_last_words(struct keeper *k)
{
    const char *line = last_line_text(&k->complaint) + strspn(k->complaint.text, " ");
    size_t length = strlen(k->err->text);

    if (k->verdict == VERDICT_FAILED && k->by_itself && *line)
        snprintf(k->err->text + length, sizeof k->err->text - length, ": %s", line);
}

enum verdict keeper_run(const struct sandbox_request *request, struct strbuf *result, struct error *err)
{
    struct keeper k = {.request = request,
                       .result = result,
                       .err = err,
                       .ends = {.proc = -1, .scratch = -1},
                       .pidfd = -1,
                       .report = -1,
                       .users = -1,
                       .result_fd = -1,
                       .complaints_fd = -1,
                       .until_ms = now_ms() + request->time_s * 1000};
    struct account account;
    int rc;

    if (geteuid() != 0 && (request->uid != geteuid() || request->gid != getegid())) {
        error_set(err, EPERM, "only root can run a command as another user (uid %u)", request->uid);
        return VERDICT_MISSING;
    }
    if (request->bare)
        orphans_adopt();
    rights_of_account(request, &account);
    group_make(request, &k.group);
    rc = begin(&k, &account);
    if (rc < 0) {
        judge(&k, VERDICT_MISSING, -rc, "no namespaces can be made: %s%s", strerror(-rc), missing_hint());
    } else {
        follow(&k);
        finish(&k);
        add_last_words(&k);
    }
    if (k.measurer > 0) {
        kill(k.measurer, SIGKILL);
        waitpid(k.measurer, NULL, 0);
    }
    close_fd(&k.pidfd);
    close_fd(&k.report);
    close_fd(&k.users);
    close_fd(&k.result_fd);
    close_fd(&k.complaints_fd);
    close_fd(&k.ends.proc);
    close_fd(&k.ends.scratch);
    group_remove(&k.group);
    account_release(&account);
    if (k.verdict != VERDICT_ENDED && !k.exited)
        strbuf_release(result);
    return k.verdict;
}
