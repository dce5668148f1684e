/* How this file works: explanation_get makes the answer on the loop. Of a waiting job it is completed by a forecast
 * (sim/forecast.h): take() notes what that goes by, which are a snapshot of the core and earlier run times, and work()
 * drives a copy of the core beside the loop, one question at a time, of the users in turn. A question's state is taken
 * when it is worked on: those that wait cost nothing. */
#include "daemon/request/explanation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "api/or_null.h"
#include "base/digest.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "core/ledger.h"
#include "core/share/sharing.h"
#include "core/snapshot.h"
#include "daemon/account/past_runs.h"
#include "daemon/capture/captures.h"
#include "daemon/node/node.h"
#include "sim/forecast.h"

#define WAITING_MOST    32
#define WAITING_PER_UID 4

static json_t *explain_gpu(const struct daemon *daemon, const struct job_view *view, uint32_t number, int64_t now_ns)
{
    const struct gpu *gpu = core_gpu(daemon->core, number);
    struct reason reason = core_gpu_reason(daemon->core, view->id, number, now_ns);
    const char *why = node_unmanaged_why(daemon->node, number), *verdict;
    CLEANUP(free_ptr) char *doubted = NULL;
    char text[REASON_TEXT];
    json_t *jobs = json_array();

    reason_name_others(&reason, &daemon->views);
    verdict = reason.code != REASON_NONE                                   ? reason_format(&reason, now_ns, text)
              : core_gpu_mode(daemon->core, view->id, number) == SHARE_MPS ? "would take it, by MPS"
                                                                           : "would take it";
    if (*why)
        doubted = xasprintf("%s (memory counted by reservations: %s)", verdict, why);
    for (uint32_t i = 0; i < gpu->resident_count; i++)
        json_array_append_new(jobs, json_integer((json_int_t)gpu->residents[i]->id));
    return json_pack("{s:I, s:s, s:o, s:s, s:o, s:o, s:o, s:s}", "index", (json_int_t)number, "uuid", gpu->uuid,
                     "free_bytes", integer_or_null(gpu_free_bytes(daemon->core, gpu), !gpu->lost), "share",
                     share_mode_name(sharing_configured(gpu)), "sm_activity_permille",
                     gpu->smact_permille >= 0 ? json_integer(gpu->smact_permille) : json_null(), "jobs", jobs,
                     "job_names", node_resident_names(daemon->node, gpu), "verdict", doubted ? doubted : verdict);
}

