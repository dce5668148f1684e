#include "launch/shepherd/writers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/kernel/handed.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "launch/shepherd/shepherd.h"

/* Soon at first, since a program may run out of memory as soon as it has loaded; then ever less often. */
#define FIRST_NS       (2 * NS_PER_SEC) /* node time */
#define FIRST_MIN_NS   (50 * NS_PER_MS) /* wall */
#define FIRST_MAX_NS   (200 * NS_PER_MS)
#define PERIOD_NS      (10 * NS_PER_SEC) /* node time */
#define PERIOD_MIN_NS  NS_PER_SEC        /* wall */
#define LOOKER_LIMIT   10                /* seconds, wall */
#define PROCESSES_MOST 256
#define NUMBERS_MOST   64 /* descriptors of a process that reads a pipe */
#define PIPES_MOST     32
#define FDINFO_LIMIT   4096

/* The child's word: the job's main process uses a GPU; else a file, whose descriptor comes with it. */
struct word {
    bool itself;
    intmax_t size; /* what the file had before this launch, as far as can be told */
};

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* ---- In the child ---- */

/* A process that can reach a GPU has a device of the driver open, under MPS too; on a virtual node, the node's file. */
static bool uses_gpu(pid_t pid)
{
    CLEANUP(free_ptr) char *directory = xasprintf("/proc/%d/fd", (int)pid);
    const char *node = getenv("CARMA_VNODE");
    DIR *list = opendir(directory);
    struct dirent *entry;
    bool uses = false;

    while (list && !uses && (entry = readdir(list))) {
        char target[64] = "";
        ssize_t length = readlinkat(dirfd(list), entry->d_name, target, sizeof target - 1);
        uses = length > 0 && (strncmp(target, "/dev/nvidia", 11) == 0 || strcmp(target, "/dev/dxg") == 0);
        if (length > 0 && !uses && node && *node) {
            struct stat open_file, node_file;
            uses = fstatat(dirfd(list), entry->d_name, &open_file, 0) == 0 && stat(node, &node_file) == 0 &&
                   open_file.st_dev == node_file.st_dev && open_file.st_ino == node_file.st_ino;
        }
    }
    if (list)
        closedir(list);
    return uses;
}

static bool is_same(const struct stat *file, int fd)
{
    struct stat known;

    return fd >= 0 && fstat(fd, &known) == 0 && known.st_dev == file->st_dev && known.st_ino == file->st_ino;
}

static bool is_known(const struct shepherd *s, const struct stat *file)
{
    bool known = is_same(file, s->output.fd) || is_same(file, s->error.fd);

    for (uint32_t i = 0; i < s->writers.file_count; i++)
        known |= is_same(file, s->writers.files[i].fd);
    return known;
}

/* As open(2) got them, of a descriptor of a process; O_WRONLY | O_APPEND where they cannot be read. */
static int flags_of(pid_t pid, int number)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/fdinfo/%d", (int)pid, number);
    CLEANUP(free_ptr) char *text = NULL;
    const char *flags;
    size_t length;

    if (file_read(path, FDINFO_LIMIT, &text, &length, NULL) < 0 || !(flags = strstr(text, "flags:")))
        return O_WRONLY | O_APPEND;
    return (int)strtol(flags + strlen("flags:"), NULL, 8);
}

/* The pipes in which the words of GPU processes go on: to `tee log`, for example. */
struct pipes {
    struct stat items[PIPES_MOST];
    size_t count;
};

static bool is_among(const struct pipes *pipes, const struct stat *file)
{
    for (size_t i = 0; i < pipes->count; i++)
        if (pipes->items[i].st_dev == file->st_dev && pipes->items[i].st_ino == file->st_ino)
            return true;
    return false;
}

static void say(int answer_fd, const struct word *word, int file)
{
    handed_send(answer_fd, word, sizeof *word, &file, file >= 0, 0);
}

static void look_at(struct shepherd *s, pid_t pid, int number, struct pipes *pipes, int answer_fd)
{
    struct watched_writers *writers = &s->writers;
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/fd/%d", (int)pid, number);
    CLEANUP(close_fd) int file = open(path, O_PATH | O_CLOEXEC);
    struct word word = {0};
    struct stat st;
    int flags;

    if (file < 0 || fstat(file, &st) < 0 || ((flags = flags_of(pid, number)) & O_ACCMODE) == O_RDONLY)
        return;
    if (S_ISFIFO(st.st_mode) && pipes->count < PIPES_MOST && !is_among(pipes, &st))
        pipes->items[pipes->count++] = st;
    if (!S_ISREG(st.st_mode) || is_known(s, &st))
        return;
    word.size = flags & O_APPEND ? st.st_size : 0; /* text of before this launch stands only in a file like that */
    say(answer_fd, &word, file);
    if (writers->file_count < WRITERS_FILES) /* in this process: it is not said again */
        writers->files[writers->file_count++].fd = dup(file);
}

