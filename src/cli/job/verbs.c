/* carma cancel, hold, suspend, ...: the rows of api/job_verbs.def; carma edit (cmd_edit.c) goes this way, too.
 *
 * How this file works: change_jobs() asks the daemon once for all jobs. On a terminal it first has the daemon say which
 * jobs these would be (ask), where they were not named one by one, and then changes exactly those. The daemon has words
 * about each job that is refused: of those that differ in the job's number alone, one is told, with a count (tell). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/job_signal.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/job/change.h"
#include "cli/show/answer.h"

struct verb_request {
    struct cli_jobs jobs; /* first: cli_parse_jobs takes the request for it */
    int (*read)(const char *text, uint32_t *argument, struct error *err); /* of its last argument; NULL: it has none */
    const char *argument;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct verb_request *request = state->input;
    uint32_t argument;
    struct error err;

    if (!request->read)
        return cli_parse_jobs(key, arg, state);
    if (key == ARGP_KEY_NO_ARGS || (key == ARGP_KEY_END && !request->jobs.list.count && request->argument &&
                                    !selectors_any(&request->jobs.selectors)))
        return cli_bad_usage(state, "which job, and which signal? write for example '7 USR1'");
    if (key != ARGP_KEY_ARG || state->next != state->argc)
        return cli_parse_jobs(key, arg, state);
    request->argument = arg;
    return request->read(arg, &argument, &err) ? cli_bad_usage(state, "%s", err.text) : 0;
}

#define ARGP(name, arguments, help)                                                                                    \
    const struct argp name##_argp = {                                                                                  \
        .options = cli_verb_options, .parser = parse, .args_doc = arguments, .doc = help "\v" CLI_IDS_HELP};
#define VERB(name, record, order, listed, help, why)   ARGP(name, "[IDS...]", help)
#define TELLS(name, command, takes, listed, help, why) ARGP(name, "[IDS...]" ARGUMENT_##takes, help)
#include "api/job_verbs.def"

static const struct {
    const char *name;
    int (*read)(const char *text, uint32_t *argument, struct error *err);
} readers[] = {
#define VERB(name, record, order, listed, help, why)
#define TELLS(name, command, takes, listed, help, why) {#name, READ_##takes},
#include "api/job_verbs.def"
};

/* One request, of the ids named so, or of all that the selectors have. */
static int post(struct cli *cli, const char *verb, const struct cli_jobs *jobs, const char *ids, const json_t *body,
                bool dry, json_t **reply, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};

    strbuf_printf(&path, "/v1/jobs/%s", verb);
    selectors_put(&path, &jobs->selectors);
    query_put(&path, "ids", ids);
    query_put(&path, "dry_run", dry ? "yes" : NULL);
    return cli_call(cli, "POST", path.text, body, reply, err);
}

/* Counts it: {words without the job's number: [the first such words, how many]}. */
static void count(json_t *refused, const json_t *job)
{
    const char *text = answer_text(job, "error") ? answer_text(job, "error") : "refused";
    const char *alike = strncmp(text, "job ", 4) == 0 ? text + 4 + strcspn(text + 4, " ") : text;
    json_t *known = json_object_get(refused, alike);

    if (known)
        json_integer_set(json_array_get(known, 1), json_integer_value(json_array_get(known, 1)) + 1);
    else
        json_object_set_new(refused, alike, json_pack("[s, i]", text, 1));
}

static int tell(json_t *refused)
{
    int status = CLI_OK;
    const char *alike;
    json_t *known;

    json_object_foreach (refused, alike, known) {
        const char *text = json_string_value(json_array_get(known, 0));
        json_int_t others = json_integer_value(json_array_get(known, 1)) - 1;
        status = others == 0 ? cli_fail("%s", text)
                             : cli_fail("%s (and %lld other%s)", text, (long long)others, others == 1 ? "" : "s");
    }
    return status;
}

