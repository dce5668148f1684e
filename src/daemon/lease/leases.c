/* Leases: jobs whose processes another program starts, such as Slurm (docs/formats/http.md, "Leases").
 *
 * leases_handle() takes the requests. ask() looks up the lease's user beside the loop, and enter() makes a job of it
 * (submit), as a submission is made; one that is asked for again is the same job (find_live). attach(), end() and
 * suspend() say what its processes do; daemon/run/runs_lease.c passes that on to the lease's shepherd. A client that
 * waits is a struct lease_client: leases_look() asks after each turn of the engine which of them can be answered. */
#include "api/spec.h"
#include "daemon/lease/leases_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/lease.h"
#include "api/submission_text.h"
#include "api/workload_key.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/share.h"
#include "base/units.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/run/runs_lease.h"
#include "daemon/shares.h"
#include "daemon/view/owners.h"

#define WAITED_PAUSE_NS (900 * NS_PER_SEC) /* of the clock; jobs are tried again within 300 s */
#define WAITED_MOST_NS  (30 * 86400 * NS_PER_SEC)

/* A client that waits for its lease to be placed, or to end. */
struct lease_client {
    struct http_request *request;
    uint64_t job;
    bool for_end;
    char code[64]; /* the last reason to wait, and its sentence */
    char reason[REASON_TEXT];
    struct lease_client *next;
};

struct leases {
    struct daemon *daemon;
    struct lease_client *clients;
};

struct leases *leases_new(struct daemon *daemon)
{
    struct leases *leases = xcalloc(1, sizeof *leases);

    leases->daemon = daemon;
    return leases;
}

void leases_free(struct leases *leases)
{
    if (!leases)
        return;
    for (struct lease_client *client = leases->clients, *next; client; client = next) {
        next = client->next;
        http_reply_stopping(client->request);
        free(client);
    }
    free(leases);
}

static void refuse(struct http_request *request, const char *text, const char *code, bool never)
{
    http_reply(request, never ? 422 : 409, lease_refusal_to_json(text, code, never));
}

static bool has_ended(const struct job_view *view)
{
    return job_state_ended(view->state);
}

/* ---- Waiting ---- */

static void wait_for(struct leases *leases, struct http_request *request, uint64_t job, bool for_end)
{
    struct lease_client *client = xcalloc(1, sizeof *client);

    *client = (struct lease_client){.request = request, .job = job, .for_end = for_end, .next = leases->clients};
    leases->clients = client;
}

static void note_reason(const struct daemon *daemon, struct lease_client *client)
{
    int64_t now_ns = nodetime_now_ns();
    struct reason reason = core_reason(daemon->core, client->job, now_ns);

    if (reason.code == REASON_NONE)
        return;
    reason_name_others(&reason, &daemon->views);
    snprintf(client->code, sizeof client->code, "%s", reason_name(reason.code));
    reason_format(&reason, now_ns, client->reason);
}

/* It is over before it was placed. */
static void refuse_ended(struct daemon *daemon, struct lease_client *client, struct job_view *view)
{
    CLEANUP(free_ptr) char *text = NULL;

    if (view->state == JOB_REFUSED) {
        refuse(client->request, "the node can never hold it", "refused", true);
        return;
    }
    if (view->state == JOB_EXPIRED && !view->run->exited) {
        text = xasprintf("not placed in time: %s", *client->reason ? client->reason : "it waited");
        if (!view->message) {
            job_view_set_message(view, text);
            job_view_change(view);
            views_touch(&daemon->views, view);
        }
        refuse(client->request, text, *client->code ? client->code : "expired", false);
        return;
    }
    text = xasprintf("the lease is over (%s)%s%s", job_state_name(view->state), view->message ? ": " : "",
                     view->message ? view->message : "");
    refuse(client->request, text, "ended", false);
}

struct ended_answer {
    struct leases *leases;
    struct http_request *request;
    uint64_t job;
};

