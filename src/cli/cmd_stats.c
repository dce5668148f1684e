/* carma stats: what jobs have used, by user. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/view.h"

struct stats_options {
    bool json;
};

static const struct argp_option options[] = {
    {"by", 'b', "WHAT", 0, "what to sum up by: user (the default)", 0},
    CLI_OPTION_JSON,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct stats_options *stats = state->input;

    switch (key) {
    case 'b':
        return strcmp(arg, "user") == 0 ? 0 : cli_bad_usage(state, "--by: '%.40s' is not known: say user", arg);
    case CLI_JSON_KEY:
        stats->json = true;
        return 0;
    case ARGP_KEY_ARG:
        return cli_bad_usage(state, "'%.40s' is too much: it takes no arguments", arg);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp stats_argp = {
    .options = options,
    .parser = parse,
    .doc = "Sum up what each user's jobs have used: GPU hours and energy."
           "\vEnergy is modelled: no counter tells the jobs on a GPU apart (docs/metrics.md). What GPUs drew with nobody on "
           "them, or for processes that are no job's, is below the users; all rows sum up to the GPUs' counters.",
};

static const struct table_column columns[] = {
    {"USER", false, 8, 0}, {"JOBS", true, 0, 0}, {"ENDED", true, 0, 1}, {"GPU HOURS", true, 0, 0}, {"ENERGY", true, 0, 0},
};

static void add_rest(struct table *table, const char *who, int64_t mj)
{
    char energy[VIEW_ENERGY];

    if (mj <= 0)
        return;
    table_cell(table, STYLE_DIM, "%s", who);
    for (int i = 0; i < 3; i++)
        table_cell(table, STYLE_DIM, "-");
    table_cell(table, STYLE_DIM, "%s", view_energy(mj, energy));
}

static void print_stats(const json_t *reply)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    struct table *table = table_new(columns, array_size(columns));
    char energy[VIEW_ENERGY];
    json_t *user;
    size_t i;

    json_array_foreach(json_object_get(reply, "users"), i, user)
    {
        CLEANUP(free_ptr) char *name = view_safe_text(user, "user");
        table_cell(table, STYLE_NONE, "%s", name);
        table_cell(table, STYLE_NONE, "%" PRId64, view_integer(user, "jobs", 0));
        table_cell(table, STYLE_NONE, "%" PRId64, view_integer(user, "ended", 0));
        table_cell(table, STYLE_NONE, "%.2f", (double)view_integer(user, "gpu_ns", 0) / 3.6e12);
        table_cell(table, STYLE_NONE, "%s", view_energy(view_integer(user, "modelled_energy_mj", 0), energy));
    }
    add_rest(table, "(nobody)", view_integer(reply, "modelled_idle_mj", 0));
    add_rest(table, "(no job's)", view_integer(reply, "modelled_foreign_mj", 0));
    table_format(table, term_width(stdout), term_colour(stdout), &out);
    table_free(table);
    fputs(out.text, stdout);
    puts("energy is modelled");
}

int cmd_stats(struct cli *cli, int argc, char **argv)
{
    CLEANUP(json_release) json_t *reply = NULL;
    struct stats_options stats = {0};
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &stats, &status))
        return status;
    if (cli_call(cli, "GET", "/v1/stats?by=user", NULL, &reply, &err))
        return cli_fail("%s", err.text);
    if (stats.json)
        cli_print_json(reply);
    else
        print_stats(reply);
    return CLI_OK;
}
