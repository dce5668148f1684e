/* carma-tools: every subcommand of the table in commands.c, behind the global options. `carma` executes it for all that
 * it does not have itself (main.c). */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"

/* Options before the subcommand: few enough to need no parser. Returns the index of the subcommand, or -1 with
 * *status. */
static int take_global_options(struct cli *cli, int argc, char **argv, int *status)
{
    int at = 1;

    *status = CLI_OK;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--version") == 0) {
            puts("carma " CARMA_VERSION);
            return -1;
        }
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            help_print(stdout);
            return -1;
        }
        if (strncmp(argv[at], "--socket=", 9) == 0) {
            cli->socket = argv[at] + 9;
        } else if (strcmp(argv[at], "--socket") == 0 && at + 1 < argc) {
            cli->socket = argv[++at];
        } else if (strcmp(argv[at], "--socket") == 0) {
            cli_fail("option '--socket' needs an argument, PATH (see: carma help)");
            *status = CLI_USAGE;
            return -1;
        } else {
            cli_fail("unknown option '%.200s' (see: carma help)", argv[at]);
            *status = CLI_USAGE;
            return -1;
        }
    }
    return at;
}

static int run(struct cli *cli, int argc, char **argv)
{
    const struct command *command;
    int status;
    int at = take_global_options(cli, argc, argv, &status);

    if (at < 0)
        return status;
    if (at == argc) {
        cli_fail("which command? (see: carma help)");
        return CLI_USAGE;
    }
    command = command_find(argv[at]);
    if (!command)
        return command_unknown(argv[at]);
    return command_run(command, cli, argc - at, argv + at);
}

int main(int argc, char **argv)
{
    return cli_main(argc, argv, run);
}
