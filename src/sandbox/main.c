/* carma-sandbox: runs a command as a user where nothing that it does has an effect outside, and hands on its result. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/kernel/calls.h"
#include "base/memory.h"
#include "sandbox/keeper.h"

#define REQUEST_LIMIT (64 << 20)

static enum verdict complain(enum verdict verdict, const struct error *err)
{
    fprintf(stderr, "%s\n", err->text);
    return verdict;
}

static int print(const struct strbuf *result)
{
    return fwrite(result->text, 1, result->length, stdout) != result->length || fflush(stdout) != 0 ? -errno : 0;
}

static enum verdict run(struct sandbox_request *request, struct strbuf *result, struct error *err)
{
    enum verdict verdict = keeper_run(request, result, err);

    if (result->length && print(result) < 0) {
        error_set(err, EIO, "its result cannot be written to standard output");
        return VERDICT_FAILED;
    }
    return verdict;
}

int main(int argc, char **argv)
{
    CLEANUP(strbuf_release) struct strbuf result = {0};
    CLEANUP(free_ptr) char *text = NULL;
    struct sandbox_request request;
    size_t length;
    enum verdict verdict;
    struct error err;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* with carmad, or whoever asks, everything inside ends */
    kernel_close_from(STDERR_FILENO + 1, 0);
    signal(SIGPIPE, SIG_IGN);
    if (argc == 2 && strcmp(argv[1], "--check") == 0) {
        sandbox_request_for_check(&request);
    } else if (argc != 1) {
        fprintf(stderr, "usage: carma-sandbox [--check] <REQUEST (docs/automatic-capture.md)\n");
        return VERDICT_MISSING;
    } else if (file_read_fd(STDIN_FILENO, "the request", REQUEST_LIMIT, &text, &length, &err) < 0 ||
               sandbox_request_read(text, length, &request, &err) < 0) {
        sandbox_request_release(&request);
        return complain(VERDICT_MISSING, &err);
    }
    verdict = run(&request, &result, &err);
    sandbox_request_release(&request);
    return verdict == VERDICT_ENDED ? (int)verdict : (int)complain(verdict, &err);
}
