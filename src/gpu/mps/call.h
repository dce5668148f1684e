/* One call of the MPS control program, beside the loop: it is started, told, listened to, and killed when it is late.
 */
#ifndef CARMA_GPU_MPS_CALL_H
#define CARMA_GPU_MPS_CALL_H

#include <stdbool.h>
#include <uv.h>

#include "gpu/mps/protocol.h"

/* Which control daemon, and how it is reached. Borrowed texts. */
struct mps_endpoint {
    uv_loop_t *loop;
    const char *program;        /* a path, or a name that is looked up in PATH */
    const char *pipe_directory; /* CUDA_MPS_PIPE_DIRECTORY */
    const char *log_directory;  /* CUDA_MPS_LOG_DIRECTORY */
    const char *gpus;           /* CUDA_VISIBLE_DEVICES of a daemon that is started: UUIDs */
};

struct mps_call;

/* Called once, on the loop, unless the call was forgotten. status 0: the program ended with status 0, and `answer` is
 * its output; else a negative errno (-ENOENT: the program is missing, -ETIMEDOUT: killed, -EIO: it ended otherwise) and
 * `err` says so. */
typedef void mps_called(void *user, int status, const char *answer, const struct error *err);

/* Returns at once. */
struct mps_call *mps_call(const struct mps_endpoint *endpoint, const struct mps_command *command,
                          uint64_t timeout_wall_ms, mps_called *done, void *user);

/* Starts a daemon in the background, so that only the call's status counts: its output goes to start.log of the log
 * directory. */
struct mps_call *mps_call_daemon(const struct mps_endpoint *endpoint, bool multiuser, uint64_t timeout_wall_ms,
                                 mps_called *done, void *user);

/* `done` will not be called any more. The program is left to end by itself, or by its time-out. NULL: nothing. */
void mps_call_forget(struct mps_call *call);

#endif
