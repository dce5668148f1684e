#include "gpu/mps/domain_internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/proc.h"

#define CALL_MS  5000 /* for one answer */
#define STAYS_MS 250  /* a server without a reported state that was listed for this long is up: others end at once */

static uid_t uid_of(pid_t pid)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &st) == 0 ? st.st_uid : NO_UID;
}

static uint64_t start_of(pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) == 0 ? stat.start_ticks : 0;
}

/* Its process has ended, or the number is another's. What cannot be read (no descriptors left) is no sign of that. */
static bool server_has_ended(const struct mps_domain *domain)
{
    struct proc_stat stat;
    int rc = proc_read_stat(domain->server, &stat);

    if (rc < 0)
        return rc == -ENOENT || rc == -ESRCH;
    return stat.ended || (domain->server_start_ticks && stat.start_ticks != domain->server_start_ticks);
}

bool mps_domain_answered(struct mps_domain *domain, int status, const struct error *err)
{
    domain->call = NULL;
    if (status == 0)
        return true;
    domain->why = *err;
    if (!mps_domain_find_daemon(domain))
        mps_domain_forget_daemon(domain);
    mps_domain_again_in(domain, AGAIN_MS);
    return false;
}

static void on_started(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;

    domain->call = NULL;
    domain->running = mps_domain_find_daemon(domain) != 0; /* one that ran already makes the second fail */
    if (status < 0 && !domain->running) {
        struct error told = *err;
        if (status != -ENOENT)
            error_prefix(&told, "see %s/start.log", domain->directory.log);
        mps_domain_give_up(domain, status, &told);
        return;
    }
    mps_domain_again_in(domain, domain->running ? 0 : AGAIN_MS);
}

/* The daemon may be up before its pipe is: it is asked until the start takes too long. */
static void on_probed(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    struct error told = *err;

    if (status == 0)
        status = mps_read_probe(answer, &told);
    if (!mps_domain_answered(domain, status, &told))
        return;
    domain->answers = true;
    mps_domain_step(domain);
}

static void on_servers(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    struct error told = *err;
    struct mps_pids servers;

    if (status == 0)
        status = mps_read_servers(answer, &servers, &told);
    if (!mps_domain_answered(domain, status, &told))
        return;
    domain->listed = true;
    domain->server = servers.count ? servers.items[0] : 0;
    domain->server_uid = domain->server ? uid_of(domain->server) : NO_UID;
    domain->server_start_ticks = domain->server ? start_of(domain->server) : 0;
    domain->server_listed_ms = uv_now(domain->loop);
    mps_domain_step(domain);
}

static void on_server_asked(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;

    domain->server_asked = true;
    domain->listed = false;
    if (status == -EIO) /* NVIDIA's ends with 1 at times: the list tells the result */
        status = 0;
    if (mps_domain_answered(domain, status, err))
        mps_domain_step(domain);
}

static void on_server_told(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;

    mps_domain_forget_server(domain);
    if (mps_domain_answered(domain, status, err))
        mps_domain_again_in(domain, AGAIN_MS);
}

/* It has taken its clients with it. */
static void lose_server(struct mps_domain *domain)
{
    mps_domain_forget_server(domain);
    if (domain->phase == MPS_SERVING)
        mps_domain_set_phase(domain, MPS_FAULTED, "its MPS server is gone");
}

/* The answer to a look at the server. */
static void looked(struct mps_domain *domain, int status, enum mps_server_state state, const struct error *err)
{
    bool silent = status == -ETIMEDOUT; /* a busy machine is not a fault: the next look will tell */

    domain->next_look_ms = uv_now(domain->loop) + domain->poll_ms;
    domain->looks++;
    /* no answer, or one that is not understood, is no proof: jobs beside it would be started again for nothing */
    if (status < 0 && !silent && (server_has_ended(domain) || !mps_domain_find_daemon(domain)))
        lose_server(domain);
    if (!mps_domain_answered(domain, status, err))
        return;
    domain->state = state;
    domain->list_next = domain->list_wanted && state == MPS_SERVER_ACTIVE;
    if (state == MPS_SERVER_FAULT)
        mps_domain_set_phase(domain, MPS_FAULTED, "a client has failed: its MPS server is in the state FAULT");
    if (state == MPS_SERVER_INITIALIZING)
        mps_domain_again_in(domain, AGAIN_MS);
    else
        mps_domain_step(domain);
}

static void on_status(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    enum mps_server_state state = MPS_SERVER_INITIALIZING;
    struct error told = *err;

    if (status == 0)
        status = mps_read_status(answer, domain->server, &state, &told);
    domain->states_untold = status == -ENOTSUP;
    if (domain->states_untold) {
        domain->call = NULL;
        domain->look_wanted = true;
        mps_domain_step(domain);
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
        status = mps_read_servers(answer, &servers, &told);
    if (status == 0 && (servers.count == 0 || servers.items[0] != domain->server || server_has_ended(domain)))
        status = error_set(&told, ESRCH, "its server is gone");
    looked(domain, status, stays ? MPS_SERVER_ACTIVE : MPS_SERVER_INITIALIZING, &told);
}

static void on_clients(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;
    struct error told = *err;

    domain->list_next = false;
    if (status == 0)
        status = mps_read_clients(answer, &domain->clients, &told);
    if (!mps_domain_answered(domain, status, &told))
        return;
    domain->lists++;
    mps_domain_step(domain);
}

static void on_quit(void *user, int status, const char *answer, const struct error *err)
{
    struct mps_domain *domain = user;

    if (mps_domain_answered(domain, status, err))
        mps_domain_step(domain);
}

void mps_ask(struct mps_domain *domain, const struct mps_command *command, mps_called *called)
{
    domain->call = mps_call(&domain->endpoint, command, CALL_MS, called, domain);
}

static void say(struct mps_domain *domain, void (*words)(struct mps_command *), mps_called *called)
{
    struct mps_command command;

    words(&command);
    mps_ask(domain, &command, called);
}

static void say_of(struct mps_domain *domain, void (*words)(pid_t, struct mps_command *), mps_called *called)
{
    struct mps_command command;

    words(domain->server, &command);
    mps_ask(domain, &command, called);
}

void mps_ask_state(struct mps_domain *domain)
{
    domain->look_wanted = false;
    if (domain->states_untold)
        say(domain, mps_say_servers, on_listed_still);
    else
        say_of(domain, mps_say_status, on_status);
}

void mps_probe(struct mps_domain *domain)
{
    struct mps_command command;

    mps_say_probe(&command);
    mps_ask(domain, &command, on_probed);
}

void mps_ask_start(struct mps_domain *domain)
{
    uint64_t most_ms = domain->timeout_ms > CALL_MS ? domain->timeout_ms : CALL_MS;

    domain->call = mps_call_daemon(&domain->endpoint, domain->multiuser, most_ms, on_started, domain);
}

void mps_ask_servers(struct mps_domain *domain)
{
    say(domain, mps_say_servers, on_servers);
}

void mps_ask_for_server(struct mps_domain *domain, uid_t uid)
{
    struct mps_command command;

    mps_say_start(uid, &command);
    mps_ask(domain, &command, on_server_asked);
}

void mps_ask_clients(struct mps_domain *domain)
{
    say_of(domain, mps_say_clients, on_clients);
}

void mps_ask_server_to_go(struct mps_domain *domain)
{
    say_of(domain, mps_say_shutdown, on_server_told);
}

void mps_ask_daemon_to_go(struct mps_domain *domain)
{
    say(domain, mps_say_quit, on_quit);
}
