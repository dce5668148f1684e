/* The listening sockets. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/net/address.h"
#include "base/file.h"
#include "base/kernel/calls.h"
#include "base/trust/guarded.h"
#include "base/memory.h"
#include "http/http_internal.h"

/* Removes a socket file that a dead server left. Somebody listens unless connecting is refused. */
static int remove_stale(const char *path, const struct sockaddr_un *address, struct error *err)
{
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat st;

    if (fd < 0)
        return error_set(err, errno, "%s: no socket: %s", path, strerror(errno));
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : error_set(err, errno, "%s: %s", path, strerror(errno));
    if (!S_ISSOCK(st.st_mode))
        return error_set(err, EEXIST, "%s: is there and not a socket: remove it, or listen elsewhere", path);
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno == EAGAIN)
        return error_set(err, EADDRINUSE, "%s: another server listens there: stop it, or listen elsewhere", path);
    if (errno != ECONNREFUSED)
        return error_set(err, errno, "%s: cannot tell whether anybody listens there: %s", path, strerror(errno));
    if (unlink(path) < 0 && errno != ENOENT)
        return error_set(err, errno, "%s: cannot be replaced: %s", path, strerror(errno));
    return 0;
}

static int make_parent(const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    CLEANUP(free_ptr) char *parent = slash && slash != path ? xstrndup(path, (size_t)(slash - path)) : NULL;

    int rc = parent ? file_make_dirs(parent, geteuid() == 0 ? 0755 : 0700, err) : 0;
    CLEANUP(close_fd) int fd = -1;
    struct error why;
    struct stat st;

    if (rc || !parent)
        return rc;
    fd = guarded_directory(parent, O_PATH, &why);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_set(err, fd < 0 ? fd : errno, "the directory '%s' of the socket cannot be used: %s", parent,
                         fd < 0 ? why.text : strerror(errno));
    if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH)
        return error_set(err, EPERM,
                         "the directory '%s' of the socket belongs to uid %u, with mode %04o: somebody else can put "
                         "another socket there: listen elsewhere",
                         parent, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
    return 0;
}

static int listen_unix(const char *path, int *listening, struct stat *made, struct error *err)
{
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    int rc;

    if (fd < 0)
        return error_set(err, errno, "%s: no socket: %s", path, strerror(errno));
    if (!length || length >= sizeof address.sun_path)
        return error_set(err, ENAMETOOLONG,
                         "%s: a socket's path has 1 to %zu bytes, this has %zu: choose a shorter one", path,
                         sizeof address.sun_path - 1, length);
    memcpy(address.sun_path, path, length + 1);
    rc = make_parent(path, err);
    if (rc)
        return rc;
    rc = remove_stale(path, &address, err);
    if (rc)
        return rc;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return error_set(err, errno, "%s: cannot listen there: %s", address.sun_path, strerror(errno));
    /* Nobody can connect before listen(), so nobody meets the mode that the umask gave. */
    if (chmod(address.sun_path, geteuid() == 0 ? 0666 : 0600) < 0 || listen(fd, HTTP_BACKLOG) < 0 ||
        lstat(address.sun_path, made) < 0) {
        rc = error_set(err, errno, "%s: cannot listen there: %s", address.sun_path, strerror(errno));
        unlink(address.sun_path);
        return rc;
    }
    *listening = fd;
    fd = -1;
    return 0;
}

static int listen_tcp(const char *text, int *listening, struct error *err)
{
    CLEANUP(close_fd) int fd = -1;
    struct address address;
    const int yes = 1;

    if (address_parse(text, &address) != 0)
        return error_set(err, EINVAL, "listen '%s': write an IP address and a port, as 127.0.0.1:8471", text);
    fd = socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(err, errno, "listen %s: no socket: %s", text, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (address.socket.ss_family == AF_INET6) /* the named addresses, and nothing beside them */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address.socket, address.length) < 0 || listen(fd, HTTP_BACKLOG) < 0)
        return error_set(err, errno, "listen %s: cannot listen there: %s", text, strerror(errno));
    *listening = fd;
    fd = -1;
    return 0;
}

/* ---- Inherited ones ---- */

/* A kernel's address in the place's name. */
static void name_place(const struct sockaddr_storage *address, socklen_t length, struct http_place *place)
{
    const struct sockaddr_un *local = (const struct sockaddr_un *)address;
    struct address remote = {.socket = *address, .length = length};
    size_t size = length > offsetof(struct sockaddr_un, sun_path) ? length - offsetof(struct sockaddr_un, sun_path) : 0;

    if (address->ss_family != AF_UNIX) {
        place->exposed = !address_is_loopback(&remote);
        address_format(&remote, place->name);
    } else if (size && !local->sun_path[0]) {
        snprintf(place->name, sizeof place->name, "@%.*s", (int)size - 1, local->sun_path + 1);
    } else {
        snprintf(place->name, sizeof place->name, "%.*s", (int)size, local->sun_path);
    }
}

/* A daemon that is not root's serves its own user alone: no other user may reach it. */
static int check_private(const struct http_place *place, struct error *err)
{
    struct stat st;

    if (geteuid() == 0)
        return 0;
    if (*place->name == '/' && lstat(place->name, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 077))
        return 0;
    return error_set(err, EPERM,
                     "%s: others can connect to this inherited socket, and only root can serve them: give it "
                     "SocketMode=0600 and a path",
                     place->name);
}

