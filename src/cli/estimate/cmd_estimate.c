/* carma estimate: how much GPU memory a job will need and how busy it will keep the SMs, before it starts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/spec.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/text/nearest.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/estimate/estimate.h"
#include "cli/job/submit.h"
#include "cli/show/table.h"

#define HELP_WIDTH 78 /* argp breaks longer lines */

enum { KEY_GPU = 0x200, KEY_PROFILE, KEY_ESTIMATOR, KEY_QUANTILE, KEY_EXPLAIN, KEY_QUESTIONS };

static const struct argp_option options[] = {
#define ROW_NEEDS(...)
#define ROW_PLACE(...)
#define ROW_MODEL(...) __VA_ARGS__
#define FIELD(...)
#define OPTION(type, member, least, most, option, letter, argument, group, help, ...)                                  \
    ROW_##group({option, SUBMIT_KEY(letter, member), argument, 0, help, 1}, )
#include "api/job_fields.def"
    {"gpu", KEY_GPU, "MODEL", 0,
     "the GPU it is to run on, of carma calibrate --list (default: " MACHINE_PROFILE_DEFAULT ")", 3},
    {"profile", KEY_PROFILE, "FILE", 0, "the machine it is to run on, as carma calibrate has measured it", 3},
    {"estimator", KEY_ESTIMATOR, "NAME", 0, "one of those below, or all (default: auto)", 4},
    {"quantile", KEY_QUANTILE, "Q", 0, "the probability with which it is to be enough, e.g. 0.5 (default: 0.98)", 4},
    {"explain", KEY_EXPLAIN, NULL, 0, "list the parts of the bytes", 5},
    {"json", CLI_JSON_KEY, NULL, 0, "print JSON (docs/formats/cli.md)", 5},
    {"questions", KEY_QUESTIONS, NULL, OPTION_HIDDEN, "answer those of carma evaluate", 5},
    {0},
};

/* "0.98" or "98%" would both be understood by people; only the first is taken: one way to write it. */
static error_t take_quantile(struct estimate_options *wanted, const char *arg, struct argp_state *state)
{
    char *end;
    double value = strtod(arg, &end);

    if (end == arg || *end || strspn(arg, "0123456789.") != strlen(arg) || value < 0.001 || value > 0.999)
        return cli_bad_usage(state, "--quantile: '%.40s' is not a probability from 0.001 to 0.999", arg);
    wanted->quantile_permille = (int32_t)(value * 1000 + 0.5);
    return 0;
}

static error_t refuse_estimator(struct argp_state *state, const char *name)
{
    CLEANUP(strbuf_release) struct strbuf known = {0};
    struct error err;

    for (size_t i = 0; estimators[i]; i++)
        strbuf_printf(&known, "%s%s", !i ? "" : estimators[i + 1] ? ", " : " or ", estimators[i]->name);
    nearest_refuse(&err, "--estimator:", name, known.text);
    return cli_bad_usage(state, "%s", err.text);
}

static error_t take_estimator(struct estimate_options *wanted, const char *arg, struct argp_state *state)
{
    wanted->estimator = strcmp(arg, "all") == 0 ? NULL : estimator_find(arg);
    if (!wanted->estimator && strcmp(arg, "all") != 0)
        return refuse_estimator(state, arg);
    return 0;
}

static error_t check_usage(const struct estimate_options *wanted, struct argp_state *state)
{
    bool job = wanted->job_file || wanted->command_count;
    bool asks = job && job_spec_asks_for_capture(wanted->said);
    int sources =
        job + !!wanted->said->summary_name + (wanted->said->capture_name && !asks) + !!wanted->said->hf_config_name;

    if (wanted->questions)
        return wanted->estimator ? 0 : refuse_estimator(state, "all");
    if (sources == 0)
        return cli_bad_usage(state,
                             "of what? name a job file, a command after '--', or --summary, --capture or --hf-config");
    if (sources > 1)
        return cli_bad_usage(state, "one of a job, --summary, --capture and --hf-config");
    if (!job && wanted->said->lengths_name && !wanted->said->hf_config_name)
        return cli_bad_usage(state, "--lengths goes with --hf-config: a summary or a capture has its own shapes");
    if (wanted->gpu && wanted->profile)
        return cli_bad_usage(state, "either --gpu or --profile, not both");
    if (wanted->explain && !wanted->estimator)
        return cli_bad_usage(state, "--explain takes one estimator, not all");
    return 0;
}

