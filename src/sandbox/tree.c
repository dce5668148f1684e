#include "sandbox/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "sandbox/devices.h"
#include "sandbox/kernel.h"
#include "sandbox/layer.h"
#include "sandbox/points.h"

/* While the new tree grows, a private tmpfs covers /dev of the old one, of which nothing else is needed any more. */
#define SCRATCH         "/dev"
#define NEW_ROOT        SCRATCH "/root"
#define NOTHING         SCRATCH "/nothing"
#define INODES_MAX      200000
#define MOUNTINFO_LIMIT (16 << 20)
#define ANY_OTHER       65534 /* the owner that a user namespace shows of all files of other users */

struct tree {
    struct points points;
    struct layers layers;
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

static int cannot(const char *path, int rc, struct error *err)
{
    return error_set(err, rc, "'%s' cannot be shown inside: %s", path, strerror(-rc));
}

/* The entry of a directory that is made anew. Sockets and the like are left out. */
static int place_entry(struct tree *tree, const char *path, bool writable, struct error *err)
{
    CLEANUP(free_ptr) char *target = new_path(path);
    char link[PATH_MAX];
    struct stat st;
    ssize_t length;

    if (lstat(path, &st) < 0)
        return 0;
    if (S_ISLNK(st.st_mode)) {
        length = readlink(path, link, sizeof link - 1);
        link[length < 0 ? 0 : length] = '\0';
        return length > 0 && symlink(link, target) < 0 ? cannot(path, -errno, err) : 0;
    }
    if (S_ISREG(st.st_mode))
        close(open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)); /* one that the user may not reach stays empty */
    else if (!S_ISDIR(st.st_mode))
        return 0;
    else if (mkdir(target, 0755) < 0)
        return cannot(path, -errno, err);
    return place(tree, path, writable, err);
}

static int make_anew(struct tree *tree, const char *target, mode_t mode)
{
    CLEANUP(free_ptr) char *made = xasprintf(SCRATCH "/directory-%u", tree->layers.count++);

    return mkdir(made, 0700) < 0 || chmod(made, mode) < 0 ? -errno : bind_to(made, target);
}

/* A directory of which each entry is placed by itself: the root, and one that cannot be overlaid as a whole. (In a user
 * namespace the kernel refuses an overlay of a directory with mounts in it, which could uncover what they hide.) */