/* Of a job that does not wait; `reason`: for what else one stands still. */
static char *sentence_of(const struct daemon *daemon, const struct job_view *view, enum access_view access,
                         const struct reason *reason, int64_t now_ns)
{
    const struct job *job = core_find_job(daemon->core, view->id);
    CLEANUP(free_ptr) char *moved = job_view_moved_why(view);
    CLEANUP(free_ptr) char *idle = job_view_idle_why(view, now_ns);
    bool reserved = reason->code == REASON_ALLOTTED;
    char text[REASON_TEXT];

    switch (view->state) {
    case JOB_PLACED:
        return view->message && view->attempts <= 1 ? xasprintf("is being started: it %s", view->message)
                                                    : xstrdup("is being started");
    case JOB_RUNNING:
        return xasprintf("runs%s%s%s%s%s%s", view->run->share == SHARE_ANY ? "" : ", ",
                         view->run->share == SHARE_MPS          ? "by MPS"
                         : view->run->share == SHARE_TIME_SLICE ? "by time-slicing"
                                                                : "alone on its GPUs",
                         moved ? ", and was told to leave: " : "", moved ? moved : "", idle ? "; " : "",
                         idle ? idle : "");
    case JOB_STOPPING:
        return xstrdup("is being stopped");
    case JOB_REQUEUING:
        return xstrdup("is being stopped, and waits again then");
    case JOB_SUSPENDED:
        return xasprintf("stands still, suspended by %s: %s%s'carma resume' lets it go on%s",
                         job && job->run->suspended_by != view->wants->uid ? "an administrator" : job_view_user(view),
                         reserved ? reason_format(reason, now_ns, text) : "", reserved ? "; " : "",
                         reserved ? " after that" : "");
    case JOB_GPU_OOM:
        return xasprintf("ran out of GPU memory %" PRIu32 " time%s and was given up", view->run->crashes,
                         view->run->crashes == 1 ? "" : "s");
    case JOB_REFUSED:
        if (view->message && access == ACCESS_ALL) /* it may be of an earlier run, and quote its output */
            return xasprintf("was refused: %s", view->message);
        return xstrdup(view->message ? "was refused" : "can never run on this node");
    case JOB_LOST:
        return xstrdup(view->run->exit.cause == EXIT_ORPHAN
                           ? "was lost: its processes have gone, and nobody said how they ended"
                           : "was lost: its shepherd (supervisor process) died, and its processes were killed");
    case JOB_TIMEOUT:
        return xstrdup(view->run->exit.cause == EXIT_IDLE ? "was ended by its idle limit: it did not use its GPUs"
                                                          : "was ended by its time limit");
    case JOB_RETURNED:
        return xstrdup("crashed, and went back to the one who had asked for the lease");
    case JOB_EXPIRED:
        return xstrdup(view->wants->deadline_ns ? "was given up: it could not end before its deadline any more"
                       : view->run->exited      ? "was placed, and no process came to use it"
                                                : "was not placed in time");
    case JOB_CANCELLED:
        return xstrdup("was cancelled");
    case JOB_COMPLETED:
        return xstrdup("has completed");
    default:
        if (view->message && access == ACCESS_ALL)
            return xasprintf("failed: %s", view->message);
        return view->run->exit.cause == EXIT_SIGNALLED
                   ? xasprintf("was ended by signal %" PRId32, view->run->exit.status - 128)
                   : xasprintf("failed with status %" PRId32, view->run->exit.status);
    }
}

/* They are of its user's own jobs. */
json_t *explanation_untried(const struct daemon *daemon, const struct job_view *view, enum access_view access)
{
    CLEANUP(free_ptr) char *why = access == ACCESS_ALL ? captures_untried(daemon->captures, view) : NULL;

    return why ? json_string(why) : json_null();
}

json_t *explanation_run_times(const struct daemon *daemon, const struct job_view *view, enum access_view access)
{
    return access == ACCESS_ALL ? past_runs_times(daemon->past_runs, view->wants->uid, job_view_workload(view))
                                : json_null();
}

/* ---- When it is expected to start ---- */

/* Run times that several jobs go by. */
struct times {
    char *of; /* owned: the key */
    size_t count;
    UT_hash_handle hh;
    int64_t ns[PAST_RUNS_LIKE];
};

struct question {
    struct explanations *explanations;
    struct http_request *request;
    json_t *answer; /* still without the start */
    uint64_t job, kept_for;
    bool all; /* jobs are looked at */
    int64_t now_ns;
    struct record_list state;
    struct forecast_job *jobs; /* owned, in the order of ids */
    size_t count, capacity;
    struct forecast_arrival *arrivals; /* owned */
    size_t arrival_count, arrival_capacity;
    struct times *times; /* uthash, owned */
    struct question *next, *prev;
    uv_work_t work;
    /* The thread's result. */
    struct forecast forecast;
    struct error err;
    int rc;
};

struct explanations {
    struct daemon *daemon;
    struct question *questions; /* in the order of arrival, but for the first: it may be worked on */
    bool working;
    uid_t last; /* whose question was worked on last */
    bool closing;
};

struct explanations *explanations_new(struct daemon *daemon)
{
    struct explanations *explanations = xcalloc(1, sizeof *explanations);

    explanations->daemon = daemon;
    return explanations;
}

