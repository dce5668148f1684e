/* carma monitor: carma-program logs the GPUs' readings on its standard output, which is the file that was named. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/trust/guarded.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/programs/programs.h"

struct monitor_command {
    struct program_words program;
    const char *file; /* NULL: stdout */
};

static const struct argp_option options[] = {
    {"csv", 'c', "FILE", OPTION_ARG_OPTIONAL, "write CSV (there is no other form), to FILE where it is named", 0},
    {"period", 'p', "SECONDS", 0, "time from one look to the next (default: 1)", 0},
    {"for", 'f', "SECONDS", 0, "end after so long (default: go on until interrupted)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct monitor_command *monitor = state->input;

    switch (key) {
    case 'c':
        monitor->file = arg ? arg : monitor->file;
        return 0;
    case ARGP_KEY_ARG:
        if (monitor->file)
            return cli_bad_usage(state, "'%.40s' is too much: it writes one file", arg);
        monitor->file = arg;
        return 0;
    default:
        return words_pass(&monitor->program, key, arg, state);
    }
}

const struct argp monitor_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[FILE]",
    .doc =
        "Log each GPU's metrics as CSV: SM activity, occupancy, DRAM and tensor activity, PCIe traffic, memory, power, "
        "energy. It reads the GPUs itself, as carmad does, and needs no daemon.\vThe columns are described in "
        "docs/formats/monitor-csv.md. Times are seconds of node time.",
};

static int write_to(const char *path)
{
    struct error err;
    FILE *out = guarded_fopen(path, &err);

    if (!out)
        return cli_fail("cannot write '%s': %s", path, err.text);
    if (dup2(fileno(out), STDOUT_FILENO) < 0)
        return cli_fail("cannot write '%s': %s", path, strerror(errno));
    return CLI_OK;
}

int cmd_monitor(struct cli *cli, int argc, char **argv)
{
    struct monitor_command monitor = {0};
    int status;

    words_begin(&monitor.program, cli, argc, "carma-program", argv[0]);
    if (cli_parse(cli, argc, argv, &monitor, &status)) {
        status = monitor.file ? write_to(monitor.file) : CLI_OK;
        status = status == CLI_OK ? words_run(&monitor.program) : status;
    }
    words_release(&monitor.program);
    return status;
}
