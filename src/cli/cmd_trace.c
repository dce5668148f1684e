/* carma trace: its commands, build and show. */
#include <stdint.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_ARG:
        return cli_bad_usage(state, "there is no 'trace %.40s': it is build or show", arg);
    case ARGP_KEY_NO_ARGS:
        return cli_bad_usage(state, "which of build and show?");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp trace_argp = {
    .parser = parse,
    .args_doc = "build|show FILE",
    .doc = "Work on traces of training jobs: 'carma trace build' makes one for a server from a published one, "
           "'carma trace show' says what a trace asks for."
           "\v'carma help trace build' and 'carma help trace show' explain them. Which files are understood: "
           "docs/formats/trace.md.",
};

int cmd_trace(struct cli *cli, int argc, char **argv)
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
