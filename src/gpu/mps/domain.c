#include "gpu/mps/domain.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/proc.h"
#include "gpu/mps/call.h"
#include "gpu/mps/directory.h"
#include "gpu/mps/process.h"

#define CALL_MS  5000 /* for one answer */
#define AGAIN_MS 50   /* between two looks on the way up, out of a fault, or down */
#define RETRY_MS 2000 /* a start that failed while jobs are in it */
#define ASK_MS   500  /* for a server that was asked for to be listed, before it is asked for again */
#define STAYS_MS                                                                                                       \
    250                 /* a server without a reported state is up once it was listed for this long: one that cannot   \
                           run ends at once */
#define QUIT_MS    3000 /* for a daemon to do as it is told, then to SIGTERM, then SIGKILL */
#define POLL_MS    2000
#define IDLE_MS    60000
#define TIMEOUT_MS 15000
#define NO_UID     ((uid_t)-1)

struct member {
    uint64_t job;
    uid_t uid;
    mps_domain_ready *ready; /* NULL: told, or never asked */
    void *user;
};

struct termination {
    uint64_t job;
    mps_domain_is_meant *is_meant;
    mps_domain_terminated *done;
    void *user;
    bool listed; /* `clients` are meant */
    struct mps_pids clients;
    uint32_t next;
    struct termination *following;
};

struct mps_domain {
    uv_loop_t *loop;
    char *program; /* owned */
    struct mps_directory directory;
    bool multiuser;
    uint64_t poll_ms, idle_ms, timeout_ms;
    void (*on_phase)(void *user, struct mps_domain *domain, enum mps_phase phase, const char *why);
    mps_domain_is_meant *is_hit; /* NULL: all are */
    void *user;

    enum mps_phase phase;
    bool freed;
    uv_timer_t timer;
    struct mps_call *call; /* under way, or NULL */
    struct mps_endpoint endpoint;
    struct member *members; /* owned */
    uint32_t member_count;
    size_t member_capacity;
    struct termination *terminations; /* in their order */

    /* The known state of the daemon and its server. */
    bool running;
    struct mps_process process; /* as last known */
    pid_t freed_pid;            /* which it was when the domain was freed */
    enum mps_language language, probing;
    bool listed;  /* `server` is the daemon's */
    pid_t server; /* 0: none */
    uid_t server_uid;
    uint64_t server_listed_ms; /* since when */
    bool server_asked;         /* for one, since there was none */
    enum mps_server_state state;
    bool states_untold; /* it knows no get_server_status: a server is alive if it is listed */

    uint64_t since_ms; /* when this phase began, or the last job left */
    bool told_to_go;   /* in this phase: the daemon, or the remaining clients of a server that failed */
    uint32_t spared;   /* clients of a server in FAULT that go on, when they were last listed */
    bool start_anew;   /* the daemon has to go first, as its server does not come back */
    bool look_wanted;
    uint64_t next_look_ms;
    uint64_t looks;
    bool list_wanted, list_next;
    struct mps_pids clients;
    uint64_t lists;
    struct error why; /* of the last error */
};

static void step(struct mps_domain *domain);

/* ---- Small things ---- */

const char *mps_phase_name(enum mps_phase phase)
{
    static const char *const names[] = {"down", "starting", "serving", "faulted", "stopping"};

    return (uint32_t)phase < MPS_PHASE_COUNT ? names[phase] : "?";
}

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

static void set_phase(struct mps_domain *domain, enum mps_phase phase, const char *why)
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
    step(timer->data);
}

static void again_in(struct mps_domain *domain, uint64_t ms)
{
    if (!uv_is_closing((uv_handle_t *)&domain->timer))
        uv_timer_start(&domain->timer, on_timer, ms, 0);
}

static void forget_server(struct mps_domain *domain)
{
    domain->listed = false;
    domain->server = 0;
    domain->server_uid = NO_UID;
    domain->server_asked = false;
    domain->state = MPS_SERVER_INITIALIZING;
    domain->clients.count = 0;
}

static void forget_daemon(struct mps_domain *domain)
{
    domain->running = false;
    domain->language = MPS_UNKNOWN;
    domain->probing = MPS_V2;
    domain->states_untold = false;
    forget_server(domain);
}

