/* Commands that have commands of their own: `carma trace build`. */
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/text/nearest.h"
#include "cli/cli.h"
#include "cli/commands.h"

/* "build or show", of the table's names that begin with the group's. */
static char *members(const char *group)
{
    CLEANUP(free_ptr) char *prefix = xasprintf("%s ", group);
    struct strbuf names = {0};
    const char *last = NULL;

    for (size_t i = 0; i < subcommand_count; i++) {
        if (strncmp(subcommands[i].name, prefix, strlen(prefix)) != 0)
            continue;
        if (last)
            strbuf_printf(&names, "%s%s", names.length ? ", " : "", last);
        last = subcommands[i].name + strlen(prefix);
    }
    strbuf_printf(&names, "%s%s", names.length ? " or " : "", last ? last : "nothing");
    return strbuf_steal(&names);
}

error_t cli_parse_group(int key, char *arg, struct argp_state *state)
{
    CLEANUP(free_ptr) char *names = NULL;
    CLEANUP(free_ptr) char *meant = NULL;

    if (key != ARGP_KEY_ARG && key != ARGP_KEY_NO_ARGS)
        return ARGP_ERR_UNKNOWN;
    names = members(state->argv[0]);
    if (key == ARGP_KEY_NO_ARGS)
        return cli_bad_usage(state, "which one: %s?", names);
    meant = nearest_hint(arg, names);
    return cli_bad_usage(state, "there is no '%s %.40s'%s: it is %s", state->argv[0], arg, meant, names);
}

int cli_run_group(struct cli *cli, int argc, char **argv)
{
    int status;

    if (argc > 1) {
        CLEANUP(free_ptr) char *words = xasprintf("%s %s", argv[0], argv[1]);
        const struct command *command = command_find(words);

        if (command) {
            argv[1] = (char *)(uintptr_t)command->name;
            return command_run(command, cli, argc - 1, argv + 1);
        }
    }
    cli_parse(cli, argc, argv, NULL, &status);
    return status;
}