static const struct times *times_of(struct question *question, enum past_runs_of whose, uint32_t uid,
                                    const char *workload)
{
    const struct past_runs *past_runs = question->explanations->daemon->past_runs;
    CLEANUP(free_ptr)
    char *of = xasprintf("%d %" PRIu32 " %s", whose, whose == PAST_RUNS_OF_ALL ? 0 : uid,
                         whose == PAST_RUNS_OF_WORKLOAD ? workload : "");
    struct times *times;

    HASH_FIND_STR(question->times, of, times);
    if (times)
        return times;
    times = xcalloc(1, sizeof *times);
    times->of = xstrdup(of);
    times->count = past_runs_like(past_runs, whose, uid, workload, times->ns);
    HASH_ADD_KEYPTR(hh, question->times, times->of, strlen(times->of), times);
    return times;
}

/* The nearest run times that there are: of its workload, its user, all. */
static struct forecast_job known_of(struct question *question, const struct job_view *view)
{
    static const uint32_t bases[] = {FORECAST_BY_RUNS, FORECAST_BY_USER, FORECAST_BY_NODE};
    struct forecast_job job = {.job = view->id,
                               .basis = FORECAST_BY_LIMIT,
                               .limit_ns = view->wants->time_limit_ns,
                               .ran_ns = job_state_runs(view->state) && view->run->started_ns >= 0
                                             ? question->now_ns - view->run->started_ns - view->run->suspended_ns
                                             : -1};

    for (enum past_runs_of whose = PAST_RUNS_OF_WORKLOAD; whose < PAST_RUNS_OF_NOBODY && !job.count; whose++) {
        const struct times *times = times_of(question, whose, view->wants->uid, job_view_workload(view));
        if (!times->count)
            continue;
        if (whose != PAST_RUNS_OF_WORKLOAD || times->count < PAST_RUNS_LEAST) /* its runs will be short together */
            job.drawn_by = digest_add(DIGEST_EMPTY, job_view_workload(view), strlen(job_view_workload(view)));
        job.basis = bases[whose];
        job.times_ns = times->ns;
        job.count = times->count;
    }
    return job;
}

/* Those that run, and the first of those that wait: also the ones behind it may take GPUs that it waits for. Jobs that
 * depend on others are looked at with all others, or not. */
static bool matters(const struct job *job, void *data)
{
    const struct question *question = data;

    if (question->all || job->id == question->kept_for || job->id == question->job)
        return true;
    if (job->state == JOB_QUEUED)
        return job->autocluster && job->rank && job->rank <= FORECAST_MOST;
    return job->state != JOB_HELD;
}

static void take_jobs(struct question *question, const struct daemon *daemon)
{
    for (const struct job *job = core_jobs(daemon->core); job; job = job->hh.next) {
        const struct job_view *view = matters(job, question) ? views_find(&daemon->views, job->id) : NULL;
        if (!view)
            continue;
        array_reserve(question->jobs, question->capacity, question->count + 1);
        question->jobs[question->count++] = known_of(question, view);
    }
}

/* The latest of the last day; leases come when Slurm says so. */
static void take_arrivals(struct question *question, const struct daemon *daemon)
{
    const struct job_view *first = daemon->views.jobs;
    const struct job_view *view = first ? ELMT_FROM_HH(first->hh.tbl, first->hh.tbl->tail) : NULL;

    for (; view && question->arrival_count < FORECAST_MOST; view = view->hh.prev) {
        int64_t ago_ns = question->now_ns - view->submitted_ns;
        struct forecast_arrival *arrival;
        if (ago_ns >= FORECAST_SPAN_NS)
            break;
        if (ago_ns < 0 || !job_view_is_shown(view) || view->wants->external || view->state == JOB_REFUSED)
            continue;
        array_reserve(question->arrivals, question->arrival_capacity, question->arrival_count + 1);
        arrival = &question->arrivals[question->arrival_count++];
        *arrival = (struct forecast_arrival){
            .at_ns = FORECAST_SPAN_NS - ago_ns, .wants = job_view_wants(view), .job = known_of(question, view)};
        arrival->wants.held = false;
        arrival->job.ran_ns = -1;
    }
}

