/* How this file works: attach_to() waits for the job's start, connects to its relay and turns in one loop until the job
 * has ended (TERMINAL_END) or the connection is given up. What the job writes is read from its output files, at our own
 * pace; inotify says that there is more, and where it cannot the files are looked at. A write that waits for our reader
 * is ended by a signal, which the loop then takes. How the job ended is asked of the daemon, so it is told as by carma
 * wait. */
#include "cli/attach/attach.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/kernel/handed.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/attach/keys.h"
#include "cli/attach/place.h"
#include "cli/attach/signals.h"
#include "cli/cli.h"
#include "cli/job/log_file.h"
#include "cli/job/wait.h"
#include "cli/session.h"
#include "cli/show/answer.h"
#include "launch/terminal.h"

#define DETACH_KEY 0x1d             /* Ctrl-] */
#define TWICE_NS   (2 * NS_PER_SEC) /* wall: two interrupts within this cancel the job */
#define LAST_BYTES 4096             /* of what was written before we came back */
#define BEHIND     (1 << 20)        /* a terminal that is further behind goes on with the last LAST_BYTES */
#define BLOCK      65536
#define LOOK_MS    1000             /* inotify may miss what another machine writes */
#define SEARCH_MS  50               /* without inotify */
#define REACH_NS   (5 * NS_PER_SEC) /* wall: for the relay of a job that runs */

enum leave { STAYS, ENDED, LOST, DETACHED, TAKEN, HUNG_UP, UNREAD }; /* why the loop ends */

struct source {
    int from, to; /* -1: there is none */
    off_t at;
};

struct attached {
    struct cli *cli;
    uint64_t id;
    int signals, socket, changes;
    enum leave leave;
    bool returns, is_shell;
    bool greeted;
    bool pty; /* the job has one */
    struct source sources[2];
    struct keys keys;
    bool wanted; /* bytes of our input */
    bool input_ended;
    int64_t interrupted_ns; /* wall, monotonic; 0: never */
};

/* ---- Our terminal ---- */

/* A line of ours among what the job shows. */
static void say(struct attached *a, const char *text)
{
    bool had_keys = a->keys.taken;

    keys_leave(&a->keys);
    cli_fail("%s", text);
    if (had_keys)
        keys_take(&a->keys);
}

/* A program that was left draws its screen anew once the size changes. */
static void send_size(const struct attached *a, bool redraws)
{
    struct winsize now;
    struct terminal_size size;

    if (!a->keys.taken || ioctl(STDIN_FILENO, TIOCGWINSZ, &now) < 0)
        return;
    size = (struct terminal_size){.rows = now.ws_row, .columns = now.ws_col};
    if (redraws && size.rows > 1) {
        struct terminal_size other = {.rows = (uint16_t)(size.rows - 1), .columns = size.columns};
        terminal_send(a->socket, TERMINAL_SIZE, &other, sizeof other);
    }
    terminal_send(a->socket, TERMINAL_SIZE, &size, sizeof size);
}

/* ---- The job's output ---- */

static off_t size_of(int fd)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 ? st.st_size : 0;
}

static bool write_some(struct attached *a, int to, const char *bytes, size_t length, size_t *written)
{
    ssize_t count = write(to, bytes, length);

    *written = count > 0 ? (size_t)count : 0;
    if (count >= 0 || errno == EINTR)
        return true;
    if (errno == EAGAIN) /* somebody else made it so */
        return poll(&(struct pollfd){.fd = to, .events = POLLOUT}, 1, SEARCH_MS) >= 0;
    a->leave = UNREAD;
    return false;
}

