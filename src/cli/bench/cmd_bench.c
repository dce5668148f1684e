/* carma bench: carma-bench does it. */
#include <string.h>

#include "base/memory.h"
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

int cmd_bench_program(struct cli *cli, int argc, char **argv)
{
    CLEANUP(free_ptr) char **words = xcalloc((size_t)argc + 2, sizeof *words);

    (void)cli;
    words[0] = argv[0];
    words[1] = strchr(argv[0], ' ') + 1; /* "bench monitor" */
    memcpy(words + 2, argv + 1, (size_t)argc * sizeof *words);
    return cli_become("carma-bench", "../bench/carma-bench", words);
}
