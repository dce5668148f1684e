#include "launch/cgroup/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strbuf.h"

#define TEXT_LIMIT          16384
#define MOUNTINFO_LIMIT     (4 << 20)
#define CPU_PERIOD_US       100000
#define CGROUP_BASE_IN_ROOT "/carma"
#define CGROUP2_MARK        " - cgroup2 "
#define FREEZE_WAIT_MS      100
#define DEPTH_MAX           32 /* of the groups that a job may have made below its own */

static struct cgroup_place place; /* as long as the process; read at the first question, or told */

/* ---- Which group ---- */

char *cgroup_parse(const char *text)
{
    for (const char *line = text; line && *line;) {
        size_t length = strcspn(line, "\n");
        if (strncmp(line, "0::/", 4) == 0)
            return xstrndup(line + 3, length - 3);
        line = line[length] ? line + length + 1 : NULL;
    }
    return NULL;
}

char *cgroup_of(pid_t pid)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/cgroup", (int)pid);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;

    return file_read(path, TEXT_LIMIT, &text, &length, NULL) < 0 ? NULL : cgroup_parse(text);
}

bool cgroup_is_within(const char *path, const char *group)
{
    size_t length = strlen(group);

    while (length && group[length - 1] == '/')
        length--;
    return strncmp(path, group, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool cgroup_is_apart(const char *path)
{
    CLEANUP(free_ptr) char *own = cgroup_of(getpid());
    const char *base = cgroup_place()->base;

    return !(own && cgroup_is_within(own, path)) &&
           !(base && (cgroup_is_within(base, path) || cgroup_is_within(path, base)));
}

/* ---- Where its files are ---- */

/* A container may see a part of the hierarchy only, mounted as if it were all: the mount's root is cut off the path. A
 * path outside the process's view ("/../x") has no files here. */
char *cgroup_locate(const char *mountinfo, const char *path)
{
    for (const char *line = mountinfo; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        CLEANUP(free_ptr) char *text = xstrndup(line, strcspn(line, "\n"));
        CLEANUP(free_ptr) char *root = xcalloc(1, strlen(text) + 1);
        CLEANUP(free_ptr) char *mount = xcalloc(1, strlen(text) + 1);
        if (!strstr(text, CGROUP2_MARK) || sscanf(text, "%*s %*s %*s %s %s", root, mount) != 2 ||
            !cgroup_is_within(path, root) || strstr(path, "/.."))
            continue;
        path += strcmp(root, "/") == 0 ? 0 : strlen(root);
        return xasprintf("%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
    }
    return NULL;
}

/* The lines of version 2 in a text of /proc/PID/mountinfo; owned by the caller. */
static char *lines_of_version_2(const char *mountinfo)
{
    struct strbuf lines = {0};

    for (const char *line = mountinfo, *end; *line; line = *end ? end + 1 : end) {
        const char *kind = strstr(line, CGROUP2_MARK);
        end = strchrnul(line, '\n');
        if (kind && kind < end)
            strbuf_printf(&lines, "%.*s\n", (int)(end - line), line);
    }
    return lines.text ? strbuf_steal(&lines) : xstrdup("");
}

const struct cgroup_place *cgroup_place(void)
{
    if (!place.mounts) {
        CLEANUP(free_ptr) char *mountinfo = NULL;
        CLEANUP(free_ptr) char *own = cgroup_of(getpid());
        size_t length;
        if (file_read("/proc/self/mountinfo", MOUNTINFO_LIMIT, &mountinfo, &length, NULL) == 0)
            place.mounts = lines_of_version_2(mountinfo);
        else
            place.mounts = xstrdup("");
        place.base = own ? cgroup_base(own) : NULL;
    }
    return &place;
}

void cgroup_place_is(const char *mounts, const char *base)
{
    place = (struct cgroup_place){.mounts = xstrdup(mounts), .base = base ? xstrdup(base) : NULL};
}

/* A file of the group, or its directory for file ""; NULL: it has none here. CARMA_CGROUP_ROOT is for tests. */
static char *file_of(const char *path, const char *file)
{
    const char *root = getenv("CARMA_CGROUP_ROOT");
    CLEANUP(free_ptr)
    char *directory = root ? xasprintf("%s%s", root, strcmp(path, "/") == 0 ? "" : path)
                           : cgroup_locate(cgroup_place()->mounts, path);

    return directory ? xasprintf("%s%s%s", directory, *file ? "/" : "", file) : NULL;
}

static char *read_from(const char *path, const char *file)
{
    CLEANUP(free_ptr) char *name = file_of(path, file);
    char *text = NULL;
    size_t length;

    return name && file_read(name, TEXT_LIMIT, &text, &length, NULL) == 0 ? text : NULL;
}

static int write_to(const char *path, const char *file, const char *text)
{
    CLEANUP(free_ptr) char *name = file_of(path, file);
    CLEANUP(close_fd) int fd = name ? open(name, O_WRONLY | O_CLOEXEC) : -1;

    if (!name)
        return -ENOENT;
    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* The number behind the key in a file of "KEY NUMBER" lines; -1: there is none. */
static int64_t number_of(const char *text, const char *key)
{
    size_t length = strlen(key);

    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        int64_t number;
        if (strncmp(line, key, length) == 0 && line[length] == ' ' &&
            sscanf(line + length, " %" SCNd64, &number) == 1 && number >= 0)
            return number;
    }
    return -1;
}

int64_t cgroup_oom_kills(const char *path)
{
    CLEANUP(free_ptr) char *at = xstrdup(path);

    for (;;) {
        CLEANUP(free_ptr) char *text = read_from(*at ? at : "/", "memory.events");
        char *slash = strrchr(at, '/');
        if (text)
            return number_of(text, "oom_kill");
        if (!slash)
            return -1;
        *slash = '\0';
    }
}

/* ---- Groups of our own ---- */

char *cgroup_base(const char *own)
{
    CLEANUP(free_ptr) char *beside = xasprintf("%.*s/" CGROUP_OF_JOBS, (int)(strrchr(own, '/') - own), own);
    CLEANUP(free_ptr) char *directory = file_of(beside, "");

    if (strcmp(own, "/") == 0)
        return xstrdup(CGROUP_BASE_IN_ROOT);
    return directory && access(directory, W_OK) == 0 ? steal_ptr(&beside) : xstrdup(own);
}

static const char *const controllers[] = {"memory", "pids", "cpu"};

bool cgroup_has_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = text; at && (at = strstr(at, word)); at += length)
        if ((at == text || at[-1] == ' ') && strchr(" \n", at[length]))
            return true;
    return false;
}

/* Lets the groups below this one have the controllers. The kernel refuses where it has none of a name (version 1 has
 * it). It also refuses where processes are in the group itself and it is not the root. */
static void hand_down(const char *path)
{
    for (size_t i = 0; i < array_size(controllers); i++) {
        CLEANUP(free_ptr) char *word = xasprintf("+%s", controllers[i]);
        write_to(path, "cgroup.subtree_control", word);
    }
}

bool cgroup_prepare(struct error *why)
{
    const char *base = cgroup_place()->base;
    CLEANUP(free_ptr) char *directory = base ? file_of(base, "") : NULL;
    CLEANUP(free_ptr) char *offered = NULL;
    CLEANUP(free_ptr) char *had = NULL;
    CLEANUP(strbuf_release) struct strbuf missing = {0};

    if (!directory)
        return error_set(why, ENOENT, "there are no control groups of version 2"), false;
    if (strcmp(base, CGROUP_BASE_IN_ROOT) == 0)
        hand_down("/");
    if (mkdir(directory, 0755) < 0 && errno != EEXIST)
        return error_set(why, errno, "control group %s cannot be made: %s", base, strerror(errno)), false;
    hand_down(base);
    offered = read_from(base, "cgroup.controllers");
    had = read_from(base, "cgroup.subtree_control");
    for (size_t i = 0; i < array_size(controllers); i++)
        if (!cgroup_has_word(had, controllers[i]))
            strbuf_printf(&missing, "%s%s%s", missing.length ? ", " : "", controllers[i],
                          cgroup_has_word(offered, controllers[i]) ? "" : " (not in version 2 here)");
    if (missing.length)
        error_set(why, ENOTSUP, "control group %s may not limit: %s", base, missing.text);
    return missing.length == 0;
}

/* A file that is not there belongs to a controller that the group does not have: the daemon has said so. */
static int set_limit(const char *path, const char *file, const char *value, struct error *err)
{
    int code = write_to(path, file, value);

    return code == 0 || code == -ENOENT ? 0
                                        : error_set(err, code, "control group %s: %s cannot be set to %s: %s", path,
                                                    file, value, strerror(-code));
}

static int set_number(const char *path, const char *file, int64_t value, struct error *err)
{
    CLEANUP(free_ptr) char *text = xasprintf("%" PRId64, value);

    return value ? set_limit(path, file, text, err) : 0;
}

int cgroup_limit(const char *path, const struct cgroup_limits *limits, struct error *err)
{
    CLEANUP(free_ptr) char *quota = xasprintf("%" PRId64 " %d", limits->cpus * CPU_PERIOD_US, CPU_PERIOD_US);
    int code;

    if ((code = set_number(path, "memory.max", limits->memory_bytes, err)) < 0 ||
        (limits->memory_bytes && ((code = set_limit(path, "memory.swap.max", "0", err)) < 0 ||
                                  (code = set_limit(path, "memory.oom.group", "1", err)) < 0)) ||
        (code = set_number(path, "pids.max", limits->pids, err)) < 0 ||
        (code = set_number(path, "cpu.weight", limits->cpu_weight, err)) < 0)
        return code;
    return limits->cpus ? set_limit(path, "cpu.max", quota, err) : 0;
}

bool cgroup_counts_memory(const char *path)
{
    CLEANUP(free_ptr) char *name = file_of(path, "memory.events");

    return name && access(name, R_OK) == 0;
}

char *cgroup_make(const char *name)
{
    const char *base = cgroup_place()->base;
    CLEANUP(free_ptr) char *path = base ? xasprintf("%s/%s", base, name) : NULL;
    CLEANUP(free_ptr) char *directory = path ? file_of(path, "") : NULL;
    CLEANUP(free_ptr) char *processes = path ? file_of(path, "cgroup.procs") : NULL;

    if (!directory)
        return NULL;
    if (mkdir(directory, 0755) < 0) {
        cgroup_prepare(NULL); /* nobody has, or the base was removed since */
        if (mkdir(directory, 0755) < 0)
            return NULL;
    }
    if (access(processes, W_OK) < 0) {
        rmdir(directory);
        return NULL;
    }
    return steal_ptr(&path);
}

int cgroup_open(const char *path)
{
    CLEANUP(free_ptr) char *directory = file_of(path, "");
    int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    return fd >= 0 ? fd : directory ? -errno : -ENOENT;
}

pid_t cgroup_fork(const char *path, bool *entered)
{
    CLEANUP(free_ptr) char *directory = *path ? file_of(path, "") : NULL;
    CLEANUP(close_fd) int fd = directory ? open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct clone_args arguments = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)fd};
    pid_t pid = fd < 0 ? -1 : (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);

    *entered = pid >= 0;
    return pid >= 0 ? pid : fork();
}