/* The files to which others of a pipeline write, and the pipes behind them. */
static void look_behind(struct shepherd *s, pid_t pid, struct pipes *pipes, int answer_fd)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/fd/0", (int)pid);
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISFIFO(st.st_mode) || !is_among(pipes, &st))
        return;
    for (int number = 1; number < NUMBERS_MOST; number++)
        look_at(s, pid, number, pipes, answer_fd);
}

static void look(struct shepherd *s, int answer_fd)
{
    pid_t shepherd = getppid();
    struct pipes pipes = {.count = 0};
    pid_t members[PROCESSES_MOST];
    size_t known = 0, member_count = 0;
    sigset_t none;

    sigemptyset(&none); /* it ends with the job's processes, of which it looks to be one */
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(LOOKER_LIMIT);
    if (child_become_user(&s->request, NULL) < 0)
        return;
    tree_read(&s->tree);
    tree_select_descendants(&s->tree, shepherd);
    for (size_t i = 0; i < s->tree.count && member_count < PROCESSES_MOST; i++) {
        pid_t pid = s->tree.items[i].pid;
        if (!s->tree.items[i].member || pid == getpid())
            continue;
        members[member_count++] = pid;
        if (!uses_gpu(pid))
            continue;
        if (pid == s->process)
            say(answer_fd, &(struct word){.itself = true}, -1);
        look_at(s, pid, 1, &pipes, answer_fd);
        look_at(s, pid, 2, &pipes, answer_fd);
    }
    while (known < pipes.count) { /* each look may find further ones */
        known = pipes.count;
        for (size_t i = 0; i < member_count; i++)
            look_behind(s, members[i], &pipes, answer_fd);
    }
}

/* ---- */

static bool is_wanted(const struct shepherd *s)
{
    return s->status.phase == LAUNCH_RUNNING && !s->kill_at_ns && !s->request.lease;
}

struct pollfd writers_poll(const struct shepherd *s)
{
    return (struct pollfd){.fd = s->writers.looker, .events = POLLIN};
}

int64_t writers_next_ns(const struct shepherd *s)
{
    return is_wanted(s) && s->writers.looker < 0 ? s->writers.look_at_ns : INT64_MAX;
}

static void begin_look(struct shepherd *s)
{
    int fds[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return;
    pid = ending_fork_helper();
    if (pid == 0) {
        close(fds[0]);
        look(s, fds[1]);
        _exit(0);
    }
    close(fds[1]);
    if (pid < 0)
        close(fds[0]);
    else
        s->writers.looker = fds[0];
}

/* False: it has said all. */
static bool take_word(struct watched_writers *writers)
{
    struct word word = {0};
    int file;
    ssize_t count = handed_receive(writers->looker, &word, sizeof word, &file, 1, MSG_DONTWAIT);

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (count != sizeof word) {
        close_fd(&file);
        return false;
    }
    writers->itself |= word.itself;
    if (file >= 0 && writers->file_count < WRITERS_FILES)
        writers->files[writers->file_count++] = (struct tail_origin){.fd = file, .size = word.size};
    else
        close_fd(&file);
    return true;
}

void writers_take(struct shepherd *s)
{
    struct pollfd ready = writers_poll(s);

    while (ready.fd >= 0 && poll(&ready, 1, 0) > 0)
        if (!take_word(&s->writers)) {
            close_fd(&s->writers.looker);
            s->writers.looker = ready.fd = -1;
        }
}

void writers_turn(struct shepherd *s)
{
    struct watched_writers *writers = &s->writers;
    int64_t now_ns = nodetime_monotonic_wall_ns();

    writers_take(s);
    if (!is_wanted(s) || writers->looker >= 0 || now_ns < writers->look_at_ns)
        return;
    if (writers->look_at_ns)
        begin_look(s);
    writers->pause_ns = writers->pause_ns ? clamp(2 * writers->pause_ns, 0,
                                                  clamp(nodetime_to_wall_ns(PERIOD_NS), PERIOD_MIN_NS, INT64_MAX))
                                          : clamp(nodetime_to_wall_ns(FIRST_NS), FIRST_MIN_NS, FIRST_MAX_NS);
    writers->look_at_ns = now_ns + writers->pause_ns;
}
