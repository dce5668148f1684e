#include "gpu/mps/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/proc.h"
#include "gpu/mps/call.h"
#include "gpu/mps/process.h"

#define START_MS 10000 /* a machine that boots is busy, and without MPS all jobs take turns until the next start */
#define END_MS   3000
#define LOOK_MS  5

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
    for (int waited_ms = 0; waited_ms < END_MS; waited_ms += LOOK_MS) {
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
    mps_call_daemon(&endpoint, multiuser, START_MS, on_started, &trial);
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

/* After a reboot the name may be another's. */
static void end_left(const char *directory)
{
    struct stat st;

    mps_process_end_all(directory);
    if (lstat(directory, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
        file_remove_tree(directory);
}

int mps_trials_begin(const char *record, struct error *err)
{
    CLEANUP(close_fd) int fd = open(record, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    char directory[PATH_MAX] = "";
    int taken;

    if (fd < 0)
        return error_set(err, errno, "%s: %s", record, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, EBUSY, "%s: another carmad begins with this state: stop it, or give this one its own",
                         record);
    if (pread(fd, directory, sizeof directory - 1, 0) > 0)
        end_left(directory);
    taken = fd;
    fd = -1;
    return taken;
}

void mps_trials_end(const char *record, int trials)
{
    if (trials >= 0)
        unlink(record);
    close_fd(&trials);
}

static int try(const char *program, bool multiuser, int trials, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    CLEANUP(free_ptr)
    char *directory = xasprintf("%s/carma-mps-XXXXXX", temporary && *temporary == '/' ? temporary : "/tmp");
    size_t length = strlen(directory);
    int rc = 0;

    if (!mkdtemp(directory))
        return error_set(err, errno, "%s: %s", directory, strerror(errno));
    if (trials >= 0 && (ftruncate(trials, 0) < 0 || pwrite(trials, directory, length, 0) != (ssize_t)length))
        rc = error_set(err, errno ? errno : EIO, "the trial of MPS cannot be noted: %s", strerror(errno));
    if (rc == 0)
        rc = start_and_stop(program, directory, multiuser, err);
    end_left(directory);
    return rc;
}

int mps_try(const char *program, int trials, struct error *err)
{
    return try(program, false, trials, err);
}

int mps_try_multiuser(const char *program, int trials, struct error *err)
{
    int rc;

    if (geteuid() != 0)
        return error_set(err, EPERM,
                         "mps_multiuser = yes, and only root's MPS server takes several users: run carmad as root, "
                         "or set mps_multiuser = no");
    rc = try(program, true, trials, err);
    if (rc == -ENOTSUP)
        error_set(err, ENOTSUP,
                  "mps_multiuser = yes, and %s has no MPS server for several users: install a driver from 555 on, or "
                  "set mps_multiuser = no",
                  program);
    return rc;
}
