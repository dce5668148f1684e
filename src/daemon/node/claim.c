#include "daemon/node/claim.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"

#define ROW 64 /* of connections, which nobody accepts: who connects has seen whose it is */

static socklen_t address_of(const char *uuid, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX}; /* the name begins with a null byte: it is no path */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "carma-gpu-%.60s", uuid));
}

int claim_gpu(const char *uuid)
{
    struct sockaddr_un address;
    socklen_t length = address_of(uuid, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), code;

    if (fd < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *)&address, length) == 0 && listen(fd, ROW) == 0)
        return fd;
    code = -errno;
    close_fd(&fd);
    return code;
}

struct claim_holder claim_holder_of(const char *uuid)
{
    struct sockaddr_un address;
    socklen_t length = address_of(uuid, &address), size = sizeof(struct ucred);
    struct ucred owner = {0};
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, length) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) < 0)
        return (struct claim_holder){0};
    return (struct claim_holder){.pid = owner.pid, .uid = owner.uid};
}
