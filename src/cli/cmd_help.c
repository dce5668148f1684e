/* carma help: the table of commands, or one command's own help. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/pages.h"

enum { KEY_COMPLETION = 0x200, KEY_COMPLETE, KEY_MAN };

struct help {
    const char *name;  /* of the command; NULL: none */
    const char *shell; /* the shell to complete for; NULL: none */
    bool completes;    /* the words below, for such a shell */
    char **words;
    int word_count;
    bool man;
    const char *directory; /* for all manual pages; NULL: one is printed */
};

static const struct argp_option options[] = {
    {"completion", KEY_COMPLETION, "SHELL", 0, "print the completion of carma for bash, zsh or fish", 0},
    {"complete", KEY_COMPLETE, NULL, OPTION_HIDDEN, "print what may stand in place of the last word", 0},
    {"man", KEY_MAN, "DIR", OPTION_ARG_OPTIONAL, "print the source of the manual page, or write all of them to DIR", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct help *help = state->input;

    switch (key) {
    case KEY_COMPLETION:
        help->shell = arg;
        return 0;
    case KEY_COMPLETE:
        help->completes = true;
        return 0;
    case KEY_MAN:
        help->man = true;
        help->directory = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (help->completes) {
            help->words = state->argv + state->next - 1;
            help->word_count = state->argc - state->next + 1;
            state->next = state->argc;
        } else if (help->name) { /* a command's own command has two words */
            CLEANUP(free_ptr) char *words = xasprintf("%s %s", help->name, arg);
            const struct command *command = command_find(words);
            if (!command)
                return cli_bad_usage(state, "one command at a time: '%.40s' is too much", arg);
            help->name = command->name;
        } else {
            help->name = arg;
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp help_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[COMMAND]",
    .doc = "Explain a command, or list them all.",
};

void help_print(FILE *stream)
{
    fputs("Usage: carma [--socket PATH] COMMAND [OPTION...] [ARGUMENT...]\n"
          "Share this machine's GPUs among training jobs.\n\n",
          stream);
    for (size_t i = 0; command_at(i); i++)
        fprintf(stream, "  %-10s %s\n", command_at(i)->name, command_at(i)->summary);
    fputs("\n"
          "  --socket PATH   the daemon's socket (default: $CARMA_SOCKET, or the user's own)\n"
          "  --version       print the version\n"
          "  --help          print this help\n\n"
          "'carma help COMMAND' explains a command. Exit status: 0 done, 1 failed, 2 wrong usage,\n"
          "3 a trace's run is incomplete.\n",
          stream);
}

static int print_command(struct cli *cli, const char *name, bool man)
{
    const struct command *command = command_find(name);
    char help[] = "--help";
    char *argv[] = {NULL, help, NULL};

    if (!command)
        return command_unknown(name);
    if (man) {
        pages_print_command(stdout, command);
        return CLI_OK;
    }
    argv[0] = (char *)(uintptr_t)command->name;
    return command_run(command, cli, 2, argv);
}

int cmd_help(struct cli *cli, int argc, char **argv)
{
    struct help help = {0};
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &help, &status))
        return status;
    if (help.word_count) {
        completion_offer(cli, stdout, help.words, help.word_count);
        return CLI_OK;
    }
    if (help.name)
        return print_command(cli, help.name, help.man);
    if (help.shell && !completion_print(stdout, help.shell)) {
        cli_fail("help: there is no completion for '%.40s': it is bash, zsh or fish", help.shell);
        return CLI_USAGE;
    }
    if (help.directory)
        return pages_write(help.directory, &err) ? cli_fail("%s", err.text) : CLI_OK;
    if (help.man)
        pages_print(stdout);
    else if (!help.shell)
        help_print(stdout);
    return CLI_OK;
}