static void on_end_stored(int status, const char *error, void *user)
{
    struct ended_answer answer = *(struct ended_answer *)user;
    const struct job_view *view = views_find(&answer.leases->daemon->views, answer.job);

    free(user);
    if (status != 0)
        http_reply_error(answer.request, 503, "cannot store it now: %s; ask again", error);
    else if (!view)
        http_reply_error(answer.request, 404, "there is no lease %" PRIu64, answer.job);
    else
        http_reply(answer.request, 200, lease_end_to_json(answer.leases->daemon, view));
}

static void answer_end_once_stored(struct leases *leases, struct http_request *request, uint64_t job)
{
    struct ended_answer *answer = xmalloc(sizeof *answer);

    *answer = (struct ended_answer){.leases = leases, .request = request, .job = job};
    engine_on_stored(leases->daemon->engine, on_end_stored, answer);
}

/* False: it waits on. */
static bool answer(struct leases *leases, struct lease_client *client)
{
    struct daemon *daemon = leases->daemon;
    struct job_view *view = views_find(&daemon->views, client->job);
    struct launch_status status;
    struct error err;
    json_t *json;

    if (!view) {
        http_reply_error(client->request, 404, "there is no lease %" PRIu64, client->job);
        return true;
    }
    if (client->for_end) {
        if (has_ended(view))
            answer_end_once_stored(leases, client->request, client->job);
        return has_ended(view);
    }
    if (has_ended(view)) {
        refuse_ended(daemon, client, view);
        return true;
    }
    note_reason(daemon, client);
    if (!runs_lease_of(daemon->runs, client->job, &status))
        return false;
    json = lease_placed_to_json(daemon, view, &status, &err);
    if (json)
        http_reply(client->request, 201, json);
    else
        http_reply_error(client->request, 503, "%s", err.text);
    return true;
}

void leases_look(struct leases *leases)
{
    for (struct lease_client **at = &leases->clients, *client; (client = *at);) {
        if (!answer(leases, client)) {
            at = &client->next;
            continue;
        }
        *at = client->next;
        free(client);
    }
}

/* ---- Asking for one ---- */

static bool same_job(const struct job_spec *a, const struct job_spec *b)
{
    return a->engine && a->slurm_job == b->slurm_job && strcmp(a->cluster, b->cluster) == 0 &&
           strcmp(a->slurm_node, b->slurm_node) == 0;
}

/* The job's lease that has not ended; NULL: there is none. */
static struct job_view *find_live(const struct daemon *daemon, const struct job_spec *key)
{
    for (struct job_view *view = daemon->views.jobs; view; view = view->hh.next)
        if (!has_ended(view) && view->state != JOB_STATE_COUNT && same_job(view->common->spec, key))
            return view;
    return NULL;
}

static void stop(struct daemon *daemon, const struct job_view *view)
{
    const struct lease_end stopped = {.exit_status = -1, .signal = 15, .stopped = true};

    runs_lease_end(daemon->runs, view->id, &stopped, NULL);
    engine_input(daemon->engine,
                 &(struct record){.type = RECORD_CANCELLED, .at_ns = nodetime_now_ns(), .job = view->id}, NULL);
}

/* How long the job has waited since its lease before the one that is asked for was refused, and that before, ... Not
 * over a longer pause than between two tries: it may have run elsewhere, or been held. */
static int64_t waited_ns(const struct daemon *daemon, const struct job_spec *key, int64_t now_ns)
{
    const int64_t pause_ns = nodetime_from_wall_ns(WAITED_PAUSE_NS);
    const struct job_view *last = NULL;
    int64_t waited;

    for (const struct job_view *view = daemon->views.jobs; view; view = view->hh.next)
        if (same_job(view->common->spec, key))
            last = view;
    if (!last || last->state != JOB_EXPIRED || last->attempts || last->ended_ns > now_ns ||
        last->ended_ns < now_ns - pause_ns)
        return 0;
    waited = now_ns - last->submitted_ns + job_view_wants(last).waited_ns;
    return waited < WAITED_MOST_NS ? waited : WAITED_MOST_NS;
}

