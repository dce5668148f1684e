/* carma jupyter: JupyterLab as a job. This command tells how to come to it, and stays to tell more; the notebook does
 * not need it. One that the user has already is found by its kind and its name. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/attach/jupyter.h"
#include "cli/attach/place.h"
#include "cli/attach/signals.h"
#include "cli/attach/submit_one.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/job/submit.h"
#include "cli/job/wait.h"
#include "cli/session.h"
#include "cli/show/answer.h"
#include "core/record.h"

#define KIND "jupyter"

struct jupyter {
    struct job_spec options; /* owned */
    char **words;            /* in argv; for JupyterLab */
    size_t count;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct jupyter *jupyter = state->input;

    if (key == ARGP_KEY_END)
        return jupyter->options.array ? cli_bad_usage(state, "a notebook is one job: leave --array out") : 0;
    if (key != ARGP_KEY_ARG)
        return submit_take_option(key, arg, &jupyter->options, state);
    if (!state->quoted || state->next - 1 < state->quoted)
        return cli_bad_usage(state, "'%.40s' stands before '--': write carma jupyter [OPTION...] -- [ARGUMENT...]",
                             arg);
    jupyter->words = state->argv + state->next - 1;
    jupyter->count = (size_t)(state->argc - state->next + 1);
    state->next = state->argc;
    return 0;
}

const struct argp jupyter_argp = {
    .options = submit_one_options,
    .parser = parse,
    .args_doc = "[-- ARGUMENT...]",
    .doc =
        "JupyterLab as a job: its notebooks see the job's GPUs. Prints its address, and the ssh line that brings it to "
        "the browser at home."
        "\vJupyterLab is the one of this shell's PATH, or that of --conda or --container; arguments behind '--' are "
        "its own. It serves this machine alone, at a port that it finds free. While it waits for GPUs, Ctrl-C cancels "
        "it; once it runs, Ctrl-C leaves it, and it goes on: the same command prints its address again, and `carma "
        "cancel` ends it. It is ended, after two warnings, once it has not used its GPUs for so long as --idle-limit "
        "or "
        "the administrator says. With another name (-J) it is a further one.",
};

/* ---- The job ---- */

/* The user's own that has this name and has not ended; 0: there is none. */
static int find(struct cli *cli, const char *name, json_t **job, struct error *err)
{
    const struct selectors own = {.me = true, .state = "waiting,running"};
    CLEANUP(strbuf_release) struct strbuf path = {0};
    CLEANUP(json_release) json_t *reply = NULL;
    json_t *other;
    size_t i;
    int rc;

    strbuf_puts(&path, "/v1/jobs");
    selectors_put(&path, &own);
    rc = cli_list_jobs(cli, path.text, session_call, &reply, err);
    json_array_foreach (json_object_get(reply, "jobs"), i, other) {
        const char *kind = answer_text(other, "interactive"), *its = answer_text(other, "name");
        if (kind && its && strcmp(kind, KIND) == 0 && strcmp(its, name) == 0) {
            json_decref(*job);
            *job = json_incref(other);
        }
    }
    return rc;
}

static int spec_of(struct jupyter *jupyter, struct job_spec *spec, struct error *err)
{
    CLEANUP(spec_strings_release) struct spec_strings command = {0};
    CLEANUP(free_ptr) char *token = NULL;
    int rc;

    job_spec_init(spec);
    if ((rc = jupyter_command(&jupyter->options, jupyter->words, jupyter->count, &command, err)) ||
        (rc = jupyter_token(&token, err)))
        return rc;
    setenv("JUPYTER_TOKEN", token, 1); /* the job has our environment */
    jupyter->options.interactive = xstrdup(KIND);
    jupyter->options.no_capture = true; /* it trains nothing by itself */
    return submit_from_command(spec, command.items, command.count, &jupyter->options, err);
}

static uint64_t submit(struct cli *cli, struct jupyter *jupyter, int *status)
{
    CLEANUP(job_spec_release) struct job_spec spec;
    struct error err;

    if (spec_of(jupyter, &spec, &err) == 0)
        return submit_one(cli, &spec, status);
    *status = cli_fail("%s", err.text);
    return 0;
}

/* ---- What is told of it ---- */

