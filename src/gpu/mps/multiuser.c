#include "gpu/mps/multiuser.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/proc.h"
#include "gpu/mps/call.h"
#include "gpu/mps/process.h"

#define TIMEOUT_MS 3000
#define LOOK_MS    5

struct trial {
    int status;
    struct error err;
};

static void on_started(void *user, int status, const char *answer, const struct error *err)
{
    struct trial *trial = user;

    (void)answer;
    trial->status = status;
    trial->err = *err;
}

static void stop(const char *pipe_directory)
{
    struct mps_process daemon = {0};

    if (!mps_process_find(pipe_directory, &daemon))
        return;
    kill(daemon.pid, SIGTERM); /* it has no server yet, which would be left behind */
    for (int waited_ms = 0; waited_ms < TIMEOUT_MS; waited_ms += LOOK_MS) {
        if (!proc_alive(daemon.pid, daemon.start_ticks))
            return;
        usleep(LOOK_MS * 1000);
    }
    kill(daemon.pid, SIGKILL);
}

static int try(const char *program, const char *directory, struct error *err)
{
    struct mps_process daemon = {0};
    struct trial trial = {0};
    uv_loop_t loop;
    struct mps_endpoint endpoint = {
        .loop = &loop, .program = program, .pipe_directory = directory, .log_directory = directory, .gpus = ""};
    int rc;

    uv_loop_init(&loop);
    mps_call_daemon(&endpoint, true, TIMEOUT_MS, on_started, &trial);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    rc = trial.status;
    if (rc == -ENOENT)
        *err = trial.err;
    else if (rc < 0 || !mps_process_find(directory, &daemon))
        rc = error_set(err, ENOTSUP,
                       "mps_multiuser = yes, and %s has no MPS server for several users: install a driver from 555 "
                       "on, or set mps_multiuser = no",
                       program);
    stop(directory);
    return rc;
}

int mps_multiuser_check(const char *program, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    CLEANUP(free_ptr)
    char *directory = xasprintf("%s/carma-mps-XXXXXX", temporary && *temporary == '/' ? temporary : "/tmp");
    int rc;

    if (geteuid() != 0)
        return error_set(err, EPERM,
                         "mps_multiuser = yes, and only root's MPS server takes several users: run carmad as root, "
                         "or set mps_multiuser = no");
    if (!mkdtemp(directory))
        return error_set(err, errno, "%s: %s", directory, strerror(errno));
    rc = try(program, directory, err);
    file_remove_tree(directory);
    return rc;
}
