/* The kernel's newer calls on mounts (Linux 5.12), which C libraries before 2.36 do not have. All return 0 or a
 * negative errno. */
#ifndef CARMA_SANDBOX_KERNEL_H
#define CARMA_SANDBOX_KERNEL_H

#include <stdbool.h>

/* Nothing on these mounts can be written, has a set-user-ID bit that counts, or is a device. They are the mount of
 * `path`, or also all below it. */
int kernel_close_mount(const char *path, bool and_below);

/* A copy of the mount at `path` as a descriptor, with all that is mounted below it; or a negative errno. */
int kernel_clone_mount(const char *path);

/* Lets the copied file be the device that it is. */
int kernel_allow_device(int clone_fd);

int kernel_attach(int clone_fd, const char *target);

int kernel_pivot_here(void); /* the current directory becomes the root, and the old root is on top of it */

#endif