static void question_free(struct question *question)
{
    struct times *times, *next;

    HASH_ITER (hh, question->times, times, next) {
        HASH_DEL(question->times, times);
        free(times->of);
        free(times);
    }
    record_list_release(&question->state);
    free(question->jobs);
    free(question->arrivals);
    json_decref(question->answer);
    free(question);
}

/* "20 min", "1.5 h": as exact as a forecast is. */
static const char *about(int64_t ns, char text[static UNITS_TEXT])
{
    int64_t minutes = ns / (60 * NS_PER_SEC);

    if (minutes < 120)
        snprintf(text, UNITS_TEXT, "%" PRId64 " min", minutes > 0 ? minutes : 1);
    else if (minutes < 48 * 60)
        snprintf(text, UNITS_TEXT, "%.*f h", minutes < 600 && minutes % 60 >= 6, (double)minutes / 60);
    else
        snprintf(text, UNITS_TEXT, "%.*f days", minutes < 14400 && minutes % 1440 >= 144, (double)minutes / 1440);
    return text;
}

static char *start_in_words(const struct question *question)
{
    static const char *const by[] = {[FORECAST_BY_RUNS] = "by earlier runs of the jobs before it",
                                     [FORECAST_BY_USER] = "by earlier jobs of the users before it",
                                     [FORECAST_BY_NODE] = "by all earlier jobs here",
                                     [FORECAST_BY_LIMIT] = "if all jobs before it run until their time limits"};
    const struct forecast *forecast = &question->forecast;
    const struct views *views = &question->explanations->daemon->views;
    const struct job_view *unknown = views_find(views, forecast->unknown);
    char median[UNITS_TEXT], low[UNITS_TEXT], high[UNITS_TEXT], number[JOB_NUMBER_TEXT];
    const char *unknown_number = job_number(views, forecast->unknown, number);

    if (question->rc)
        return xasprintf("not known: %s", question->err.text);
    if (forecast->basis == FORECAST_BY_NOTHING && unknown && unknown->state == JOB_SUSPENDED)
        return xasprintf("not known: job %s stands still until somebody resumes it", unknown_number);
    if (forecast->basis == FORECAST_BY_NOTHING && forecast->unknown)
        return xasprintf("not known: no job has ended here that tells how long job %s runs, and it has no time limit",
                         unknown_number);
    if (forecast->basis == FORECAST_BY_NOTHING)
        return xstrdup("not known: it would not start even when all jobs before it have ended");
    about(forecast->median_ns, median);
    about(forecast->low_ns, low);
    if (forecast->high_ns == INT64_MAX)
        return xasprintf("in about %s (%s or more), %s", median, low, by[forecast->basis]);
    about(forecast->high_ns, high);
    if (strcmp(low, high) == 0)
        return xasprintf("in about %s, %s", median, by[forecast->basis]);
    return xasprintf("in about %s (%s to %s), %s", median, low, high, by[forecast->basis]);
}

static json_t *start_to_json(const struct question *question)
{
    static const char *const by[] = {[FORECAST_BY_RUNS] = "runs",
                                     [FORECAST_BY_USER] = "user",
                                     [FORECAST_BY_NODE] = "node",
                                     [FORECAST_BY_LIMIT] = "limits"};
    const struct forecast *forecast = &question->forecast;
    bool known = !question->rc && forecast->basis < FORECAST_BY_NOTHING;
    CLEANUP(free_ptr) char *text = start_in_words(question);

    return json_pack("{s:o, s:o, s:o, s:s?, s:s}", "median_ns", integer_or_null(forecast->median_ns, known), "low_ns",
                     integer_or_null(forecast->low_ns, known), "high_ns",
                     integer_or_null(forecast->high_ns, known && forecast->high_ns != INT64_MAX), "by",
                     known ? by[forecast->basis] : NULL, "text", text);
}

