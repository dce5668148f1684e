#include "client/connect.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/net/address.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/net/tcp_peer.h"
#include "config/config.h"

#define TCP_PREFIX      "tcp://"
#define CONNECT_STEP_MS 1
#define CONNECT_MOST_MS 100

const char *connect_tcp_of(const char *place)
{
    return strncmp(place, TCP_PREFIX, strlen(TCP_PREFIX)) == 0 ? place + strlen(TCP_PREFIX) : NULL;
}

static int nobody_there(const char *place, struct error *err)
{
    if (geteuid() != 0 && strcmp(place, CONFIG_SYSTEM_SOCKET) == 0)
        return error_set(err, ECONNREFUSED,
                         "%s: no daemon listens there: ask this machine's administrator (systemctl start carmad)",
                         place);
    return error_set(err, ECONNREFUSED,
                     "%s: no daemon listens there: start it with `carmad`, or name its socket in CARMA_SOCKET", place);
}

/* Whoever may write the socket's directory could listen there, as any user can at a port of this machine. He would be
 * sent the environments of jobs, and the token. */
static int check_listener(const char *path, uid_t uid, struct error *err)
{
    if (uid == 0 || uid == geteuid())
        return 0;
    if (geteuid() == 0) /* for a user's own daemon it has that user's rights, and gives him nothing */
        return error_set(err, EPERM,
                         "%s: uid %u listens there, not root: name another socket in CARMA_SOCKET, or, for this user's "
                         "own daemon, be this user: sudo -u '#%u' carma ...",
                         path, (unsigned)uid, (unsigned)uid);
    return error_set(err, EPERM,
                     "%s: uid %u listens there, which is neither root nor you: name another socket in CARMA_SOCKET",
                     path, (unsigned)uid);
}

static int connect_unix(const char *path, int fd, int64_t deadline_ns, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred listener = {0};
    socklen_t size = sizeof listener;
    size_t length = strlen(path);
    int step_ms = CONNECT_STEP_MS;

    if (!length || length >= sizeof address.sun_path)
        return error_set(err, ENAMETOOLONG, "%s: a socket's path has 1 to %zu bytes, this has %zu: check CARMA_SOCKET",
                         path, sizeof address.sun_path - 1, length);
    memcpy(address.sun_path, path, length + 1);
    while (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
            return nobody_there(path, err);
        if (errno != EAGAIN && errno != EINTR) /* EAGAIN: the daemon has not accepted those before us yet */
            return error_set(err, errno, "%s: cannot connect: %s", path, strerror(errno));
        if (nodetime_monotonic_wall_ns() >= deadline_ns)
            return -ETIMEDOUT;
        poll(NULL, 0, step_ms); /* longer and longer: a thousand that wait must leave the daemon time to accept them */
        step_ms = step_ms * 2 < CONNECT_MOST_MS ? step_ms * 2 : CONNECT_MOST_MS;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &size) < 0)
        return error_set(err, errno, "%s: cannot tell who listens there: %s", path, strerror(errno));
    return check_listener(path, listener.uid, err);
}

/* Once it has been accepted: before that it is nobody's, and the one who listens now need not be the one who accepts.
 */
static int check_accepted(const char *place, int fd, int64_t deadline_ns, struct error *err)
{
    struct sockaddr_storage peer, own;
    int step_ms = CONNECT_STEP_MS, rc;
    uid_t uid;

    if (!tcp_peer_is_near(fd, &peer, &own))
        return 0;
    while ((rc = tcp_peer_owner(&peer, &own, &uid)) == -ENOENT) {
        if (nodetime_monotonic_wall_ns() >= deadline_ns)
            return -ETIMEDOUT;
        poll(NULL, 0, step_ms);
        step_ms = step_ms * 2 < CONNECT_MOST_MS ? step_ms * 2 : CONNECT_MOST_MS;
    }
    return rc ? 0 : check_listener(place, uid, err); /* a kernel that says nothing: as to another machine */
}

static int connect_tcp(const char *place, const struct address *address, int fd, int64_t deadline_ns, struct error *err)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    socklen_t size = sizeof(int);
    int code = 0;

    if (connect(fd, (const struct sockaddr *)&address->socket, address->length) < 0) {
        if (errno != EINPROGRESS && errno != EINTR)
            return errno == ECONNREFUSED ? nobody_there(place, err)
                                         : error_set(err, errno, "%s: cannot connect: %s", place, strerror(errno));
        do
            if (nodetime_monotonic_wall_ns() >= deadline_ns)
                return -ETIMEDOUT;
        while (poll(&ready, 1, CONNECT_STEP_MS) <= 0);
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
            code = errno;
    }
    if (code == ECONNREFUSED)
        return nobody_there(place, err);
    return code ? error_set(err, code, "%s: cannot connect: %s", place, strerror(code)) : 0;
}

int connect_to(const char *place, int64_t deadline_ns, int *connected, struct error *err)
{
    const char *tcp = connect_tcp_of(place);
    CLEANUP(close_fd) int fd = -1;
    struct address address = {.socket.ss_family = AF_UNIX};
    int rc;

    if (tcp && address_parse(tcp, &address) != 0)
        return error_set(err, EINVAL, "%s: write an IP address and a port, as tcp://127.0.0.1:8471", place);
    fd = socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(err, errno, "no socket: %s", strerror(errno));
    rc = tcp ? connect_tcp(place, &address, fd, deadline_ns, err) : connect_unix(place, fd, deadline_ns, err);
    if (!rc && tcp)
        rc = check_accepted(place, fd, deadline_ns, err);
    if (rc)
        return rc;
    *connected = fd;
    fd = -1;
    return 0;
}
