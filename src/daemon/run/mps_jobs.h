/* Jobs under MPS: which MPS domain (gpu/mps/domain.h) serves which job.
 *
 * Each user has one, for all GPUs that are configured for MPS: mps/uid-UID-HASH beside the daemon's socket, the hash
 * being of these GPUs. Where they are others (one was lost, came back, or is configured otherwise) it is another
 * domain. The one before goes on for its jobs until they have ended. With mps_multiuser there is one for everybody,
 * mps/all-HASH. With share = mps:gpu, and for a MIG instance always, a job of one GPU has the domain of that GPU,
 * mps/GPU-UUID. It has a wider one where jobs use that there already. A job of several GPUs has one for exactly these,
 * mps/set-HASH, as a process can have only one.
 *
 * Domains outlive the daemon with their jobs. Those found there at the start, of either kind, are taken up where jobs
 * may still use them, and stopped otherwise. With the setting mps_pipe_directory there is one domain, of the
 * administrator's own making: it is used, not started, watched or stopped.
 *
 * The core decides which jobs may share. A fault of a domain becomes its input SHARE_FAULT, of the user or for each
 * GPU. */
#ifndef CARMA_DAEMON_MPS_JOBS_H
#define CARMA_DAEMON_MPS_JOBS_H

#include "daemon/daemon.h"

struct mps_jobs;

/* Whether the MPS that the settings ask for can be had here: a server for several users needs a driver that has it.
 * Asked before anything is begun; the error names the remedy. And where `share` is auto, whether there is any MPS:
 * *no_mps (owned by the caller) says why not, with the remedy; "": there is. */
int mps_jobs_check(const struct config *config, char **no_mps, struct error *err);

/* The job that the process belongs to; 0: none of ours. */
typedef uint64_t mps_job_of_process(const struct daemon *daemon, pid_t pid);

struct mps_jobs *mps_jobs_new(struct daemon *daemon, mps_job_of_process *job_of);
void mps_jobs_free(struct mps_jobs *mps_jobs); /* domains with running jobs go on, all others are stopped */

/* After the stored records were applied: faults noted there are over, unless they are observed again. Inputs
 * of the engine's current turn. Takes up the domains that an earlier daemon left, and stops those without a job. No
 * daemon may do so before it is sure that it is the only one. */
void mps_jobs_reconcile(struct mps_jobs *mps_jobs);

/* Whether the job, placed as its view says, is to run under MPS. */
bool mps_jobs_is_for(const struct daemon *daemon, const struct job_view *view);

/* Brings up the domain that the job needs. `ready` is called on the loop, once, with the directories that the job is
 * told of, valid until it leaves. Or it is called with pipe_directory NULL and why the job cannot start (it is then in
 * no domain). */
typedef void mps_jobs_ready(struct daemon *daemon, uint64_t job, const char *pipe_directory, const char *log_directory,
                            const struct error *err);
void mps_jobs_join(struct mps_jobs *mps_jobs, const struct job_view *view, mps_jobs_ready *ready);

/* The UUIDs of the GPUs that the job's server was started with, joined by commas, in its order; NULL: it is in no
 * domain of carma's. */
const char *mps_jobs_gpus_of(const struct mps_jobs *mps_jobs, uint64_t job);

/* Whether the process is the server of a domain of ours: a child of its control daemon. */
bool mps_jobs_has_server(const struct mps_jobs *mps_jobs, pid_t pid);

/* The job was found running. */
void mps_jobs_adopt(struct mps_jobs *mps_jobs, const struct job_view *view);

/* The job has ended, or will not start. */
void mps_jobs_leave(struct mps_jobs *mps_jobs, uint64_t job);

/* Whether the job still waits for its domain. */
bool mps_jobs_is_waiting(const struct mps_jobs *mps_jobs, uint64_t job);

/* Terminates the job's MPS clients, for a process with work outstanding must not just be killed; then, or after a few
 * seconds at most, `done`. At once for a job that is in no domain. */
void mps_jobs_terminate(struct mps_jobs *mps_jobs, uint64_t job, void (*done)(struct daemon *daemon, uint64_t job));

/* Why a job failed. Its domain is looked at from the first call on; false: the answer is not there yet, to be asked
 * again. True after a few seconds in any case, and for a job that is in no domain. */
bool mps_jobs_has_looked(struct mps_jobs *mps_jobs, uint64_t job);

/* Whether the job was a client of a domain that has faulted since then (node time), whether it caused the fault or not.
 * */
bool mps_jobs_faulted_since(const struct mps_jobs *mps_jobs, uint64_t job, int64_t since_ns);

/* Tells that a job of a faulted domain wrote of a kernel's fault. True for the first that does in this fault: it is
 * taken for the cause. */
bool mps_jobs_first_to_fault(struct mps_jobs *mps_jobs, uint64_t job);

/* The process is the job's, as was found out about its GPU memory. */
void mps_jobs_note_process(struct mps_jobs *mps_jobs, uint64_t job, pid_t pid);

/* What its MPS server's log says of the job shortly before its end (node time). */
struct mps_words {
    bool refused;       /* one of its processes was refused memory */
    bool faulted;       /* one of them faulted */
    bool other_faulted; /* another client did */
};
void mps_jobs_words_of(const struct mps_jobs *mps_jobs, uint64_t job, int64_t ended_ns, struct mps_words *words);

#endif
