/* carma: the command line client. The commands that people and scripts type all day are in this program. It executes
 * carma-tools for all others: their libraries (SQLite, ncurses, libuv) would double the time of each start. */
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"

static const struct command *find_daily(const char *name)
{
    for (size_t i = 0; i < daily_command_count; i++)
        if (strcmp(daily_commands[i].name, name) == 0)
            return &daily_commands[i];
    return NULL;
}

static int run_daily(struct cli *cli, int argc, char **argv)
{
    return command_run(find_daily(argv[1]), cli, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    return argc > 1 && find_daily(argv[1]) ? cli_main(argc, argv, run_daily)
                                           : cli_become("carma-tools", "carma-tools", argv);
}
