/* carma bench: its commands, monitor and collocate. */
#include "cli/cli.h"
#include "cli/commands.h"

const struct argp bench_argp = {
    .parser = cli_parse_group,
    .args_doc = "monitor|collocate",
    .doc = "Measure this machine's GPUs as the thesis did: 'carma bench monitor' what each source of metrics costs, and "
           "what the metrics say; 'carma bench collocate' how jobs that share a GPU slow one another."
           "\v'carma help bench monitor' and 'carma help bench collocate' explain them. Both ask for GPUs on which nothing "
           "else runs.",
};

int cmd_bench(struct cli *cli, int argc, char **argv)
{
    return cli_run_group(cli, argc, argv);
}