/* The daemon's process; 0: it is gone. */
static pid_t daemon_pid(struct mps_domain *domain)
{
    return mps_process_find(domain->directory.pipe, &domain->process);
}

static uid_t uid_of(pid_t pid)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &st) == 0 ? st.st_uid : NO_UID;
}

static bool has_ended(pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) < 0 || stat.state == 'Z' || stat.state == 'X';
}

/* ---- Jobs ---- */

static void remove_member(struct mps_domain *domain, uint32_t i)
{
    domain->member_count--;
    memmove(domain->members + i, domain->members + i + 1, (domain->member_count - i) * sizeof *domain->members);
    if (domain->member_count == 0)
        domain->since_ms = uv_now(domain->loop);
}

/* The user in turn: of the job that is in it, or waits for it, for the longest; NO_UID: none. */
static uid_t wanted_uid(const struct mps_domain *domain)
{
    if (domain->member_count == 0)
        return NO_UID;
    return domain->multiuser ? geteuid() : domain->members[0].uid;
}

/* Tells the waiting jobs; each may join, leave or free in its callback. */
static void tell_ready(struct mps_domain *domain, int status, const struct error *err)
{
    bool told = true;

    while (told && !domain->freed) {
        told = false;
        for (uint32_t i = 0; i < domain->member_count; i++) {
            struct member member = domain->members[i];
            bool other = !domain->multiuser && member.uid != wanted_uid(domain);
            if (!member.ready || (status == 0 && other))
                continue;
            domain->members[i].ready = NULL;
            if (status < 0)
                remove_member(domain, i);
            member.ready(member.user, member.job, status, err);
            told = true;
            break;
        }
    }
}

void mps_domain_join(struct mps_domain *domain, uint64_t job, uid_t uid, mps_domain_ready *ready, void *user)
{
    array_reserve(domain->members, domain->member_capacity, domain->member_count + 1);
    domain->members[domain->member_count++] = (struct member){.job = job, .uid = uid, .ready = ready, .user = user};
    again_in(domain, 0);
}

void mps_domain_leave(struct mps_domain *domain, uint64_t job)
{
    for (uint32_t i = 0; i < domain->member_count; i++) {
        if (domain->members[i].job != job)
            continue;
        remove_member(domain, i);
        mps_domain_look(domain);
        return;
    }
}

void mps_domain_look(struct mps_domain *domain)
{
    domain->look_wanted = true;
    again_in(domain, 0);
}

void mps_domain_list_clients(struct mps_domain *domain, bool wanted)
{
    domain->list_wanted = wanted;
}

void mps_domain_terminate(struct mps_domain *domain, uint64_t job, mps_domain_is_meant *is_meant,
                          mps_domain_terminated *done, void *user)
{
    struct termination *termination = xcalloc(1, sizeof *termination), **at = &domain->terminations;

    termination->job = job;
    termination->is_meant = is_meant;
    termination->done = done;
    termination->user = user;
    while (*at)
        at = &(*at)->following;
    *at = termination;
    again_in(domain, 0);
}

static void termination_done(struct mps_domain *domain)
{
    struct termination *termination = domain->terminations;

    domain->terminations = termination->following;
    if (termination->done && !domain->freed)
        termination->done(termination->user, termination->job);
    free(termination);
}

/* ---- Calls ---- */

/* The start has failed: waiting jobs are told, and the started parts are stopped. */
static void give_up(struct mps_domain *domain, int status, const struct error *err)
{
    struct error why = *err; /* which may be the domain's */

    tell_ready(domain, status, &why);
    set_phase(domain, MPS_DOWN, why.text);
    again_in(domain, domain->member_count ? RETRY_MS : 0);
}

/* Takes a call's answer: false where it failed, which is remembered, and looked at again in a moment. */
static bool answered(struct mps_domain *domain, int status, const struct error *err)
{
    domain->call = NULL;
    if (status == 0)
        return true;
    domain->why = *err;
    if (!daemon_pid(domain))
        forget_daemon(domain);
    again_in(domain, AGAIN_MS);
    return false;
}

static void on_started(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;

    (void)answer;
    domain->call = NULL;
    domain->running = daemon_pid(domain) != 0; /* one that ran already makes the second fail */
    if (status < 0 && !domain->running) {
        struct error told = *err;
        if (status != -ENOENT)
            error_prefix(&told, "see %s/start.log", domain->directory.log);
        give_up(domain, status, &told);
        return;
    }
    again_in(domain, domain->running ? 0 : AGAIN_MS);
}

