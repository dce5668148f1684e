/* carma run and carma shell: a job is submitted, and attached to from its start on. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/attach/attach.h"
#include "cli/attach/keys.h"
#include "cli/attach/signals.h"
#include "cli/attach/submit_one.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/job/submit.h"

#define DEFAULT_ERROR "carma-%j.err"

struct run {
    struct job_spec options; /* owned */
    char **command;          /* in argv; NULL: none was said */
    size_t count;
    bool is_shell;
};

/* What has no meaning for a job that runs once (core/crash.h), here. */
static error_t check(const struct run *run, struct argp_state *state)
{
    if (!run->is_shell && !run->count)
        return cli_bad_usage(state, "what? name a command after '--'");
    if (run->options.requeue || run->options.array)
        return cli_bad_usage(state, "a job that you are attached to runs once: leave %s out, or use carma submit",
                             run->options.requeue ? "--requeue" : "--array");
    if (run->options.error && keys_are_here())
        return cli_bad_usage(state, "a terminal has one output: leave --error out, or send the output elsewhere");
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct run *run = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        if (run->is_shell)
            return cli_bad_usage(state, "it takes no command ('%.40s'): carma run -- COMMAND does", arg);
        if (!state->quoted || state->next - 1 < state->quoted)
            return cli_bad_usage(state, "'%.40s' stands before '--': write carma run [OPTION...] -- COMMAND", arg);
        run->command = state->argv + state->next - 1;
        run->count = (size_t)(state->argc - state->next + 1);
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        return check(run, state);
    default:
        return submit_take_option(key, arg, &run->options, state);
    }
}

#define OF_BOTH                                                                                                        \
    "While the job waits, a line on standard error says where it stands in the queue, and Ctrl-C cancels it. If this " \
    "command ends before the job (the connection to this machine broke), the job goes on: `carma attach` comes "       \
    "back to it. Its output is also in its output file, as any job's."

const struct argp run_argp = {
    .options = submit_one_options,
    .parser = parse,
    .args_doc = "-- COMMAND [ARGUMENT...]",
    .doc =
        "Run a command as a job, with the input and output of this one; on a terminal, with a terminal."
        "\v" OF_BOTH " Ctrl-C goes to the job; twice within 2 seconds it cancels the job, unless a program there reads "
        "keys by itself. Ctrl-] leaves a job on a terminal, which goes on. The exit status is the job's: 128+N if "
        "signal N ended it, 124 at its time limit, 126 and 127 if its program could not be run, 125 if the daemon "
        "could not be asked.",
};

const struct argp shell_argp = {
    .options = submit_one_options,
    .parser = parse,
    .doc = "A login shell of yours as a job: programs that you start in it see its GPUs. It ends with the shell."
           "\v" OF_BOTH " Ctrl-] leaves the shell, which goes on.",
};

/* On a terminal all that it shows is one output. Else errors are apart where they go elsewhere from here. */
static void attach_options(struct job_spec *spec)
{
    struct stat output, error;
    struct winsize size = {.ws_row = 24, .ws_col = 80};

    if (keys_are_here()) {
        ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
        spec->attach = xasprintf("pty:%ux%u", size.ws_row % 10000U, size.ws_col % 10000U);
        return;
    }
    spec->attach = xstrdup("pipe");
    if (!spec->output && !spec->error && fstat(STDOUT_FILENO, &output) == 0 && fstat(STDERR_FILENO, &error) == 0 &&
        (output.st_ino != error.st_ino || output.st_dev != error.st_dev))
        spec->error = xstrdup(DEFAULT_ERROR);
}

static int spec_of(struct run *run, struct job_spec *spec, struct error *err)
{
    const struct passwd *account = run->is_shell ? getpwuid(getuid()) : NULL;
    char *shell = account && *account->pw_shell ? account->pw_shell : (char[]){"/bin/sh"};
    char *login[] = {shell, (char[]){"-l"}};

    attach_options(&run->options);
    if (!run->is_shell)
        return submit_from_command(spec, run->command, run->count, &run->options, err);
    if (!run->options.name)
        run->options.name = xstrdup("shell");
    run->options.interactive = xstrdup("shell");
    return submit_from_command(spec, login, array_size(login), &run->options, err);
}

/* The job's number; 0: it was not submitted, and *status is the command's. */
static uint64_t submit(struct cli *cli, struct run *run, int *status)
{
    CLEANUP(job_spec_release) struct job_spec spec;
    struct error err;

    if (spec_of(run, &spec, &err) == 0 && cli_resolve_dependency(cli, &spec, &err) == 0)
        return submit_one(cli, &spec, status);
    *status = cli_fail("%s", err.text);
    return 0;
}

static int run_command(struct cli *cli, int argc, char **argv, bool is_shell)
{
    struct run run = {.is_shell = is_shell};
    CLEANUP(close_fd) int signals = -1;
    uint64_t id = 0;
    int status;

    job_spec_init_empty(&run.options);
    if (cli_parse(cli, argc, argv, &run, &status)) {
        cli->waits = true;
        signals = signals_open(); /* what comes from here on is for the job */
        id = submit(cli, &run, &status);
    }
    job_spec_release(&run.options);
    return id ? attach_to(cli, id, signals, false, is_shell) : status;
}

int cmd_run(struct cli *cli, int argc, char **argv)
{
    return run_command(cli, argc, argv, false);
}

int cmd_shell(struct cli *cli, int argc, char **argv)
{
    return run_command(cli, argc, argv, true);
}