/* False: it does not serve yet. */
static bool tell_address(uint64_t id, const json_t *job)
{
    CLEANUP(free_ptr) char *address = jupyter_address(job);
    CLEANUP(free_ptr) char *token = NULL;
    const struct passwd *account = getpwuid(geteuid());
    unsigned port = address ? jupyter_port(address) : 0;
    char host[256] = "";
    struct error err;

    if (!port)
        return false;
    if (jupyter_token(&token, &err))
        cli_fail("%s", err.text);
    gethostname(host, sizeof host - 1);
    printf("job %" PRIu64 " serves on %s:\n    %s%s%s\nIn your browser at home, once this runs there:\n"
           "    ssh -N -L %u:127.0.0.1:%u %s@%s\n",
           id, host, address, token ? "?token=" : "", token ? token : "", port, port,
           account ? account->pw_name : "USER", host);
    fflush(stdout);
    return true;
}

static void tell_idle(uint64_t id, const json_t *job, int64_t *told)
{
    int64_t step = answer_integer(job, "idle_step", 0), limit_ns = answer_integer(job, "idle_limit_ns", 0);
    char left[UNITS_TEXT];

    if (step > *told && step < IDLE_ENDED)
        cli_fail("job %" PRIu64 " does not use its GPUs: it is ended in %s unless it does", id,
                 format_duration(limit_ns / (step == IDLE_WARNED ? 2 : 10), left));
    *told = step;
}

/* Until it has ended or somebody leaves it. */
static int stay(struct cli *cli, uint64_t id, int signals)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64, id);
    int64_t pause_ms = WAIT_FIRST_PAUSE_MS, idle = 0;
    bool told = false;
    struct error err;

    for (;;) {
        CLEANUP(json_release) json_t *job = NULL;
        int rc = session_call(cli, "GET", path, NULL, &job, &err), number;
        if (rc)
            return cli_fail("%s; job %" PRIu64 " goes on", err.text, id), session_status(rc);
        if (answer_job_ended(job)) {
            wait_tell_end(id, job, true);
            return wait_job_status(job);
        }
        if (!told && (told = tell_address(id, job)))
            cli_fail("Ctrl-C leaves it, and it goes on: carma cancel %" PRIu64 " ends it", id);
        tell_idle(id, job, &idle);
        wait_pause(cli, &pause_ms);
        while ((number = signals_next(signals)) == SIGWINCH)
            ;
        if (number == SIGINT) {
            cli_fail("job %" PRIu64 " goes on: carma jupyter tells its address again, carma cancel %" PRIu64 " ends it",
                     id, id);
            return CLI_OK;
        }
        if (number)
            return 128 + number;
    }
}

static int follow(struct cli *cli, uint64_t id, int signals)
{
    CLEANUP(json_release) json_t *job = NULL;
    int status = place_wait(cli, id, signals, &job);

    return status ? status : stay(cli, id, signals);
}

/* Of one that is there already. */
static int tell_again(struct cli *cli, const json_t *other)
{
    uint64_t id = (uint64_t)answer_integer(other, "id", 0);
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64, id);
    CLEANUP(free_ptr) char *name = answer_safe_text(other, "name");
    CLEANUP(json_release) json_t *job = NULL;
    struct error err;
    int rc = session_call(cli, "GET", path, NULL, &job, &err);

    if (rc)
        return cli_fail("%s", err.text), session_status(rc);
    cli_fail("you have job %" PRIu64 " (%s) already: carma cancel %" PRIu64
             " ends it; another name (-J) is for a further one",
             id, name, id);
    if (!answer_job_runs(job) || !tell_address(id, job))
        return cli_fail("it does not serve yet: carma show %" PRIu64 " says why", id);
    return CLI_OK;
}

static int begin(struct cli *cli, struct jupyter *jupyter)
{
    CLEANUP(json_release) json_t *other = NULL;
    CLEANUP(close_fd) int signals = -1;
    int status = CLI_OK, rc;
    struct error err;
    uint64_t id;

    if (!jupyter->options.name)
        jupyter->options.name = xstrdup(KIND);
    rc = find(cli, jupyter->options.name, &other, &err);
    if (rc)
        return cli_fail("%s", err.text), session_status(rc);
    if (other)
        return tell_again(cli, other);
    cli->waits = true;
    signals = signals_open();
    id = submit(cli, jupyter, &status);
    return id ? follow(cli, id, signals) : status;
}

int cmd_jupyter(struct cli *cli, int argc, char **argv)
{
    struct jupyter jupyter = {.count = 0};
    int status;

    job_spec_init_empty(&jupyter.options);
    if (cli_parse(cli, argc, argv, &jupyter, &status))
        status = begin(cli, &jupyter);
    job_spec_release(&jupyter.options);
    return status;
}
