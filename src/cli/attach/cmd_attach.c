/* carma attach: back to a job of carma run or carma shell. */
#include <inttypes.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/attach/attach.h"
#include "cli/attach/signals.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/answer.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
    return key == CLI_JSON_KEY ? ARGP_ERR_UNKNOWN : cli_parse_one_job(key, arg, state);
}

const struct argp attach_argp = {
    .parser = parse,
    .args_doc = "ID",
    .doc =
        "Come back to a job of `carma run` or `carma shell`: its input, output and keys are this terminal's again, and "
        "another's no more.\vID is like 7, or @ for your last job. What the job wrote last is shown first; `carma "
        "logs` "
        "has all of it. Ctrl-] leaves a job on a terminal, which goes on. The exit status is the job's.",
};

/* Whether it can be attached to; says why not. */
static bool is_for_it(uint64_t id, const json_t *job)
{
    CLEANUP(free_ptr) char *user = answer_safe_text(job, "user");

    if (!answer_text(job, "output"))
        cli_fail("permission denied: job %" PRIu64 " belongs to %s", id, user);
    else if (answer_job_ended(job))
        cli_fail("job %" PRIu64 " %s: carma logs %" PRIu64 " prints its output", id, answer_end(job), id);
    else if (!answer_text(job, "attach"))
        cli_fail("job %" PRIu64 " was not started by carma run: carma logs -f %" PRIu64 " follows its output", id, id);
    else
        return true;
    return false;
}

int cmd_attach(struct cli *cli, int argc, char **argv)
{
    CLEANUP(cli_jobs_release) struct cli_jobs one = {0};
    CLEANUP(json_release) json_t *job = NULL;
    CLEANUP(close_fd) int signals = -1;
    uint64_t id;
    int status;

    if (!cli_parse(cli, argc, argv, &one, &status))
        return status;
    status = cli_get_job(cli, &one.list, "", &job);
    if (status != CLI_OK)
        return status;
    id = (uint64_t)answer_integer(job, "id", 0);
    if (!is_for_it(id, job))
        return CLI_FAILURE;
    signals = signals_open();
    return attach_to(cli, id, signals, true, false);
}
