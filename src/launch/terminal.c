#include "launch/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#define BACKLOG 16

bool terminal_parse(const char *attach, struct terminal_size *size)
{
    unsigned rows, columns;

    if (sscanf(attach, "pty:%ux%u", &rows, &columns) != 2)
        return false;
    *size = (struct terminal_size){.rows = (uint16_t)rows, .columns = (uint16_t)columns};
    return true;
}

/* By a descriptor of the directory, so that the path may be longer than an address of a socket. */
static int address_of(const char *path, struct sockaddr_un *address, int *directory)
{
    const char *name = file_base_name(path);
    CLEANUP(free_ptr) char *parent = xstrndup(path, (size_t)(name - path));
    int length;

    *directory = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*directory < 0)
        return -errno;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    length = snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", *directory, name);
    return length < (int)sizeof address->sun_path ? 0 : -ENAMETOOLONG;
}

static int open_socket(const char *path, struct sockaddr_un *address, int *directory, int flags)
{
    int code = address_of(path, address, directory), fd;

    if (code < 0)
        return code;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    return fd < 0 ? -errno : fd;
}

int terminal_listen(const char *path, uid_t uid, gid_t gid, struct error *err)
{
    CLEANUP(close_fd) int directory = -1;
    struct sockaddr_un address;
    CLEANUP(close_fd) int fd = open_socket(path, &address, &directory, SOCK_NONBLOCK);

    unlink(path); /* of a shepherd that was killed there may be one */
    /* nobody else can put a name there */
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, 0600) < 0 ||
        (uid != geteuid() && chown(path, uid, gid) < 0) || listen(fd, BACKLOG) < 0)
        return error_set(err, fd < 0 ? -fd : errno, "cannot make the socket of its terminal, '%s': %s", path,
                         strerror(fd < 0 ? -fd : errno));
    int listening = fd;
    fd = -1;
    return listening;
}

int terminal_connect(const char *path, struct error *err)
{
    CLEANUP(close_fd) int directory = -1;
    struct sockaddr_un address;
    CLEANUP(close_fd) int fd = open_socket(path, &address, &directory, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return error_set(err, fd < 0 ? -fd : errno, "its terminal '%s' cannot be reached: %s", path,
                         strerror(fd < 0 ? -fd : errno));
    int connected = fd;
    fd = -1;
    return connected;
}

int terminal_send(int fd, enum terminal_frame type, const void *bytes, size_t length)
{
    char head = (char)type;
    struct iovec parts[] = {{.iov_base = &head, .iov_len = 1},
                            {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}
