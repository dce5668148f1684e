/* Descriptors that a client sends along (SCM_RIGHTS), which nobody here wants. The kernel closes them in the call that
 * reads the bytes they came with, or in the one that closes the connection; and that call waits for as long as the
 * sender has seen to: a socket that lingers, a file on a file system that does not answer. One thread serves everybody.
 * So
 *  - the listening sockets refuse them, where the kernel can (SO_PASSRIGHTS, Linux 6.16);
 *  - elsewhere recv(2), by which libmicrohttpd reads, is ours: a function of the program goes before one of the C
 * library. It looks before it reads, and where there are descriptors the connection is broken;
 *  - a connection is closed when nothing more can come, and all that came was looked at. Where there are descriptors, a
 *    child holds the connection, and closes it by its end: the end of a process does not linger (PF_EXITING). The loop
 *    waits for each child to begin, so there is one for all the connections of a while. Until then we hold them. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/memory.h"
#include "http/http_internal.h"

#define GATHER_MS 100
#define MANY      256 /* these do not wait for so long: we have no endless number of descriptors */

struct holder {
    uv_process_t process;
    struct holder *prev, *next;
};

void http_see_all(int fd)
{
    const int yes = 1;

    setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &yes, sizeof yes); /* else urgent bytes are dropped unseen */
}

/* Bytes that can be read without any descriptor; -EPROTO: there are some next. */
static ssize_t look(int fd, void *buffer, size_t size, int flags)
{
    struct iovec part = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t count = recvmsg(fd, &message, flags | MSG_PEEK);

    if (count < 0)
        return -errno;
    return message.msg_flags & MSG_CTRUNC ? -EPROTO : count; /* no room was given for them */
}

/* Reads what was looked at and no more: the next byte may come with descriptors. */
__attribute__((visibility("default"))) ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
    ssize_t count = look(fd, buffer, size, flags);

    if (count > 0 && !(flags & MSG_PEEK))
        count = recvfrom(fd, buffer, (size_t)count, flags, NULL, NULL);
    else if (count < 0)
        errno = count == -EPROTO ? ECONNRESET : (int)-count;
    return count < 0 ? -1 : count;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void let_go(struct http_server *server, struct holder *holder)
{
    DL_DELETE(server->holders, holder);
    holder->process.data = holder;
    uv_close((uv_handle_t *)&holder->process, on_closed);
}

static void on_end(uv_process_t *process, int64_t status, int signal_number)
{
    (void)status, (void)signal_number;
    let_go(process->data, (struct holder *)process); /* its first member */
}

/* To a child that ends at once. Whoever had them beside us has closed them by now. */
static bool pass_on(struct http_server *server)
{
    struct holder *holder = xcalloc(1, sizeof *holder);
    uv_stdio_container_t *ends = xcalloc(server->held_count, sizeof *ends);
    char *arguments[] = {(char[]){"sleep"}, (char[]){"100"}, NULL};
    const uv_process_options_t options = {.exit_cb = on_end,
                                          .file = *arguments,
                                          .args = arguments,
                                          .stdio = ends,
                                          .stdio_count = (int)server->held_count};
    int code;

    for (size_t i = 0; i < server->held_count; i++)
        ends[i] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = server->held[i]};
    code = uv_spawn(server->options.loop, &holder->process, &options);
    free(ends);
    holder->process.data = server;
    DL_APPEND(server->holders, holder);
    if (code < 0) {
        let_go(server, holder);
        return false;
    }
    while (server->held_count > 0)
        close(server->held[--server->held_count]);
    uv_process_kill(&holder->process, SIGKILL);
    return true;
}

void http_on_held(uv_timer_t *timer)
{
    if (!pass_on(timer->data))
        uv_timer_start(timer, http_on_held, GATHER_MS, 0);
}

static void hold(struct http_server *server, int fd)
{
    int held = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (held < 0)
        return;
    array_reserve(server->held, server->held_capacity, server->held_count + 1);
    server->held[server->held_count++] = held;
    if (!server->closing && (server->held_count == 1 || server->held_count == MANY))
        uv_timer_start(&server->held_timer, http_on_held, server->held_count == 1 ? GATHER_MS : 0, 0);
}

void http_before_close(struct http_server *server, int fd)
{
    char bytes[4096];
    ssize_t count;

    shutdown(fd, SHUT_RDWR);
    while ((count = look(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        recvfrom(fd, bytes, (size_t)count, MSG_DONTWAIT, NULL, NULL);
    if (count == -EPROTO)
        hold(server, fd);
}

void http_close(struct http_server *server, int fd)
{
    http_before_close(server, fd);
    close(fd);
}

void http_close_listener(struct http_server *server, struct listener *listener)
{
    if (!listener->inherited) {
        shutdown(listener->fd, SHUT_RDWR);
        for (int fd; (fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
            http_close(server, fd);
    }
    close_fd(&listener->fd);
}

void http_let_go(struct http_server *server)
{
    if (server->held_count > 0)
        pass_on(server); /* else our own end closes them */
    while (server->holders)
        let_go(server, server->holders);
    free(server->held);
}
