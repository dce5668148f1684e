/* carma explain: why a job waits, GPU by GPU. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/table.h"
#include "cli/show/answer.h"

const struct argp explain_argp = {
    .options = cli_jobs_options,
    .parser = cli_parse_one_job,
    .args_doc = "ID",
    .doc = "Say why a job waits, with the reason on each GPU.\vID is like 7, or @ for your last job.",
};

static const struct table_column columns[] = {
    {"GPU", true, 0, 0},
    {"FREE", true, 0, 0},
    {"SM ACTIVITY", true, 0, 1},
    {"JOBS", false, 0, 2},
    {"VERDICT", false, 20, 0, true},
};

static void add_row(struct table *table, const json_t *gpu)
{
    CLEANUP(free_ptr) char *free_memory = answer_bytes(gpu, "free_bytes");
    CLEANUP(free_ptr) char *activity = answer_permille(gpu, "sm_activity_permille");
    CLEANUP(free_ptr) char *verdict = answer_safe_text(gpu, "verdict");
    CLEANUP(free_ptr) char *jobs = answer_gpu_jobs(gpu);

    table_cell(table, STYLE_NONE, "%" PRId64, answer_integer(gpu, "index", -1));
    table_cell(table, STYLE_NONE, "%s", free_memory);
    table_cell(table, STYLE_NONE, "%s", activity);
    table_cell(table, STYLE_NONE, "%s", jobs);
    table_cell(table, STYLE_NONE, "%s", verdict);
}

/* A sentence of the answer, or of one of its members. */
static void print_text(const char *title, const json_t *json, const char *member)
{
    if (answer_text(json, member)) {
        CLEANUP(free_ptr) char *text = answer_safe_text(json, member);
        printf("%s: %s\n", title, text);
    }
}

static void print_explanation(const json_t *reply)
{
    CLEANUP(free_ptr) char *id = answer_job_id(reply);
    CLEANUP(free_ptr) char *state = answer_safe_text(reply, "state");
    CLEANUP(free_ptr) char *text = answer_safe_text(reply, "text");
    CLEANUP(free_ptr) char *deadline = answer_deadline(reply);
    const json_t *gpus = json_object_get(reply, "gpus");
    json_t *gpu, *warning;
    size_t i;

    if (json_is_null(json_object_get(reply, "reason")))
        printf("job %s %s\n", id, text); /* a sentence of its own */
    else
        printf("job %s is %s: %s\n", id, state, text);
    print_text("turn", json_object_get(reply, "turn"), "text");
    print_text("kept", json_object_get(reply, "kept"), "text");
    print_text("start", json_object_get(reply, "start"), "text");
    if (deadline)
        printf("deadline: %s\n", deadline);
    print_text("last run", reply, "last_end");
    print_text("memory", reply, "memory");
    print_text("estimate: none, as its command is not tried", reply, "untried");
    if (json_is_object(json_object_get(reply, "run_times"))) {
        CLEANUP(free_ptr) char *times = answer_run_times(reply);
        printf("run time: %s\n", times);
    }
    json_array_foreach (json_object_get(json_object_get(reply, "estimate"), "warnings"), i, warning) {
        CLEANUP(free_ptr) char *safe = term_escape(json_string_value(warning));
        printf("warning: %s\n", safe);
    }
    if (!json_array_size(gpus))
        return;
    struct table *table = table_new(columns, array_size(columns));
    json_array_foreach (gpus, i, gpu)
        add_row(table, gpu);
    putchar('\n');
    table_print(table);
}

int cmd_explain(struct cli *cli, int argc, char **argv)
{
    CLEANUP(cli_jobs_release) struct cli_jobs one = {0};
    CLEANUP(json_release) json_t *job = NULL;
    int status;

    if (!cli_parse(cli, argc, argv, &one, &status))
        return status;
    status = cli_get_job(cli, &one.list, "/explain", &job);
    if (status != CLI_OK)
        return status;
    if (one.json)
        cli_print_json(job);
    else
        print_explanation(job);
    return CLI_OK;
}