static int place_entries(struct tree *tree, const char *path, bool writable, struct error *err)
{
    CLEANUP(free_ptr) char *target = new_path(path);
    DIR *entries = opendir(path);
    const struct dirent *entry;
    int rc = make_anew(tree, target, 0755);

    if (rc < 0)
        cannot(path, rc, err);
    while (entries && rc == 0 && (entry = readdir(entries))) {
        CLEANUP(free_ptr) char *name = xasprintf("%s/%s", strcmp(path, "/") == 0 ? "" : path, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = place_entry(tree, name, writable, err);
    }
    if (entries)
        closedir(entries);
    if (rc == 0 && !writable && (rc = kernel_close_mount(target, false)) < 0)
        cannot(path, rc, err);
    return rc;
}

/* An empty directory, but for the entries that the job names. */
static int place_throw_away(struct tree *tree, const char *path, mode_t mode, struct error *err)
{
    CLEANUP(free_ptr) char *target = new_path(path);
    const struct point *point;
    int rc = make_anew(tree, target, mode);

    if (rc < 0)
        return cannot(path, rc, err);
    for (size_t at = 0; rc == 0 && (point = points_below(&tree->points, path, &at));)
        if (point->kinds & POINT_WRITABLE)
            rc = place_entry(tree, point->path, true, err);
    return rc;
}

/* Whether a directory between them is another's. In a user namespace the kernel cannot copy such a one into a layer of
 * `top`, and refuses all writes below it (EOVERFLOW). */
static bool is_behind_anothers(const struct tree *tree, const char *path, const char *top)
{
    CLEANUP(free_ptr) char *between = xstrdup(path);
    struct stat st;
    bool is = false;

    while (tree->layers.own_users && !is && strlen(dirname(between)) > strlen(top))
        is = stat(between, &st) == 0 && st.st_uid == ANY_OTHER;
    return is;
}

static int place_below(struct tree *tree, const char *path, bool writable, struct error *err)
{
    const struct point *point;
    int rc = 0;

    for (size_t at = 0; rc == 0 && (point = points_below(&tree->points, path, &at));)
        rc = writable && !(point->kinds & (POINT_MOUNT | POINT_THROW_AWAY)) &&
                     !is_behind_anothers(tree, point->path, path)
                 ? place_below(tree, point->path, true, err)
                 : place(tree, point->path, false, err);
    return rc;
}

/* Instead of a mount that cannot be placed, nothing is there: it would uncover what it hides outside. */
static int place_nothing(struct tree *tree, const char *path, int why, struct error *err)
{
    const unsigned kinds = points_kinds(&tree->points, path);
    CLEANUP(free_ptr) char *target = new_path(path);
    struct stat st;
    int rc;

    if (kinds & POINT_WORK && why != -EACCES) /* the command is to be there, unless its user may not */
        return cannot(path, why, err);
    if (!(kinds & POINT_MOUNT))
        return place_below(tree, path, false, err); /* it is as the one above it shows it */
    if (lstat(target, &st) < 0)
        return 0;
    rc = S_ISDIR(st.st_mode) ? make_anew(tree, target, 0555) : bind_to(NOTHING, target);
    if (rc == 0)
        rc = kernel_close_mount(target, false);
    return rc < 0 ? cannot(path, rc, err) : 0;
}

static int place_directory(struct tree *tree, int original, const char *path, bool writable, struct error *err)
{
    const bool whole = strcmp(path, "/") != 0;
    CLEANUP(free_ptr) char *target = new_path(path);
    size_t at = 0;
    int rc;

    writable = writable && layer_may_be_written(original);
    rc = whole ? layer_place(&tree->layers, original, target, writable, err) : -EINVAL;
    if (rc == 0)
        return place_below(tree, path, writable, err);
    if (rc == -EINVAL && (!whole || points_below(&tree->points, path, &at)))
        return place_entries(tree, path, writable, err);
    return place_nothing(tree, path, rc, err);
}

/* At a target that is there. What the path leads to is opened once, and only that is looked at and mounted: the path
 * may lead elsewhere the next time. */
static int place(struct tree *tree, const char *path, bool writable, struct error *err)
{
    const unsigned kinds = points_kinds(&tree->points, path);
    const mode_t mode = kinds & POINT_WORK ? 0 : points_throw_away(path);
    CLEANUP(close_fd) int original = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP(free_ptr) char *target = new_path(path), *opened = xasprintf("/proc/self/fd/%d", original);
    struct stat st;
    int rc;

    if (points_is_made_anew(path))
        return 0;
    if (original < 0 || fstat(original, &st) < 0)
        return place_nothing(tree, path, -errno, err);
    if (S_ISLNK(st.st_mode))
        return 0;
    if (!S_ISDIR(st.st_mode)) { /* else a socket or a device: a container mounts such */
        rc = bind_to(S_ISREG(st.st_mode) ? opened : NOTHING, target);
        return rc < 0 ? place_nothing(tree, path, rc, err) : 0;
    }
    return mode ? place_throw_away(tree, path, mode, err)
                : place_directory(tree, original, path,
                                  (kinds & POINT_WRITABLE) || (writable && !(kinds & POINT_MOUNT)), err);
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
    return mkdir(NEW_ROOT, 0755) < 0 || mkdir(LAYERS_EMPTY, 0555) < 0
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
    points_add_throw_away(&tree->points);
    points_add_work(&tree->points, request->directory);
    points_add_work(&tree->points, account->home);
    for (size_t i = 0; request->environment[i]; i++)
        points_add_named(&tree->points, request->environment[i]);
    for (size_t i = 0; request->command[i]; i++)
        points_add_named(&tree->points, request->command[i]);
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
    ends->scratch = open(LAYERS_EMPTY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ends->proc = open(NEW_ROOT "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return ends->scratch < 0 || ends->proc < 0 ? error_set(err, errno, "cannot open /proc: %s", strerror(errno))
                                               : become_root(err);
}

int tree_build(const struct sandbox_request *request, const struct account *account, bool own_users,
               struct tree_ends *ends, struct error *err)
{
    struct tree tree = {.layers = {.own_users = own_users}};
    int rc;

    wake_automounts(request, account);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return error_set(err, errno, "no mount namespace can be made: %s", strerror(errno));
    rc = find_points(&tree, request, account, err); /* who may write where is asked before nobody may */
    if (rc == 0 && (rc = kernel_close_mount("/", true)) < 0)
        error_set(err, rc, "the mounts cannot be made read-only%s: %s",
                  rc == -ENOSYS ? " by this kernel, Linux 5.12 is needed" : "", strerror(-rc));
    if (rc == 0)
        rc = build(&tree, request, ends, err);
    points_release(&tree.points);
    return rc;
}
