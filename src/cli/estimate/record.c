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
#include "base/install.h"
#include "base/memory.h"
#include "cli/estimate/estimate.h"
#include "sandbox/keeper.h"

#define ANSWER_MAX    ((size_t)CAPTURE_OUTPUT_BYTES)
#define COMPLAINT_MAX 4096

/* What was written to a file in memory; at most so many bytes. The text is the caller's. */
static char *read_all(int fd, size_t most, size_t *length)
{
    char *text = xmalloc(most + 1);
    ssize_t count;

    *length = 0;
    while (*length < most && (count = pread(fd, text + *length, most - *length, (off_t)*length)) > 0)
        *length += (size_t)count;
    text[*length] = '\0';
    return text;
}

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

/* The program's verdict and result, which is the caller's; its complaint in err. A negative errno: it did not run. */
static int ask_sandbox(const struct capture_request *request, const struct job_spec *spec, char **result,
                       size_t *length, struct error *err)
{
    CLEANUP(free_ptr) char *text = NULL;
    CLEANUP(free_ptr) char *program = install_path("lib/carma/carma-sandbox");
    CLEANUP(free_ptr) char *complaint = NULL;
    static const char *const names[3] = {"request", "result", "complaint"};
    int fds[3], rc = capture_request_make(request, 0, spec, &text, err);
    size_t complained = 0;

    if (rc)
        return rc;
    free_ptr(result);
    for (int i = 0; i < 3; i++)
        if ((fds[i] = memfd_create(names[i], MFD_CLOEXEC)) < 0)
            rc = error_set(err, errno, "no file in memory can be made: %s", strerror(errno));
    if (rc == 0 && pwrite(fds[0], text, strlen(text), 0) != (ssize_t)strlen(text))
        rc = error_set(err, ENOSPC, "there is no memory for the command's environment");
    if (rc == 0)
        rc = run(program, fds, err);
    if (rc >= 0) {
        *result = read_all(fds[1], ANSWER_MAX, length);
        complaint = read_all(fds[2], COMPLAINT_MAX, &complained);
        if (rc > 0)
            error_set(err, ECHILD, "%.*s", (int)strcspn(complaint, "\n"), complained ? complaint : "it was ended");
    }
    for (int i = 0; i < 3; i++)
        close_fd(&fds[i]);
    return rc;
}

int estimate_record(const struct job_spec *spec, struct spec_strings *warnings, char **capture, char **from,
                    struct error *err)
{
    const struct passwd *account = getpwuid(geteuid());
    struct capture_request request = {
        .uid = geteuid(), .gid = getegid(), .user = account ? account->pw_name : NULL, .directory = spec->directory};
    CLEANUP(free_ptr) char *result = NULL;
    CLEANUP(capture_answer_release) struct capture_answer answer = {0};
    size_t length = 0;
    int rc = ask_sandbox(&request, spec, &result, &length, err);

    if (rc == VERDICT_MISSING && job_spec_asks_for_capture(spec)) {
        CLEANUP(free_ptr) char *warning = xasprintf("captured without a sandbox, as asked: %s", err->text);
        spec_strings_add(warnings, warning);
        request.bare = true;
        rc = ask_sandbox(&request, spec, &result, &length, err);
    }
    if (rc == VERDICT_MISSING)
        error_prefix(err, "its command is not tried without a sandbox");
    else if (rc > 0)
        error_prefix(err, "no capture of its command");
    if (rc)
        return rc < 0 ? rc : -ECHILD;
    rc = capture_answer_read(result, length, &answer, err);
    if (rc)
        error_prefix(err, "no capture of its command");
    *capture = steal_ptr(&answer.text);
    *from = steal_ptr(&answer.from);
    return rc;
}
