/* carma admin learned: what runs have taught, by user and workload, and taking it back. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/answer.h"
#include "cli/show/table.h"

struct learned_options {
    bool json;
    const char *forget; /* NULL: show */
};

enum { KEY_FORGET = 0x100 };

static const struct argp_option options[] = {
    {"forget", KEY_FORGET, "USER|WORKLOAD", 0, "take back what runs of the user, or of the workload, have taught", 0},
    CLI_OPTION_JSON,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct learned_options *wanted = state->input;

    switch (key) {
    case KEY_FORGET:
        wanted->forget = arg;
        return 0;
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp admin_learned_argp = {
    .options = options,
    .parser = parse,
    .doc =
        "Show what the runs of each user have taught the server: for administrators."
        "\vDEFAULT is the memory that is reserved for a job of unknown need, and OWN the part of it that the user's "
        "own runs say; the figures of others move it by a quarter at most (docs/estimation.md). TOLD: whether others "
        "are told of these runs. Of workloads: the memory of the first run, the most of all, and the SM activity. "
        "--forget takes it back for good; the user 'unknown' is what an earlier carma left without a name.",
};

static const struct table_column user_columns[] = {
    {"USER", false, 8, 0, false},  {"WORKLOADS", true, 0, 0, false}, {"RUNS", true, 0, 0, false},
    {"MODELS", true, 0, 1, false}, {"OWN", true, 0, 0, false},       {"DEFAULT", true, 0, 0, false},
    {"TOLD", false, 0, 2, false},
};

static const struct table_column workload_columns[] = {
    {"USER", false, 8, 0, false},  {"WORKLOAD", false, 0, 0, false}, {"NAME", false, 8, 1, false},
    {"RUNS", true, 0, 0, false},   {"FIRST", true, 0, 3, false},     {"PEAK", true, 0, 0, false},
    {"SM ACT", true, 0, 2, false}, {"PAIRS", true, 0, 4, false},     {"TOLD", false, 0, 5, false},
};

static void text_cell(struct table *table, const json_t *row, const char *member)
{
    CLEANUP(free_ptr) char *text = answer_safe_text(row, member);

    table_cell(table, STYLE_NONE, "%s", text);
}

static void number_cell(struct table *table, const json_t *row, const char *member)
{
    table_cell(table, STYLE_NONE, "%" PRId64, answer_integer(row, member, 0));
}

static void bytes_cell(struct table *table, const json_t *row, const char *member)
{
    CLEANUP(free_ptr) char *bytes = answer_bytes(row, member);

    table_cell(table, STYLE_NONE, "%s", bytes);
}

static void told_cell(struct table *table, const json_t *row)
{
    table_cell(table, STYLE_NONE, "%s", answer_true(row, "told") ? "yes" : "no");
}

static void add_user(struct table *table, const json_t *row)
{
    text_cell(table, row, "user");
    number_cell(table, row, "workloads");
    number_cell(table, row, "runs");
    number_cell(table, row, "models");
    bytes_cell(table, json_object_get(row, "own_guess"), "likely_bytes");
    bytes_cell(table, json_object_get(row, "guess"), "likely_bytes");
    told_cell(table, row);
}

static void add_workload(struct table *table, const json_t *row)
{
    CLEANUP(free_ptr) char *activity = answer_permille(row, "sm_activity_permille");

    text_cell(table, row, "user");
    text_cell(table, row, "workload");
    text_cell(table, row, "name");
    number_cell(table, row, "runs");
    bytes_cell(table, row, "first_bytes");
    bytes_cell(table, row, "peak_bytes");
    table_cell(table, STYLE_NONE, "%s", activity);
    number_cell(table, row, "pairs");
    told_cell(table, row);
}

static void print_rows(const json_t *rows, const struct table_column *columns, size_t count,
                       void (*add)(struct table *table, const json_t *row))
{
    struct table *table = table_new(columns, count);
    json_t *row;
    size_t i;

    json_array_foreach (rows, i, row)
        add(table, row);
    table_print(table);
}

static int show(struct cli *cli, const struct learned_options *wanted)
{
    json_t *reply = NULL;
    struct error err;

    if (cli_call(cli, "GET", "/v1/learned", NULL, &reply, &err) != 0)
        return cli_fail("%s", err.text);
    if (wanted->json) {
        cli_print_json(reply);
    } else {
        print_rows(json_object_get(reply, "users"), user_columns, array_size(user_columns), add_user);
        printf("\n");
        print_rows(json_object_get(reply, "workloads"), workload_columns, array_size(workload_columns), add_workload);
    }
    json_decref(reply);
    return CLI_OK;
}

static int forget(struct cli *cli, const struct learned_options *wanted)
{
    json_t *body = json_pack("{s:s}", "forget", wanted->forget), *reply = NULL;
    struct error err;
    int rc;

    if (!body)
        return cli_fail("'%s' is not UTF-8: it is no user and no workload", wanted->forget);
    rc = cli_call(cli, "POST", "/v1/learned/forget", body, &reply, &err);
    json_decref(body);
    if (rc != 0)
        return cli_fail("%s", err.text);
    if (wanted->json)
        cli_print_json(reply);
    else
        printf("forgotten: what was learned of %s\n", wanted->forget);
    json_decref(reply);
    return CLI_OK;
}

int cmd_admin_learned(struct cli *cli, int argc, char **argv)
{
    struct learned_options wanted = {0};
    int status;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    return wanted.forget ? forget(cli, &wanted) : show(cli, &wanted);
}
