/* carma share: the users' shares of the GPUs, and what they have had of them lately. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/answer.h"
#include "cli/show/table.h"

static const struct argp_option options[] = {CLI_OPTION_JSON, CLI_OPTION_WATCH, {0}};

struct share_options {
    bool json;
    int64_t period_ns; /* of --watch; 0: once */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct share_options *wanted = state->input;

    switch (key) {
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case CLI_WATCH_KEY:
        return cli_parse_watch(state, arg, &wanted->period_ns);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp share_argp = {
    .options = options,
    .parser = parse,
    .doc =
        "List each user's share of the GPUs, and his use of late: the user who has had the least for his share first."
        "\vGPU HOURS are the time that his jobs held GPUs, by the part held; half of it counts a week later. HAD is "
        "his part of all such use. DUE is his part of the shares of all who have jobs. GPUS is what his running jobs "
        "hold now. The users of a group (the setting share_groups) stand below it. Administrators give shares with "
        "'carma admin share'. docs/fairness.md says how turns follow.",
};

static const struct table_column columns[] = {
    {"USER", false, 6, 0, false},   {"SHARE", true, 0, 0, false},     {"DUE", true, 0, 0, false},
    {"HAD", true, 0, 0, false},     {"GPU HOURS", true, 0, 0, false}, {"GPUS", true, 0, 1, false},
    {"RUNNING", true, 0, 0, false}, {"WAITING", true, 0, 0, false},
};

/* The users of a group stand below it. */
static void add_row(struct table *table, const json_t *user, const char *named)
{
    CLEANUP(free_ptr) char *name = answer_safe_text(user, named);
    CLEANUP(free_ptr) char *due = answer_permille(user, "due_permille");
    CLEANUP(free_ptr) char *part = answer_permille(user, "use_permille");

    table_cell(table, STYLE_NONE, "%s%s", answer_text(user, "group") && strcmp(named, "user") == 0 ? "  " : "", name);
    table_cell(table, STYLE_NONE, "%" PRId64, answer_integer(user, "share", 1));
    table_cell(table, STYLE_NONE, "%s", due);
    table_cell(table, STYLE_NONE, "%s", part);
    table_cell(table, STYLE_NONE, "%.2f", (double)answer_integer(user, "use_gpu_ns", 0) / 3600e9);
    table_cell(table, STYLE_NONE, "%.1f", (double)answer_integer(user, "held_gpu_permille", 0) / 1000);
    table_cell(table, STYLE_NONE, "%" PRId64, answer_integer(user, "running", 0));
    table_cell(table, STYLE_NONE, "%" PRId64, answer_integer(user, "waiting", 0));
}

/* Where a row is the first of its group, the group's before it. */
static void add_group(struct table *table, const json_t *reply, const char *name, const char *before)
{
    json_t *group;
    size_t i;

    json_array_foreach (json_object_get(reply, "groups"), i, group)
        if (name && strcmp(answer_text(group, "group") ? answer_text(group, "group") : "", name) == 0 &&
            (!before || strcmp(before, name) != 0))
            add_row(table, group, "group");
}

static int draw(struct cli *cli, void *input)
{
    const struct share_options *wanted = input;
    CLEANUP(json_release) json_t *reply = NULL;
    const char *group = NULL;
    struct table *table;
    struct error err;
    json_t *user;
    size_t i;

    if (cli_call(cli, "GET", "/v1/share", NULL, &reply, &err))
        return cli_fail("%s", err.text);
    if (wanted->json) {
        cli_print_json(reply);
        return CLI_OK;
    }
    table = table_new(columns, array_size(columns));
    json_array_foreach (json_object_get(reply, "users"), i, user) {
        add_group(table, reply, answer_text(user, "group"), group);
        group = answer_text(user, "group");
        add_row(table, user, "user");
    }
    table_print(table);
    if (answer_text(reply, "order") && *answer_text(reply, "order") == 'f' && answer_text(reply, "order")[1] == 'i')
        puts("the setting order is fifo: shares do not count");
    return CLI_OK;
}

int cmd_share(struct cli *cli, int argc, char **argv)
{
    struct share_options wanted = {0};
    int status;

    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    return cli_watch(cli, wanted.period_ns, draw, &wanted);
}
