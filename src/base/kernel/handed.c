#include "base/kernel/handed.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(HANDED_MOST * sizeof(int))];
};

int handed_send(int socket, const void *bytes, size_t length, const int *fds, size_t count, int flags)
{
    union control control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (count) {
        control.head.cmsg_len = CMSG_LEN(count * sizeof *fds);
        memcpy(CMSG_DATA(&control.head), fds, count * sizeof *fds);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0 ? -errno : 0;
}

ssize_t handed_receive(int socket, void *bytes, size_t room, int *fds, size_t count, int flags)
{
    union control control;
    struct iovec part = {.iov_base = bytes, .iov_len = room};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(count * sizeof *fds)}; /* with padding another would fit in */
    ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
    const struct cmsghdr *head = length < 0 ? NULL : CMSG_FIRSTHDR(&message);

    for (size_t i = 0; i < count; i++)
        fds[i] = -1;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
    return length;
}
