/* How this file works: one loop over poll(). Bytes for the job are in `pending` until it has taken them: the client
 * gets the next TERMINAL_NEXT then, so that its other frames always come through. What a terminal shows is written to
 * the output; writing may wait for its file system, and the job with it, as it would without a terminal. To the client
 * nothing is ever waited for. */
#include "launch/shepherd/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/kernel/calls.h"
#include "base/kernel/handed.h"
#include "base/memory.h"
#include "launch/shepherd/attach.h"
#include "launch/terminal.h"

#define UNSENT_MOST 65536 /* bytes of text that a client has not taken: more is not sent */
#define DRAIN_READS 256   /* of some KiB: more than a terminal holds */

struct relay {
    struct relay_start start;
    int output, error; /* to write, as the job has them; -1: none */
    int input;         /* a pipe's end, or the terminal's master; -1: nobody reads it any more */
    int master;        /* of the terminal; -1: none, or it was hung up */
    bool pty, reads_keys;
    int client;   /* -1: nobody is attached */
    bool no_more; /* after TERMINAL_EOF */
    char pending[TERMINAL_MOST];
    size_t at, length; /* of `pending`, the part that the job has not taken */
};

/* ---- The client ---- */

static void tell(struct relay *relay, enum terminal_frame type, const void *bytes, size_t length)
{
    if (relay->client >= 0)
        terminal_send(relay->client, type, bytes, length);
}

static void ask_for_input(struct relay *relay)
{
    if (relay->length == 0 && relay->input >= 0 && !relay->no_more)
        tell(relay, TERMINAL_NEXT, NULL, 0);
}

static bool is_allowed(int client)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

/* For reading, where it is a file; -1: it is not, or its user may not read it. */
static int open_again(int output)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/self/fd/%d", output);
    struct stat st;

    return output >= 0 && fstat(output, &st) == 0 && S_ISREG(st.st_mode)
               ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
               : -1;
}

static void greet(struct relay *relay)
{
    CLEANUP(close_fd) int output = open_again(relay->output);
    CLEANUP(close_fd) int error = open_again(relay->error);
    const struct terminal_hello hello = {.pty = relay->pty,
                                         .has_output = output >= 0,
                                         .has_error = error >= 0,
                                         .output_at = relay->start.output_at,
                                         .error_at = relay->start.error_at};
    char frame[1 + sizeof hello] = {TERMINAL_HELLO};
    int fds[2], count = 0;

    memcpy(frame + 1, &hello, sizeof hello);
    if (output >= 0)
        fds[count++] = output;
    if (error >= 0)
        fds[count++] = error;
    handed_send(relay->client, frame, sizeof frame, fds, (size_t)count, MSG_DONTWAIT);
}

static void let_go(struct relay *relay)
{
    close_fd(&relay->client);
    relay->client = -1;
}

/* The last one that comes is attached: the one before may hang somewhere. */
static void take_client(struct relay *relay)
{
    int client = accept4(relay->start.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (client < 0)
        return;
    if (!is_allowed(client)) {
        close(client);
        return;
    }
    kernel_refuse_descriptors(client);
    tell(relay, TERMINAL_TAKEN, NULL, 0);
    let_go(relay);
    relay->client = client;
    greet(relay);
    ask_for_input(relay);
}

/* A shell, an editor, a debugger: once the terminal was seen to give each key at once, or to another group of processes
 * than the job's first one, the user of the job types Ctrl-C as an ordinary key. */
static void look_at_keys(struct relay *relay)
{
    struct termios modes;

    if (relay->pty && !relay->reads_keys && tcgetattr(relay->master, &modes) == 0)
        relay->reads_keys =
            !(modes.c_lflag & ISIG) || !(modes.c_lflag & ICANON) || tcgetpgrp(relay->master) != relay->start.process;
}

/* ---- The job's input ---- */

static void close_input(struct relay *relay)
{
    if (!relay->pty)
        close_fd(&relay->input);
    relay->input = -1;
    relay->length = 0;
}

/* As much as the job takes now. */
static void feed(struct relay *relay)
{
    while (relay->length > 0) {
        ssize_t count = write(relay->input, relay->pending + relay->at, relay->length);
        if (count < 0 && errno == EAGAIN)
            return;
        if (count < 0 && errno != EINTR) { /* it does not read any more: neither do we */
            close_input(relay);
            return;
        }
        relay->at += count > 0 ? (size_t)count : 0;
        relay->length -= count > 0 ? (size_t)count : 0;
    }
    if (relay->no_more)
        close_input(relay);
    ask_for_input(relay);
}

/* Whether the key for an interrupt is among the bytes, and goes to a program for which it is no ordinary key. */
static bool interrupts(const struct relay *relay, const char *bytes, size_t length)
{
    struct termios modes;

    return relay->pty && !relay->reads_keys && tcgetattr(relay->master, &modes) == 0 &&
           memchr(bytes, modes.c_cc[VINTR], length);
}

static void take_input(struct relay *relay, const char *bytes, size_t length)
{
    bool interrupted;

    look_at_keys(relay);
    interrupted = interrupts(relay, bytes, length);
    if (relay->length > 0 || relay->input < 0 || relay->no_more) /* it was not asked for */
        return;
    memcpy(relay->pending, bytes, length);
    relay->at = 0;
    relay->length = length;
    feed(relay);
    if (interrupted)
        tell(relay, TERMINAL_INTERRUPTED, NULL, 0);
}

static void resize(const struct relay *relay, const char *bytes)
{
    struct terminal_size size;
    struct winsize now = {0};

    memcpy(&size, bytes, sizeof size);
    now.ws_row = size.rows;
    now.ws_col = size.columns;
    if (relay->pty)
        ioctl(relay->master, TIOCSWINSZ, &now);
}

static void take_frame(struct relay *relay)
{
    char frame[1 + TERMINAL_MOST];
    ssize_t length = recv(relay->client, frame, sizeof frame, MSG_DONTWAIT);
    const char *bytes = frame + 1;

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length <= 0) {
        let_go(relay);
        return;
    }
    length--;
    if (*frame == TERMINAL_INPUT && length > 0)
        take_input(relay, bytes, (size_t)length);
    else if (*frame == TERMINAL_SIZE && length == sizeof(struct terminal_size))
        resize(relay, bytes);
    else if (*frame == TERMINAL_SIGNAL && length == 1)
        kill(-relay->start.process, (unsigned char)*bytes);
    else if (*frame == TERMINAL_EOF && !relay->pty) {
        relay->no_more = true;
        feed(relay);
    }
}