/* Some of what the job has written since; whether there may be more. */
static bool copy(struct attached *a, struct source *source)
{
    off_t size = size_of(source->from);
    char block[BLOCK];
    size_t written;
    ssize_t count;

    if (source->from < 0 || a->leave == UNREAD)
        return false;
    if (size < source->at) /* it was cut */
        source->at = 0;
    if (a->keys.taken && size - source->at > BEHIND) {
        CLEANUP(free_ptr)
        char *text = xasprintf("%jd bytes are left out here: carma logs %" PRIu64 " has them",
                               (intmax_t)(size - LAST_BYTES - source->at), a->id);
        say(a, text);
        source->at = size - LAST_BYTES;
    }
    count = pread(source->from, block, sizeof block, source->at);
    if (count <= 0 || !write_some(a, source->to, block, (size_t)count, &written))
        return false;
    source->at += (off_t)written;
    return true;
}

static bool copy_both(struct attached *a)
{
    bool more = copy(a, &a->sources[0]);

    return copy(a, &a->sources[1]) || more;
}

/* All that is there now. 0, or the signal that ended it: our reader may take for ever. */
static int copy_all(struct attached *a)
{
    int number = 0;

    while (number == 0 && copy_both(a))
        while ((number = signals_next(a->signals)) == SIGWINCH)
            ;
    return number;
}

static void close_outputs(struct attached *a)
{
    for (size_t i = 0; i < array_size(a->sources); i++) {
        close_fd(&a->sources[i].from);
        a->sources[i].from = -1;
    }
}

static void watch(struct attached *a)
{
    a->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    for (size_t i = 0; i < array_size(a->sources) && a->changes >= 0; i++) {
        CLEANUP(free_ptr) char *path = xasprintf("/proc/self/fd/%d", a->sources[i].from);
        if (a->sources[i].from >= 0 && inotify_add_watch(a->changes, path, IN_MODIFY) < 0) {
            close_fd(&a->changes);
            a->changes = -1;
        }
    }
}

/* ---- Frames ---- */

static off_t begin_at(const struct attached *a, int fd, int64_t of_job)
{
    off_t size = size_of(fd);

    return a->returns && size - of_job > LAST_BYTES ? size - LAST_BYTES : (off_t)of_job;
}

static void greet(struct attached *a, const struct terminal_hello *hello, const int fds[2])
{
    int output = hello->has_output ? fds[0] : -1, error = hello->has_error ? fds[hello->has_output] : -1;

    a->greeted = true;
    a->pty = hello->pty;
    a->sources[0] = (struct source){.from = output, .to = STDOUT_FILENO, .at = begin_at(a, output, hello->output_at)};
    a->sources[1] = (struct source){.from = error, .to = STDERR_FILENO, .at = begin_at(a, error, hello->error_at)};
    watch(a);
    if (a->returns && a->pty && keys_are_here())
        cli_fail("attached to job %" PRIu64 " (Ctrl-] leaves it)", a->id);
    if (a->pty)
        keys_take(&a->keys);
    send_size(a, a->returns);
}

static void interrupted(struct attached *a)
{
    int64_t now_ns = nodetime_monotonic_wall_ns();
    bool had_keys = a->keys.taken;

    if (a->interrupted_ns && now_ns - a->interrupted_ns < TWICE_NS) {
        keys_leave(&a->keys);
        place_cancel(a->cli, a->id);
        if (had_keys)
            keys_take(&a->keys);
        now_ns = 0;
    } else {
        say(a, "Ctrl-C was passed on: once more within 2 s cancels the job");
    }
    a->interrupted_ns = now_ns;
}

static void take_frame(struct attached *a)
{
    char frame[1 + TERMINAL_MOST];
    struct terminal_hello hello;
    int fds[2];
    ssize_t length = handed_receive(a->socket, frame, sizeof frame, fds, 2, MSG_DONTWAIT);
    size_t at = 1, written;

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length <= 0) {
        a->leave = LOST;
        return;
    }
    switch (*frame) {
    case TERMINAL_HELLO:
        memcpy(&hello, frame + 1, sizeof hello);
        if (length == 1 + sizeof hello)
            greet(a, &hello, fds);
        break;
    case TERMINAL_NEXT:
        a->wanted = true;
        break;
    case TERMINAL_TEXT:
        for (; at < (size_t)length && write_some(a, STDOUT_FILENO, frame + at, (size_t)length - at, &written);)
            at += written;
        break;
    case TERMINAL_INTERRUPTED: /* of a shell that is only starting: it will have the key for itself */
        if (!a->is_shell)
            interrupted(a);
        break;
    case TERMINAL_TAKEN:
        a->leave = TAKEN;
        break;
    case TERMINAL_END:
        a->leave = ENDED;
        break;
    }
}

