/* An MPS domain: one control daemon for one GPU, or for the GPUs of one job of several, in a directory of its own. A
 * client's fault reaches no further than that. Brought up when a job joins, watched while jobs are in it, stopped when
 * none was for a while. It outlives the process that started it, as the jobs do: a process that opens its directory
 * again adopts it.
 *
 *     DOWN --join--> STARTING --server ACTIVE--> SERVING --FAULT, or server gone--> FAULTED --ACTIVE again--> SERVING
 *       ^               |                           |                                  |
 *       +---it cannot---+                           +--no job for a while--> STOPPING <+ (not in time: started anew)
 *
 * One server at a time: it runs as the jobs' user, and another user's first job has it exchanged once no job is left.
 * See docs.nvidia.com/deploy/mps, "Architecture". A multi-user server is one for all.
 *
 * Never blocks: each step is a call of the control program (gpu/mps/call.h), one at a time. Times are wall times. */
#ifndef CARMA_GPU_MPS_DOMAIN_H
#define CARMA_GPU_MPS_DOMAIN_H

#include <stdbool.h>
#include <uv.h>

#include "gpu/mps/protocol.h"

enum mps_phase { MPS_DOWN, MPS_STARTING, MPS_SERVING, MPS_FAULTED, MPS_STOPPING, MPS_PHASE_COUNT };

struct mps_domain;

struct mps_domain_options {
    uv_loop_t *loop;
    const char *program;   /* nvidia-cuda-mps-control, or its path */
    const char *directory; /* of this domain; made where it is not there, with pipe/ and log/ in it */
    const char *gpus;      /* UUIDs of GPUs, or of one MIG instance, joined by commas; NULL: as its directory says */
    bool multiuser;        /* one server for all users, which no longer keeps them apart */
    uint64_t poll_ms;      /* between two looks at a server with jobs; 0: 2 s */
    uint64_t idle_ms;      /* without a job, until it is stopped; 0: 60 s */
    uint64_t
        timeout_ms; /* for a start; and for jobs to leave a server that failed, before they are terminated; 0: 15 s */
    uint64_t patience_ms; /* a start that fails is tried again for so long, while jobs wait: a busy machine is no fault
                             of theirs; 0: it is not */
    /* The phase is another. FAULTED and the states after it: no job may be placed there until SERVING or DOWN. */
    void (*on_phase)(void *user, struct mps_domain *domain, enum mps_phase phase, const char *why);
    /* The clients to terminate (job 0) where the server stays in FAULT: spared clients go on, and the daemon is not
     * started anew meanwhile. NULL: all clients. */
    bool (*is_hit)(void *user, uint64_t job, pid_t client);
    void *user;
};

/* -errno where the directory cannot be made. A daemon that runs in it already is adopted. */
int mps_domain_new(const struct mps_domain_options *options, struct mps_domain **domain, struct error *err);

/* Stops the daemon once no job uses it, and frees itself when that is done; `on_phase` and `ready` are called no
 * more. */
void mps_domain_free(struct mps_domain *domain);

/* The job uses the domain from now on. `ready` is called once, on the loop: with 0 when a server serves its user, with
 * a negative errno when none can. The job has then left again. NULL: it runs already, and was found again. */
typedef void mps_domain_ready(void *user, uint64_t job, int status, const struct error *err);
void mps_domain_join(struct mps_domain *domain, uint64_t job, uid_t uid, mps_domain_ready *ready, void *user);
void mps_domain_leave(struct mps_domain *domain, uint64_t job); /* nothing where it is not in it */

/* Terminates clients: a process with work outstanding must not just be killed. The clients are listed, and those go for
 * which `is_meant` says so (NULL: all). `done` (may be NULL) is called once, on the loop, when that was tried; not once
 * the domain is freed. */
typedef bool mps_domain_is_meant(void *user, uint64_t job, pid_t client);
typedef void mps_domain_terminated(void *user, uint64_t job);
void mps_domain_terminate(struct mps_domain *domain, uint64_t job, mps_domain_is_meant *is_meant,
                          mps_domain_terminated *done, void *user);

/* Looks at the server now, not at the next poll; and how many looks there were, to tell one that came later. */
void mps_domain_look(struct mps_domain *domain);
uint64_t mps_domain_looks(const struct mps_domain *domain);

/* While set, each look lists the clients too. */
void mps_domain_list_clients(struct mps_domain *domain, bool wanted);
const struct mps_pids *mps_domain_clients(const struct mps_domain *domain,
                                          uint64_t *lists); /* *lists: how often listed */

pid_t mps_domain_daemon(const struct mps_domain *domain); /* the control daemon, as last observed; 0: none */
enum mps_phase mps_domain_phase(const struct mps_domain *domain);
const char *mps_domain_pipe_directory(const struct mps_domain *domain);
const char *mps_domain_log_directory(const struct mps_domain *domain);
const char *mps_domain_gpus(const struct mps_domain *domain);
uint32_t mps_domain_jobs(const struct mps_domain *domain);

#endif
