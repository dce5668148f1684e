/* carma help: the table of commands, or one command's own help. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const char **name = state->input;

    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (*name) { /* a command's own command has two words */
        CLEANUP(free_ptr) char *words = xasprintf("%s %s", *name, arg);
        const struct command *command = command_find(words);
        if (!command)
            return cli_bad_usage(state, "one command at a time: '%.40s' is too much", arg);
        *name = command->name;
        return 0;
    }
    *name = arg;
    return 0;
}

const struct argp help_argp = {
    .parser = parse,
    .args_doc = "[COMMAND]",
    .doc = "Explain a command, or list them all.",
};

void help_print(FILE *stream)
{
    fputs("Usage: carma [--socket PATH] COMMAND [OPTION...] [ARGUMENT...]\n"
          "Share this machine's GPUs among training jobs.\n\n",
          stream);
    for (size_t i = 0; i < command_count; i++)
        fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n"
          "  --socket PATH   the daemon's socket (default: $CARMA_SOCKET, or the user's own)\n"
          "  --version       print the version\n"
          "  --help          print this help\n\n"
          "'carma help COMMAND' explains a command. Exit status: 0 done, 1 failed, 2 wrong usage.\n",
          stream);
}

int cmd_help(struct cli *cli, int argc, char **argv)
{
    const char *name = NULL;
    int status;

    if (!cli_parse(cli, argc, argv, &name, &status))
        return status;
    if (!name) {
        help_print(stdout);
        return CLI_OK;
    }
    const struct command *command = command_find(name);
    if (!command) {
        cli_fail("there is no command '%.40s' (see: carma help)", name);
        return CLI_USAGE;
    }
    char help[] = "--help";
    char *help_argv[] = {(char *)(uintptr_t)command->name, help, NULL};
    return command->run(cli, 2, help_argv);
}
