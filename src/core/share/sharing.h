/* Sharing modes of a GPU: auto, time-slicing, MPS, or exclusive; and the limits of MIG instances.
 *
 *   - auto: a user's jobs are clients of his MPS server. They take turns with other users' jobs, and with jobs that ask
 *     for time-slicing, where that pays (slowdown.h)
 *   - all residents of a GPU that is configured otherwise use one mode
 *   - a GPU configured for MPS may, while it is empty, take a job that wants time-slicing. Then it takes only such jobs
 *     until it is empty again
 *   - a GPU configured for time-slicing, or for one job at a time, takes no job that asks for MPS
 *   - the clients of an MPS server are one user's, unless mps_multiuser says otherwise, and at most mps_max_clients
 *   - the setting mps_domain says which jobs are clients of one server:
 *     USER: a user's jobs on all GPUs; each MIG instance has its own server. A job of several GPUs joins the user's
 *     other jobs only where all its GPUs are configured for MPS, or where it asks for MPS: then it cannot come to share
 *     by time-slicing.
 *     NODE: as USER, for all users.
 *     GPU: a job of several GPUs begins on GPUs without clients, with one server for all of them. Jobs of one GPU may
 *     join it there. It is the server of all these GPUs until its last client has gone
 *   - while an MPS server does not serve, jobs that would be its clients are not placed on its GPU. Where it serves a
 *     user on all GPUs, they are not placed at all. Other users' servers serve meanwhile
 *   - a process can use one MIG instance: a job of several GPUs gets none */
#ifndef CARMA_CORE_SHARE_SHARING_H
#define CARMA_CORE_SHARE_SHARING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/share.h"

struct core;
struct gpu;
struct job;
struct record_submitted;

/* How the GPU is configured; never SHARE_ANY. */
enum share_mode sharing_configured(const struct gpu *gpu);

/* Whether jobs can be clients of an MPS server there. */
bool sharing_serves(const struct gpu *gpu);

/* The reason why the GPU, as it is and as it is configured, can never take such a job: REASON_UNSUITED (gpus/suits.h),
 * REASON_NO_MPS, REASON_INSTANCE or REASON_NONE. */
uint32_t sharing_ever(const struct record_submitted *wants, const struct gpu *gpu);

/* The reason why the job cannot join the residents; REASON_NONE: none of those above. */
uint32_t sharing_verdict(const struct core *core, const struct job *job, const struct gpu *gpu);

/* How the job would use the GPU, of which the verdict is REASON_NONE. Never SHARE_ANY. */
enum share_mode sharing_mode_of(const struct core *core, const struct job *job, const struct gpu *gpu);

/* How a job uses the GPUs that were chosen for it: by MPS only where it can on each of them. */
enum share_mode sharing_together(const struct core *core, const struct job *job, const uint32_t *gpus, uint32_t count);

/* The job has been placed; it has left its GPUs, of which it still knows: MPS servers come and go with their clients.
 */
void sharing_begins(struct core *core, const struct job *job);
void sharing_ends(struct core *core, const struct job *job);

/* The configuration is another: where servers are not of GPUs, none is remembered as one. */
void sharing_reconfigured(struct core *core);

/* A client of the MPS server that is remembered as the GPU's, here or on another of its GPUs; NULL: there is none. */
const struct job *sharing_client(const struct core *core, const struct gpu *gpu);

/* Whether `next` could follow onto the GPU while `guest` is there, in any mode. */
bool sharing_lets_follow(const struct core *core, const struct job *guest, const struct job *next, struct gpu *gpu);

/* Whether the job could have the GPU by itself, if not for its slowdown, and as if programs started there. */
bool gpu_could_take(const struct job *job, const struct gpu *gpu);

#endif
