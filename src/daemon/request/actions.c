#include "daemon/request/actions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "api/spec.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/nodetime.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/run/run_verbs.h"
#include "daemon/submit/allowance.h"
#include "daemon/submit/submission.h"

/* An answer that waits until its content is stored. */
struct pending_answer {
    struct http_request *request;
    int status;
    json_t *body;
    const char *otherwise; /* the request's fate when it cannot be stored now */
};

static void on_stored(int status, const char *error, void *user)
{
    struct pending_answer *answer = user;

    if (status == 0) {
        http_reply(answer->request, answer->status, answer->body);
    } else {
        json_decref(answer->body);
        http_reply_error(answer->request, 503, "cannot store it now: %s; %s", error, answer->otherwise);
    }
    free(answer);
}

void actions_reply_once_stored(struct daemon *daemon, struct http_request *request, int status, json_t *body,
                               const char *otherwise)
{
    struct pending_answer *answer = xmalloc(sizeof *answer);

    *answer = (struct pending_answer){.request = request, .status = status, .body = body, .otherwise = otherwise};
    engine_on_stored(daemon->engine, on_stored, answer);
}

struct submitting {
    struct daemon *daemon;
    struct http_request *request;
    bool judged;
};

static void on_submission(void *user, int status, json_t *jobs, const struct error *err)
{
    struct submitting submitting = *(struct submitting *)user;

    free(user);
    if (submitting.daemon->stopping) {
        json_decref(jobs);
        http_reply_stopping(submitting.request);
        return;
    }
    if (status != 201) {
        http_reply_error(submitting.request, status, "%s", err->text);
        return;
    }
    if (submitting.judged) {
        http_reply(submitting.request, 200, json_pack("{s:o}", "jobs", jobs));
        return;
    }
    http_drop_body(submitting.request); /* the texts to be stored take its place, however long that takes */
    actions_reply_once_stored(submitting.daemon, submitting.request, 201, json_pack("{s:o}", "jobs", jobs),
                              "try again later");
    engine_turn(submitting.daemon->engine);
}

void actions_submit(struct daemon *daemon, struct http_request *request, bool judged)
{
    struct submitting *submitting;

    if (daemon->config.engine == ENGINE_SLURM && request->uid != 0) {
        http_reply_error(request, 403, "this node is Slurm's: submit with sbatch");
        return;
    }
    if (engine_trouble(daemon->engine)) {
        http_reply_error(request, 503, "cannot store jobs now: %s; try again later", engine_trouble(daemon->engine));
        return;
    }
    submitting = xmalloc(sizeof *submitting);
    *submitting = (struct submitting){daemon, request, judged};
    submission_start(daemon, request->uid, request->body, request->body_length, judged, on_submission, submitting);
}

/* Why the core refuses such a verb, where it is a matter of the job's state; NULL: its own words will do. */
static const char *why_not(const struct record *what)
{
    static const char *const words[RECORD_TYPE_COUNT] = {
#define VERB(name, record, order, listed, help, why) [RECORD_##record] = why,
#define TELLS(name, command, takes, listed, help, why)
#include "api/job_verbs.def"
        [RECORD_ORDERED] = "only one that waits can be moved",
    };
    static const char *const of_commands[COMMAND_COUNT] = {
#define VERB(name, record, order, listed, help, why)
#define TELLS(name, command, takes, listed, help, why) [COMMAND_##command] = why,
#include "api/job_verbs.def"
    };

    return what->type == RECORD_COMMANDED ? of_commands[what->commanded.command] : words[what->type];
}

/* What the log calls it. */
static const char *word_of(const struct record *what)
{
    static const char *const of_commands[COMMAND_COUNT] = {
#define VERB(name, record, order, listed, help, why)
#define TELLS(name, command, takes, listed, help, why) [COMMAND_##command] = #name,
#include "api/job_verbs.def"
    };

    return what->type == RECORD_COMMANDED ? of_commands[what->commanded.command] : record_type_name(what->type);
}

static bool asks_again(const struct record *what)
{
    return what->type == RECORD_COMMANDED && what->commanded.command == COMMAND_REQUEUE;
}

void actions_ended(const struct job_view *view, const struct record *what, struct error *err)
{
    char number[JOB_NUMBER_TEXT];

    error_set(err, EPERM, "job %s has already ended (%s)%s", job_number(view->views, view->id, number),
              job_state_name(view->state), asks_again(what) ? ": submit it again ('carma show' has its command)" : "");
}

/* The core speaks of jobs by their ids; people know those of arrays by other numbers. */
static void name_jobs(const struct views *views, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    const char *at = err->text, *word;
    char number[JOB_NUMBER_TEXT], *end;

    for (; (word = strstr(at, "job ")); at = end) {
        uint64_t id = strtoull(word + 4, &end, 10);
        strbuf_append(&out, at, (size_t)(word + 4 - at));
        if (end > word + 4)
            strbuf_puts(&out, job_number(views, id, number));
    }
    strbuf_puts(&out, at);
    error_set(err, EINVAL, "%s", out.text);
}

int actions_change_one(struct daemon *daemon, uid_t uid, const struct job_view *view, const struct record *what,
                       struct error *err)
{
    struct record input = *what;
    uint32_t type = what->type;
    char number[JOB_NUMBER_TEXT];
    int rc;

    job_number(view->views, view->id, number);
    input.at_ns = nodetime_now_ns();
    input.job = view->id;
    if (type == RECORD_COMMANDED)
        input.commanded.uid = uid;
    if (view->wants->external)
        return error_set(err, EPERM, "job %" PRIu64 " is Slurm's job %" PRId64 ": use scancel or scontrol", view->id,
                         view->common->spec->slurm_job),
               409;
    if (job_state_ended(view->state))
        return actions_ended(view, what, err), 409;
    if (asks_again(what) && view->wants->attached) /* as it is never retried (core/crash.h) */
        return error_set(err, EPERM,
                         "job %s is one of carma run: what was typed into it is gone, so it is not started again "
                         "('carma cancel' ends it)",
                         number),
               409;
    if (type == RECORD_CANCELLED && view->state == JOB_STOPPING) /* a record more would be for nothing */
        return 200;
    if (type == RECORD_COMMANDED && uid == view->wants->uid &&
        run_verbs_check(daemon->runs, view->id, &what->commanded, err) != 0)
        return 409;
    if (type != RECORD_CANCELLED && allowance_take(daemon, uid, 1, err) != 0)
        return 503;
    rc = engine_input(daemon->engine, &input, err);
    if (rc != 0)
        name_jobs(view->views, err);
    if (rc == -EPERM && why_not(what))
        error_set(err, EPERM, "job %s is %s: %s", number, job_state_name(view->state), why_not(what));
    if (rc != 0)
        return rc == -EACCES ? 403 : 409;
    if (uid != view->wants->uid)
        daemon_log("job %" PRIu64 " of %s: %s by uid %u", view->id, job_view_user(view), word_of(what), (unsigned)uid);
    return 200;
}
