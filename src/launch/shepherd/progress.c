#include "launch/shepherd/progress.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "launch/shepherd/shepherd.h"

/* The output is read, and the status written, at most this often: once in this node time, and once in this wall time.
 * */
#define PERIOD_NS       (10 * NS_PER_SEC)
#define LEAST_PERIOD_NS NS_PER_SEC

/* A pipe holds 64 KiB, some 6000 lines: a job that writes more than that in this time is slowed by it. */
#define LISTEN_PAUSE_NS NS_PER_SEC

#define READ_BYTES   (256 << 10) /* of the new part of an output; bars of ten seconds are some 10 KiB */
#define READER_LIMIT 10          /* seconds, wall */

/* The child's answer. */
struct answer {
    struct progress progress;
    intmax_t read_bytes[2];
};

static int64_t period_ns(void)
{
    int64_t wall_ns = nodetime_to_wall_ns(PERIOD_NS);

    return wall_ns > LEAST_PERIOD_NS ? wall_ns : LEAST_PERIOD_NS;
}

static bool is_wanted(const struct shepherd *s)
{
    return s->request.progress_file && s->status.phase == LAUNCH_RUNNING && !s->kill_at_ns;
}

void progress_begin(struct shepherd *s)
{
    const struct shepherd_request *request = &s->request;
    int fifo = -1;

    if (!request->progress_file)
        return;
    unlink(request->progress_file); /* of a shepherd that was killed there may be one */
    /* Opened for writing, too: it stays a FIFO that somebody writes to. Nobody else can make or move a name there. */
    if (mkfifo(request->progress_file, 0600) < 0 ||
        (fifo = open(request->progress_file, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)) < 0 ||
        (request->uid != geteuid() && fchown(fifo, request->uid, request->gid) < 0)) {
        close_fd(&fifo);
        fifo = -1;
    }
    s->progress.fifo = fifo;
}

void progress_remove(const struct shepherd_request *request)
{
    if (request->progress_file)
        unlink(request->progress_file);
}

void progress_poll(const struct shepherd *s, struct pollfd polled[static 2])
{
    const struct watched_progress *watched = &s->progress;
    bool listens = nodetime_monotonic_wall_ns() >= watched->listen_at_ns;

    polled[0] = (struct pollfd){.fd = watched->reader, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = listens ? watched->fifo : -1, .events = POLLIN};
}

static bool has_news(const struct shepherd *s)
{
    const struct progress_count *newest = progress_newest(&s->progress.progress), *told = &s->status.progress;

    return newest &&
           (newest->step != told->step || newest->total != told->total || newest->done != told->done || !told->at_ns);
}

int64_t progress_next_ns(const struct shepherd *s)
{
    const struct watched_progress *watched = &s->progress;
    int64_t next_ns = INT64_MAX;

    if (!is_wanted(s))
        return next_ns;
    if (watched->reader < 0 && !watched->progress.told)
        next_ns = watched->read_at_ns;
    if (watched->fifo >= 0 && watched->listen_at_ns > nodetime_monotonic_wall_ns() && watched->listen_at_ns < next_ns)
        next_ns = watched->listen_at_ns;
    if (has_news(s) && watched->tell_at_ns < next_ns)
        next_ns = watched->tell_at_ns;
    return next_ns;
}

/* ---- In the child ---- */

/* The new part of the file; the last part of it, where that is much. */
static void read_file(const struct tail_origin *origin, struct progress *progress, intmax_t *read_bytes)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/self/fd/%d", origin->fd);
    CLEANUP(close_fd) int fd = -1;
    CLEANUP(free_ptr) char *text = NULL;
    ssize_t length;
    struct stat st;

    if (origin->fd < 0 || fstat(origin->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == *read_bytes ||
        (fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) < 0)
        return;
    if (st.st_size < *read_bytes || st.st_size - *read_bytes > READ_BYTES) { /* it was cut, or we are far behind */
        progress_forget_bars(progress);
        *read_bytes = st.st_size > READ_BYTES ? st.st_size - READ_BYTES : 0;
    }
    text = xmalloc(READ_BYTES);
    length = pread(fd, text, READ_BYTES, *read_bytes);
    if (length > 0)
        *read_bytes += (intmax_t)progress_read_output(progress, text, (size_t)length);
}

