#include "launch/shepherd/tail.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "launch/shepherd/checkpoint.h"
#include "launch/shepherd/child.h"

#define TAIL_BYTES (1 << 20)

/* Of a line that begins before the part that is read: longer than a message. The rest of it is read like any other. */
#define TAIL_CUT_BYTES 4096

#define TAIL_LIMIT_MS 10000

/* The output of this launch at the end of the file; the whole file where it was cut meanwhile. */
static void classify_file(const struct tail_origin *origin, struct classify_verdict *verdict)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/self/fd/%d", origin->fd);
    CLEANUP(close_fd) int fd = origin->fd >= 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    CLEANUP(free_ptr) char *text = xmalloc(TAIL_BYTES);
    intmax_t from = 0;
    size_t skip = 0;
    ssize_t length;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    if (origin->size <= st.st_size)
        from = origin->size;
    if (st.st_size - from > TAIL_BYTES) {
        from = st.st_size - TAIL_BYTES;
        skip = 1;
    }
    length = pread(fd, text, TAIL_BYTES, from);
    if (length <= 0 || (skip && length < TAIL_CUT_BYTES)) /* cut meanwhile */
        return;
    if (skip) { /* the end of a line without its beginning could mislead */
        const char *newline = memchr(text, '\n', TAIL_CUT_BYTES);
        skip = newline ? (size_t)(newline + 1 - text) : TAIL_CUT_BYTES;
    }
    classify_output(text + skip, (size_t)length - skip, verdict);
}

/* What GPU processes wrote to elsewhere: the rest of the job may know nothing of it. */
static void classify_files(const struct tail_origin *files, uint32_t count, struct tail_verdict *answer)
{
    for (uint32_t i = 0; i < count && !answer->of_file; i++) {
        struct classify_verdict verdict;
        classify_init(&verdict);
        classify_file(&files[i], &verdict);
        answer->of_file = verdict.kind == OUTPUT_GPU_OOM || verdict.kind == OUTPUT_GPU_HANDLE;
        if (answer->of_file)
            answer->verdict = verdict;
    }
}

static bool is_full(const struct tail_origin *origin)
{
    struct statvfs vfs;
    struct stat st;

    return origin->fd >= 0 && fstat(origin->fd, &st) == 0 && S_ISREG(st.st_mode) && fstatvfs(origin->fd, &vfs) == 0 &&
           vfs.f_blocks > 0 && vfs.f_bavail == 0;
}

static void append(const struct tail_origin *origin, const char *text)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/self/fd/%d", origin->fd);
    CLEANUP(close_fd)
    int fd = origin->fd >= 0 ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        dprintf(fd, "carma: %s\n", text);
}

static void classify_child(const struct shepherd_request *request, const struct tail_origin *output,
                           const struct tail_origin *error, const struct tail_origin *files, uint32_t file_count,
                           const char *say, int fd)
{
    CLEANUP(free_ptr) char *checkpoint = checkpoint_path(request);
    struct tail_verdict answer;
    struct classify_verdict *verdict = &answer.verdict, other;

    memset(&answer, 0, sizeof answer);
    classify_init(verdict);
    classify_init(&other);
    if (child_become_user(request, NULL) < 0)
        return;
    classify_file(error, verdict);
    if ((verdict->kind == OUTPUT_NOTHING && !verdict->own_error) || verdict->kind == OUTPUT_GPU_HANDLE_MAYBE)
        classify_file(output, &other);
    if (other.kind != OUTPUT_NOTHING || other.own_error || other.outlived)
        *verdict = other;
    if (verdict->kind == OUTPUT_NOTHING && !verdict->own_error && !verdict->outlived)
        classify_files(files, file_count, &answer);
    answer.output_full = is_full(output);
    answer.error_full = is_full(error);
    if (say)
        append(output, say);
    if (write(fd, &answer, sizeof answer) == sizeof answer) /* else the shepherd takes it as no verdict */
        rmdir(checkpoint);
}

void tail_classify(const struct shepherd_request *request, const struct tail_origin *output,
                   const struct tail_origin *error, const struct tail_origin *files, uint32_t file_count,
                   const char *say, struct tail_verdict *verdict, bool *removed)
{
    struct pollfd ready;
    int fds[2];
    bool hangs;
    pid_t pid;

    *removed = false;
    *verdict = (struct tail_verdict){0};
    classify_init(&verdict->verdict);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return;
    pid = fork();
    if (pid == 0) {
        close(fds[0]);
        classify_child(request, output, error, files, file_count, say, fds[1]);
        _exit(0);
    }
    close(fds[1]);
    ready = (struct pollfd){.fd = fds[0], .events = POLLIN};
    hangs = pid > 0 && poll(&ready, 1, TAIL_LIMIT_MS) <= 0;
    if (pid < 0 || hangs || read(fds[0], verdict, sizeof *verdict) != sizeof *verdict) {
        *verdict = (struct tail_verdict){0};
        classify_init(&verdict->verdict);
    } else {
        *removed = poll(&ready, 1, TAIL_REMOVE_LIMIT_MS) > 0; /* it has ended */
        hangs = !*removed;
    }
    close(fds[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, hangs ? WNOHANG : 0); /* where its user's file system does not answer, it does not end */
    }
}
