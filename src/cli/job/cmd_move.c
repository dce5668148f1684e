/* carma move: a waiting job, or all of an array, before or behind others of its user. */
#include <inttypes.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/answer.h"

struct move_request {
    struct cli_jobs jobs;
    struct id_list before;
    const char *to; /* NULL: not said yet */
};

enum { KEY_FIRST = 0x200, KEY_LAST, KEY_BEFORE };
static const struct argp_option options[] = {
    {"first", KEY_FIRST, NULL, 0, "before all of its user's other waiting jobs", 0},
    {"last", KEY_LAST, NULL, 0, "behind them", 0},
    {"before", KEY_BEFORE, "ID", 0, "before this one of them", 0},
    CLI_OPTION_JSON,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct move_request *move = state->input;
    struct error err;
    error_t rc;

    switch (key) {
    case KEY_BEFORE:
        if (id_list_parse(&move->before, arg, &err))
            return cli_bad_usage(state, "--before: %s", err.text);
        if (move->before.count != 1)
            return cli_bad_usage(state, "--before: '%.40s' names several jobs", arg);
        /* fall through */
    case KEY_FIRST:
    case KEY_LAST:
        if (move->to)
            return cli_bad_usage(state, "--first, --last and --before: say one of them");
        move->to = key == KEY_FIRST ? "first" : key == KEY_LAST ? "last" : "before";
        return 0;
    case ARGP_KEY_END:
        return move->to ? 0 : cli_bad_usage(state, "where to? say --first, --last or --before ID");
    default:
        state->input = &move->jobs;
        rc = cli_parse_one_job(key, arg, state);
        state->input = move;
        return rc;
    }
}

const struct argp move_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "ID",
    .doc = "Put a waiting job before or behind others of the same user. Other users' jobs keep their places."
           "\vID is like 7, which is all of array 7, 7_3 (of it) or @ (your last job). Jobs of different priorities "
           "cannot change places: see --priority of 'carma submit'.",
};

static int move(struct cli *cli, struct move_request *move, json_t **reply, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    const struct id_list *list = &move->jobs.list;
    int rc = cli_resolve_ids(cli, &move->jobs.list, IDS_UNFINISHED, err);

    if (rc == 0)
        rc = cli_resolve_ids(cli, &move->before, IDS_UNFINISHED, err);
    if (rc)
        return rc;
    strbuf_printf(&path, "/v1/jobs/%" PRIu64 "/move?to=%s", list->items[0], move->to);
    if (list->count > 1)
        strbuf_printf(&path, "&last=%" PRIu64, list->items[list->count - 1]);
    if (move->before.count)
        strbuf_printf(&path, "&before=%" PRIu64, move->before.items[0]);
    return cli_call(cli, "POST", path.text, NULL, reply, err);
}

int cmd_move(struct cli *cli, int argc, char **argv)
{
    CLEANUP(json_release) json_t *reply = NULL;
    struct move_request request = {0};
    struct error err;
    int status;

    if (cli_parse(cli, argc, argv, &request, &status)) {
        if (move(cli, &request, &reply, &err))
            status = cli_fail("%s", err.text);
        else if (request.jobs.json)
            cli_print_json(reply);
    }
    cli_jobs_release(&request.jobs);
    id_list_release(&request.before);
    return status;
}
