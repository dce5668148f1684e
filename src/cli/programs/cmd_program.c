/* The commands that programs of their own carry out: carma-dashboard, and carma-bench, which is Python
 * (python/carma_bench) and gets the options parsed by the tables here. */
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

/* The words for carma-bench: its command, then "--NAME" and "--NAME=VALUE", then "--" and the words of a command. */
struct bench_words {
    const struct argp *argp; /* the command's table */
    char **words;            /* owned, as its strings */
    size_t count;
};

static const struct argp_option *option_of(const struct argp *argp, int key)
{
    const struct argp_option *option = argp->options;

    while (option->name && option->key != key)
        option++;
    return option->name ? option : NULL;
}

/* Times become nanoseconds, and numbers are such. */
static error_t pass(int key, char *arg, struct argp_state *state)
{
    struct bench_words *bench = state->input;
    const struct argp_option *option = option_of(bench->argp, key);
    int64_t value = 0;
    struct error err = {""};
    char *word;

    if (key == ARGP_KEY_ARG && bench->argp->args_doc) {
        /* It and all that follows; "--" before it keeps its own options from being taken for ours. */
        bench->words[bench->count++] = xstrdup("--");
        for (int at = state->next - 1; at < state->argc; at++)
            bench->words[bench->count++] = xstrdup(state->argv[at]);
        state->next = state->argc;
        return 0;
    }
    if (!option)
        return ARGP_ERR_UNKNOWN;
    bool is_time = option->arg && strcmp(option->arg, "TIME") == 0;
    bool is_number = option->arg && strcmp(option->arg, "N") == 0;
    if ((is_time && parse_duration(arg, &value, &err)) || (is_number && parse_integer(arg, 1, INT32_MAX, &value, &err)))
        return cli_bad_usage(state, "--%s: %s", option->name, err.text);
    if (is_time || is_number)
        word = xasprintf("--%s=%lld", option->name, (long long)value);
    else
        word = option->arg ? xasprintf("--%s=%s", option->name, arg) : xasprintf("--%s", option->name);
    bench->words[bench->count++] = word;
    return 0;
}

int cmd_bench(struct cli *cli, int argc, char **argv)
{
    struct bench_words bench = {.argp = cli->argp, .words = xcalloc((size_t)argc + 4, sizeof *bench.words)};
    struct argp argp = *cli->argp;
    int status;

    bench.words[bench.count++] = xstrdup("carma-bench");
    bench.words[bench.count++] = xstrdup(argv[0] + strlen("bench "));
    argp.parser = pass;
    cli->argp = &argp;
    if (cli_parse(cli, argc, argv, &bench, &status))
        status = cli_become("bench/carma-bench", "../../python/carma_bench/carma-bench", bench.words);
    for (size_t i = 0; i < bench.count; i++)
        free(bench.words[i]);
    free(bench.words);
    return status;
}
