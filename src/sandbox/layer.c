#include "sandbox/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "sandbox/rights.h"

static bool user_may(int original, int mode)
{
    return syscall(SYS_faccessat2, original, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

/* All mounts are read-only by then. Of a read-only mount the kernel says so last; but of a read-only file system it
 * does before it looks at modes and owners, so that what the user may read is asked by itself. */
bool layer_may_be_written(int original)
{
    return user_may(original, R_OK | X_OK) && (user_may(original, W_OK) || errno == EROFS);
}

/* The layer has the mode and the group of the original, but its owner is the user: he cannot give files to others. */
static int make_layer(struct layers *layers, int original, char **upper, char **work)
{
    struct stat st;

    *upper = xasprintf(LAYERS_PLACE "/upper-%u", layers->count);
    *work = xasprintf(LAYERS_PLACE "/work-%u", layers->count++);
    if (fstat(original, &st) < 0 || mkdir(*upper, 0700) < 0 || mkdir(*work, 0700) < 0)
        return -errno;
    if (chown(*upper, (uid_t)-1, st.st_gid) < 0 && errno != EPERM && errno != EINVAL)
        return -errno;
    return chmod(*upper, st.st_mode & 07777) < 0 ? -errno : 0;
}

static const char *more(const struct layers *layers)
{
    return layers->own_users ? ",userxattr" : ",redirect_dir=on"; /* so a directory can be renamed */
}

static int mount_overlay(const char *target, unsigned long flags, const char *options)
{
    return mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV | flags, options) < 0 ? -errno : 0;
}

/* Empty, with the rights that the user has in the original. */
static int make_top(int original, const char *top)
{
    struct stat st;

    if (fstat(original, &st) < 0 || mkdir(top, 0700) < 0)
        return -errno;
    st.st_mode &= 077;
    st.st_mode |= (user_may(original, R_OK) ? S_IRUSR : 0) | (user_may(original, X_OK) ? S_IXUSR : 0);
    return chmod(top, st.st_mode) < 0 ? -errno : 0;
}

/* An overlay has two parts at least. In a user namespace the original is the lower one: in any other, the kernel reads
 * attributes of each directory that is looked up, and refuses one that the user may enter and not list. */
static int place_read_only(struct layers *layers, int original, const char *target)
{
    CLEANUP(free_ptr) char *top = xasprintf(LAYERS_PLACE "/top-%u", layers->count++);
    CLEANUP(free_ptr)
    char *options = layers->own_users
                        ? xasprintf("lowerdir=%s:/proc/self/fd/%d%s", top, original, more(layers))
                        : xasprintf("lowerdir=/proc/self/fd/%d:" LAYERS_EMPTY "%s", original, more(layers));
    int rc = layers->own_users ? make_top(original, top) : 0;

    return rc < 0 ? rc : mount_overlay(target, MS_RDONLY, options);
}

static int place_writable(struct layers *layers, int original, const char *lower, const char *target, struct error *err)
{
    CLEANUP(free_ptr) char *upper = NULL, *work = NULL, *options = NULL;
    int rc = make_layer(layers, original, &upper, &work);

    if (rc < 0 || (rc = rights_of_layers(true, err)) < 0)
        return rc;
    options = xasprintf("lowerdir=%s,upperdir=%s,workdir=%s%s", lower, upper, work, more(layers));
    rc = mount_overlay(target, 0, options);
    return rights_of_layers(false, err) < 0 ? -EPERM : rc;
}

int layer_place(struct layers *layers, int original, const char *target, bool writable, struct error *err)
{
    CLEANUP(free_ptr) char *opened = xasprintf("/proc/self/fd/%d", original);
    CLEANUP(free_ptr) char *between = xasprintf(LAYERS_PLACE "/between-%u", layers->count);
    int rc;

    if (!writable)
        return place_read_only(layers, original, target);
    /* Rights for the work directory would reach into the original, too, after it is closed to the user. A read-only one
     * in between has none. (In a user namespace they reach only what is the user's.) The kernel stacks two at most:
     * upon a container's overlay there is no place for it. */
    if (!layers->own_users && mkdir(between, 0700) == 0 && place_read_only(layers, original, between) == 0 &&
        (rc = place_writable(layers, original, between, target, err)) != -EINVAL)
        return rc;
    return place_writable(layers, original, opened, target, err);
}
