/* carma-bench COMMAND [OPTION...]: the program that `carma bench` executes (cli/bench). */
#include <string.h>

#include "base/memory.h"
#include "bench/bench.h"
#include "cli/cli.h"

static const struct {
    const char *name;
    int (*run)(struct cli *cli, int argc, char **argv);
} commands[] = {{"collocate", cmd_bench_collocate}, {"monitor", cmd_bench_monitor}};

static int run(struct cli *cli, int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < array_size(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            CLEANUP(free_ptr) char *name = xasprintf("bench %s", argv[1]);
            argv[1] = name;
            return commands[i].run(cli, argc - 1, argv + 1);
        }
    cli_fail("carma-bench is run by 'carma bench' (see: carma help bench)");
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    return cli_main(argc, argv, run);
}
