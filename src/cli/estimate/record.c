/* A training step of a job's own command, recorded now: in carma-sandbox, as the daemon does for a job that waits. */
#include <errno.h>
#include <pwd.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/capture_answer.h"
#include "api/capture_request.h"
#include "api/spec.h"
#include "base/file.h"
#include "base/install.h"
#include "base/memory.h"
#include "cli/estimate/estimate.h"
#include "sandbox/keeper.h"

#define COMPLAINT_MAX (64 << 10)

/* Waits for the program's end; its exit status, or a negative errno. */
static int run(const char *program, const int fds[3], struct error *err)
{
    char *argv[] = {(char *)(uintptr_t)program, NULL};
    posix_spawn_file_actions_t actions;
    int rc, status;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    rc = posix_spawn(&pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc)
        return error_set(err, rc, "%s cannot be started: %s", program, strerror(rc));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_set(err, errno, "%s is lost: %s", program, strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : VERDICT_FAILED;
}

/* Reads a file in memory from its start. The text is the caller's. */
static int read_back(int fd, const char *name, size_t most, char **text, size_t *length, struct error *err)
{
    lseek(fd, 0, SEEK_SET);
    return file_read_fd(fd, name, most, text, length, err);
}

/* The first line that the program wrote. */
static int take_complaint(int fd, struct error *err)
{
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    int rc = read_back(fd, "the sandbox's complaint", COMPLAINT_MAX, &text, &length, err);

    if (rc)
        return rc;
    text[strcspn(text, "\n")] = '\0';
    error_set(err, ECHILD, "%s", *text ? text : "the sandbox was ended");
    error_make_printable(err);
    return 0;
}

/* The program's verdict and its result, which is the caller's. A negative errno: there is none. */
static int ask_sandbox(const struct capture_request *request, const struct job_spec *spec, char **result,
                       size_t *length, struct error *err)
{
    static const char *const names[3] = {"request", "result", "complaint"};
    CLEANUP(free_ptr) char *program = install_path("lib/carma/carma-sandbox");
    CLEANUP(free_ptr) char *text = NULL;
    int fds[3] = {-1, -1, -1}, verdict = VERDICT_FAILED, rc = capture_request_make(request, 0, spec, &text, err);

    for (int i = 0; i < 3 && rc == 0; i++)
        if ((fds[i] = memfd_create(names[i], MFD_CLOEXEC)) < 0)
            rc = error_set(err, errno, "no file in memory can be made: %s", strerror(errno));
    if (rc == 0 && pwrite(fds[0], text, strlen(text), 0) != (ssize_t)strlen(text))
        rc = error_set(err, ENOSPC, "the command's environment does not fit into memory");
    if (rc == 0 && (verdict = run(program, fds, err)) < 0)
        rc = verdict;
    if (rc == 0)
        rc = read_back(fds[1], "the recorded step", CAPTURE_OUTPUT_BYTES, result, length, err);
    if (rc == 0 && verdict != VERDICT_ENDED)
        rc = take_complaint(fds[2], err);
    for (int i = 0; i < 3; i++)
        close_fd(&fds[i]);
    return rc ? rc : verdict;
}

int estimate_record(const struct job_spec *spec, struct spec_strings *warnings, char **capture, char **from,
                    struct error *err)
{
    const struct passwd *account = getpwuid(geteuid());
    struct capture_request request = {
        .uid = geteuid(), .gid = getegid(), .user = account ? account->pw_name : NULL, .directory = spec->directory};
    CLEANUP(free_ptr) char *result = NULL;
    CLEANUP(capture_answer_release) struct capture_answer answer = {0};
    struct error failure;
    size_t length = 0;
    int rc = ask_sandbox(&request, spec, &result, &length, err);

    if (rc == VERDICT_MISSING && job_spec_asks_for_capture(spec)) {
        CLEANUP(free_ptr) char *warning = xasprintf("captured without a sandbox, as asked: %s", err->text);
        spec_strings_add(warnings, warning);
        request.bare = true;
        free_ptr(&result);
        rc = ask_sandbox(&request, spec, &result, &length, err);
    }
    if (rc == VERDICT_MISSING) {
        error_prefix(err, "its command is not tried without a sandbox");
        return -ENOTSUP;
    }
    if (rc < 0)
        return rc;
    failure = *err;
    rc = capture_answer_read(result, length, rc == VERDICT_ENDED ? NULL : failure.text, &answer, err);
    if (rc) {
        capture_add_remedy(err);
        error_prefix(err, "no capture of its command");
    }
    *capture = steal_ptr(&answer.text);
    *from = steal_ptr(&answer.from);
    return rc;
}
