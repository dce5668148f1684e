/* carma wait: until jobs have ended, and then exits as they did; or until they have come so far. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/job/last_words.h"
#include "cli/job/wait.h"
#include "cli/job/wait_until.h"
#include "cli/session.h"
#include "cli/show/answer.h"
#include "client/client.h"

#define EXIT_TIME_LIMIT 124 /* as timeout(1) */
#define REST_MS         200
#define WAIT_MOST_MS    1000
#define CROWD_MOST_MS   20000

struct wait_request {
    struct cli_jobs jobs;    /* first: cli_parse_jobs takes the request for it */
    struct wait_until until; /* .field NULL: until they have ended */
};

static void release(struct wait_request *request)
{
    cli_jobs_release(&request->jobs);
}

#define KEY_UNTIL 0x100
static const struct argp_option options[] = {
    CLI_OPTIONS_SELECT,
    CLI_OPTION_JSON,
    {"until", KEY_UNTIL, "FIELD=VALUE", 0,
     "wait until a field of each job has this value, e.g. state=RUNNING or placements.0.gpu=2; fields and values are "
     "those that carma show --json prints",
     0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct wait_request *request = state->input;
    struct error err;

    if (key != KEY_UNTIL)
        return cli_parse_jobs(key, arg, state);
    return wait_until_parse(&request->until, arg, &err) ? cli_bad_usage(state, "%s", err.text) : 0;
}

const struct argp wait_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[IDS...]",
    .doc = "Wait until all these jobs have ended.\vThe exit status is that of the first of them (in the order named) "
           "that did not end with 0, of which a line on standard error tells. It is the job's own exit status, 128+N "
           "if signal N ended it, 124 at its time limit, 127 if its program was not there, 126 if that may not be "
           "executed, and 1 if it never ran for another reason. 125: the daemon could not be asked. With --until it is "
           "0 once each job has had the value, "
           "and 1 if one ended without it. " CLI_IDS_HELP,
};

int wait_job_status(const json_t *job)
{
    const char *state = answer_text(job, "state");
    int64_t status = answer_integer(job, "exit_status", -1);

    if (state && strcmp(state, "COMPLETED") == 0)
        return 0;
    if (state && strcmp(state, "TIMEOUT") == 0)
        return EXIT_TIME_LIMIT;
    return status > 0 && status < 256 ? (int)status : CLI_FAILURE;
}

/* An estimate that was made after the submission, once. */
static void tell_estimate(const json_t *job, bool *told)
{
    const json_t *estimate = json_object_get(job, "estimate");

    if (*told || !answer_text(estimate, "text"))
        return;
    CLEANUP(free_ptr) char *text = answer_safe_text(estimate, "text");
    CLEANUP(free_ptr) char *named = answer_job_id(job);
    printf("job %s: %s\n", named, text);
    fflush(stdout);
    *told = true;
}

/* Nobody but its user ends that wait: once. */
static void tell_held(const json_t *job, bool *told)
{
    CLEANUP(free_ptr) char *named = answer_job_id(job);
    const char *state = answer_text(job, "state");

    if (*told || !state || strcmp(state, "HELD") != 0)
        return;
    cli_fail("job %s is held: carma release %s lets it run", named, named);
    *told = true;
}

void wait_tell_end(uint64_t id, const json_t *job, bool quote)
{
    CLEANUP(free_ptr) char *named = answer_job_id(job);
    CLEANUP(free_ptr) char *how = answer_job_where(job);
    CLEANUP(free_ptr)
    char *words = quote && answer_integer(job, "started_ns", 0) > 0 ? last_words(job, id, how) : NULL;

    cli_fail("job %s %s%s%s%s%s", named, answer_end(job), *how ? ": " : "", how, words ? ": " : "", words ? words : "");
}

/* ---- Interrupted ---- */

#define NAMES_BYTES 100 /* more ids than this many bytes are not named again */

static char goes_on[160 + 2 * NAMES_BYTES]; /* what is said then */

static void on_interrupt(int number)
{
    ssize_t ignored = write(STDERR_FILENO, goes_on, strlen(goes_on));

    (void)ignored;
    raise(number); /* by default, once this has returned */
}

