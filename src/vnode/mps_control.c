/* A virtual nvidia-cuda-mps-control, for virtual nodes (docs/mps.md): its daemon, and the program that talks to it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "vnode/mps_speak.h"

#define TICK_MS  20
#define MAX_TEXT 4096

struct options {
    bool daemon, multiuser;
    int version;
    struct strbuf words; /* what else was said */
};

static const char *pipe_directory(void)
{
    const char *set = getenv("CUDA_MPS_PIPE_DIRECTORY");

    return set && *set ? set : "/tmp/nvidia-mps";
}

static void read_options(int argc, char **argv, struct options *options)
{
    const char *version = getenv("CUDA_MPS_PROTOCOL_VERSION");

    options->version = 2;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-d") == 0 || strcmp(argv[i], "--daemon") == 0)
            options->daemon = true;
        else if (strcmp(argv[i], "-M") == 0 || strcmp(argv[i], "-multiuser-server") == 0 ||
                 strcmp(argv[i], "-m") == 0 || strcmp(argv[i], "--multiuser") == 0)
            options->multiuser = true;
        else if (strcmp(argv[i], "-p") == 0 && argv[i + 1])
            options->version = atoi(argv[++i]);
        else
            strbuf_printf(&options->words, "%s%s", options->words.length ? " " : "", argv[i]);
    }
    if (version)
        options->version = atoi(version);
}

static int connect_or_bind(const char *directory, bool listener)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/control", directory);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof address.sun_path) {
        close_fd(&fd);
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (!listener) {
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            return fd;
    } else {
        unlink(path); /* of a daemon that has died: whether one lives was looked at */
        if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && chmod(path, 0666) == 0 && listen(fd, 16) == 0)
            return fd;
    }
    close_fd(&fd);
    return -errno;
}

/* ---- The program that talks to a daemon: 'A' and its arguments, or 'I' and its input; '0' or '1' and the answer back ---- */

static int talk(struct options *options)
{
    char text[MAX_TEXT];
    int fd = connect_or_bind(pipe_directory(), false);
    ssize_t count;
    char status = '1';

    if (fd < 0) {
        fprintf(stderr, "Cannot find MPS control daemon process\n");
        return 1;
    }
    if (options->words.length) {
        dprintf(fd, "A%s", options->words.text);
    } else {
        dprintf(fd, "I");
        while ((count = read(0, text, sizeof text)) > 0)
            if (write(fd, text, (size_t)count) < 0)
                break;
    }
    shutdown(fd, SHUT_WR);
    if (read(fd, &status, 1) == 1)
        while ((count = read(fd, text, sizeof text)) > 0)
            fwrite(text, 1, (size_t)count, stdout);
    close(fd);
    return fflush(stdout) == 0 && status == '0' ? 0 : 1;
}

/* ---- The daemon ---- */

static volatile sig_atomic_t told_to_stop;

static void on_signal(int number)
{
    (void)number;
    told_to_stop = 1;
}

static int64_t now_ms(void)
{
    return nodetime_monotonic_wall_ns() / NS_PER_MS;
}

static void answer_one(struct mps_speaker *speaker, int fd)
{
    CLEANUP(strbuf_release) struct strbuf answer = {0};
    struct timeval patience = {.tv_sec = 1};
    char text[MAX_TEXT], *rest = NULL;
    size_t length = 0;
    ssize_t count;
    int status = 0;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (length + 1 < sizeof text && (count = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)count;
    text[length] = '\0';
    mps_daemon_advance(speaker->daemon, now_ms());
    for (char *line = strtok_r(length ? text + 1 : text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        status |= mps_speak(speaker, line, *text == 'A', now_ms(), &answer);
    dprintf(fd, "%d%s", status, answer.text ? answer.text : "");
}

/* Until it is told to end, or nobody can reach it any more: its directory was removed, as a test's is. */
static void serve(struct mps_speaker *speaker, int listener, const char *control)
{
    struct pollfd waiting = {.fd = listener, .events = POLLIN};

    while (!told_to_stop && !speaker->quit && access(control, F_OK) == 0) {
        if (poll(&waiting, 1, TICK_MS) > 0) {
            int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (fd >= 0) {
                answer_one(speaker, fd);
                close(fd);
            }
        }
        mps_daemon_advance(speaker->daemon, now_ms());
    }
}

static int write_pid(const char *path)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%d\n", (int)getpid());

    return file_write_atomic(path, text, (size_t)length, 0644, NULL);
}

static void be_daemon(const struct options *options, int listener, const char *pid_path) __attribute__((noreturn));
static void be_daemon(const struct options *options, int listener, const char *pid_path)
{
    static struct mps_daemon state;
    struct mps_speaker speaker = {.daemon = &state, .version = options->version};
    CLEANUP(free_ptr) char *control = xasprintf("%s/control", pipe_directory());
    struct error err;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (mps_daemon_open(&state, pipe_directory(), &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        _exit(1);
    }
    state.multiuser = options->multiuser;
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    signal(SIGPIPE, SIG_IGN);
    serve(&speaker, listener, control);
    unlink(control);
    mps_daemon_close(&state);
    unlink(pid_path); /* last: who sees it gone sees nothing of us */
    _exit(0);
}

static bool runs_already(void)
{
    int fd = connect_or_bind(pipe_directory(), false);
    bool runs = fd >= 0;

    close_fd(&fd);
    return runs;
}

static int start(const struct options *options)
{
    CLEANUP(free_ptr) char *pid_path = xasprintf("%s/nvidia-cuda-mps-control.pid", pipe_directory());
    int listener, status;
    struct error err;
    pid_t pid;

    if (file_make_dirs(pipe_directory(), 0755, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (runs_already()) {
        fprintf(stderr, "An instance of this daemon is already running\n");
        return 1;
    }
    listener = connect_or_bind(pipe_directory(), true);
    if (listener < 0) {
        fprintf(stderr, "Cannot listen in %s: %s\n", pipe_directory(), strerror(-listener));
        return 1;
    }
    pid = fork();
    if (pid < 0)
        return 1;
    if (pid == 0) {
        setsid();
        if (fork() > 0) /* not the leader of its session, and nobody's child */
            _exit(0);
        status = write_pid(pid_path);
        if (status < 0)
            _exit(1);
        be_daemon(options, listener, pid_path);
    }
    waitpid(pid, NULL, 0);
    for (int tries = 0; tries < 200; tries++) { /* started means: it says so */
        if (runs_already() && access(pid_path, F_OK) == 0)
            return 0;
        usleep(5000);
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    int status;

    read_options(argc, argv, &options);
    status = options.daemon ? start(&options) : talk(&options);
    strbuf_release(&options.words);
    return status;
}