/* As of carma submit. */
static error_t take_argument(struct estimate_options *wanted, const char *arg, struct argp_state *state)
{
    if (state->quoted && state->next - 1 >= state->quoted) {
        wanted->command = state->argv + state->next - 1;
        wanted->command_count = (size_t)(state->argc - state->next + 1);
        state->next = state->argc;
        return 0;
    }
    if (wanted->job_file)
        return cli_bad_usage(state, "one job at a time: '%.40s' is too much", arg);
    wanted->job_file = arg;
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct estimate_options *wanted = state->input;

    switch (key) {
    case KEY_GPU:
        wanted->gpu = arg;
        return 0;
    case KEY_PROFILE:
        wanted->profile = arg;
        return 0;
    case KEY_ESTIMATOR:
        return take_estimator(wanted, arg, state);
    case KEY_QUANTILE:
        return take_quantile(wanted, arg, state);
    case KEY_EXPLAIN:
        wanted->explain = true;
        return 0;
    case KEY_QUESTIONS:
        wanted->questions = true;
        return 0;
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case ARGP_KEY_ARG:
        return take_argument(wanted, arg, state);
    case ARGP_KEY_END:
        return check_usage(wanted, state);
    default:
        return submit_take_option(key, arg, wanted->said, state);
    }
}

/* Behind the options: the estimators, of their own table. */
static char *list_estimators(int key, const char *text, void *input)
{
    static const struct table_column columns[] = {{"ESTIMATOR", false, 0, 0}, {"", false, 20, 0, true}};
    struct table *table;
    struct strbuf out = {0};

    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)(uintptr_t)text;
    table = table_new(columns, array_size(columns));
    for (const struct estimator *const *e = estimators; *e; e++) {
        table_cell(table, STYLE_NONE, "%s", (*e)->name);
        table_cell(table, STYLE_NONE, "%s", (*e)->text);
    }
    table_format(table, HELP_WIDTH, false, &out);
    table_free(table);
    return strbuf_steal(&out);
}

const struct argp estimate_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "JOBFILE [-- ARGUMENT...]\n-- COMMAND [ARGUMENT...]\n--summary FILE\n--capture FILE\n--hf-config FILE "
                "--batch-size N",
    .doc = "Estimate how much GPU memory a job will need on each of its GPUs, context included, and how busy it will "
           "keep the SMs. JOBFILE is a .rad file or a script with #CARMA lines, read as carma submit reads it. Where "
           "nothing "
           "tells of its memory, the command runs in a sandbox without a GPU until it has trained a step "
           "(docs/automatic-capture.md)."
           "\v",
    .help_filter = list_estimators,
};

static void print_warnings(const struct estimate_input *input, const struct estimate_answer *answer)
{
    for (size_t i = 0; i < input->warnings.count; i++)
        cli_fail("warning: %s", input->warnings.items[i]);
    if (answer && *answer->estimate.warning)
        cli_fail("warning: %s", answer->estimate.warning);
}

static int answer_one(const struct estimate_input *input, const struct estimate_options *wanted)
{
    struct estimate_answer answer;
    CLEANUP(estimate_parts_release) struct estimate_parts parts = {0};

    if (estimate_ask(input, wanted->estimator, &answer))
        return cli_fail("%s", answer.why_not.text);
    print_warnings(input, &answer);
    if (wanted->json) {
        estimate_print_json(input, &answer, 1, false, wanted->explain);
        return CLI_OK;
    }
    estimate_print(input, &answer);
    if (!wanted->explain)
        return CLI_OK;
    estimate_parts_of(&parts, input, &answer);
    if (parts.count == 0)
        return cli_fail("%s gives one figure without its parts", answer.estimate.source);
    estimate_print_parts(&parts);
    return CLI_OK;
}

/* Every estimator has its line; it fails only where none has an answer. */
static int answer_all(const struct estimate_input *input, const struct estimate_options *wanted)
{
    struct estimate_answer answers[16];
    size_t count = 0, known = 0;

    for (const struct estimator *const *e = estimators; *e && count < array_size(answers); e++)
        known += estimate_ask(input, *e, &answers[count++]) == 0;
    print_warnings(input, NULL);
    if (wanted->json)
        estimate_print_json(input, answers, count, true, false);
    else
        estimate_print_all(input, answers, count);
    return known ? CLI_OK : cli_fail("no estimator has the input that it needs");
}

int cmd_estimate(struct cli *cli, int argc, char **argv)
{
    CLEANUP(job_spec_release) struct job_spec said;
    struct estimate_options wanted = {
        .said = &said, .estimator = &estimator_auto, .quantile_permille = ESTIMATE_QUANTILE_PERMILLE};
    CLEANUP(estimate_input_release) struct estimate_input input;
    struct error err;
    int status;

    job_spec_init_empty(&said);
    estimate_input_init(&input);
    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    if (wanted.questions)
        return estimate_questions(&wanted);
    if (estimate_input_read(&input, &wanted, &err))
        return cli_fail("%s", err.text);
    return wanted.estimator ? answer_one(&input, &wanted) : answer_all(&input, &wanted);
}
