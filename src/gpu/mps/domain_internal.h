/* A domain's parts: its phases (domain.c), its jobs (domain_jobs.c), its talk with the control daemon (domain_ask.c).
 */
#ifndef CARMA_GPU_MPS_DOMAIN_INTERNAL_H
#define CARMA_GPU_MPS_DOMAIN_INTERNAL_H

#include "gpu/mps/call.h"
#include "gpu/mps/directory.h"
#include "gpu/mps/domain.h"
#include "gpu/mps/process.h"

#define AGAIN_MS 50 /* between two looks on the way up, out of a fault, or down */
#define NO_UID   ((uid_t)-1)

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
    uint64_t poll_ms, idle_ms, timeout_ms, patience_ms;
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
    struct mps_process process;  /* as last known */
    pid_t freed_pid;             /* which it was when the domain was freed */
    bool answers;                /* as a control daemon of version 2 does */
    uid_t admitted;              /* whom its pipes were given to, or NO_UID */
    bool listed;                 /* `server` is the daemon's */
    pid_t server;                /* 0: none */
    uint64_t server_start_ticks; /* 0: not known */
    uid_t server_uid;
    uint64_t server_listed_ms; /* since when */
    bool server_asked;         /* for one, since there was none */
    enum mps_server_state state;
    bool states_untold; /* it knows no get_server_status: a server is alive if it is listed */

    uint64_t since_ms;   /* when this phase began, or the last job left */
    uint64_t failing_ms; /* since when starts fail; 0: the last one did not */
    bool told_to_go;     /* in this phase: the daemon, or the remaining clients of a server that failed */
    uint32_t spared;     /* clients of a server in FAULT that go on, when they were last listed */
    bool start_anew;     /* the daemon has to go first, as its server does not come back */
    bool look_wanted;
    uint64_t next_look_ms;
    uint64_t looks;
    bool list_wanted, list_next;
    struct mps_pids clients;
    uint64_t lists;
    struct error why; /* of the last error */
};

/* ---- domain.c ---- */

void mps_domain_step(struct mps_domain *domain);
void mps_domain_again_in(struct mps_domain *domain, uint64_t ms);
void mps_domain_set_phase(struct mps_domain *domain, enum mps_phase phase, const char *why);
void mps_domain_forget_server(struct mps_domain *domain);
void mps_domain_forget_daemon(struct mps_domain *domain);
pid_t mps_domain_find_daemon(struct mps_domain *domain); /* its process; 0: it is gone */

/* The start has failed: waiting jobs are told, unless it is tried again, and the started parts are stopped. */
void mps_domain_give_up(struct mps_domain *domain, int status, const struct error *err);

/* ---- domain_jobs.c ---- */

void mps_domain_remove_member(struct mps_domain *domain, uint32_t i);

bool mps_domain_all_wait(const struct mps_domain *domain); /* no job has been told that it may start */

/* The user in turn: of the job that is in it, or waits for it, for the longest; NO_UID: none. */
uid_t mps_domain_wanted_uid(const struct mps_domain *domain);

/* Tells the waiting jobs; each may join, leave or free in its callback. */
void mps_domain_tell_ready(struct mps_domain *domain, int status, const struct error *err);

/* Goes on with the clients to terminate; whether that takes a call. */
bool mps_domain_terminate_some(struct mps_domain *domain);
void mps_domain_termination_done(struct mps_domain *domain); /* the first of them */

/* ---- domain_ask.c: each makes one call, and the domain goes on with its answer ---- */

void mps_ask_start(struct mps_domain *domain);
void mps_probe(struct mps_domain *domain);
void mps_ask_servers(struct mps_domain *domain);
void mps_ask_for_server(struct mps_domain *domain, uid_t uid);
void mps_ask_state(struct mps_domain *domain); /* of its server */
void mps_ask_clients(struct mps_domain *domain);
void mps_ask_server_to_go(struct mps_domain *domain);
void mps_ask_daemon_to_go(struct mps_domain *domain);
void mps_ask(struct mps_domain *domain, const struct mps_command *command, mps_called *called);

/* Takes a call's answer: false where it failed, which is remembered, and looked at again in a moment. */
bool mps_domain_answered(struct mps_domain *domain, int status, const struct error *err);

#endif