/* The daemon may be up before its pipe is, so both languages are tried until the start takes too long. */
static void on_probed(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    struct error told = *err;
    enum mps_language language = domain->probing;

    if (status == 0)
        status = mps_read_probe(language, answer, &told);
    domain->probing = language == MPS_V2 ? MPS_V3 : MPS_V2;
    if (!answered(domain, status, &told))
        return;
    domain->language = language;
    step(domain);
}

static void on_servers(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    struct error told = *err;
    struct mps_pids servers;

    if (status == 0)
        status = mps_read_servers(domain->language, answer, &servers, &told);
    if (!answered(domain, status, &told))
        return;
    domain->listed = true;
    domain->server = servers.count ? servers.items[0] : 0;
    domain->server_uid = domain->server ? uid_of(domain->server) : NO_UID;
    domain->server_listed_ms = uv_now(domain->loop);
    step(domain);
}

static void on_server_asked(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;

    (void)answer;
    domain->server_asked = true;
    domain->listed = false;
    if (answered(domain, status == -EIO ? 0 : status,
                 err)) /* NVIDIA's ends with 1 at times: the list tells what came of it */
        step(domain);
}

static void on_server_told(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;

    (void)answer;
    forget_server(domain);
    if (answered(domain, status, err))
        again_in(domain, AGAIN_MS);
}

/* It has taken its clients with it. */
static void lose_server(struct mps_domain *domain)
{
    forget_server(domain);
    if (domain->phase == MPS_SERVING)
        set_phase(domain, MPS_FAULTED, "its MPS server is gone");
}

/* The answer to a look at the server. */
static void looked(struct mps_domain *domain, int status, enum mps_server_state state, const struct error *err)
{
    bool silent = status == -ETIMEDOUT; /* a busy machine is not a fault: the next look will tell */

    domain->next_look_ms = uv_now(domain->loop) + domain->poll_ms;
    domain->looks++;
    if (status < 0 && !silent)
        lose_server(domain);
    if (!answered(domain, status, err))
        return;
    domain->state = state;
    domain->list_next = domain->list_wanted && state == MPS_SERVER_ACTIVE;
    if (state == MPS_SERVER_FAULT)
        set_phase(domain, MPS_FAULTED, "a client has failed: its MPS server is in the state FAULT");
    if (state == MPS_SERVER_INITIALIZING)
        again_in(domain, AGAIN_MS);
    else
        step(domain);
}

static void on_status(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    enum mps_server_state state = MPS_SERVER_INITIALIZING;
    struct error told = *err;

    if (status == 0)
        status = mps_read_status(domain->language, answer, domain->server, &state, &told);
    domain->states_untold = status == -ENOTSUP;
    if (domain->states_untold) {
        domain->call = NULL;
        domain->look_wanted = true;
        step(domain);
    } else {
        looked(domain, status, state, &told);
    }
}

static void on_listed_still(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    bool stays = uv_now(domain->loop) - domain->server_listed_ms >= STAYS_MS;
    struct error told = *err;
    struct mps_pids servers;

    if (status == 0)
        status = mps_read_servers(domain->language, answer, &servers, &told);
    if (status == 0 && (servers.count == 0 || servers.items[0] != domain->server || has_ended(domain->server)))
        status = error_set(&told, ESRCH, "its server is gone");
    looked(domain, status, stays ? MPS_SERVER_ACTIVE : MPS_SERVER_INITIALIZING, &told);
}

static void on_clients(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    struct error told = *err;

    domain->list_next = false;
    if (status == 0)
        status = mps_read_clients(domain->language, answer, domain->server, &domain->clients, &told);
    if (!answered(domain, status, &told))
        return;
    domain->lists++;
    step(domain);
}

/* The clients, for the first termination. */
static void on_listed(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    struct termination *termination = domain->terminations;
    struct mps_pids all = {0};
    struct error told = *err;

    if (status == 0)
        status = mps_read_clients(domain->language, answer, domain->server, &all, &told);
    termination->listed = true;
    for (uint32_t i = 0; status == 0 && i < all.count; i++)
        if (!termination->is_meant || termination->is_meant(termination->user, termination->job, all.items[i]))
            termination->clients.items[termination->clients.count++] = all.items[i];
    if (termination->job == 0)
        domain->spared = all.count - termination->clients.count;
    if (answered(domain, status, &told))
        step(domain);
}