/* As one writes them: 3-6,9. */
static char *short_ids(const struct id_list *list)
{
    struct strbuf out = {0};

    for (size_t i = 0; i < list->count; i++) {
        const uint64_t first = list->items[i];
        while (i + 1 < list->count && list->items[i + 1] == list->items[i] + 1)
            i++;
        strbuf_printf(&out, "%s%" PRIu64, out.length ? "," : "", first);
        if (list->items[i] != first)
            strbuf_printf(&out, "-%" PRIu64, list->items[i]);
    }
    return strbuf_steal(&out);
}

void wait_tell_when_interrupted(const struct id_list *list, const char *again)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND}, now;
    CLEANUP(free_ptr) char *all = short_ids(list);
    const char *ids = strlen(all) <= NAMES_BYTES ? all : "with their numbers";

    if (list->count == 1)
        snprintf(goes_on, sizeof goes_on, "\ncarma: job %s goes on: carma cancel %s ends it, %s %s waits again\n", ids,
                 ids, again, ids);
    else
        snprintf(goes_on, sizeof goes_on, "\ncarma: %zu jobs go on: carma cancel %s ends them, %s %s waits again\n",
                 list->count, ids, again, ids);
    if (sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        sigaction(SIGINT, &action, NULL);
}

int64_t wait_longer(const struct cli *cli, int64_t pause_ms)
{
    int64_t longer_ms = cli->crowded ? pause_ms * 2 : pause_ms * 5 / 4;

    if (cli->crowded)
        return longer_ms < CROWD_MOST_MS ? longer_ms : CROWD_MOST_MS;
    if (pause_ms > WAIT_MOST_MS)
        return pause_ms * 9 / 10;
    return longer_ms < WAIT_MOST_MS ? longer_ms : WAIT_MOST_MS;
}

void wait_pause(struct cli *cli, int64_t *pause_ms)
{
    if (*pause_ms >= REST_MS)
        client_rest(cli->client);
    session_sleep_ms(*pause_ms);
    *pause_ms = wait_longer(cli, *pause_ms);
}

static int wait_for_one(struct cli *cli, uint64_t id, bool told, int *status, json_t *ended)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64, id);
    int64_t pause_ms = WAIT_FIRST_PAUSE_MS;
    bool held = false;
    struct error err;

    for (;;) {
        CLEANUP(json_release) json_t *job = NULL;
        int rc = session_call(cli, "GET", path, NULL, &job, &err);
        if (rc) {
            cli_fail("%s", err.text);
            return rc;
        }
        tell_estimate(job, &told);
        tell_held(job, &held);
        if (answer_job_ended(job)) {
            *status = wait_job_status(job);
            if (*status != CLI_OK || answer_text(job, "message") || answer_text(job, "last_end"))
                wait_tell_end(id, job, *status != CLI_OK);
            if (ended)
                json_array_append(ended, job);
            return 0;
        }
        wait_pause(cli, &pause_ms);
    }
}

int wait_for_jobs(struct cli *cli, const struct id_list *list, bool told, json_t *ended)
{
    int result = CLI_OK;

    cli->waits = true;
    if (list->count)
        wait_tell_when_interrupted(list, "carma wait");
    for (size_t i = 0; i < list->count; i++) {
        int status, rc = wait_for_one(cli, list->items[i], told, &status, ended);
        if (rc)
            return session_status(rc);
        if (result == CLI_OK)
            result = status;
    }
    return result;
}

int cmd_wait(struct cli *cli, int argc, char **argv)
{
    CLEANUP(release) struct wait_request request = {0};
    const struct cli_jobs *jobs = &request.jobs;
    CLEANUP(json_release) json_t *found = json_array();
    struct error err;
    int status;

    if (!cli_parse(cli, argc, argv, &request, &status))
        return status;
    cli->waits = true;
    if ((status = cli_choose(cli, &request.jobs, IDS_ALL, &err)))
        return cli_fail("%s", err.text), session_status(status);
    status = request.until.field ? wait_until_jobs(cli, &jobs->list, &request.until, found)
                                 : wait_for_jobs(cli, &jobs->list, true, found);
    if (jobs->json)
        cli_print_jobs(found);
    return status;
}
