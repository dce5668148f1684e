/* Files and directories whose names another user may have put there before: an output in /tmp, a checkpoint directory
 * in a shared one, the directory of a socket. The path is walked name by name, each on a descriptor, with the rights of
 * the caller. Trusted are the caller's effective user and root. A directory that others can write is one that belongs
 * to neither, or that its group or everybody may write. No setting of the kernel (fs.protected_*) is relied on.
 *
 * Every function returns a negative errno, and an error without the path: the caller says what the path is for. -EPERM
 * is a refusal by these rules. */
#ifndef CARMA_BASE_TRUST_GUARDED_H
#define CARMA_BASE_TRUST_GUARDED_H

#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

/* open(2) of a file for writing; O_NOFOLLOW, O_CLOEXEC and O_NOCTTY are added. A link is followed where it is of a
 * trusted user, or in a directory that others cannot write. What is there already must be of a trusted user. In a
 * directory that others can write it must not have a second name. It is truncated (O_TRUNC) after these checks. */
int guarded_open(const char *path, int flags, mode_t mode, struct error *err);

/* The same for a stream, made with mode 0666 or emptied; NULL: err. */
FILE *guarded_fopen(const char *path, struct error *err);

/* Opens a directory to go there; `flags` are O_PATH or O_RDONLY. Of links as above, and those of a directory's owner
 * where he alone can write it: its user named that owner's directory. */
int guarded_directory(const char *path, int flags, struct error *err);

/* Whether the caller's user owns what the descriptor is, and nobody else may write it. */
int guarded_check_own(int fd, struct error *err);

/* Opens a directory that must be the caller's own, and gives it `mode`. */
int guarded_own_directory(const char *path, mode_t mode, struct error *err);

#endif
