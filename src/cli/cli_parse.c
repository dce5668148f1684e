/* A subcommand's command line, by its argp table. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/nearest.h"
#include "cli/cli.h"
#include "cli/commands.h"

struct common {
    struct cli *cli;
    void *input;
    int error_at;    /* index after the option, or of the argument, that argp stumbled over */
    int argument_at; /* of the latest argument, which the command may not take */
    bool help;
};

enum { KEY_SOCKET = 0x1100 };

/* We tell problems ourselves, in one line. In order: a file before "--" and a word behind it must not change places. */
#define PARSE_FLAGS (ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_IN_ORDER)

const struct argp_option cli_common_options[] = {
    {"socket", KEY_SOCKET, "PATH", 0, "the daemon's socket (default: $CARMA_SOCKET, or the user's own)", -1},
    {"help", 'h', NULL, 0, "print this help", -1},
    {0},
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    struct common *common = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = common->input;
        return 0;
    case KEY_SOCKET:
        common->cli->socket = arg;
        return 0;
    case 'h':
        common->help = true;
        state->next = state->argc;
        return ECANCELED;
    case ARGP_KEY_ARGS:
        common->argument_at = state->next;
        return ARGP_ERR_UNKNOWN;
    case ARGP_KEY_ERROR:
        common->error_at = state->next;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Where a script's lines are parsed instead of the command line: the text before a problem, and where to put it. */
static const char *words_where;
static struct error *words_error;

static void usage_problem(const char *command, const char *text)
{
    if (words_error)
        error_set(words_error, EINVAL, "%s: %s", words_where, text);
    else
        cli_fail("%s: %s (see: carma help %s)", command, text, command);
}

error_t cli_bad_usage(const struct argp_state *state, const char *format, ...)
{
    CLEANUP(free_ptr) char *text = NULL;
    va_list args;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    usage_problem(state->argv[0], text);
    return ECANCELED;
}

static const struct argp_option *find_option(const struct argp_option *options, const char *argument)
{
    for (const struct argp_option *o = options; o && (o->name || o->key || o->doc); o++) {
        bool is_long = strncmp(argument, "--", 2) == 0 && o->name && strcmp(argument + 2, o->name) == 0;
        bool is_short = argument[0] == '-' && argument[1] && !argument[2] && o->key == argument[1];
        if (is_long || is_short)
            return o;
    }
    return NULL;
}

static void try_options(struct nearest *nearest, const struct argp_option *options)
{
    for (const struct argp_option *o = options; o && (o->name || o->key || o->doc); o++)
        if (o->name && !(o->flags & OPTION_HIDDEN))
            nearest_try(nearest, o->name);
}

static char *nearest_option(const struct argp_option *options, const char *argument)
{
    CLEANUP(free_ptr) char *word = xstrndup(argument, strcspn(argument, "="));
    struct nearest nearest;

    nearest_begin(&nearest, strncmp(word, "--", 2) == 0 ? word + 2 : "");
    try_options(&nearest, options);
    if (!words_error)
        try_options(&nearest, cli_common_options);
    return nearest_question(&nearest, "--");
}

/* What an option of another program's command would be here; NULL: not known. */
static char *meaning_elsewhere(const struct argp *argp, const char *argument)
{
    if (argp == &submit_argp)
        return submit_option_of_others(argument);
    return NULL;
}

/* argp reports nothing by itself (it would take two lines): find the word that it stumbled over. */
static void report_bad_word(const struct argp *argp, int argc, char **argv, const struct common *common)
{
    int error_at = common->error_at;
    const char *argument = error_at > 1 ? argv[error_at - 1] : argv[1];
    const struct argp_option *option;

    if (argument[0] != '-' && error_at < argc)
        argument = argv[error_at];
    option = find_option(argp->options, argument);
    if (!option && !words_error)
        option = find_option(cli_common_options, argument);
    CLEANUP(free_ptr)
    char *meant = meaning_elsewhere(argp, argument);
    CLEANUP(free_ptr)
    char *question = meant ? xasprintf(": %s", meant) : nearest_option(argp->options, argument);
    CLEANUP(free_ptr)
    char *text = common->argument_at == error_at
                     ? xasprintf("it takes no arguments: '%.40s' is too much", argv[error_at])
                 : option && option->arg ? xasprintf("option '%s' needs an argument, %s", argument, option->arg)
                                         : xasprintf("unknown option '%.200s'%s", argument, question);
    usage_problem(argv[0], text);
}

int cli_parse_words(const char *command, const struct argp *argp, const char *where, char **words, size_t count,
                    void *input, struct error *err)
{
    struct common common = {.input = input};
    struct argp_child children[] = {{argp, 0, NULL, 0}, {0}};
    struct argp whole = {NULL, parse_common, NULL, NULL, children, NULL, NULL};
    CLEANUP(free_ptr) char **argv = xcalloc(count + 2, sizeof *argv);
    CLEANUP(free_ptr) char *name = xstrdup(command);

    argv[0] = name;
    memcpy(argv + 1, words, count * sizeof *argv);
    words_where = where;
    words_error = err;
    int rc = argp_parse(&whole, (int)count + 1, argv, PARSE_FLAGS, NULL, &common);
    if (rc == EINVAL)
        report_bad_word(argp, (int)count + 1, argv, &common);
    words_error = NULL;
    return rc ? -EINVAL : 0;
}

bool cli_parse(struct cli *cli, int argc, char **argv, void *input, int *status)
{
    struct argp_child children[] = {{cli->argp, 0, NULL, 0}, {0}};
    struct argp whole = {cli_common_options, parse_common, NULL, NULL, children, NULL, NULL};
    struct common common = {.cli = cli, .input = input};
    int rc = argp_parse(&whole, argc, argv, PARSE_FLAGS, NULL, &common);

    if (common.help) {
        CLEANUP(free_ptr) char *name = xasprintf("carma %s", argv[0]);
        argp_help(&whole, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG | ARGP_HELP_POST_DOC,
                  name);
        *status = CLI_OK;
        return false;
    }
    if (rc == EINVAL)
        report_bad_word(cli->argp, argc, argv, &common);
    *status = rc ? CLI_USAGE : CLI_OK;
    return rc == 0;
}

error_t cli_take_one_id(struct id_list *list, int key, char *arg, struct argp_state *state)
{
    struct error err;

    switch (key) {
    case ARGP_KEY_ARG:
        if (list->count)
            return cli_bad_usage(state, "one job at a time: '%.40s' is too much", arg);
        if (id_list_parse(list, arg, &err))
            return cli_bad_usage(state, "%s", err.text);
        return list->count == 1 ? 0 : cli_bad_usage(state, "one job at a time: '%.40s' names several", arg);
    case ARGP_KEY_NO_ARGS:
        return cli_bad_usage(state, "which job? name its id");
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp_option cli_jobs_options[] = {CLI_OPTION_JSON, {0}};
const struct argp_option cli_verb_options[] = {
    CLI_OPTIONS_SELECT, {"yes", 'y', NULL, 0, "do it without asking", 0}, CLI_OPTION_JSON, {0}};

error_t cli_parse_one_job(int key, char *arg, struct argp_state *state)
{
    struct cli_jobs *jobs = state->input;

    if (key == CLI_JSON_KEY) {
        jobs->json = true;
        return 0;
    }
    return cli_take_one_id(&jobs->list, key, arg, state);
}

error_t cli_parse_jobs(int key, char *arg, struct argp_state *state)
{
    struct cli_jobs *jobs = state->input;
    struct error err;

    switch (key) {
    case CLI_JSON_KEY:
        jobs->json = true;
        return 0;
    case 'y':
        jobs->yes = true;
        return 0;
    case ARGP_KEY_ARG:
        return id_list_parse(&jobs->list, arg, &err) ? cli_bad_usage(state, "%s", err.text) : 0;
    case ARGP_KEY_NO_ARGS:
        return selectors_any(&jobs->selectors) ? 0 : cli_bad_usage(state, "which job? name its id");
    default:
        return cli_parse_selector(key, arg, &jobs->selectors);
    }
}

void cli_jobs_release(struct cli_jobs *jobs)
{
    id_list_release(&jobs->list);
}
