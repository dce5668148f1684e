/* The program gets the results as its standard input, a file in memory, and its messages come back in another. */
#include "cli/show/picture.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/install.h"
#include "base/memory.h"

#define PROGRAM "bench/bench_plot.py"

static int run(const char *path, int input, int messages, int *status, struct error *err)
{
    CLEANUP(free_ptr) char *installed = install_path("lib/carma/" PROGRAM);
    CLEANUP(free_ptr) char *built = install_beside("../../python/carma_bench/bench_plot.py");
    CLEANUP(free_ptr) char *target = xstrdup(path);
    char *program = access(installed, X_OK) == 0 ? installed : built, source[] = "-";
    char *argv[] = {program, source, target, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int code;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, messages, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
    code = posix_spawn(&pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code)
        return error_set(err, code, "%s: %s: it belongs to carma: install carma (Debian: python3-carma) again",
                         installed, strerror(code));
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return 0;
}

/* The last line, within what an error can hold. */
static int take_message(int messages, struct error *err)
{
    char text[sizeof err->text];
    off_t end = lseek(messages, 0, SEEK_END), begin = end > (off_t)sizeof text - 1 ? end - (off_t)sizeof text + 1 : 0;
    ssize_t length = pread(messages, text, sizeof text - 1, begin);
    const char *line;

    text[length > 0 ? length : 0] = '\0';
    while (*text && text[strlen(text) - 1] == '\n')
        text[strlen(text) - 1] = '\0';
    line = strrchr(text, '\n');
    return error_set(err, EIO, "%s", line ? line + 1 : *text ? text : "no picture: " PROGRAM " says nothing");
}

int picture_draw(const json_t *results, const char *path, struct error *err)
{
    CLEANUP(close_fd) int input = memfd_create("carma-results", MFD_CLOEXEC);
    CLEANUP(close_fd) int messages = memfd_create("carma-messages", MFD_CLOEXEC);
    int status = 0, rc;

    if (input < 0 || messages < 0)
        return error_set(err, errno, "no memory for a picture's results: %s", strerror(errno));
    if (json_dumpfd(results, input, JSON_COMPACT) || lseek(input, 0, SEEK_SET) < 0)
        return error_set(err, EIO, "no memory for a picture's results");
    rc = run(path, input, messages, &status, err);
    return rc || status == 0 ? rc : take_message(messages, err);
}
