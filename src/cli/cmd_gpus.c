/* carma gpus: what each GPU holds, does and draws. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/view.h"

struct gpus_options {
    bool json;
    bool watch;
};

static const struct argp_option options[] = {CLI_OPTION_JSON, CLI_OPTION_WATCH, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct gpus_options *gpus = state->input;

    switch (key) {
    case CLI_JSON_KEY:
        gpus->json = true;
        return 0;
    case CLI_WATCH_KEY:
        gpus->watch = true;
        return 0;
    case ARGP_KEY_ARG:
        return cli_bad_usage(state, "'%.40s' is too much: it takes no arguments", arg);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp gpus_argp = {
    .options = options,
    .parser = parse,
    .doc = "List the GPUs: memory in use, SM activity (SM ACT: the mean of the daemon's window), power, and the jobs "
           "on them."
           "\vFREE is what the policy counts as free: claims that are not used yet are not free.",
};

#define BAR_WIDTH 9

static const struct table_column columns[] = {
    {"GPU", true, 0, 0},  {"NAME", false, 10, 4}, {"", false, 0, 2},     {"MEMORY IN USE", true, 0, 0},
    {"FREE", true, 0, 1}, {"SM ACT", true, 0, 0}, {"POWER", true, 0, 3}, {"JOBS", false, 10, 0},
};

static char *memory_text(int64_t used, int64_t total)
{
    char whole[UNITS_TEXT];

    if (total < 0)
        return xstrdup("-");
    format_bytes(total, whole);
    return used < 0 ? xasprintf("- / %s", whole) : xasprintf("%.1f / %s", (double)used / (double)GIB, whole);
}

static char *job_list(const json_t *gpu)
{
    struct strbuf out = {0};
    int64_t foreign = view_integer(gpu, "foreign_bytes", 0);
    char text[UNITS_TEXT];
    json_t *job;
    size_t i;

    if (view_true(gpu, "lost"))
        return xstrdup("GPU is lost");
    json_array_foreach(json_object_get(gpu, "jobs"), i, job)
        strbuf_printf(&out, "%s%" JSON_INTEGER_FORMAT, i ? "," : "", json_integer_value(job));
    if (foreign > 0)
        strbuf_printf(&out, "%sothers %s", i ? " + " : "", format_bytes(foreign, text));
    return strbuf_steal(&out);
}

static enum term_style activity_style(int64_t permille)
{
    return permille >= 800 ? STYLE_RED : permille >= 400 ? STYLE_YELLOW : permille > 0 ? STYLE_GREEN : STYLE_DIM;
}

/* "A100-SXM4-40GB": the maker's name would only take room. */
static char *short_name(const json_t *gpu)
{
    const char *name = view_text(gpu, "name");

    return term_escape(name && strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name);
}

static void add_row(struct table *table, const json_t *gpu)
{
    int64_t used = view_integer(gpu, "used_bytes", -1), total = view_integer(gpu, "total_bytes", -1);
    int64_t power = view_integer(gpu, "power_mw", -1);
    bool lost = view_true(gpu, "lost");
    CLEANUP(free_ptr) char *name = short_name(gpu);
    CLEANUP(free_ptr) char *bar = term_bar((double)used, (double)total, BAR_WIDTH);
    CLEANUP(free_ptr) char *memory = memory_text(used, total);
    CLEANUP(free_ptr) char *free_memory = view_bytes(gpu, "free_bytes");
    CLEANUP(free_ptr) char *activity = view_permille(gpu, "sm_activity_permille");
    CLEANUP(free_ptr) char *jobs = job_list(gpu);

    table_cell(table, lost ? STYLE_RED : STYLE_NONE, "%" PRId64, view_integer(gpu, "index", -1));
    table_cell(table, STYLE_NONE, "%s", name);
    table_cell(table, STYLE_BLUE, "%s", bar);
    table_cell(table, STYLE_NONE, "%s", memory);
    table_cell(table, STYLE_NONE, "%s", free_memory);
    table_cell(table, activity_style(view_integer(gpu, "sm_activity_permille", 0)), "%s", activity);
    if (power < 0)
        table_cell(table, STYLE_NONE, "-");
    else
        table_cell(table, STYLE_NONE, "%" PRId64 " W", (power + 500) / 1000);
    table_cell(table, lost ? STYLE_RED : STYLE_NONE, "%s", jobs);
}

static int draw(struct cli *cli, void *input)
{
    const struct gpus_options *gpus = input;
    CLEANUP(json_release) json_t *reply = NULL;
    CLEANUP(strbuf_release) struct strbuf out = {0};
    struct error err;
    json_t *gpu;
    size_t i;

    if (cli_call(cli, "GET", "/v1/gpus", NULL, &reply, &err))
        return cli_fail("%s", err.text);
    if (gpus->json) {
        cli_print_json(reply);
        return CLI_OK;
    }
    struct table *table = table_new(columns, array_size(columns));
    json_array_foreach(json_object_get(reply, "gpus"), i, gpu) add_row(table, gpu);
    table_format(table, term_width(stdout), term_colour(stdout), &out);
    table_free(table);
    fputs(out.text, stdout);
    return CLI_OK;
}

int cmd_gpus(struct cli *cli, int argc, char **argv)
{
    struct gpus_options gpus = {0};
    int status;

    if (!cli_parse(cli, argc, argv, &gpus, &status))
        return status;
    return cli_watch(cli, gpus.watch, draw, &gpus);
}
