/* carma logs: a job's output. The files are opened here, with the rights of the job's user (log_file.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/job/log_file.h"
#include "cli/job/wait.h"
#include "cli/session.h"
#include "cli/show/answer.h"

struct logs_options {
    struct cli_jobs jobs; /* first: cli_parse_jobs takes this for it */
    bool follow;
    bool error;
    int64_t lines; /* its last ones; -1: all */
};

static const struct argp_option options[] = {
    CLI_OPTIONS_SELECT,
    {"follow", 'f', NULL, 0, "go on printing until the job has ended", 0},
    {"error", 'e', NULL, 0, "its standard error, where that is another file", 0},
    {"lines", 'n', "N", 0, "only its last N lines, and with -f those that follow", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct logs_options *logs = state->input;

    switch (key) {
    case 'f':
        logs->follow = true;
        return 0;
    case 'e':
        logs->error = true;
        return 0;
    case 'n':
        if (parse_integer(arg, 0, INT64_MAX, &logs->lines, NULL))
            return cli_bad_usage(state, "--lines: '%.40s' is not a number of lines", arg);
        return 0;
    default:
        return key == CLI_JSON_KEY || key == 'y' ? ARGP_ERR_UNKNOWN : cli_parse_jobs(key, arg, state);
    }
}

const struct argp logs_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[IDS...]",
    .doc = "Print the output files of jobs; of several each behind a line with its number and name.\v" CLI_IDS_HELP,
};

#define PRINT_MS 250 /* between two looks at the file of a job that runs */

#define BLOCK 65536

/* To where the last lines begin. What cannot be read from its end is printed as a whole. */
static int go_to_lines(int fd, int64_t lines, struct error *err)
{
    char block[BLOCK];
    off_t end = lines < 0 ? 0 : lseek(fd, 0, SEEK_END), at = end, begin = lines == 0 ? end : 0;
    bool found = lines == 0;

    while (at > 0 && !found) {
        size_t length = at < BLOCK ? (size_t)at : BLOCK;
        at -= (off_t)length;
        if (pread(fd, block, length, at) != (ssize_t)length)
            return error_set(err, errno ? errno : EIO, "cannot read its output: %s", strerror(errno));
        while (length > 0 && !found) {
            off_t behind = at + (off_t)length;
            found = block[--length] == '\n' && behind < end && lines-- == 1; /* the last line may have no end */
            if (found)
                begin = behind;
        }
    }
    lseek(fd, begin, SEEK_SET);
    return 0;
}

/* Prints the text that is there from here on. */
static int copy_rest(int fd, struct error *err)
{
    char block[BLOCK];
    ssize_t count;

    while ((count = log_file_read(fd, block, sizeof block, err)) > 0) {
        if (fwrite(block, 1, (size_t)count, stdout) != (size_t)count)
            return error_set(err, EIO, "cannot write the job's output: %s", strerror(errno));
    }
    fflush(stdout);
    return (int)count;
}

static int follow(struct cli *cli, uint64_t id, const char *path, const char *job_path, int64_t lines,
                  struct error *err)
{
    int64_t pause_ms = PRINT_MS;
    CLEANUP(close_fd) int fd = -1;

    cli->waits = true;
    for (;;) {
        CLEANUP(json_release) json_t *job = NULL;
        int rc = session_call(cli, "GET", job_path, NULL, &job, err);
        if (rc)
            return rc;
        bool ended = answer_job_ended(job);
        if (fd < 0) {
            rc = log_file_open(path, log_file_owner(job), &fd, err);
            if (rc && (rc != -ENOENT || ended))
                return rc;
            if (rc == 0 && (rc = go_to_lines(fd, lines, err)))
                return rc;
        }
        if (fd >= 0 && (rc = copy_rest(fd, err)))
            return rc;
        if (ended && strcmp(answer_text(job, "state"), "COMPLETED") != 0)
            wait_tell_end(id, job, false);
        if (ended)
            return 0;
        rc = 0; /* what is not there yet may come */
        for (int64_t left_ms = pause_ms; left_ms > 0 && rc == 0; left_ms -= PRINT_MS) {
            int64_t step_ms = left_ms < PRINT_MS ? left_ms : PRINT_MS;
            wait_pause(cli, &step_ms);
            rc = fd >= 0 ? copy_rest(fd, err) : 0;
        }
        if (rc)
            return rc;
        pause_ms = wait_longer(cli, pause_ms);
    }
}

static int not_yours(const json_t *job)
{
    CLEANUP(free_ptr) char *named = answer_job_id(job);
    CLEANUP(free_ptr) char *user = answer_safe_text(job, "user");

    return cli_fail("permission denied: job %s belongs to %s", named, user);
}

static int print_log(struct cli *cli, const struct logs_options *logs, uint64_t id, bool several)
{
    CLEANUP(json_release) json_t *job = NULL;
    CLEANUP(free_ptr) char *job_path = xasprintf("/v1/jobs/%" PRIu64, id);
    CLEANUP(close_fd) int fd = -1;
    struct error err;
    int rc = cli_ask(cli, "GET", job_path, NULL, &job, &err);

    if (rc)
        return cli_fail("%s", err.text), cli->waits ? session_status(rc) : CLI_FAILURE;
    CLEANUP(free_ptr) char *path = log_file_path(job, logs->error, id);
    CLEANUP(free_ptr) char *named = answer_job_id(job);
    CLEANUP(free_ptr) char *name = answer_safe_text(job, "name");
    if (!path)
        return not_yours(job);
    if (several) {
        printf("==> job %s (%s) <==\n", named, name);
        fflush(stdout);
    }
    if (logs->follow) {
        wait_tell_when_interrupted(&logs->jobs.list, "carma logs -f");
        rc = follow(cli, id, path, job_path, logs->lines, &err);
        return rc ? cli_fail("job %s: %s", named, err.text), session_status(rc) : CLI_OK;
    }
    rc = log_file_open(path, log_file_owner(job), &fd, &err);
    if (rc == -ENOENT && answer_integer(job, "first_started_ns", 0) <= 0)
        return cli_fail("job %s %s started: it has written nothing (see: carma explain %s)", named,
                        answer_job_ended(job) ? "was never" : "has not been", named);
    if (rc || go_to_lines(fd, logs->lines, &err) || copy_rest(fd, &err))
        return cli_fail("job %s: %s", named, err.text);
    return CLI_OK;
}

static int print_logs(struct cli *cli, struct logs_options *logs)
{
    const struct id_list *list = &logs->jobs.list;
    int status = CLI_OK, rc;
    struct error err;

    cli->waits = logs->follow;
    rc = cli_choose(cli, &logs->jobs, IDS_ONE, &err);
    if (rc)
        return cli_fail("%s", err.text), cli->waits ? session_status(rc) : CLI_FAILURE;
    if (list->count == 0)
        return cli_fail("no job is like that");
    if (logs->follow && list->count > 1)
        return cli_fail("--follow is for one job, and these are %zu", list->count);
    for (size_t i = 0; i < list->count; i++) {
        rc = print_log(cli, logs, list->items[i], list->count > 1);
        status = status == CLI_OK ? rc : status;
    }
    return status;
}

int cmd_logs(struct cli *cli, int argc, char **argv)
{
    struct logs_options logs = {.lines = -1};
    int status;

    if (cli_parse(cli, argc, argv, &logs, &status))
        status = print_logs(cli, &logs);
    cli_jobs_release(&logs.jobs);
    return status;
}
