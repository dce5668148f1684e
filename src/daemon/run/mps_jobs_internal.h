/* The jobs' MPS domains in parts: jobs come and go (mps_jobs.c), the domain of a job (mps_domains.c), faults
 * (mps_faults.c), the words of their servers' logs (mps_words.c). */
#ifndef CARMA_DAEMON_RUN_MPS_JOBS_INTERNAL_H
#define CARMA_DAEMON_RUN_MPS_JOBS_INTERNAL_H

#include "base/units.h"
#include "daemon/run/mps_jobs.h"
#include "gpu/mps/domain.h"
#include "gpu/mps/process.h"
#include "gpu/mps/server_log.h"

#define EVERYBODY     UINT32_MAX /* no uid */
#define MPS_PROCESSES 64         /* of a job, the latest that are remembered */

/* A job in a domain. */
struct mps_client {
    uint64_t job;
    uint32_t gpus[RECORD_MAX_GPUS];
    uint32_t gpu_count;
    struct domain *domain;  /* NULL: the administrator's */
    mps_jobs_ready *ready;  /* while it waits */
    bool attached;          /* found among the clients, or said that it is not */
    int64_t memory_wall_ns; /* when its memory was first observed; 0: not yet */
    uint64_t lists;         /* lists of clients there were by then */
    int64_t faulted_ns;     /* node time; 0: never, or it was spared */
    uint64_t served_lists;  /* lists of clients there were when its server served again after that */
    int64_t look_wall_ns;   /* when its end was first asked about; 0: not yet */
    uint64_t looks;         /* at its domain there were by then */
    void (*stopped)(struct daemon *daemon, uint64_t job); /* while its clients are terminated */
    int64_t stop_wall_ns;
    pid_t processes[MPS_PROCESSES]; /* that have had GPU memory */
    uint32_t process_count;         /* ever */
    struct mps_client *next;
};

struct domain {
    struct mps_jobs *mps_jobs;
    struct mps_domain *mps;
    bool wide;                     /* on all GPUs, of the jobs of a user or of everybody */
    uint32_t uid;                  /* its user, or EVERYBODY; of one that is wide */
    char *name;                    /* owned, for people: "on GPU-...", "of user 1000" */
    bool faulted;                  /* as the core was told */
    bool late;                     /* it was logged that it does not come up */
    uint64_t first_faulted_client; /* the first job that told of this fault; 0: none has */
    uint32_t *hit;                 /* GPUs of those that told of it; owned */
    uint32_t hit_count;
    size_t hit_capacity;
    struct mps_log log;
    struct domain *next;
};

struct mps_jobs {
    struct daemon *daemon;
    mps_job_of_process *job_of;
    char *directory; /* of all domains; owned */
    struct domain *domains;
    struct mps_client *mps_clients;
    struct mps_process unmanaged; /* the administrator's control daemon, as last observed */
    uv_timer_t *check;
};

/* ---- mps_jobs.c ---- */

struct mps_client *mps_client_of(const struct mps_jobs *mps_jobs, uint64_t job); /* NULL: it is in no domain */
bool mps_client_is_listed(const struct mps_jobs *mps_jobs, const struct mps_client *mps_client, uint64_t *lists);

/* ---- mps_domains.c ---- */

/* A process can use one MIG instance, and so can a server. */
bool mps_jobs_has_wide(const struct mps_jobs *mps_jobs, const struct job_view *view);

/* Two servers on a GPU take turns: idle domains are ended for others, used ones are joined or in the way. Domains of
 * another setting or user, and of this user on GPUs as they were before, are left alone. They last as long as their
 * jobs. */
int mps_jobs_find_domain(struct mps_jobs *mps_jobs, const struct job_view *view, struct domain **found,
                         struct error *err);

/* Whether the job, found running, may be in it: the setting may have been another when it began. */
bool mps_jobs_may_hold(const struct mps_jobs *mps_jobs, const struct domain *domain, const struct job_view *view);

/* Domains left by an earlier daemon: stopped, unless one of their jobs is found running before the loop turns. */
void mps_jobs_find_left_domains(struct mps_jobs *mps_jobs);
void mps_jobs_close_domain(struct mps_jobs *mps_jobs, struct domain *domain);
bool mps_jobs_domain_has(const struct domain *domain, const char *uuid); /* the GPU */

/* ---- mps_words.c ---- */

void mps_jobs_read_words(struct domain *domain); /* that came since the last look */

/* ---- mps_faults.c ---- */

/* Calls of a domain's (gpu/mps/domain.h). */
void mps_jobs_on_phase(void *user, struct mps_domain *mps, enum mps_phase phase, const char *why);
bool mps_jobs_is_hit(void *user, uint64_t job, pid_t client);

/* The job's message is then that it waits, and why; NULL: no longer. */
void mps_jobs_tell_wait(struct daemon *daemon, uint64_t job, const char *why);

/* A client of a server that serves again was on other GPUs than the one that failed: its later failures are its own. */
void mps_jobs_check_spared(struct mps_jobs *mps_jobs, struct mps_client *mps_client);

#endif
