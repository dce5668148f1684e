/* carma: the command line client. The commands that people and scripts type all day are in this program. It executes
 * carma-tools for all others: their libraries (SQLite, ncurses, libuv) would double the time of each start. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/install.h"
#include "base/memory.h"
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

static int become_tools(char **argv)
{
    CLEANUP(free_ptr) char *installed = install_path("lib/carma/carma-tools"), *built = install_beside("carma-tools");

    execv(installed, argv);
    if (errno == ENOENT)
        execv(built, argv);
    return cli_fail("%s: %s: it belongs to carma: install carma again", installed, strerror(errno));
}

int main(int argc, char **argv)
{
    return argc > 1 && find_daily(argv[1]) ? cli_main(argc, argv, run_daily) : become_tools(argv);
}
