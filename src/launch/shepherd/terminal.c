#include "launch/shepherd/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "launch/shepherd/relay.h"
#include "launch/shepherd/shepherd.h"
#include "launch/terminal.h"

#define END_LIMIT_MS 5000 /* for the relay: the file system of the output may not answer */

int terminal_open(struct shepherd *s, struct error *err)
{
    int fd = s->request.attach ? terminal_listen(s->request.terminal_socket, s->request.uid, s->request.gid, err) : 0;

    if (fd > 0)
        s->terminal.listener = fd;
    return fd < 0 ? fd : 0;
}

static void run(const struct shepherd *s, int control, int channel)
{
    const struct relay_start start = {.control = control,
                                      .channel = channel,
                                      .listener = s->terminal.listener,
                                      .process = s->process,
                                      .output_at = s->output.size,
                                      .error_at = s->error.size};

    prctl(PR_SET_NAME, "carma-terminal");
    if (child_become_user(&s->request, NULL) == 0)
        relay_run(&start);
    _exit(EXIT_FAILURE);
}

void terminal_begin(struct shepherd *s, int channel)
{
    int ends[2] = {-1, -1};

    if (s->terminal.listener < 0 || channel < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return; /* the job finds that nobody is at the other end */
    s->tree.spared = ending_fork_helper();
    if (s->tree.spared == 0)
        run(s, ends[1], channel);
    close(ends[1]);
    s->terminal.control = ends[0];
    close_fd(&s->terminal.listener); /* it is the relay's from here on */
    s->terminal.listener = -1;
}

void terminal_say(const struct shepherd *s, const char *text)
{
    if (s->terminal.control >= 0)
        send(s->terminal.control, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void terminal_end(struct shepherd *s)
{
    struct pollfd ended = {.fd = s->terminal.control, .events = POLLIN};

    close_fd(&s->terminal.listener);
    s->terminal.listener = -1;
    if (s->terminal.control < 0)
        return;
    shutdown(s->terminal.control, SHUT_WR);
    while (poll(&ended, 1, END_LIMIT_MS) < 0 && errno == EINTR)
        ;
    close_fd(&s->terminal.control);
    s->terminal.control = -1;
    if (s->tree.spared > 0)
        kill(s->tree.spared, SIGKILL);
    s->tree.spared = 0;
}

void terminal_remove(const struct shepherd_request *request)
{
    if (request->terminal_socket)
        unlink(request->terminal_socket);
}