/* ---- Our input and our signals ---- */

static void end_input(struct attached *a)
{
    a->input_ended = true;
    if (a->pty)
        a->leave = HUNG_UP;
    else
        terminal_send(a->socket, TERMINAL_EOF, NULL, 0);
}

static void take_input(struct attached *a)
{
    char bytes[TERMINAL_MOST];
    ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    const char *key;

    if (count < 0 && (errno == EAGAIN || errno == EINTR || (errno == EIO && !keys_are_ours())))
        return;
    if (count <= 0) {
        end_input(a);
        return;
    }
    key = a->keys.taken ? memchr(bytes, DETACH_KEY, (size_t)count) : NULL;
    if (key) {
        count = key - bytes;
        a->leave = DETACHED;
    }
    a->wanted = count == 0;
    if (count > 0)
        terminal_send(a->socket, TERMINAL_INPUT, bytes, (size_t)count);
}

static void take_signals(struct attached *a)
{
    int number;

    while ((number = signals_next(a->signals))) {
        if (number == SIGWINCH) {
            send_size(a, false);
        } else if (number == SIGHUP) {
            a->leave = HUNG_UP;
        } else {
            terminal_send(a->socket, TERMINAL_SIGNAL, &(char){(char)number}, 1);
            if (number == SIGINT)
                interrupted(a);
        }
    }
}

static bool reads_input(const struct attached *a)
{
    return a->wanted && !a->input_ended && (!isatty(STDIN_FILENO) || keys_are_ours());
}

static void turn(struct attached *a)
{
    bool more = copy_both(a);
    struct pollfd ready[] = {{.fd = a->signals, .events = POLLIN},
                             {.fd = a->socket, .events = POLLIN},
                             {.fd = reads_input(a) ? STDIN_FILENO : -1, .events = POLLIN},
                             {.fd = a->changes, .events = POLLIN}};
    char events[4096];

    if (poll(ready, array_size(ready), more ? 0 : a->changes >= 0 ? LOOK_MS : SEARCH_MS) <= 0)
        return;
    while (a->changes >= 0 && read(a->changes, events, sizeof events) > 0)
        ;
    take_signals(a); /* also one that came just now: a new size goes before the key that follows it */
    if (ready[2].revents && a->leave == STAYS)
        take_input(a);
    if (ready[1].revents && a->leave == STAYS)
        take_frame(a);
}

/* ---- From the start to the end ---- */

/* Waits for the job's start. 0: connected, or it has ended before that; else the exit status of the command. */
static int reach(struct attached *a, json_t **job)
{
    int64_t pause_ms = WAIT_FIRST_PAUSE_MS, since_ns = 0;
    struct error err;
    int status;

    while ((status = place_wait(a->cli, a->id, a->signals, job)) == 0 && !answer_job_ended(*job)) {
        const char *state = answer_text(*job, "state");
        a->socket = terminal_connect(answer_text(*job, "terminal"), &err);
        if (a->socket >= 0)
            return 0;
        if (!since_ns && state && strcmp(state, "RUNNING") == 0)
            since_ns = nodetime_monotonic_wall_ns();
        if (since_ns && nodetime_monotonic_wall_ns() - since_ns > REACH_NS)
            return cli_fail("job %" PRIu64 " goes on: %s; carma logs -f %" PRIu64 " follows its output", a->id,
                            err.text, a->id),
                   CLI_NOT_ASKED;
        json_decref(*job);
        *job = NULL;
        wait_pause(a->cli, &pause_ms);
    }
    return status;
}