static void reply(struct question *question)
{
    json_object_set_new(question->answer, "start", start_to_json(question));
    http_reply(question->request, 200, question->answer);
    question->answer = NULL;
}

/* On a thread of the pool. */
static void work(uv_work_t *work)
{
    struct question *question = work->data;

    const struct forecast_question asked = {.state = &question->state,
                                            .now_ns = question->now_ns,
                                            .job = question->job,
                                            .jobs = question->jobs,
                                            .count = question->count,
                                            .arrivals = question->arrivals,
                                            .arrival_count = question->arrival_count};

    question->rc = forecast_start(&asked, &question->forecast, &question->err);
}

static void work_on_next(struct explanations *explanations);

static void on_worked(uv_work_t *work, int status)
{
    struct question *question = work->data;
    struct explanations *explanations = question->explanations;

    (void)status; /* nothing is cancelled */
    DL_DELETE(explanations->questions, question);
    explanations->working = false;
    if (explanations->closing)
        http_reply_stopping(question->request);
    else
        reply(question);
    question_free(question);
    if (explanations->closing)
        free(explanations);
    else
        work_on_next(explanations);
}

/* The first of another user than the last one's comes to the head. */
static void take_turns(struct explanations *explanations)
{
    struct question *question;

    DL_FOREACH (explanations->questions, question)
        if (question->request->uid != explanations->last)
            break;
    if (question) {
        DL_DELETE(explanations->questions, question);
        DL_PREPEND(explanations->questions, question);
    }
    explanations->last = explanations->questions->request->uid;
}

static bool can_be_foreseen(struct question *question, uint64_t place)
{
    if (place == 0)
        question->rc = error_set(&question->err, ESRCH, "it waits no more");
    else if (place > FORECAST_MOST)
        question->rc = error_set(&question->err, E2BIG, "more than %d jobs go before it", FORECAST_MOST);
    return question->rc == 0;
}

/* In the order; of a job that only reservations for users keep out of it, behind all that wait; 0: it does not wait for
 * its turn. */
static uint64_t place_of(const struct daemon *daemon, uint64_t job, int64_t now_ns)
{
    uint64_t place = core_turn(daemon->core, job, now_ns).place;

    if (!place && core_reason(daemon->core, job, now_ns).code == REASON_ALLOTTED &&
        core_find_job(daemon->core, job)->state != JOB_SUSPENDED)
        place = core_waiting_count(daemon->core);
    return place;
}

/* False: it cannot be foreseen any more. */
static bool take(struct question *question)
{
    const struct daemon *daemon = question->explanations->daemon;

    question->now_ns = nodetime_now_ns();
    question->all = core_job_count(daemon->core) <= FORECAST_MOST;
    question->kept_for = core_kept(daemon->core).job;
    /* each job has its rank then */
    if (!can_be_foreseen(question, place_of(daemon, question->job, question->now_ns)))
        return false;
    take_jobs(question, daemon);
    take_arrivals(question, daemon);
    core_snapshot_of(daemon->core, question->now_ns, matters, question, &question->state);
    return true;
}

static void work_on_next(struct explanations *explanations)
{
    while (!explanations->working && explanations->questions) {
        struct question *question;
        take_turns(explanations);
        question = explanations->questions;
        if (take(question)) {
            explanations->working = true;
            question->work.data = question;
            uv_queue_work(explanations->daemon->loop, &question->work, work, on_worked);
        } else {
            DL_DELETE(explanations->questions, question);
            reply(question);
            question_free(question);
        }
    }
}

void explanations_close(struct explanations *explanations)
{
    struct question *question, *next;

    if (!explanations)
        return;
    explanations->closing = true;
    DL_FOREACH_SAFE (explanations->questions, question, next) {
        if (explanations->working && question == explanations->questions)
            continue;
        DL_DELETE(explanations->questions, question);
        http_reply_stopping(question->request);
        question_free(question);
    }
    if (!explanations->working)
        free(explanations);
}