/* Of all jobs, or, with `dry`, of those that it would be; the daemon's words about those that are refused. */
static int post_all(struct cli *cli, const char *verb, const struct cli_jobs *jobs, const json_t *body, bool dry,
                    json_t *changed)
{
    CLEANUP(json_release) json_t *refused = json_object();
    struct error err;
    size_t from = 0, i;
    json_t *job;

    do {
        CLEANUP(free_ptr)
        char *ids = jobs->list.count ? cli_ids_text(cli, &jobs->list, &from, CLI_IDS_AT_ONCE, &err) : NULL;
        CLEANUP(json_release) json_t *reply = NULL;
        if ((jobs->list.count && !ids) || post(cli, verb, jobs, ids, body, dry, &reply, &err)) {
            tell(refused);
            return cli_fail("%s", err.text);
        }
        json_array_extend(changed, json_object_get(reply, "jobs"));
        json_array_foreach (json_object_get(reply, "refused"), i, job)
            count(refused, job);
    } while (from < jobs->list.count);
    return tell(refused);
}

static bool has_range(const struct id_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] < ID_WORD)
            return true;
    return false;
}

#define SHOWN 8 /* ranges */

static char *ranges_text(const struct id_list *list)
{
    struct strbuf text = {0};
    size_t shown = 0, i = 0;

    for (; i < list->count && shown < SHOWN; shown++) {
        uint64_t first = list->items[i++], last = first;
        for (; i < list->count && list->items[i] == last + 1; i++)
            last++;
        strbuf_printf(&text, last > first ? "%s%" PRIu64 "-%" PRIu64 : "%s%" PRIu64, shown ? "," : "", first, last);
    }
    strbuf_puts(&text, i < list->count ? ",..." : "");
    return strbuf_steal(&text);
}

/* The jobs that it would be take the place of the list; false: none shall be changed. */
static bool ask(struct cli *cli, const char *verb, struct cli_jobs *jobs, const json_t *body, int *status)
{
    CLEANUP(json_release) json_t *chosen = json_array();
    CLEANUP(free_ptr) char *ids = NULL;
    char answer[16] = "";
    json_t *job;
    size_t i;

    *status = post_all(cli, verb, jobs, body, true, chosen);
    id_list_release(&jobs->list);
    jobs->selectors = (struct selectors){0};
    json_array_foreach (chosen, i, job)
        id_list_append(&jobs->list, (uint64_t)answer_integer(job, "id", 0));
    if (jobs->list.count == 0) {
        if (*status == CLI_OK)
            fprintf(stderr, "%s: no job is like that\n", verb);
        return false;
    }
    ids = ranges_text(&jobs->list);
    fprintf(stderr, "%s %zu job%s: %s? [y/N] ", verb, jobs->list.count, jobs->list.count == 1 ? "" : "s", ids);
    if (fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y'))
        return true;
    *status = CLI_FAILURE;
    return false;
}

int change_jobs(struct cli *cli, const char *verb, struct cli_jobs *jobs, const json_t *body)
{
    CLEANUP(json_release) json_t *changed = json_array();
    bool by_selectors = selectors_any(&jobs->selectors), asks;
    int status = CLI_OK;

    asks = !jobs->yes && (by_selectors || has_range(&jobs->list)) && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    if (asks && !ask(cli, verb, jobs, body, &status))
        return status;
    if (post_all(cli, verb, jobs, body, false, changed))
        status = CLI_FAILURE;
    if (jobs->json)
        cli_print_jobs(changed);
    else if (by_selectors && (status == CLI_OK || json_array_size(changed)))
        printf("%s: %zu job%s\n", verb, json_array_size(changed), json_array_size(changed) == 1 ? "" : "s");
    return status;
}

int cli_change(struct cli *cli, int argc, char **argv)
{
    CLEANUP(json_release) json_t *body = NULL;
    struct verb_request request = {0};
    int status;

    for (size_t i = 0; i < array_size(readers); i++)
        if (strcmp(readers[i].name, argv[0]) == 0)
            request.read = readers[i].read;
    if (cli_parse(cli, argc, argv, &request, &status)) {
        if (request.argument)
            body = json_pack("{s:s}", "signal", request.argument);
        status = change_jobs(cli, argv[0], &request.jobs, body);
    }
    cli_jobs_release(&request.jobs);
    return status;
}
