#include "gpu/mps/domain.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/mps/domain_internal.h"

#define RETRY_MS   2000 /* a start that failed while jobs are in it */
#define ASK_MS     500  /* for a server that was asked for to be listed, before it is asked for again */
#define QUIT_MS    3000 /* for a daemon to do as it is told, then to SIGTERM, then SIGKILL */
#define POLL_MS    2000
#define IDLE_MS    60000
#define TIMEOUT_MS 15000

pid_t mps_domain_daemon(const struct mps_domain *domain)
{
    return domain->process.pid;
}

enum mps_phase mps_domain_phase(const struct mps_domain *domain)
{
    return domain->phase;
}

const char *mps_domain_pipe_directory(const struct mps_domain *domain)
{
    return domain->directory.pipe;
}

const char *mps_domain_log_directory(const struct mps_domain *domain)
{
    return domain->directory.log;
}

const char *mps_domain_gpus(const struct mps_domain *domain)
{
    return domain->directory.gpus;
}

uint32_t mps_domain_jobs(const struct mps_domain *domain)
{
    return domain->member_count;
}

uint64_t mps_domain_looks(const struct mps_domain *domain)
{
    return domain->looks;
}

const struct mps_pids *mps_domain_clients(const struct mps_domain *domain, uint64_t *lists)
{
    *lists = domain->lists;
    return &domain->clients;
}

void mps_domain_set_phase(struct mps_domain *domain, enum mps_phase phase, const char *why)
{
    if (domain->phase == phase)
        return;
    domain->phase = phase;
    domain->since_ms = uv_now(domain->loop);
    domain->told_to_go = false;
    domain->spared = 0;
    if (!domain->freed && domain->on_phase)
        domain->on_phase(domain->user, domain, phase, why);
}

/* In a phase, or without a job, for so long. */
static bool has_lasted(const struct mps_domain *domain, uint64_t ms)
{
    return uv_now(domain->loop) - domain->since_ms >= ms;
}

static void on_timer(uv_timer_t *timer)
{
    mps_domain_step(timer->data);
}

void mps_domain_again_in(struct mps_domain *domain, uint64_t ms)
{
    if (!uv_is_closing((uv_handle_t *)&domain->timer))
        uv_timer_start(&domain->timer, on_timer, ms, 0);
}

void mps_domain_forget_server(struct mps_domain *domain)
{
    domain->listed = false;
    domain->server = 0;
    domain->server_uid = NO_UID;
    domain->server_asked = false;
    domain->state = MPS_SERVER_INITIALIZING;
    domain->clients.count = 0;
}

void mps_domain_forget_daemon(struct mps_domain *domain)
{
    domain->running = false;
    domain->answers = false;
    domain->admitted = NO_UID;
    domain->states_untold = false;
    mps_domain_forget_server(domain);
}

pid_t mps_domain_find_daemon(struct mps_domain *domain)
{
    return mps_process_find(domain->directory.pipe, &domain->process);
}

void mps_domain_look(struct mps_domain *domain)
{
    domain->look_wanted = true;
    mps_domain_again_in(domain, 0);
}

void mps_domain_list_clients(struct mps_domain *domain, bool wanted)
{
    domain->list_wanted = wanted;
}

/* A program that is not there does not come by waiting. The daemon goes first, unless jobs run by its server. */
static bool is_tried_again(struct mps_domain *domain, int status)
{
    uint64_t now_ms = uv_now(domain->loop);

    if (!domain->failing_ms)
        domain->failing_ms = domain->since_ms;
    if (status == -ENOENT || now_ms - domain->failing_ms >= domain->patience_ms)
        return false;
    domain->start_anew = mps_domain_all_wait(domain);
    return true;
}

void mps_domain_give_up(struct mps_domain *domain, int status, const struct error *err)
{
    struct error why = *err; /* which may be the domain's */

    if (!is_tried_again(domain, status)) {
        mps_domain_tell_ready(domain, status, &why);
        domain->failing_ms = 0;
    }
    mps_domain_set_phase(domain, MPS_DOWN, why.text);
    mps_domain_again_in(domain, domain->member_count ? RETRY_MS : 0);
}

/* Its servers first: it waits for them when it is told to go, and does not take them with it when it is killed. */
static void end_daemon(pid_t pid, int signal_number)
{
    if (mps_process_signal_servers(pid, signal_number) == 0)
        kill(pid, signal_number);
}