static void on_terminated(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;

    (void)status; /* it may have left by itself */
    (void)answer;
    (void)err;
    domain->call = NULL;
    step(domain);
}

static void on_quit(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;

    (void)answer;
    if (answered(domain, status, err))
        step(domain);
}

/* ---- What comes next: each makes at most one call, and says whether there is no more to do for now ---- */

static void say(struct mps_domain *domain, void (*words)(enum mps_language, struct mps_command *), mps_called *called)
{
    struct mps_command command;

    words(domain->language, &command);
    domain->call = mps_call(&domain->endpoint, &command, CALL_MS, called, domain);
}

static void say_of(struct mps_domain *domain, pid_t server,
                   void (*words)(enum mps_language, pid_t, struct mps_command *), mps_called *called)
{
    struct mps_command command;

    words(domain->language, server, &command);
    domain->call = mps_call(&domain->endpoint, &command, CALL_MS, called, domain);
}

static void look(struct mps_domain *domain)
{
    domain->look_wanted = false;
    if (domain->states_untold)
        say(domain, mps_say_servers, on_listed_still);
    else
        say_of(domain, domain->server, mps_say_status, on_status);
}

static void probe(struct mps_domain *domain)
{
    struct mps_command command;

    mps_say_probe(domain->probing, &command);
    domain->call = mps_call(&domain->endpoint, &command, CALL_MS, on_probed, domain);
}

static bool terminate_some(struct mps_domain *domain)
{
    struct termination *termination;
    struct mps_command command;

    while ((termination = domain->terminations)) {
        bool possible = domain->language && domain->server && !domain->freed;
        if (possible && !termination->listed) {
            say_of(domain, domain->server, mps_say_clients, on_listed);
            return true;
        }
        if (possible && termination->next < termination->clients.count) {
            mps_say_terminate(domain->language, domain->server, termination->clients.items[termination->next++],
                              &command);
            domain->call = mps_call(&domain->endpoint, &command, CALL_MS, on_terminated, domain);
            return true;
        }
        termination_done(domain);
    }
    return false;
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
    pid_t pid = daemon_pid(domain);

    if (!pid || (domain->freed_pid && pid != domain->freed_pid)) { /* another's: the directory was taken up again */
        forget_daemon(domain);
        return false;
    }
    domain->running = true;
    if (!domain->told_to_go && domain->language) {
        domain->told_to_go = true;
        say(domain, mps_say_quit, on_quit);
    } else if (!domain->told_to_go && !has_lasted(domain, QUIT_MS)) {
        probe(domain);
    } else {
        if (has_lasted(domain, QUIT_MS))
            end_daemon(pid, has_lasted(domain, 2 * QUIT_MS) ? SIGKILL : SIGTERM);
        again_in(domain, AGAIN_MS);
    }
    return true;
}

/* From nothing to a server of the right user that is ACTIVE; true: not yet. */
static bool climb(struct mps_domain *domain)
{
    uid_t uid = wanted_uid(domain);

    if (!domain->running && !(domain->running = daemon_pid(domain) != 0)) {
        domain->call = mps_call_daemon(&domain->endpoint, domain->multiuser, CALL_MS, on_started, domain);
    } else if (!domain->language) {
        probe(domain);
    } else if (!domain->listed) {
        say(domain, mps_say_servers, on_servers);
    } else if (!domain->server && !domain->server_asked && uid != NO_UID) {
        struct mps_command command;
        mps_say_start(domain->language, uid, &command);
        domain->call = mps_call(&domain->endpoint, &command, CALL_MS, on_server_asked, domain);
    } else if (!domain->server) { /* it does not come up at once: looked for, and then asked for, again */
        if (domain->server_asked)
            error_set(&domain->why, ESRCH, "its server ends as soon as it is started");
        domain->server_asked = domain->listed = false;
        again_in(domain, ASK_MS);
    } else if (uid != NO_UID && domain->server_uid != NO_UID && domain->server_uid != uid) {
        say_of(domain, domain->server, mps_say_shutdown, on_server_told);
    } else if (domain->state == MPS_SERVER_INITIALIZING || domain->look_wanted) {
        look(domain);
        if (domain->state == MPS_SERVER_INITIALIZING)
            domain->next_look_ms = 0;
    } else {
        return false;
    }
    return true;
}

