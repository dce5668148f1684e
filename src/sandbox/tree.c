#include "sandbox/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "sandbox/devices.h"
#include "sandbox/kernel.h"
#include "sandbox/points.h"

/* While the new tree grows, a private tmpfs covers /dev of the old one, of which nothing else is needed any more. */
#define SCRATCH         "/dev"
#define NEW_ROOT        SCRATCH "/root"
#define EMPTY           SCRATCH "/empty"
#define NOTHING         SCRATCH "/nothing"
#define INODES_MAX      200000
#define MOUNTINFO_LIMIT (16 << 20)

struct tree {
    struct points points;
    bool own_users;
    unsigned layers; /* directories of the scratch file system that are in use */
};

static int place(struct tree *tree, const char *path, bool writable, struct error *err);

static char *new_path(const char *path)
{
    return xasprintf(NEW_ROOT "%s", strcmp(path, "/") == 0 ? "" : path);
}

static int bind_to(const char *from, const char *target)
{
    return mount(from, target, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

/* Whether the user may list, change and enter a directory outside. The very directory that is mounted is asked: by then
 * its path may lead to another. All mounts are read-only here, which the kernel looks at last. */
static bool user_may_use(int directory)
{
    return syscall(SYS_faccessat2, directory, "", R_OK | W_OK | X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0 ||
           errno == EROFS;
}

/* The layer has the mode and the group of the original. It belongs to the user, since a user cannot give files to
 * others. So it gives the user all rights to the directory: overlay() asks first whether he has them outside. */
static int make_layer(struct tree *tree, int original, char **upper, char **work)
{
    struct stat st;

    *upper = xasprintf(SCRATCH "/upper-%u", tree->layers);
    *work = xasprintf(SCRATCH "/work-%u", tree->layers++);
    if (fstat(original, &st) < 0 || mkdir(*upper, 0700) < 0 || mkdir(*work, 0700) < 0)
        return -errno;
    if (chown(*upper, (uid_t)-1, st.st_gid) < 0 && errno != EPERM && errno != EINVAL)
        return -errno;
    return chmod(*upper, st.st_mode & 07777) < 0 ? -errno : 0;
}

static int overlay(struct tree *tree, const char *path, bool writable, struct error *err)
{
    CLEANUP(free_ptr) char *target = new_path(path), *upper = NULL, *work = NULL, *options = NULL;
    CLEANUP(close_fd) int original = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const char *more = tree->own_users ? ",userxattr" : ",redirect_dir=on"; /* a directory of outside can be renamed */
    unsigned long flags = MS_NOSUID | MS_NODEV;
    int rc;

    if (original < 0)
        return -errno;
    writable = writable && user_may_use(original);
    flags |= writable ? 0 : MS_RDONLY;
    if (writable && (rc = make_layer(tree, original, &upper, &work)) < 0)
        return rc;
    options = writable ? xasprintf("lowerdir=/proc/self/fd/%d,upperdir=%s,workdir=%s%s", original, upper, work, more)
                       : xasprintf("lowerdir=/proc/self/fd/%d:" EMPTY "%s", original, more);
    if ((rc = rights_of_layers(true, err)) < 0)
        return rc;
    rc = mount("overlay", target, "overlay", flags, options) < 0 ? -errno : 0;
    return rights_of_layers(false, err) < 0 ? -EPERM : rc;
}

static int hide(const char *path)
{
    CLEANUP(free_ptr) char *target = new_path(path);
    struct stat st;
    int rc;

    if (stat(path, &st) < 0)
        return 0; /* the user cannot reach it */
    rc = bind_to(S_ISDIR(st.st_mode) ? EMPTY : NOTHING, target);
    return rc < 0 ? rc : kernel_close_mount(target, false);
}

static int place_below(struct tree *tree, const char *path, bool writable, struct error *err)
{
    const struct point *point;

    for (size_t at = 0; (point = points_below(&tree->points, path, &at));) {
        int rc = point->kinds == POINT_WRITABLE && writable ? place_below(tree, point->path, true, err)
                                                            : place(tree, point->path, false, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int place_entry(struct tree *tree, const char *path, const struct stat *st, bool writable, struct error *err)
{
    CLEANUP(free_ptr) char *target = new_path(path);
    char link[PATH_MAX];
    ssize_t length;

    if (S_ISDIR(st->st_mode))
        return mkdir(target, 0755) < 0 ? -errno : place(tree, path, writable, err);
    if (S_ISREG(st->st_mode)) {
        close(open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        bind_to(path, target); /* a file that the user may not reach stays empty */
        return 0;
    }
    length = S_ISLNK(st->st_mode) ? readlink(path, link, sizeof link - 1) : -1;
    if (length >= 0) {
        link[length] = '\0';
        return symlink(link, target) < 0 ? -errno : 0;
    }
    return 0; /* sockets and the like */
}

/* A directory that cannot be overlaid as a whole, entry by entry. In a user namespace the kernel refuses an overlay of
 * a directory with mounts in it, which could uncover what they hide. */
static int place_entries(struct tree *tree, const char *path, bool writable, struct error *err)
{
    CLEANUP(free_ptr) char *base = xasprintf(SCRATCH "/directory-%u", tree->layers++);
    CLEANUP(free_ptr) char *target = new_path(path);
    DIR *entries = opendir(path);
    const struct dirent *entry;
    int rc = mkdir(base, 0755) < 0 ? -errno : bind_to(base, target);

    while (entries && rc == 0 && (entry = readdir(entries))) {
        CLEANUP(free_ptr) char *name = xasprintf("%s/%s", strcmp(path, "/") == 0 ? "" : path, entry->d_name);
        struct stat st;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && lstat(name, &st) == 0)
            rc = place_entry(tree, name, &st, writable, err);
    }
    if (entries)
        closedir(entries);
    return rc == 0 && !writable ? kernel_close_mount(target, false) : rc;
}

/* A path that cannot be placed is empty inside, unless the command is to work there. */
static int left_out(const char *path, unsigned kinds, int rc, struct error *err)
{
    return kinds & POINT_WRITABLE || strcmp(path, "/") == 0
               ? error_set(err, rc, "no overlay can be made of '%s': %s", path, strerror(-rc))
               : 0;
}

static int place_directory(struct tree *tree, const char *path, unsigned kinds, bool writable, struct error *err)
{
    size_t at = 0;
    int rc = overlay(tree, path, writable, err);

    if (rc == 0)
        return place_below(tree, path, writable, err);
    if (rc == -EINVAL && points_below(&tree->points, path, &at))
        rc = place_entries(tree, path, writable, err);
    return rc < 0 ? left_out(path, kinds, rc, err) : 0;
}

static int place(struct tree *tree, const char *path, bool writable, struct error *err)
{
    unsigned kinds = points_kinds(&tree->points, path);
    CLEANUP(free_ptr) char *target = new_path(path);
    struct stat st;

    if (points_is_made_anew(path) || lstat(path, &st) < 0)
        return 0;
    if (kinds & POINT_HIDDEN) {
        int rc = hide(path);
        return rc < 0 ? error_set(err, rc, "'%s' cannot be masked: %s", path, strerror(-rc)) : 0;
    }
    if (S_ISREG(st.st_mode))
        return bind_to(path, target) < 0 ? 0 : kernel_close_mount(target, false);
    if (!S_ISDIR(st.st_mode)) { /* a socket or a device that a container's mounts brought here */
        bind_to(NOTHING, target);
        return 0;
    }
    return place_directory(tree, path, kinds, (kinds & POINT_WRITABLE) || (writable && !(kinds & POINT_MOUNT)), err);
}

/* ---- The steps ---- */

static int make_scratch(const struct sandbox_request *request, struct error *err)
{
    CLEANUP(free_ptr)
    char *options = xasprintf("size=%" PRId64 ",nr_inodes=%d,mode=0700,uid=%u,gid=%u", request->memory_bytes,
                              INODES_MAX, request->uid, request->gid);

    if (mount("carma-sandbox", SCRATCH, "tmpfs", MS_NOSUID, options) < 0)
        return error_set(err, errno, "no tmpfs can be mounted: %s", strerror(errno));
    close(open(NOTHING, O_RDONLY | O_CREAT | O_CLOEXEC, 0444));
    return mkdir(NEW_ROOT, 0755) < 0 || mkdir(EMPTY, 0555) < 0
               ? error_set(err, errno, "the sandbox's own directories cannot be made: %s", strerror(errno))
               : 0;
}

static int find_points(struct tree *tree, const struct sandbox_request *request, const struct account *account,
                       struct error *err)
{
    CLEANUP(free_ptr) char *mountinfo = NULL;
    size_t length;
    int rc = file_read("/proc/self/mountinfo", MOUNTINFO_LIMIT, &mountinfo, &length, err);

    if (rc < 0)
        return rc;
    points_add_mounts(&tree->points, mountinfo);
    points_add(&tree->points, request->directory, POINT_WRITABLE);
    points_add(&tree->points, account->home, POINT_WRITABLE);
    points_add(&tree->points, request->home, POINT_WRITABLE);
    points_add(&tree->points, request->temporary, POINT_WRITABLE);
    points_add(&tree->points, "/tmp", POINT_WRITABLE);
    points_add(&tree->points, "/var/tmp", POINT_WRITABLE);
    points_add(&tree->points, "/run", POINT_HIDDEN);
    points_add(&tree->points, "/var/run", POINT_HIDDEN);
    points_add(&tree->points, request->ssh_agent, POINT_HIDDEN);
    for (size_t i = 0; request->hidden[i]; i++)
        points_add(&tree->points, request->hidden[i], POINT_HIDDEN);
    return 0;
}

/* Nothing of these has a socket in it, and /sys has no files of users. */
static int place_kernel_trees(int sys, struct error *err)
{
    if (sys >= 0)
        kernel_attach(sys, NEW_ROOT "/sys");
    if (mount("proc", NEW_ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) < 0)
        return error_set(err, errno, "no /proc of its own can be mounted: %s%s", strerror(errno),
                         errno == EPERM ? ": a container masks parts of this one" : "");
    return 0;
}

static int become_root(struct error *err)
{
    int rc = chdir(NEW_ROOT) < 0 ? -errno : kernel_pivot_here();

    if (rc == 0 && (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0))
        rc = -errno;
    return rc < 0 ? error_set(err, rc, "the root cannot be changed: %s", strerror(-rc)) : 0;
}

/* A mount that a look at the path brings (autofs) comes into the old namespace only: it has to be there before. */
static void wake_automounts(const struct sandbox_request *request, const struct account *account)
{
    CLEANUP(free_ptr) char *directory = realpath(request->directory, NULL);
    CLEANUP(free_ptr) char *home = account->home ? realpath(account->home, NULL) : NULL;

    if (directory)
        (void)access(directory, R_OK);
    if (home)
        (void)access(home, R_OK);
}

static int build(struct tree *tree, const struct sandbox_request *request, struct tree_ends *ends, struct error *err)
{
    CLEANUP(close_fd) int sys = kernel_clone_mount("/sys");
    struct devices devices = devices_take();
    int rc = make_scratch(request, err);

    if (rc == 0)
        rc = place(tree, "/", false, err);
    if (rc == 0)
        rc = place_kernel_trees(sys, err);
    if (rc == 0)
        rc = devices_place(&devices, SCRATCH, NEW_ROOT "/dev", err);
    devices_release(&devices);
    if (rc < 0)
        return rc;
    ends->scratch = open(SCRATCH "/empty", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ends->proc = open(NEW_ROOT "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return ends->scratch < 0 || ends->proc < 0 ? error_set(err, errno, "cannot open /proc: %s", strerror(errno))
                                               : become_root(err);
}

int tree_build(const struct sandbox_request *request, const struct account *account, bool own_users,
               struct tree_ends *ends, struct error *err)
{
    struct tree tree = {.own_users = own_users};
    int rc;

    wake_automounts(request, account);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return error_set(err, errno, "no mount namespace can be made: %s", strerror(errno));
    rc = kernel_close_mount("/", true);
    if (rc < 0)
        return error_set(err, rc, "the mounts cannot be made read-only%s: %s",
                         rc == -ENOSYS ? " by this kernel, Linux 5.12 is needed" : "", strerror(-rc));
    rc = find_points(&tree, request, account, err);
    if (rc == 0)
        rc = build(&tree, request, ends, err);
    points_release(&tree.points);
    return rc;
}
