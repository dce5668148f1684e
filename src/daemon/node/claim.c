#include "daemon/node/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/kernel/calls.h"
#include "base/memory.h"

#define GROUPS 256 /* of a holder, which are looked at */
#define ROW    64  /* of connections, which nobody accepts: who connects has seen whose it is */

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
    kernel_refuse_descriptors(fd);
    if (bind(fd, (const struct sockaddr *)&address, length) == 0 && listen(fd, ROW) == 0)
        return fd;
    code = -errno;
    close_fd(&fd);
    return code;
}

bool claim_may_use(const struct stat *node, uid_t uid, const gid_t *groups, size_t count)
{
    const mode_t both = S_IROTH | S_IWOTH;
    int shift = uid == node->st_uid ? 6 : 0;

    for (size_t i = 0; i < count && !shift; i++)
        shift = groups[i] == node->st_gid ? 3 : 0;
    return (node->st_mode >> shift & both) == both;
}

/* By the groups that the holder had when it made its claim, at the other end of the connection. */
static bool is_user_of_gpu(int fd, int32_t minor, const struct ucred *owner)
{
    CLEANUP(free_ptr) char *path = xasprintf("/dev/nvidia%" PRId32, minor);
    gid_t groups[1 + GROUPS] = {owner->gid};
    socklen_t size = GROUPS * sizeof *groups;
    struct stat node;

    if (owner->uid == 0 || owner->uid == geteuid())
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &size) < 0)
        size = 0;
    return stat(path, &node) == 0 && claim_may_use(&node, owner->uid, groups, 1 + size / sizeof *groups);
}

bool claim_holder_of(const char *uuid, int32_t minor, struct claim_holder *holder)
{
    struct sockaddr_un address;
    socklen_t length = address_of(uuid, &address), size = sizeof(struct ucred);
    struct ucred owner;
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    kernel_refuse_descriptors(fd);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, length) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) < 0 || !is_user_of_gpu(fd, minor, &owner))
        return false;
    *holder = (struct claim_holder){.pid = owner.pid, .uid = owner.uid};
    return true;
}
