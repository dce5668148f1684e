#include "cli/programs/programs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"

const struct argp bench_argp = {
    .parser = cli_parse_group,
    .args_doc = "monitor|collocate",
    .doc = "Measure this machine's GPUs as the thesis did: 'carma bench monitor' measures the cost of each source of "
           "metrics, and its values. 'carma bench collocate' measures how jobs that share a GPU slow one another."
           "\v'carma help bench monitor' and 'carma help bench collocate' explain them. Both ask for GPUs on which "
           "nothing else runs.",
};

int cmd_dashboard(struct cli *cli, int argc, char **argv)
{
    CLEANUP(free_ptr) char *socket = xasprintf("--socket=%s", cli->socket ? cli->socket : "");
    CLEANUP(free_ptr) char **words = xcalloc((size_t)argc + 3, sizeof *words);
    char program[] = "carma-dashboard";
    size_t count = 0;

    words[count++] = program;
    if (cli->socket)
        words[count++] = socket;
    memcpy(words + count, argv + 1, (size_t)argc * sizeof *words);
    return cli_become(program, "../dashboard/carma-dashboard", words);
}

void words_begin(struct program_words *program, struct cli *cli, int argc, const char *name, const char *command)
{
    *program = (struct program_words){.argp = cli->argp, .words = xcalloc((size_t)argc + 4, sizeof *program->words)};
    program->words[program->count++] = xstrdup(name);
    program->words[program->count++] = xstrdup(strrchr(command, ' ') ? strrchr(command, ' ') + 1 : command);
}

void words_release(struct program_words *program)
{
    for (size_t i = 0; i < program->count; i++)
        free(program->words[i]);
    free(program->words);
}

static const struct argp_option *option_of(const struct argp *argp, int key)
{
    for (const struct argp_option *option = argp->options; option->name || option->doc; option++)
        if (option->name && option->key == key)
            return option;
    return NULL;
}

static struct program_range range_of(const struct program_words *program, int key)
{
    const struct program_range *range = program->ranges;

    while (range && range->key && range->key != key)
        range++;
    return range && range->key ? *range : (struct program_range){key, 1, INT32_MAX};
}

error_t words_pass(struct program_words *program, int key, char *arg, struct argp_state *state)
{
    const struct argp_option *option = option_of(program->argp, key);
    struct program_range range = range_of(program, key);
    int64_t value = 0;
    struct error err = {""};
    char *word;

    if (!option)
        return ARGP_ERR_UNKNOWN;
    bool is_time = option->arg && strcmp(option->arg, "TIME") == 0;
    bool is_number = option->arg && strcmp(option->arg, "N") == 0;
    if ((is_time && parse_duration(arg, &value, &err)) ||
        (is_number && parse_integer(arg, range.low, range.high, &value, &err)))
        return cli_bad_usage(state, "--%s: %s", option->name, err.text);
    if (is_time || is_number)
        word = xasprintf("--%s=%lld", option->name, (long long)value);
    else
        word = option->arg ? xasprintf("--%s=%s", option->name, arg) : xasprintf("--%s", option->name);
    program->words[program->count++] = word;
    return 0;
}

int words_run(struct program_words *program)
{
    CLEANUP(free_ptr) char *installed = xasprintf("bench/%s", program->words[0]);
    CLEANUP(free_ptr) char *built = xasprintf("../../python/carma_bench/%s", program->words[0]);

    return cli_become(installed, built, program->words);
}

static error_t parse_bench(int key, char *arg, struct argp_state *state)
{
    struct program_words *program = state->input;

    if (key != ARGP_KEY_ARG || !program->argp->args_doc)
        return words_pass(program, key, arg, state);
    /* It and all that follows; "--" before it keeps its own options from being taken for ours. */
    program->words[program->count++] = xstrdup("--");
    for (int at = state->next - 1; at < state->argc; at++)
        program->words[program->count++] = xstrdup(state->argv[at]);
    state->next = state->argc;
    return 0;
}

int cmd_bench(struct cli *cli, int argc, char **argv)
{
    struct argp argp = *cli->argp;
    struct program_words program;
    int status;

    words_begin(&program, cli, argc, "carma-bench", argv[0]);
    argp.parser = parse_bench;
    cli->argp = &argp;
    if (cli_parse(cli, argc, argv, &program, &status))
        status = words_run(&program);
    words_release(&program);
    return status;
}
