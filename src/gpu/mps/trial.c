#include "gpu/mps/trial.h"

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

static int start_and_stop(const char *program, const char *directory, bool multiuser, struct error *err)
{
    struct mps_process daemon = {0};
    struct trial trial = {0};
    uv_loop_t loop;
    struct mps_endpoint endpoint = {
        .loop = &loop, .program = program, .pipe_directory = directory, .log_directory = directory, .gpus = ""};
    int rc;

    uv_loop_init(&loop);
    mps_call_daemon(&endpoint, multiuser, TIMEOUT_MS, on_started, &trial);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    rc = trial.status;
    if (rc == -ENOENT)
        *err = trial.err;
    else if (rc < 0)
        rc = error_set(err, ENOTSUP, "%s starts no control daemon: %s", program, trial.err.text);
    else if (!mps_process_find(directory, &daemon))
        rc = error_set(err, ENOTSUP, "%s starts no control daemon, and says nothing of it", program);
    stop(directory);
    return rc;
}

static int try(const char *program, bool multiuser, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    CLEANUP(free_ptr)
    char *directory = xasprintf("%s/carma-mps-XXXXXX", temporary && *temporary == '/' ? temporary : "/tmp");
    int rc;

    if (!mkdtemp(directory))
        return error_set(err, errno, "%s: %s", directory, strerror(errno));
    rc = start_and_stop(program, directory, multiuser, err);
    file_remove_tree(directory);
    return rc;
}

int mps_try(const char *program, struct error *err)
{
    return try(program, false, err);
}

int mps_try_multiuser(const char *program, struct error *err)
{
    int rc;

    if (geteuid() != 0)
        return error_set(err, EPERM,
                         "mps_multiuser = yes, and only root's MPS server takes several users: run carmad as root, "
                         "or set mps_multiuser = no");
    rc = try(program, true, err);
    if (rc == -ENOTSUP)
        error_set(err, ENOTSUP,
                  "mps_multiuser = yes, and %s has no MPS server for several users: install a driver from 555 on, or "
                  "set mps_multiuser = no",
                  program);
    return rc;
}
