#include "cli/attach/place.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/attach/signals.h"
#include "cli/cli.h"
#include "cli/job/wait.h"
#include "cli/session.h"
#include "cli/show/answer.h"
#include "cli/show/term.h"

void place_cancel(struct cli *cli, uint64_t id)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64 "/cancel", id);
    struct error err;

    if (cli_call(cli, "POST", path, NULL, NULL, &err) == 0)
        cli_fail("job %" PRIu64 " is cancelled", id);
    else
        cli_fail("job %" PRIu64 " is not cancelled: %s", id, err.text);
}

/* What the job waits for. `kind`: what has to change before it is said again where lines stay. */
static char *line_of(uint64_t id, const json_t *job, char **kind)
{
    const json_t *turn = json_object_get(job, "turn"), *reason = json_object_get(job, "reason");
    const char *state = answer_text(job, "state"), *code = answer_text(reason, "code");
    CLEANUP(free_ptr) char *why = answer_safe_text(reason, "text");
    int64_t place = answer_integer(turn, "place", 0);

    *kind = xasprintf("%s %s %" PRId64, state ? state : "", code ? code : "", place);
    if (state && strcmp(state, "HELD") == 0)
        return xasprintf("job %" PRIu64 " is held: carma release %" PRIu64 " lets it run", id, id);
    if (state && strcmp(state, "QUEUED") == 0 && place > 0)
        return xasprintf("job %" PRIu64 " waits, %" PRId64 " of %" PRId64 " in the queue: %s", id, place,
                         answer_integer(turn, "of", 0), why);
    if (state && strcmp(state, "QUEUED") == 0)
        return xasprintf("job %" PRIu64 " waits: %s", id, why);
    return NULL; /* it starts at once */
}

struct shown {
    char *line, *kind; /* owned */
};

static void release(struct shown *shown)
{
    free(shown->line);
    free(shown->kind);
}

/* On a terminal one line, which changes; else a line for each change. */
static void show(struct shown *shown, uint64_t id, const json_t *job)
{
    struct shown now;
    bool redraws = isatty(STDERR_FILENO);

    now.line = line_of(id, job, &now.kind);
    if (now.line && redraws && (!shown->line || strcmp(now.line, shown->line) != 0)) {
        CLEANUP(free_ptr) char *text = xasprintf("carma: %s", now.line);
        CLEANUP(free_ptr) char *cut = term_cut(text, (size_t)term_width(stderr) - 1);
        fprintf(stderr, TERM_LINE_CLEAR "%s", cut);
        cli_progress_shown = true;
    } else if (now.line && !redraws && (!shown->kind || strcmp(now.kind, shown->kind) != 0)) {
        cli_fail("%s", now.line);
    }
    release(shown);
    *shown = now;
}

int place_wait(struct cli *cli, uint64_t id, int signals, json_t **job)
{
    CLEANUP(free_ptr) char *path = xasprintf("/v1/jobs/%" PRIu64, id);
    CLEANUP(release) struct shown shown = {0};
    int64_t pause_ms = WAIT_FIRST_PAUSE_MS;
    struct error err;

    cli->waits = true;
    for (;;) {
        int rc = session_call(cli, "GET", path, NULL, job, &err), number;
        if (rc == 0 && (answer_job_ended(*job) || answer_text(*job, "terminal") ||
                        (!answer_text(*job, "attach") && answer_job_runs(*job)))) {
            cli_end_progress();
            return 0;
        }
        while ((number = signals_next(signals)) == SIGWINCH)
            ;
        if (number == SIGHUP) /* nobody is there any more: it waits on */
            return 128 + number;
        if (number) {
            place_cancel(cli, id);
            return 128 + number;
        }
        if (rc)
            return cli_fail("%s; job %" PRIu64 " goes on: carma attach %" PRIu64, err.text, id, id), session_status(rc);
        show(&shown, id, *job);
        json_decref(*job);
        *job = NULL;
        wait_pause(cli, &pause_ms);
    }
}