/* FAULT: the clients leave by themselves, or are terminated, or the daemon is started anew; while some go on, these are
 * looked for again and again. */
static void drain(struct mps_domain *domain)
{
    if (has_lasted(domain, 2 * domain->timeout_ms) && domain->spared) {
        domain->told_to_go = false;
        domain->since_ms = uv_now(domain->loop);
        again_in(domain, AGAIN_MS);
    } else if (has_lasted(domain, 2 * domain->timeout_ms)) {
        domain->told_to_go = false;
        domain->start_anew = true;
        domain->since_ms = uv_now(domain->loop);
        step(domain);
    } else if (has_lasted(domain, domain->timeout_ms) && !domain->told_to_go) {
        domain->told_to_go = true;
        mps_domain_terminate(domain, 0, domain->is_hit, NULL, domain->user); /* clients that have not left by
                                                                                themselves */
    } else {
        domain->look_wanted = true;
        again_in(domain, AGAIN_MS);
    }
}

static void serve(struct mps_domain *domain)
{
    uint64_t now_ms = uv_now(domain->loop), idle_until_ms = domain->since_ms + domain->idle_ms;

    set_phase(domain, MPS_SERVING, "");
    tell_ready(domain, 0, NULL);
    if (domain->list_next) {
        say_of(domain, domain->server, mps_say_clients, on_clients);
    } else if (domain->member_count == 0) {
        again_in(domain, idle_until_ms > now_ms ? idle_until_ms - now_ms : 0);
    } else if (now_ms < domain->next_look_ms) {
        again_in(domain, domain->next_look_ms - now_ms);
    } else {
        look(domain);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct mps_domain *domain = handle->data;

    while (domain->terminations)
        termination_done(domain);
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

static void step(struct mps_domain *domain)
{
    if (domain->call || uv_is_closing((uv_handle_t *)&domain->timer) || terminate_some(domain))
        return;
    if (domain->freed && domain->member_count) { /* its jobs go on, and so does it */
        close_domain(domain);
    } else if (!is_wanted(domain)) {
        if (domain->phase != MPS_DOWN || daemon_pid(domain))
            set_phase(domain, MPS_STOPPING, "no job uses it");
        if (stop_daemon(domain))
            return;
        set_phase(domain, MPS_DOWN, "stopped");
        if (domain->freed)
            close_domain(domain);
        else if (domain->member_count) /* a client that joined during the callback */
            again_in(domain, 0);
    } else if (domain->start_anew) {
        if (stop_daemon(domain))
            return;
        domain->start_anew = false;
        domain->since_ms = uv_now(domain->loop);
        again_in(domain, 0);
    } else {
        if (domain->phase == MPS_DOWN || domain->phase == MPS_STOPPING)
            set_phase(domain, MPS_STARTING, "");
        if ((domain->phase == MPS_STARTING || !domain->server) && has_lasted(domain, domain->timeout_ms)) {
            struct error err;
            int status = error_set(&err, ETIMEDOUT, "the MPS server of %s does not come up%s%.300s: see %s",
                                   domain->directory.gpus, *domain->why.text ? ": " : "", domain->why.text,
                                   domain->directory.log);
            give_up(domain, status, &err);
        } else if (!climb(domain)) {
            if (domain->state == MPS_SERVER_FAULT)
                drain(domain);
            else
                serve(domain);
        }
    }
}

/* ---- Life ---- */

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
    domain->on_phase = options->on_phase;
    domain->is_hit = options->is_hit;
    domain->user = options->user;
    forget_daemon(domain);
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
    again_in(domain, 0); /* stops a daemon that was left without jobs, unless one joins in this turn of the loop */
    return 0;
}

void mps_domain_free(struct mps_domain *domain)
{
    if (!domain)
        return;
    for (uint32_t i = domain->member_count; i-- > 0;) /* a waiting job is not in it */
        if (domain->members[i].ready)
            remove_member(domain, i);
    domain->freed = true;
    domain->freed_pid = domain->process.pid;
    if (domain->call && domain->member_count) { /* it need not be waited for */
        mps_call_forget(domain->call);
        domain->call = NULL;
    }
    again_in(domain, 0);
}
