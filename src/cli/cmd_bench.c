/* carma bench: its commands, monitor and collocate. */
#include <stdint.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_ARG:
        return cli_bad_usage(state, "there is no 'bench %.40s': it is monitor or collocate", arg);
    case ARGP_KEY_NO_ARGS:
        return cli_bad_usage(state, "which of monitor and collocate?");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp bench_argp = {
    .parser = parse,
    .args_doc = "monitor|collocate",
    .doc = "Measure this machine's GPUs as the thesis did: 'carma bench monitor' what each source of metrics costs, and "
           "what the metrics say; 'carma bench collocate' how jobs that share a GPU slow one another."
           "\v'carma help bench monitor' and 'carma help bench collocate' explain them. Both ask for GPUs on which nothing "
           "else runs.",
};

int cmd_bench(struct cli *cli, int argc, char **argv)
{
    int status;

    if (argc > 1) {
        CLEANUP(free_ptr) char *words = xasprintf("%s %s", argv[0], argv[1]);
        const struct command *command = command_find(words);

        if (command) {
            argv[1] = (char *)(uintptr_t)command->name;
            return command->run(cli, argc - 1, argv + 1);
        }
    }
    cli_parse(cli, argc, argv, NULL, &status);
    return status;
}
