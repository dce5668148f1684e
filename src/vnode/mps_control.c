/* A virtual nvidia-cuda-mps-control, for virtual nodes (docs/mps.md): its daemon, and the program that talks to it. It
 * answers as NVIDIA's program of the driver that the node's profile names (tests/golden/mps). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
#include "vnode/numbering.h"

#define TICK_MS    20
#define MAX_TEXT   4096
#define MAX_ANSWER (128 * 1024)

struct options {
    bool daemon, multiuser, refused;
};

static const char *pipe_directory(void)
{
    const char *set = getenv("CUDA_MPS_PIPE_DIRECTORY");

    return set && *set ? set : "/tmp/nvidia-mps";
}

/* Drivers before 555 know -d alone, and take no notice of anything else. */
static void read_options(int argc, char **argv, int driver, struct options *options)
{
    if (driver < MPS_DRIVER_MULTIUSER) {
        options->daemon = argc == 2 && strcmp(argv[1], "-d") == 0;
        return;
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-d") == 0)
            options->daemon = true;
        else if (strcmp(argv[i], "-multiuser-server") == 0)
            options->multiuser = true;
        else
            options->refused = true;
    }
}

static int refuse_options(const struct options *options)
{
    if (!options->refused && !(options->multiuser && geteuid() != 0))
        return 0;
    printf("CUDA MPS Control, virtual: docs/mps.md has its commands.\n");
    if (!options->refused)
        printf("Only root user may enable -multiuser-server!\n");
    return 1;
}

static int connect_or_bind(const char *name, mode_t mode, bool listener)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", pipe_directory(), name);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof address.sun_path) {
        close_fd(&fd);
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (!listener) {
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            return fd;
    } else {
        unlink(path); /* of a daemon that has gone: it stays behind */
        if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && chmod(path, mode) == 0 && listen(fd, 16) == 0)
            return fd;
    }
    close_fd(&fd);
    return -errno;
}

/* ---- The program that talks to a daemon: its input there, NUMBERING_ANSWERED and the answer back ---- */

static int talk(void)
{
    static char answer[MAX_ANSWER];
    char text[MAX_TEXT];
    int fd = connect_or_bind("control", 0, false);
    ssize_t count;

    if (fd < 0) {
        fprintf(stderr, "Cannot find MPS control daemon process\n");
        return 1;
    }
    while ((count = read(0, text, sizeof text)) > 0)
        if (write(fd, text, (size_t)count) < 0)
            break;
    shutdown(fd, SHUT_WR);
    count = read(fd, answer, sizeof answer);
    close(fd);
    if (count > 1)
        fwrite(answer + 1, 1, (size_t)count - 1, stdout);
    return fflush(stdout) == 0 && count > 0 ? 0 : 1;
}

/* ---- The daemon ---- */

static volatile sig_atomic_t told_to_stop;

static void on_signal(int number)
{
    told_to_stop = 1;
}

static int64_t now_ms(void)
{
    return nodetime_monotonic_wall_ns() / NS_PER_MS;
}

static bool is_of_version_3(int driver)
{
    const char *version = getenv("CUDA_MPS_PROTOCOL_VERSION");

    return driver >= MPS_DRIVER_V3 && version && strcmp(version, "3") == 0;
}

static void answer_one(struct mps_speaker *speaker, int fd)
{
    CLEANUP(strbuf_release) struct strbuf answer = {0};
    struct timeval timeout = {.tv_sec = 1};
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t peer_length = sizeof peer;
    char text[MAX_TEXT], *rest = NULL;
    size_t length = 0;
    ssize_t count;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_length);
    speaker->uid = peer.uid;
    while (length + 1 < sizeof text && (count = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)count;
    text[length] = '\0';
    mps_daemon_advance(speaker->daemon, now_ms());
    rest = text;
    strbuf_printf(&answer, "%c", NUMBERING_ANSWERED);
    if (is_of_version_3(speaker->driver))
        strbuf_puts(&answer, "This daemon speaks version 3, which the virtual program does not\n");
    else
        while (rest && *rest)
            mps_speak(speaker, strsep(&rest, "\n"), now_ms(), &answer);
    send(fd, answer.text, answer.length < MAX_ANSWER ? answer.length : MAX_ANSWER, MSG_NOSIGNAL);
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

    return file_write_atomic(path, text, (size_t)length, 0666, NULL);
}

static void be_daemon(const struct options *options, int driver) __attribute__((noreturn));
static void be_daemon(const struct options *options, int driver)
{
    static struct mps_daemon state;
    struct mps_speaker speaker = {.daemon = &state, .driver = driver};
    CLEANUP(free_ptr) char *control = xasprintf("%s/control", pipe_directory());
    CLEANUP(free_ptr) char *log = xasprintf("%s/log", pipe_directory());
    CLEANUP(free_ptr) char *pid_path = xasprintf("%s/nvidia-cuda-mps-control.pid", pipe_directory());
    int listener, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct error err;

    if ((driver >= MPS_DRIVER_STATES && write_pid(pid_path) < 0) ||
        connect_or_bind("control_privileged", 0755, true) < 0 ||
        (listener = connect_or_bind("control", 0666, true)) < 0 || mps_daemon_open(&state, pipe_directory(), &err) < 0)
        _exit(1);
    unlink(log);
    mkfifo(log, 0777);
    state.multiuser = options->multiuser;
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    signal(SIGPIPE, SIG_IGN);
    serve(&speaker, listener, control);
    mps_daemon_close(&state);
    unlink(log); /* the sockets stay, as NVIDIA's do */
    unlink(pid_path);
    _exit(0);
}

static bool runs_already(void)
{
    int fd = connect_or_bind("control", 0, false);
    bool runs = fd >= 0;

    close_fd(&fd);
    return runs;
}

static void touch(const char *directory, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    close_fd(&fd);
}

static int start(const struct options *options, int driver)
{
    CLEANUP(free_ptr) char *lock = xasprintf("%s/control_lock", pipe_directory());
    const char *log_directory = getenv("CUDA_MPS_LOG_DIRECTORY");
    pid_t pid;
    int held;

    umask(0);
    if (!getenv("CUDA_MPS_PIPE_DIRECTORY"))
        mkdir(pipe_directory(), 0755);
    held = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666); /* as long as the daemon lives */
    if (held < 0) {
        printf("Cannot access CUDA_MPS_PIPE_DIRECTORY=%s\n", pipe_directory());
        return 1;
    }
    if (flock(held, LOCK_EX | LOCK_NB) < 0) {
        printf("An instance of this daemon is already running\n");
        return 1;
    }
    if (log_directory) {
        touch(log_directory, "control.log");
        touch(log_directory, "server.log");
    }
    pid = fork();
    if (pid < 0)
        return 1;
    if (pid == 0) {
        setsid();
        if (fork() > 0) /* not the leader of its session, and nobody's child */
            _exit(0);
        be_daemon(options, driver);
    }
    waitpid(pid, NULL, 0);
    close(held);
    for (int tries = 0; tries < 200; tries++) { /* started means: it answers */
        if (runs_already())
            return 0;
        usleep(5000);
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct error err;
    struct node node;
    int status, driver;

    if (node_open(&node, NULL, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    driver = atoi(node.file->driver_version);
    node_close(&node);
    read_options(argc, argv, driver, &options);
    status = refuse_options(&options);
    if (status == 0)
        status = options.daemon ? start(&options, driver) : talk();
    return status;
}