/* ---- What the terminal shows ---- */

/* The client sees it in the output. What that does not take is sent, where the client reads. */
static void show(struct relay *relay, const char *bytes, size_t length)
{
    struct stat st;
    size_t written = 0;
    int unsent = 0;

    while (written < length) {
        ssize_t count = write(relay->output, bytes + written, length - written);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        written += (size_t)count;
    }
    if (fstat(relay->output, &st) < 0 || !S_ISREG(st.st_mode))
        written = 0;
    if (written < length && relay->client >= 0 && ioctl(relay->client, SIOCOUTQ, &unsent) == 0 && unsent < UNSENT_MOST)
        tell(relay, TERMINAL_TEXT, bytes + written, length - written);
}

/* False: nothing more is there now. */
static bool take_shown(struct relay *relay)
{
    char bytes[TERMINAL_MOST];
    ssize_t length = read(relay->master, bytes, sizeof bytes);

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (length <= 0) { /* hung up: the session's first process has ended */
        relay->master = relay->input = -1;
        relay->length = 0;
        return false;
    }
    look_at_keys(relay);
    show(relay, bytes, (size_t)length);
    return true;
}

/* ---- The loop ---- */

/* From here on the shepherd's descriptors are not ours. */
static void keep(struct relay_start *start)
{
    enum { CONTROL = 3, CHANNEL, LISTENER, REST };
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), *fds[] = {&start->control, &start->channel, &start->listener};

    for (int i = 0; i < 3; i++) {
        int away = fcntl(*fds[i], F_DUPFD_CLOEXEC, 64); /* none is in another's place */
        *fds[i] = away;
    }
    for (int i = 0; i < 3; i++) {
        dup2(nothing, i);
        dup2(*fds[i], CONTROL + i);
        *fds[i] = CONTROL + i;
    }
    kernel_close_from(REST, 0);
}

/* What the job's process has put into the channel. */
static void take_job(struct relay *relay)
{
    char what;
    int fds[2];

    while (handed_receive(relay->start.channel, &what, 1, fds, 2, MSG_DONTWAIT) == 1) {
        if (what == ATTACH_OUTPUTS) {
            relay->output = fds[0];
            relay->error = fds[1];
            continue;
        }
        relay->input = fds[0];
        relay->pty = what == ATTACH_TERMINAL; /* its slave stays open here: a job may close it, and open it again */
        relay->master = relay->pty ? fds[0] : -1;
        fcntl(fds[0], F_SETFL, fcntl(fds[0], F_GETFL) | O_NONBLOCK);
    }
    close_fd(&relay->start.channel);
}

/* A line of the shepherd's, for whoever sits at the terminal. False: the job has ended. */
static bool take_line(struct relay *relay)
{
    char text[256];
    ssize_t length = recv(relay->start.control, text, sizeof text, MSG_DONTWAIT);

    if (length > 0 && relay->pty)
        show(relay, text, (size_t)length);
    return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}

static void turn(struct relay *relay, bool *ended)
{
    struct pollfd ready[] = {{.fd = relay->start.control, .events = POLLIN},
                             {.fd = relay->start.listener, .events = POLLIN},
                             {.fd = relay->client, .events = POLLIN},
                             {.fd = relay->master, .events = POLLIN},
                             {.fd = relay->length > 0 ? relay->input : -1, .events = POLLOUT}};

    if (poll(ready, array_size(ready), -1) < 0)
        return;
    if (ready[3].revents)
        take_shown(relay);
    if (ready[4].revents && relay->input >= 0)
        feed(relay);
    if (ready[2].revents)
        take_frame(relay);
    if (ready[1].revents)
        take_client(relay);
    *ended = ready[0].revents && !take_line(relay);
}

void relay_run(const struct relay_start *start)
{
    static struct relay relay = {.output = -1, .error = -1, .input = -1, .master = -1, .client = -1};
    bool ended = false;

    relay.start = *start;
    keep(&relay.start);
    take_job(&relay);
    while (!ended)
        turn(&relay, &ended);
    for (int reads = 0; reads < DRAIN_READS && relay.master >= 0 && take_shown(&relay); reads++)
        ;
    if (relay.client < 0)
        take_client(&relay); /* it came as the job ended: it is shown what the job wrote */
    tell(&relay, TERMINAL_END, NULL, 0);
    _exit(EXIT_SUCCESS);
}