static void set_wants(const struct daemon *daemon, const struct lease_request *asked, struct record_submitted *wants)
{
    const struct job_spec *spec = &asked->spec;

    *wants = (struct record_submitted){
        .uid = asked->uid,
        .gpus = spec->gpus,
        .request_bytes = spec->gpu_memory_bytes,
        .request_source = spec->gpu_memory_bytes < 0 ? SOURCE_UNKNOWN : SOURCE_DECLARED,
        .smact_permille = -1,
        .share = spec->share ? share_mode_find(spec->share) : SHARE_ANY,
        .exclusive = spec->exclusive,
        .time_limit_ns = spec->time_limit_ns < 0 ? 0 : spec->time_limit_ns,
        .requeue = true,
        .external = true,
        .max_wait_ns = nodetime_from_wall_ns(asked->wait_ms ? asked->wait_ms * NS_PER_MS : NS_PER_MS),
        .waited_ns = waited_ns(daemon, spec, nodetime_now_ns())};
    workload_key(spec, asked->uid, wants->workload);
}

static uint64_t submit(struct daemon *daemon, struct lease_request *asked, const struct record_submitted *wants,
                       const struct owner *owner)
{
    struct record input = {
        .type = RECORD_SUBMITTED, .at_ns = nodetime_now_ns(), .job = daemon->views.last_id + 1, .submitted = *wants};
    struct job_estimate none;
    struct job_view *view;
    struct job_spec spec;
    char *text;

    job_estimate_init(&none);
    view = views_add(&daemon->views, input.job, &asked->spec, &none);
    job_view_set_user(view, owner->user);
    view->gid = asked->gid >= 0 ? asked->gid : owner->gid;
    shares_tell(daemon, wants->uid, owner->user);
    engine_input(daemon->engine, &input, NULL);
    spec = job_view_spec(view);
    text = submission_to_text(&spec, &view->common->estimate, owner);
    job_view_set_stored(view, strlen(text));
    engine_store_spec(daemon->engine, input.job, text);
    return input.job;
}

/* False: it was answered. */
static bool may_come(struct daemon *daemon, struct http_request *request, const struct record_submitted *wants)
{
    struct reason why;
    char text[REASON_TEXT];

    if (engine_trouble(daemon->engine)) {
        http_reply_error(request, 503, "cannot store leases now: %s", engine_trouble(daemon->engine));
        return false;
    }
    if (core_job_count(daemon->core) >= daemon->config.max_queued) {
        refuse(request, "the node has max_queued jobs that have not ended", "full", false);
        return false;
    }
    if (core_could_ever_run(daemon->core, wants, &why))
        return true;
    reason_format(&why, nodetime_now_ns(), text);
    refuse(request, text, reason_name(why.code), true);
    return false;
}

static void enter(struct leases *leases, struct http_request *request, struct lease_request *asked,
                  const struct owner *owner)
{
    struct daemon *daemon = leases->daemon;
    const struct job_view *live = find_live(daemon, &asked->spec);
    struct record_submitted wants;

    if (live && live->common->spec->slurm_restart > asked->spec.slurm_restart) {
        refuse(request, "a later start of the job has a lease here", "superseded", true);
        return;
    }
    if (live && live->common->spec->slurm_restart == asked->spec.slurm_restart && live->state != JOB_STOPPING) {
        wait_for(leases, request, live->id, false);
        leases_look(leases);
        return;
    }
    set_wants(daemon, asked, &wants);
    if (!may_come(daemon, request, &wants))
        return;
    if (live)
        stop(daemon, live);
    wait_for(leases, request, submit(daemon, asked, &wants, owner), false);
    engine_turn(daemon->engine);
}

/* A request whose user has to be looked up first. */
struct looked_up {
    uv_work_t work;
    struct daemon *daemon; /* may stop meanwhile, and then has no leases any more */
    struct http_request *request;
    struct lease_request asked;
    struct owner owner;
    struct error err;
    int status;
};