static void read_outputs(const struct shepherd *s, int answer_fd)
{
    struct answer answer;
    sigset_t none;

    sigemptyset(&none); /* it ends with the job's processes, of which it looks to be one */
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(READER_LIMIT);
    memset(&answer, 0, sizeof answer);
    answer.progress = s->progress.progress;
    memcpy(answer.read_bytes, s->progress.read_bytes, sizeof answer.read_bytes);
    if (child_become_user(&s->request, NULL) < 0)
        return;
    read_file(&s->output, &answer.progress, &answer.read_bytes[0]);
    read_file(&s->error, &answer.progress, &answer.read_bytes[1]);
    if (write(answer_fd, &answer, sizeof answer) != sizeof answer)
        return; /* the shepherd sees too little, and takes it as no answer */
}

/* ---- */

static void begin_reading(struct shepherd *s)
{
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    pid = ending_fork_helper();
    if (pid == 0) {
        close(fds[0]);
        read_outputs(s, fds[1]);
        _exit(0);
    }
    close(fds[1]);
    if (pid < 0)
        close(fds[0]);
    else
        s->progress.reader = fds[0];
}

static void take_answer(struct shepherd *s)
{
    struct watched_progress *watched = &s->progress;
    struct pollfd ready = {.fd = watched->reader, .events = POLLIN};
    struct answer answer;

    if (poll(&ready, 1, 0) <= 0)
        return;
    if (read(watched->reader, &answer, sizeof answer) == sizeof answer) {
        struct progress lines = watched->progress; /* heard meanwhile */
        watched->progress = answer.progress;
        watched->progress.told = lines.told;
        watched->progress.line = lines.line;
        memcpy(watched->read_bytes, answer.read_bytes, sizeof watched->read_bytes);
    }
    close_fd(&watched->reader);
    watched->reader = -1;
}

static void listen_to_job(struct shepherd *s, int fifo, int64_t now_ns)
{
    char text[4096];
    size_t kept = 0;
    ssize_t length;

    for (int i = 0; i < 64 && (length = read(fifo, text + kept, sizeof text - kept)) > 0; i++) {
        const char *newline = memrchr(text, '\n', kept + (size_t)length);
        size_t whole = newline ? (size_t)(newline + 1 - text) : 0;
        progress_read_lines(&s->progress.progress, text, whole);
        kept += (size_t)length - whole;
        kept = kept < sizeof text / 2 ? kept : 0; /* that is not a line */
        memmove(text, text + whole, kept);
        s->progress.listen_at_ns = now_ns + LISTEN_PAUSE_NS;
    }
}

/* Whoever writes to a FIFO that nobody has open any more is killed by a signal: the former ones stay open. */
void progress_heal(struct shepherd *s)
{
    struct watched_progress *watched = &s->progress;
    struct stat ours, now;

    for (uint32_t i = 0; i < watched->former_count; i++)
        listen_to_job(s, watched->former[i], nodetime_monotonic_wall_ns());
    if (watched->fifo < 0 || watched->former_count == PROGRESS_FORMER || fstat(watched->fifo, &ours) < 0 ||
        (lstat(s->request.progress_file, &now) == 0 && now.st_dev == ours.st_dev && now.st_ino == ours.st_ino))
        return;
    watched->former[watched->former_count++] = watched->fifo;
    progress_begin(s);
    if (watched->fifo < 0) /* not now */
        watched->fifo = watched->former[--watched->former_count];
}

void progress_turn(struct shepherd *s)
{
    struct watched_progress *watched = &s->progress;
    int64_t now_ns = nodetime_monotonic_wall_ns();

    if (watched->reader >= 0)
        take_answer(s);
    if (!is_wanted(s))
        return;
    if (watched->fifo >= 0 && now_ns >= watched->listen_at_ns)
        listen_to_job(s, watched->fifo, now_ns);
    if (watched->reader < 0 && now_ns >= watched->read_at_ns && !watched->progress.told) {
        if (watched->read_at_ns) /* the first time it is just put off: nothing is to be read yet */
            begin_reading(s);
        watched->read_at_ns = now_ns + period_ns();
    }
    if (has_news(s) && now_ns >= watched->tell_at_ns) {
        s->status.progress = *progress_newest(&watched->progress);
        s->status.progress.at_ns = nodetime_now_ns();
        watched->tell_at_ns = now_ns + period_ns();
        shepherd_publish_status(s);
    }
}
