/* carma queue: the jobs that wait or run, with why and where. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/table.h"
#include "cli/show/answer.h"

struct queue_options {
    bool all;
    bool json;
    int64_t period_ns; /* of --watch; 0: once */
};

static const struct argp_option options[] = {
    {"all", 'a', NULL, 0, "ended jobs too", 0},
    CLI_OPTION_JSON,
    CLI_OPTION_WATCH,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct queue_options *queue = state->input;

    switch (key) {
    case 'a':
        queue->all = true;
        return 0;
    case CLI_JSON_KEY:
        queue->json = true;
        return 0;
    case CLI_WATCH_KEY:
        return cli_parse_watch(state, arg, &queue->period_ns);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp queue_argp = {
    .options = options,
    .parser = parse,
    .doc = "List the jobs that wait or run: user, name, time; the GPUs, or why the job waits."
           "\vTIME is how long a job runs or ran, or how long it waits. MEMORY is its reservation on each of its GPUs. "
           "With a ! it has used more than its first reservation, and the reservation has grown.",
};

static const struct table_column columns[] = {
    {"ID", true, 0, 0},   {"NAME", false, 12, 0}, {"USER", false, 6, 3}, {"ST", false, 0, 0},
    {"GPUS", true, 0, 2}, {"MEMORY", true, 0, 1}, {"TIME", true, 0, 0},  {"WHERE OR WHY NOT", false, 22, 0},
};

static void add_row(struct table *table, const json_t *job, int64_t now_ns)
{
    CLEANUP(free_ptr) char *name = answer_safe_text(job, "name");
    CLEANUP(free_ptr) char *user = answer_safe_text(job, "user");
    CLEANUP(free_ptr) char *letter = answer_safe_text(job, "letter");
    CLEANUP(free_ptr) char *memory = answer_bytes(job, "reserved_bytes");
    CLEANUP(free_ptr) char *duration = answer_job_time(job, now_ns);
    CLEANUP(free_ptr) char *where = answer_job_where(job);
    bool over = answer_integer(job, "over_reservation_bytes", 0) > 0;

    table_cell(table, STYLE_NONE, "%" PRId64, answer_integer(job, "id", 0));
    table_cell(table, STYLE_NONE, "%s", name);
    table_cell(table, STYLE_NONE, "%s", user);
    table_cell(table, answer_state_style(job), "%s", letter);
    table_cell(table, STYLE_NONE, "%" PRId64 "%s", answer_integer(job, "gpus", 0),
               answer_true(job, "exclusive") ? "x" : "");
    table_cell(table, over ? STYLE_RED : STYLE_NONE, "%s%s", over ? "!" : "", memory);
    table_cell(table, STYLE_NONE, "%s", duration);
    table_cell(table, STYLE_NONE, "%s", where);
}

#define ROWS 1000 /* of a table: more nobody reads */

/* The running jobs are shown for any number of jobs that wait before or after them. */
static int add_running(struct cli *cli, json_t *reply, struct error *err)
{
    CLEANUP(json_release) json_t *running = NULL;
    json_t *jobs = json_object_get(reply, "jobs"), *job;
    int64_t first = answer_integer(json_array_get(jobs, 0), "id", 0), added = 0;
    int64_t last = answer_integer(json_array_get(jobs, json_array_size(jobs) - 1), "id", 0);
    size_t i, before = 0;
    int rc = cli_list_jobs(cli, "/v1/jobs?state=running", cli_call, &running, err);

    json_array_foreach (json_object_get(running, "jobs"), i, job) {
        int64_t id = answer_integer(job, "id", 0);
        if (id < first)
            json_array_insert(jobs, before++, job);
        else if (id > last)
            json_array_append(jobs, job);
        added += id < first || id > last;
    }
    json_object_set_new(reply, "left_out", json_integer(answer_integer(reply, "left_out", 0) - added));
    return rc;
}

static int ask_for_rows(struct cli *cli, const struct queue_options *queue, json_t **reply, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf(queue->all ? "/v1/jobs?state=all&last=%d" : "/v1/jobs?limit=%d", ROWS);
    int rc = cli_call(cli, "GET", path, NULL, reply, err);

    return rc == 0 && answer_integer(*reply, "left_out", 0) > 0 ? add_running(cli, *reply, err) : rc;
}

static int draw(struct cli *cli, void *input)
{
    const struct queue_options *queue = input;
    CLEANUP(json_release) json_t *reply = NULL;
    CLEANUP(strbuf_release) struct strbuf out = {0};
    struct error err;
    json_t *job;
    size_t i;

    if (queue->json ? cli_list_jobs(cli, queue->all ? "/v1/jobs?state=all" : "/v1/jobs", cli_call, &reply, &err)
                    : ask_for_rows(cli, queue, &reply, &err))
        return cli_fail("%s", err.text);
    if (queue->json) {
        cli_print_json(reply);
        return CLI_OK;
    }
    struct table *table = table_new(columns, array_size(columns));
    json_array_foreach (json_object_get(reply, "jobs"), i, job)
        add_row(table, job, answer_integer(reply, "now_ns", 0));
    table_format(table, term_width(stdout), term_colour(stdout), &out);
    table_free(table);
    fputs(out.text, stdout);
    if (answer_integer(reply, "left_out", 0) > 0)
        printf("and %" PRId64 " more: carma queue --json has them all\n", answer_integer(reply, "left_out", 0));
    return CLI_OK;
}

int cmd_queue(struct cli *cli, int argc, char **argv)
{
    struct queue_options queue = {0};
    int status;

    if (!cli_parse(cli, argc, argv, &queue, &status))
        return status;
    return cli_watch(cli, queue.period_ns, draw, &queue);
}