static void look_up(uv_work_t *work)
{
    struct looked_up *looked_up = work->data;

    looked_up->status = owner_look_up(looked_up->asked.uid, &looked_up->owner, &looked_up->err);
}

static void on_looked_up(uv_work_t *work, int cancelled)
{
    struct looked_up *looked_up = work->data;
    struct daemon *daemon = looked_up->daemon;

    (void)cancelled; /* nobody does */
    if (daemon->stopping)
        http_reply_stopping(looked_up->request);
    else if (looked_up->status != 0)
        http_reply_error(looked_up->request, 503, "%s", looked_up->err.text);
    else
        enter(daemon->leases, looked_up->request, &looked_up->asked, &looked_up->owner);
    if (looked_up->status == 0 && !daemon->stopping)
        owners_keep(daemon->owners, looked_up->asked.uid, &looked_up->owner);
    free(looked_up->owner.user);
    lease_request_release(&looked_up->asked);
    free(looked_up);
}

static void ask(struct leases *leases, struct http_request *request)
{
    struct looked_up *asking = xcalloc(1, sizeof *asking);

    *asking = (struct looked_up){.work.data = asking, .daemon = leases->daemon, .request = request};
    if (lease_request_parse(request->body, request->body_length, &asking->asked, &asking->err) < 0) {
        http_reply_error(request, 400, "%s", asking->err.text);
        lease_request_release(&asking->asked);
        free(asking);
    } else if (owners_find(leases->daemon->owners, asking->asked.uid, &asking->owner)) {
        on_looked_up(&asking->work, 0);
    } else {
        uv_queue_work(leases->daemon->loop, &asking->work, look_up, on_looked_up);
    }
}

/* ---- One that is there ---- */

static void attach(struct leases *leases, struct http_request *request, const struct job_view *view, const char *step)
{
    struct lease_attach *attach = xmalloc(sizeof *attach);
    struct error err;
    int code = lease_attach_parse(request->body, request->body_length, attach, &err);

    if (code < 0)
        http_reply_error(request, 400, "%s", err.text);
    else if (!lease_step_is_name(step))
        http_reply_error(request, 400, "step '%.40s' is not a number, batch, interactive or extern", step);
    else if ((code = runs_lease_attach(leases->daemon->runs, view->id, step, attach, request->pid, &err)) < 0)
        http_reply_error(request,
                         code == -EINVAL                      ? 400
                         : code == -ENOENT || code == -ENOSPC ? 409
                                                              : 503,
                         "%s", err.text);
    else
        http_reply_empty(request);
    lease_attach_release(attach);
    free(attach);
}

static void end(struct leases *leases, struct http_request *request, const struct job_view *view)
{
    struct daemon *daemon = leases->daemon;
    struct lease_end end;
    struct error err;
    int code;

    if (lease_end_parse(request->body, request->body_length, LEASE_OUTPUT_BYTES, &end, &err) < 0) {
        http_reply_error(request, 400, "%s", err.text);
    } else if (has_ended(view) && engine_trouble(daemon->engine)) {
        http_reply_error(request, 503, "cannot store it now: %s; ask again", engine_trouble(daemon->engine));
    } else if (has_ended(view)) {
        http_reply(request, 200, lease_end_to_json(daemon, view));
    } else {
        code = runs_lease_end(daemon->runs, view->id, &end, &err);
        if (code < 0 && code != -ENOENT) {
            http_reply_error(request, 503, "%s", err.text);
        } else {
            wait_for(leases, request, view->id, true);
            if (end.stopped || code == -ENOENT) /* one that has not begun is dropped */
                stop(daemon, view);
            engine_turn(daemon->engine);
        }
    }
    lease_end_release(&end);
}

