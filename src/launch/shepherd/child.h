/* The job's side of the fork: from the shepherd's child to the user's command.
 *
 * It reports to the shepherd over a socket in lines. "output SIZE" and "error SIZE" are the files it opened, with their
 * sizes before the job. Each comes with a descriptor that names the file and gives no access (O_PATH). "terminal" comes
 * with the channel of what it is attached to (attach.h). "failed TEXT":
 * the command cannot be run. "exec" is the last step: the socket closes with it, unless something that a login shell
 * started holds it open. */
#ifndef CARMA_LAUNCH_SHEPHERD_CHILD_H
#define CARMA_LAUNCH_SHEPHERD_CHILD_H

#include "base/error.h"
#include "launch/request.h"

/* The byte for which the job waits: it may run; and whether the device filter is not on its group. */
#define CHILD_GO            "g"
#define CHILD_GO_UNFILTERED "u"

/* The steps before a job's command, in this order: a start that hangs is reported with its step. */
enum child_stage {
    CHILD_BECOMES_USER,
    CHILD_ENTERS_DIRECTORY,
    CHILD_MAKES_CHECKPOINTS,
    CHILD_OPENS_OUTPUT,
    CHILD_OPENS_ERROR,
    CHILD_RUNS_LOGIN_SHELL,
    CHILD_EXECUTES,
};

/* Becomes the request's user for good, where root does a job of another user; does nothing else. */
int child_become_user(const struct shepherd_request *request, struct error *err);

/* In the forked child: waits at `report_fd` for the job's request, becomes the user, makes the checkpoint directory,
 * and waits there for one of the bytes above. Then it becomes the job, or reports why not and exits. `shepherd` is the
 * path of this program, `parent` the process that runs it. `cgroup` is the control group that it still has to enter, if
 * it can; NULL: none. `stage` is in memory that the shepherd shares. */
void child_run(const char *shepherd, pid_t parent, const char *cgroup, int report_fd, volatile enum child_stage *stage)
    __attribute__((noreturn));

/* In a forked child: becomes the user's command on_end, with the job's environment and outputs, and without a GPU.
 * Nobody is told where that fails. */
void child_run_after(const struct shepherd_request *of_job, const char *group, const char *cause, int code)
    __attribute__((noreturn));

/* The program's other face, `carma-shepherd exec REPORT_FD DIRECTORY COUNT NAME=VALUE... COMMAND...`: the command that
 * the login shell executes once the environment is active. Restores the settings that the profile may have changed, and
 * runs the command. */
int child_exec_main(int argc, char **argv);

#endif
