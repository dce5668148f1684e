#include "cli/estimate/calibrate_step.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/install.h"
#include "base/json/json_read.h"
#include "base/memory.h"

#define STEP_TIMEOUT_MS 300000 /* importing PyTorch from a cold disk, and compiling kernels */
#define LINE_MAX_BYTES  4096
/* Python would look for modules in the working directory first, where others may have put some. */
#define TINY_STEP                                                                                                      \
    "import sys; sys.path[:1] = filter(None, sys.path[:1]); from carma import tiny_step; "                             \
    "sys.exit(tiny_step.main())"

static void add_module_path(void)
{
    CLEANUP(free_ptr) char *own = install_path("share/carma/python");
    const char *others = getenv("PYTHONPATH");
    CLEANUP(free_ptr) char *path = others && *others ? xasprintf("%s:%s", own, others) : xstrdup(own);

    setenv("PYTHONPATH", path, 1);
}

int tiny_step_start(struct tiny_step *step, struct error *err)
{
    char *argv[] = {(char[]){"python3"}, (char[]){"-c"}, (char[]){TINY_STEP}, NULL};
    posix_spawn_file_actions_t actions;
    int fds[2], code;

    *step = (struct tiny_step){.fd = -1};
    add_module_path();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return error_set(err, errno, "cannot make a socket pair: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    code = posix_spawnp(&step->pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    if (code) {
        close(fds[0]);
        step->pid = 0;
        return error_set(err, EIO, "cannot start python3: %s", strerror(code));
    }
    step->fd = fds[0];
    return 0;
}

/* One line, without its end. */
static int read_line(int fd, char line[static LINE_MAX_BYTES], struct error *err)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    for (size_t used = 0; used < LINE_MAX_BYTES - 1; used++) {
        int rc = poll(&ready, 1, STEP_TIMEOUT_MS);
        if (rc == 0)
            return error_set(err, ETIMEDOUT, "python3's tiny step did not finish its step within 5 minutes");
        if (rc < 0 && errno == EINTR) {
            used--;
            continue;
        }
        if (rc < 0 || read(fd, line + used, 1) != 1)
            return error_set(err, EIO, "python3's tiny step ended without a result: it needs PyTorch with CUDA");
        if (line[used] == '\n') {
            line[used] = '\0';
            return 0;
        }
    }
    return error_set(err, EIO, "python3's tiny step wrote a line of more than %d bytes", LINE_MAX_BYTES);
}

static int take_report(const char *line, const char *part, struct tiny_step_report *report, struct error *err)
{
    static const struct json_bounds bounds = {.values = 32, .depth = 2, .bytes = LINE_MAX_BYTES};
    json_t *json;
    const char *step = NULL, *torch = NULL;
    json_int_t reserved = -1, workspace = -1;
    int rc;

    json_read(line, strlen(line), 0, &bounds, &json, NULL);
    rc = json_unpack(json, "{s:s, s:s, s:I, s:I}", "step", &step, "torch", &torch, "reserved_bytes", &reserved,
                     "cublas_workspace_bytes", &workspace);
    if (rc == 0 && strcmp(step, part) == 0 && reserved >= 0 && workspace >= 0) {
        *report = (struct tiny_step_report){.reserved_bytes = reserved, .cublas_workspace_bytes = workspace};
        snprintf(report->torch, sizeof report->torch, "%s", torch);
    } else {
        rc = error_set(err, EPROTO, "python3's tiny step wrote '%.100s' instead of its %s step", line, part);
    }
    json_decref(json);
    return rc;
}

int tiny_step_wait(struct tiny_step *step, const char *part, struct tiny_step_report *report, struct error *err)
{
    char line[LINE_MAX_BYTES];
    int rc;

    /* the first part waits for nobody */
    if (strcmp(part, "linear") != 0)
        send(step->fd, "\n", 1, MSG_NOSIGNAL);
    rc = read_line(step->fd, line, err);
    return rc ? rc : take_report(line, part, report, err);
}

void tiny_step_end(struct tiny_step *step)
{
    close_fd(&step->fd);
    if (step->pid) {
        kill(step->pid, SIGKILL);
        while (waitpid(step->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    step->pid = 0;
}
