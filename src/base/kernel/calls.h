/* Calls of the kernel that the glibc of an older system has no function for: script/bundle builds for 2.28. Its kernel
 * may lack them, too, and answers ENOSYS. */
#ifndef CARMA_BASE_KERNEL_CALLS_H
#define CARMA_BASE_KERNEL_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define CLOSE_AT_EXEC 4  /* CLOSE_RANGE_CLOEXEC of linux/close_range.h */
#define PASS_RIGHTS   83 /* SO_PASSRIGHTS of asm-generic/socket.h */

/* A descriptor of the process, or -1 with errno. */
static inline int kernel_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* The Unix socket takes no descriptors, nor do those that it accepts (Linux 6.16; an older kernel takes them). A
 * hostile sender can make the closing of a descriptor take any time. Whoever reads from the socket, or closes it, waits
 * for it. */
static inline void kernel_refuse_descriptors(int fd)
{
    const int no = 0;

    (void)setsockopt(fd, SOL_SOCKET, PASS_RIGHTS, &no, sizeof no);
}

/* 0, or -1 with errno. */
static inline int kernel_pidfd_signal(int fd, int signal_number)
{
    return (int)syscall(SYS_pidfd_send_signal, fd, signal_number, NULL, 0);
}

/* Closes all descriptors from `first` on; with CLOSE_AT_EXEC an exec closes them. 0, or -1 with errno. */
static inline int kernel_close_from(int first, unsigned flags)
{
    int rc = (int)syscall(SYS_close_range, first, ~0U, flags);

    if (rc == 0 || errno != ENOSYS)
        return rc;
    for (long fd = first; fd < sysconf(_SC_OPEN_MAX); fd++) {
        if (flags & CLOSE_AT_EXEC)
            fcntl((int)fd, F_SETFD, FD_CLOEXEC);
        else
            close((int)fd);
    }
    return 0;
}

#endif