/* Of one that has no process yet, or is being stopped, or has been told, it says nothing. */
static void suspend(struct leases *leases, struct http_request *request, const struct job_view *view, uint32_t command)
{
    struct record input = {.type = RECORD_COMMANDED,
                           .at_ns = nodetime_now_ns(),
                           .job = view->id,
                           .commanded = {.command = command, .uid = request->uid}};
    bool says = view->state == (command == COMMAND_SUSPEND ? JOB_RUNNING : JOB_SUSPENDED);
    struct error err;

    if ((says || !job_state_has_gpus(view->state)) && engine_input(leases->daemon->engine, &input, &err) != 0) {
        http_reply_error(request, 409, "%s", err.text);
        return;
    }
    engine_turn(leases->daemon->engine);
    http_reply_empty(request);
}

static void list(const struct leases *leases, struct http_request *request, bool by_key)
{
    const char *cluster = by_key ? http_query(request, "cluster") : NULL;
    const char *job = by_key ? http_query(request, "job") : NULL;
    json_t *list = json_array();

    for (const struct job_view *view = leases->daemon->views.jobs; view; view = view->hh.next) {
        const struct job_spec *spec = view->common->spec;
        CLEANUP(free_ptr) char *number = spec->engine ? xasprintf("%" PRId64, spec->slurm_job) : NULL;
        if (number && (!cluster || strcmp(spec->cluster, cluster) == 0) && (!job || strcmp(number, job) == 0) &&
            (by_key || !has_ended(view)))
            json_array_append_new(list, lease_to_json(leases->daemon, view));
    }
    http_reply(request, 200, json_pack("{s:o}", "leases", list));
}

/* ---- Which is which ---- */

static const struct job_view *find(const struct leases *leases, const char *path, const char **rest)
{
    const struct job_view *view;
    uint64_t id = 0;

    for (*rest = path; **rest >= '0' && **rest <= '9' && id < UINT64_MAX / 100; ++*rest)
        id = 10 * id + (uint64_t)(**rest - '0');
    view = id ? views_find(&leases->daemon->views, id) : NULL;
    return view && view->state != JOB_STATE_COUNT && runs_is_lease(view) ? view : NULL;
}

static void handle_one(struct leases *leases, struct http_request *request, const char *path)
{
    static const char steps[] = "/steps/";
    const char *rest, *method = request->method;
    const struct job_view *view = find(leases, path, &rest);
    bool posts = strcmp(method, "POST") == 0;

    if (!view)
        http_reply_error(request, 404, "there is no lease '%.*s'", (int)strcspn(path, "/"), path);
    else if (strncmp(rest, steps, sizeof steps - 1) == 0 && strcmp(method, "PUT") == 0)
        attach(leases, request, view, rest + sizeof steps - 1);
    else if (strcmp(rest, "/end") == 0 && posts)
        end(leases, request, view);
    else if (strcmp(rest, "/suspend") == 0 && posts)
        suspend(leases, request, view, COMMAND_SUSPEND);
    else if (strcmp(rest, "/resume") == 0 && posts)
        suspend(leases, request, view, COMMAND_RESUME);
    else
        http_reply_error(request, 404, "there is no %s '%.60s'", method, request->path);
}

/* The TCP listener's callers have no process here. */
static bool is_root_here(const struct http_request *request)
{
    return request->uid == 0 && request->pid != 0;
}

void leases_handle(struct leases *leases, struct http_request *request, const char *rest)
{
    bool gets = strcmp(request->method, "GET") == 0;

    if (!is_root_here(request))
        http_reply_error(request, 403, "leases are for root on the Unix socket: Slurm's plugin asks for them");
    else if (!*rest && gets)
        list(leases, request, false);
    else if (strcmp(rest, "/by-key") == 0 && gets)
        list(leases, request, true);
    else if (!*rest && strcmp(request->method, "POST") == 0)
        ask(leases, request);
    else if (*rest == '/')
        handle_one(leases, request, rest + 1);
    else
        http_reply_error(request, 404, "there is no %s '%.60s'", request->method, request->path);
}

void leases_get_capacity(struct leases *leases, struct http_request *request)
{
    if (strcmp(request->method, "GET") != 0)
        http_reply_error(request, 405, "%s %s is not known: use GET", request->method, request->path);
    else
        http_reply(request, 200, lease_capacity_to_json(leases->daemon));
}