/* Of a job that has ended before it could be attached to. */
static void print_outputs(struct attached *a, const json_t *job)
{
    CLEANUP(free_ptr) char *output = log_file_path(job, false, a->id);
    CLEANUP(free_ptr) char *error = log_file_path(job, true, a->id);

    if (answer_integer(job, "started_ns", 0) <= 0 || a->returns)
        return;
    a->sources[0] = (struct source){.from = -1, .to = STDOUT_FILENO};
    a->sources[1] = (struct source){.from = -1, .to = STDERR_FILENO};
    log_file_open(output, log_file_owner(job), &a->sources[0].from, NULL);
    if (output && error && strcmp(output, error) != 0)
        log_file_open(error, log_file_owner(job), &a->sources[1].from, NULL);
    (void)copy_all(a);
}

/* A shell's status is that of its last command: no news. */
static bool is_news(const struct attached *a, const json_t *job)
{
    const char *state = answer_text(job, "state");

    if (a->is_shell && state && strcmp(state, "FAILED") == 0)
        return false;
    return wait_job_status(job) != CLI_OK || answer_text(job, "message") || answer_text(job, "last_end");
}

/* As carma wait tells it. */
static int wait_for_end(struct attached *a)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64, a->id);
    int64_t pause_ms = WAIT_FIRST_PAUSE_MS;
    struct error err;
    int number;

    for (;;) {
        CLEANUP(json_release) json_t *job = NULL;
        int rc = session_call(a->cli, "GET", path, NULL, &job, &err);
        if (rc)
            return cli_fail("%s", err.text), session_status(rc);
        (void)copy_all(a);
        if (answer_job_ended(job)) {
            if (!a->greeted)
                print_outputs(a, job);
            if (is_news(a, job))
                wait_tell_end(a->id, job, false);
            return wait_job_status(job);
        }
        wait_pause(a->cli, &pause_ms);
        while ((number = signals_next(a->signals)) == SIGWINCH)
            ;
        if (number)
            return 128 + number;
    }
}

static int leave(struct attached *a)
{
    const bool had_keys = a->keys.taken;
    const uint64_t id = a->id;

    keys_leave(&a->keys);
    switch (a->leave) {
    case DETACHED:
        fputs(had_keys ? "\n" : "", stderr);
        return cli_fail("job %" PRIu64 " goes on: carma attach %" PRIu64 " comes back to it", id, id), CLI_OK;
    case TAKEN:
        return cli_fail("another carma attach has taken over job %" PRIu64, id), CLI_NOT_ASKED;
    case UNREAD:
        cli_fail("nobody reads its output here any more; job %" PRIu64 " goes on: carma attach %" PRIu64
                 " comes back to it, carma cancel %" PRIu64 " ends it",
                 id, id, id);
        return 128 + SIGPIPE;
    case HUNG_UP:
        return 128 + SIGHUP;
    case LOST:
        if (a->greeted)
            cli_fail("the connection to job %" PRIu64 " is lost", id);
        break;
    default:
        break;
    }
    return wait_for_end(a);
}

static void close_all(struct attached *a)
{
    close_fd(&a->socket);
    close_fd(&a->changes);
    close_outputs(a);
}

int attach_to(struct cli *cli, uint64_t id, int signals, bool returns, bool is_shell)
{
    CLEANUP(close_all)
    struct attached a = {.cli = cli,
                         .id = id,
                         .signals = signals,
                         .returns = returns,
                         .is_shell = is_shell,
                         .changes = -1,
                         .socket = -1,
                         .sources = {{.from = -1}, {.from = -1}}};
    CLEANUP(json_release) json_t *job = NULL;
    int status = reach(&a, &job);

    if (status)
        return status;
    while (a.socket >= 0 && a.leave == STAYS)
        turn(&a);
    if (a.leave != UNREAD && a.leave != HUNG_UP)
        status = copy_all(&a);
    if (a.leave == ENDED) /* what carma adds to the file is told below */
        close_outputs(&a);
    return status ? keys_leave(&a.keys), 128 + status : leave(&a);
}