/* Until the daemon is gone, and its server with it; true: not yet. */
static bool stop_daemon(struct mps_domain *domain)
{
    pid_t pid = mps_domain_find_daemon(domain);

    if (!pid || (domain->freed_pid && pid != domain->freed_pid)) { /* another's: the directory was taken up again */
        mps_domain_forget_daemon(domain);
        return false;
    }
    domain->running = true;
    if (!domain->told_to_go && domain->answers) {
        domain->told_to_go = true;
        mps_ask_daemon_to_go(domain);
    } else if (!domain->told_to_go && !has_lasted(domain, QUIT_MS)) {
        mps_probe(domain);
    } else {
        if (has_lasted(domain, QUIT_MS))
            end_daemon(pid, has_lasted(domain, 2 * QUIT_MS) ? SIGKILL : SIGTERM);
        mps_domain_again_in(domain, AGAIN_MS);
    }
    return true;
}

/* Behind a closed door: the pipes that it makes are everybody's. */
static void start_daemon(struct mps_domain *domain)
{
    struct error err;
    int status = mps_directory_close(&domain->directory, &err);

    if (status < 0)
        mps_domain_give_up(domain, status, &err);
    else
        mps_ask_start(domain);
}

static void admit(struct mps_domain *domain, uid_t uid)
{
    int rc = mps_directory_admit(&domain->directory, domain->multiuser ? MPS_EVERYBODY : uid, &domain->why);

    if (rc == 0)
        domain->admitted = uid;
    mps_domain_again_in(domain, rc == 0 ? 0 : ASK_MS);
}

/* From nothing to a server of the right user that is ACTIVE; true: not yet. */
static bool climb(struct mps_domain *domain)
{
    uid_t uid = mps_domain_wanted_uid(domain);

    if (!domain->running && !(domain->running = mps_domain_find_daemon(domain) != 0)) {
        start_daemon(domain);
    } else if (!domain->answers) {
        mps_probe(domain);
    } else if (!domain->listed) {
        mps_ask_servers(domain);
    } else if (domain->server && uid != NO_UID && domain->server_uid != NO_UID && domain->server_uid != uid) {
        mps_ask_server_to_go(domain);
    } else if (uid != NO_UID && domain->admitted != uid) {
        admit(domain, uid);
    } else if (!domain->server && !domain->server_asked && uid != NO_UID) {
        mps_ask_for_server(domain, uid);
    } else if (!domain->server) { /* it does not come up at once: looked for, and then asked for, again */
        if (domain->server_asked)
            error_set(&domain->why, ESRCH, "its server ends as soon as it is started");
        domain->server_asked = domain->listed = false;
        mps_domain_again_in(domain, ASK_MS);
    } else if (domain->state == MPS_SERVER_INITIALIZING || domain->look_wanted) {
        mps_ask_state(domain);
        if (domain->state == MPS_SERVER_INITIALIZING)
            domain->next_look_ms = 0;
    } else {
        return false;
    }
    return true;
}

/* FAULT: the clients leave by themselves, or are terminated, or the daemon is started anew. While some go on, they are
 * looked for again and again. */
static void drain(struct mps_domain *domain)
{
    if (has_lasted(domain, 2 * domain->timeout_ms) && domain->spared) {
        domain->told_to_go = false;
        domain->since_ms = uv_now(domain->loop);
        mps_domain_again_in(domain, AGAIN_MS);
    } else if (has_lasted(domain, 2 * domain->timeout_ms)) {
        domain->told_to_go = false;
        domain->start_anew = true;
        domain->since_ms = uv_now(domain->loop);
        mps_domain_step(domain);
    } else if (has_lasted(domain, domain->timeout_ms) && !domain->told_to_go) {
        domain->told_to_go = true;
        mps_domain_terminate(domain, 0, domain->is_hit, NULL, domain->user); /* those that have not left */
    } else {
        domain->look_wanted = true;
        mps_domain_again_in(domain, AGAIN_MS);
    }
}