static int get_option(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

static int adopt(struct listener *listener, struct error *err)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    struct http_place place = {0};
    int domain = get_option(listener->fd, SO_DOMAIN), flags = fcntl(listener->fd, F_GETFL);

    if (domain < 0 || flags < 0 || getsockname(listener->fd, (struct sockaddr *)&address, &length) < 0)
        return error_set(err, errno, "inherited descriptor %d: %s: check the socket unit", listener->fd,
                         strerror(errno));
    if ((domain != AF_UNIX && domain != AF_INET && domain != AF_INET6) ||
        get_option(listener->fd, SO_TYPE) != SOCK_STREAM || get_option(listener->fd, SO_ACCEPTCONN) != 1)
        return error_set(err, EINVAL,
                         "inherited descriptor %d is not a stream socket, Unix or TCP, that listens: use "
                         "ListenStream= and Accept=no",
                         listener->fd);
    listener->tcp = domain != AF_UNIX;
    name_place(&address, length, &place);
    if (fcntl(listener->fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return error_set(err, errno, "%s: inherited, and cannot be waited on: %s", place.name, strerror(errno));
    return listener->tcp ? 0 : check_private(&place, err);
}

/* ---- All of them ---- */

static struct listener *add(struct http_server *server, int fd, bool tcp, bool inherited)
{
    struct listener *listener = &server->listeners[server->listener_count++];

    *listener = (struct listener){.server = server, .fd = fd, .tcp = tcp, .inherited = inherited};
    kernel_refuse_descriptors(fd); /* descriptors.c */
    return listener;
}

static bool has(const struct http_server *server, bool tcp)
{
    for (unsigned i = 0; i < server->listener_count; i++)
        if (server->listeners[i].tcp == tcp)
            return true;
    return false;
}

static int adopt_all(struct http_server *server, struct error *err)
{
    const unsigned count = server->options.inherited_count;
    int rc = 0;

    for (unsigned i = 0; i < count; i++) { /* all are ours to close */
        int fd = server->options.inherited + (int)i;

        if (i < HTTP_MAX_INHERITED)
            add(server, fd, false, true);
        else
            close_fd(&fd);
    }
    if (count > HTTP_MAX_INHERITED)
        return error_set(err, E2BIG, "%u sockets are inherited: at most %d are served", count, HTTP_MAX_INHERITED);
    for (unsigned i = 0; i < server->listener_count && !rc; i++)
        rc = adopt(&server->listeners[i], err);
    return rc;
}

int http_listen(struct http_server *server, struct error *err)
{
    const struct http_options *options = &server->options;
    int fd = -1, rc = adopt_all(server, err);

    if (!rc && !has(server, false)) {
        rc = listen_unix(options->socket_path, &fd, &server->socket, err);
        if (!rc)
            add(server, fd, false, false);
    }
    if (!rc && has(server, true) && !options->token_file)
        rc = error_set(err, EINVAL, "an inherited socket is one for TCP, which needs a token: set `token_file`");
    if (!rc && (has(server, true) || options->tcp_address))
        rc = token_read(options->token_file, &server->token, err);
    if (!rc && options->tcp_address && !has(server, true)) {
        rc = listen_tcp(options->tcp_address, &fd, err);
        if (!rc)
            add(server, fd, true, false);
    }
    return rc;
}

/* The new socket takes the old one's descriptor, so that whoever knows that goes on with it. */
static int listen_in_place(struct http_server *server, struct listener *listener, struct error *err)
{
    int fd = -1, rc = listen_unix(server->socket_path, &fd, &server->socket, err);

    if (rc)
        return rc;
    kernel_refuse_descriptors(fd); /* descriptors.c */
    uv_poll_stop(&listener->poll); /* the kernel forgets what was waited for on a socket that is closed */
    if (dup3(fd, listener->fd, O_CLOEXEC) < 0)
        rc = error_set(err, errno, "%s: cannot listen there: %s", server->socket_path, strerror(errno));
    close_fd(&fd);
    http_listen_on(server);
    return rc;
}

int http_server_heal(struct http_server *server, struct error *err)
{
    struct stat now;
    int rc = 0;

    if (server->socket.st_ino == 0 || lstat(server->socket_path, &now) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return 0;
    for (unsigned i = 0; i < server->listener_count && !rc; i++)
        if (!server->listeners[i].tcp && !server->listeners[i].inherited)
            rc = listen_in_place(server, &server->listeners[i], err);
    return rc ? rc : 1;
}

void http_unlisten(struct http_server *server)
{
    const struct stat *made = &server->socket;
    struct stat now;

    /* Only the file that we made: the socket may be inherited, or another server's by now. */
    if (lstat(server->socket_path, &now) == 0 && now.st_dev == made->st_dev && now.st_ino == made->st_ino)
        unlink(server->socket_path);
    for (unsigned i = 0; i < server->listener_count; i++)
        http_close_listener(server, &server->listeners[i]);
}

bool http_server_place(const struct http_server *server, unsigned number, struct http_place *place)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;

    if (number >= server->listener_count)
        return false;
    *place =
        (struct http_place){.inherited = server->listeners[number].inherited, .tcp = server->listeners[number].tcp};
    if (getsockname(server->listeners[number].fd, (struct sockaddr *)&address, &length) == 0)
        name_place(&address, length, place);
    return true;
}
