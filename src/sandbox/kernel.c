#include "sandbox/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

int kernel_close_mount(const char *path, bool and_below)
{
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};

    return syscall(SYS_mount_setattr, AT_FDCWD, path, and_below ? AT_RECURSIVE : 0, &attributes, sizeof attributes) < 0
               ? -errno
               : 0;
}

int kernel_clone_mount(const char *path)
{
    long fd = syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    return fd < 0 ? -errno : (int)fd;
}

int kernel_allow_device(int clone_fd)
{
    struct mount_attr attributes = {.attr_clr = MOUNT_ATTR_NODEV};

    return syscall(SYS_mount_setattr, clone_fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0 ? -errno : 0;
}

int kernel_attach(int clone_fd, const char *target)
{
    return syscall(SYS_move_mount, clone_fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

int kernel_pivot_here(void)
{
    return syscall(SYS_pivot_root, ".", ".") < 0 ? -errno : 0;
}