int cgroup_enter(const char *path)
{
    return write_to(path, "cgroup.procs", "0");
}

int cgroup_kill(const char *path)
{
    CLEANUP(free_ptr) char *own = cgroup_of(getpid());

    return own && cgroup_is_within(own, path) ? -EPERM : write_to(path, "cgroup.kill", "1");
}

static bool has_event(const char *path, const char *event)
{
    CLEANUP(free_ptr) char *text = read_from(path, "cgroup.events");

    return text && number_of(text, event) > 0;
}

void cgroup_freeze(const char *path)
{
    if (write_to(path, "cgroup.freeze", "1") == 0)
        for (int i = 0; i < FREEZE_WAIT_MS && !has_event(path, "frozen"); i++)
            poll(NULL, 0, 1);
}

void cgroup_thaw(const char *path)
{
    write_to(path, "cgroup.freeze", "0");
}

bool cgroup_is_populated(const char *path)
{
    return has_event(path, "populated");
}

static void remove_tree(const char *directory, int depth)
{
    DIR *entries = depth ? opendir(directory) : NULL;
    struct dirent *entry;

    while (entries && (entry = readdir(entries))) {
        if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            CLEANUP(free_ptr) char *below = xasprintf("%s/%s", directory, entry->d_name);
            remove_tree(below, depth - 1);
        }
    }
    if (entries)
        closedir(entries);
    rmdir(directory);
}

void cgroup_remove(const char *path)
{
    CLEANUP(free_ptr) char *directory = file_of(path, "");

    if (directory)
        remove_tree(directory, DEPTH_MAX);
}

void cgroup_remove_left(void)
{
    const char *base = cgroup_place()->base;
    CLEANUP(free_ptr) char *directory = base ? file_of(base, "") : NULL;
    DIR *entries = directory ? opendir(directory) : NULL;
    struct dirent *entry;
    int shepherd;

    while (entries && (entry = readdir(entries))) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", base, entry->d_name);
        if (sscanf(entry->d_name, CGROUP_PREFIX "%d", &shepherd) == 1 && kill(shepherd, 0) < 0 && errno == ESRCH &&
            !cgroup_is_populated(path))
            cgroup_remove(path);
    }
    if (entries)
        closedir(entries);
}
