/* The listening sockets. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "base/file.h"
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
        return error_set(err, EEXIST, "%s: is there and no socket: remove it, or listen elsewhere", path);
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

    return parent ? file_make_dirs(parent, geteuid() == 0 ? 0755 : 0700, err) : 0;
}

int http_listen(const char *path, int *listening, struct stat *made, struct error *err)
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
    if (chmod(address.sun_path, geteuid() == 0 ? 0666 : 0600) < 0 || listen(fd, SOMAXCONN) < 0 ||
        lstat(address.sun_path, made) < 0) {
        rc = error_set(err, errno, "%s: cannot listen there: %s", address.sun_path, strerror(errno));
        unlink(address.sun_path);
        return rc;
    }
    *listening = fd;
    fd = -1;
    return 0;
}

int http_listen_tcp(const char *text, int *listening, struct error *err)
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
    if (address.socket.ss_family == AF_INET6) /* what was named, and nothing beside it */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address.socket, address.length) < 0 || listen(fd, SOMAXCONN) < 0)
        return error_set(err, errno, "listen %s: cannot listen there: %s", text, strerror(errno));
    *listening = fd;
    fd = -1;
    return 0;
}

/* Only our own file: another server may have taken the place of one that was removed. */
void http_unlisten(const char *path, const struct stat *made)
{
    struct stat now;

    if (lstat(path, &now) == 0 && now.st_dev == made->st_dev && now.st_ino == made->st_ino)
        unlink(path);
}