static void serve(struct mps_domain *domain)
{
    uint64_t now_ms = uv_now(domain->loop), idle_until_ms = domain->since_ms + domain->idle_ms;

    domain->failing_ms = 0;
    mps_domain_set_phase(domain, MPS_SERVING, "");
    mps_domain_tell_ready(domain, 0, NULL);
    if (domain->list_next) {
        mps_ask_clients(domain);
    } else if (domain->member_count == 0) {
        mps_domain_again_in(domain, idle_until_ms > now_ms ? idle_until_ms - now_ms : 0);
    } else if (now_ms < domain->next_look_ms) {
        mps_domain_again_in(domain, domain->next_look_ms - now_ms);
    } else {
        mps_ask_state(domain);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct mps_domain *domain = handle->data;

    while (domain->terminations)
        mps_domain_termination_done(domain);
    free(domain->members);
    free(domain->program);
    mps_directory_release(&domain->directory);
    free(domain);
}

static void close_domain(struct mps_domain *domain)
{
    mps_call_forget(domain->call);
    uv_close((uv_handle_t *)&domain->timer, on_timer_closed);
}

/* A job is in it, or one may come back soon. */
static bool is_wanted(const struct mps_domain *domain)
{
    if (domain->member_count)
        return true;
    if (domain->freed)
        return false;
    if (domain->phase == MPS_FAULTED) /* a moment to recover in */
        return domain->server && (domain->state != MPS_SERVER_FAULT || !has_lasted(domain, QUIT_MS));
    return domain->phase == MPS_SERVING && !has_lasted(domain, domain->idle_ms);
}

void mps_domain_step(struct mps_domain *domain)
{
    if (domain->call || uv_is_closing((uv_handle_t *)&domain->timer) || mps_domain_terminate_some(domain))
        return;
    if (domain->freed && domain->member_count) { /* its jobs go on, and so does it */
        close_domain(domain);
    } else if (!is_wanted(domain)) {
        domain->failing_ms = 0;
        if (domain->phase != MPS_DOWN || mps_domain_find_daemon(domain))
            mps_domain_set_phase(domain, MPS_STOPPING, "no job uses it");
        if (stop_daemon(domain))
            return;
        mps_domain_set_phase(domain, MPS_DOWN, "stopped");
        if (domain->freed)
            close_domain(domain);
        else if (domain->member_count) /* a client that joined during the callback */
            mps_domain_again_in(domain, 0);
    } else if (domain->start_anew) {
        if (stop_daemon(domain))
            return;
        domain->start_anew = false;
        domain->since_ms = uv_now(domain->loop);
        mps_domain_again_in(domain, 0);
    } else {
        if (domain->phase == MPS_DOWN || domain->phase == MPS_STOPPING)
            mps_domain_set_phase(domain, MPS_STARTING, "");
        if ((domain->phase == MPS_STARTING || !domain->server) && has_lasted(domain, domain->timeout_ms)) {
            struct error err;
            int status = error_set(&err, ETIMEDOUT, "the MPS server of %s does not come up%s%.300s: see %s",
                                   domain->directory.gpus, *domain->why.text ? ": " : "", domain->why.text,
                                   domain->directory.log);
            mps_domain_give_up(domain, status, &err);
        } else if (!climb(domain)) {
            if (domain->state == MPS_SERVER_FAULT)
                drain(domain);
            else
                serve(domain);
        }
    }
}

int mps_domain_new(const struct mps_domain_options *options, struct mps_domain **result, struct error *err)
{
    struct mps_domain *domain = xcalloc(1, sizeof *domain);
    int rc;

    domain->loop = options->loop;
    domain->program = xstrdup(options->program);
    domain->multiuser = options->multiuser;
    domain->poll_ms = options->poll_ms ? options->poll_ms : POLL_MS;
    domain->idle_ms = options->idle_ms ? options->idle_ms : IDLE_MS;
    domain->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
    domain->patience_ms = options->patience_ms;
    domain->on_phase = options->on_phase;
    domain->is_hit = options->is_hit;
    domain->user = options->user;
    mps_domain_forget_daemon(domain);
    uv_timer_init(domain->loop, &domain->timer);
    domain->timer.data = domain;
    rc = mps_directory_open(&domain->directory, options->directory, options->gpus, err);
    if (rc < 0) {
        close_domain(domain);
        return rc;
    }
    domain->endpoint = (struct mps_endpoint){.loop = domain->loop,
                                             .program = domain->program,
                                             .pipe_directory = domain->directory.pipe,
                                             .log_directory = domain->directory.log,
                                             .gpus = domain->directory.gpus};
    *result = domain;
    /* stops a daemon that was left without jobs, unless one joins in this turn of the loop */
    mps_domain_again_in(domain, 0);
    return 0;
}

void mps_domain_free(struct mps_domain *domain)
{
    if (!domain)
        return;
    for (uint32_t i = domain->member_count; i-- > 0;) /* a waiting job is not in it */
        if (domain->members[i].ready)
            mps_domain_remove_member(domain, i);
    domain->freed = true;
    domain->freed_pid = domain->process.pid;
    if (domain->call && domain->member_count) { /* it need not be waited for */
        mps_call_forget(domain->call);
        domain->call = NULL;
    }
    mps_domain_again_in(domain, 0);
}