/* Whether another question can wait. */
static bool has_room(const struct explanations *explanations, uid_t uid)
{
    const struct question *question;
    unsigned all = 0, own = 0;

    DL_FOREACH (explanations->questions, question) {
        all++;
        own += question->request->uid == uid;
    }
    return all < WAITING_MOST && own < WAITING_PER_UID;
}

/* The answer, which is taken over, gets its start; at once where that cannot be foreseen. */
static void ask(struct explanations *explanations, struct http_request *request, uint64_t job, uint64_t place,
                json_t *answer)
{
    struct question *question = xcalloc(1, sizeof *question);

    question->explanations = explanations;
    question->request = request;
    question->answer = answer;
    question->job = job;
    if (!has_room(explanations, request->uid))
        question->rc = error_set(&question->err, EBUSY, "too many questions at once");
    if (question->rc || !can_be_foreseen(question, place)) {
        reply(question);
        question_free(question);
        return;
    }
    DL_APPEND(explanations->questions, question);
    work_on_next(explanations);
}

/* ---- The answer ---- */

/* Why it waits, and until when at most. */
static char *why_it_waits(const struct daemon *daemon, const struct job_view *view, const struct reason *reason,
                          int64_t now_ns)
{
    const struct job *job = core_find_job(daemon->core, view->id);
    int64_t latest_ns = job ? job_latest_start_ns(job) : INT64_MAX;
    char text[REASON_TEXT], left[UNITS_TEXT];

    reason_format(reason, now_ns, text);
    if (latest_ns == INT64_MAX)
        return xstrdup(text);
    if (latest_ns < now_ns) /* it is held */
        return xasprintf("%s; it could not end before its deadline any more: it is given up once released", text);
    return xasprintf("%s; it is given up in %s, to be over before its deadline", text,
                     format_duration(latest_ns - now_ns, left));
}

void explanation_get(struct daemon *daemon, struct http_request *request, const struct job_view *view)
{
    enum access_view access = access_view_of(request->uid, view->wants->uid);
    int64_t now_ns = nodetime_now_ns();
    struct reason reason = core_reason(daemon->core, view->id, now_ns);
    CLEANUP(free_ptr) char *sentence = NULL;
    CLEANUP(free_ptr) char *memory = job_view_memory_text(view, daemon->core, access);
    CLEANUP(free_ptr) char *last_end = job_view_last_end(view, daemon->core);
    json_t *gpus = json_array(), *answer;
    uint64_t place;
    bool told; /* it does not wait for GPUs */

    reason_name_others(&reason, &daemon->views);
    told = reason.code == REASON_NONE || view->state == JOB_SUSPENDED;
    sentence = told ? sentence_of(daemon, view, access, &reason, now_ns) : why_it_waits(daemon, view, &reason, now_ns);
    for (uint32_t i = 0; !told && view->wants->gpus && i < core_gpu_count(daemon->core); i++)
        json_array_append_new(gpus, explain_gpu(daemon, view, i, now_ns));
    answer = json_pack("{s:I, s:o, s:s, s:o, s:s, s:o, s:o, s:n, s:s?, s:s, s:o, s:o, s:o, s:o}", "id",
                       (json_int_t)view->id, "array", job_view_array_to_json(view), "state",
                       job_state_name(view->state), "reason", reason_to_json(&reason, now_ns), "text", sentence, "turn",
                       job_view_turn_to_json(view, daemon->core, now_ns, true), "kept",
                       job_view_kept_to_json(view, daemon->core, now_ns), "start", "last_end", last_end, "memory",
                       memory, "estimate", access == ACCESS_ALL ? job_view_estimate_to_json(view) : json_null(),
                       "untried", explanation_untried(daemon, view, access), "run_times",
                       explanation_run_times(daemon, view, access), "gpus", gpus);
    if (access == ACCESS_ALL)
        job_view_add_deadline(view, answer);
    place = place_of(daemon, view->id, now_ns);
    if (place)
        ask(daemon->explanations, request, view->id, place, answer);
    else
        http_reply(request, 200, answer);
}
