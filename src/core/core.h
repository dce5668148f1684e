/* The scheduling state machine: pure. No clock, no file, no log, no randomness, no floating point on a decision path.
 *
 *   core_apply   the only way state changes
 *   core_decide  looks at the state and yields new records, each already applied
 *
 * A driver, for each batch of inputs: core_apply to each, then core_decide once, at the last one's time. Then it
 * commits inputs and decisions in one transaction, and acts on the decisions. At core_next_wake_ns it feeds a TIMER,
 * which it need not store when nothing was decided. A restart only applies the stored records. */
#ifndef CARMA_CORE_CORE_H
#define CARMA_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/job.h"
#include "core/reason.h"
#include "core/record.h"

struct core;
struct gpu;
struct user;

struct core *core_new(void); /* empty: no GPUs, default configuration */
void core_free(struct core *core);

/* 0; or a negative errno with a sentence for people, the state then being unchanged. -ENOENT: no such job or GPU.
 * -EEXIST: the job is already there. -EPERM: its state forbids it (e.g. holding a running job). -EINVAL: nonsense. */
int core_apply(struct core *core, const struct record *record, struct error *err);

/* Appends the decisions that are due at now_ns (node time) to *out; each has been applied. */
void core_decide(struct core *core, int64_t now_ns, struct record_list *out);

/* The next time after now_ns at which core_decide may decide something though nothing has happened; INT64_MAX: none. */
int64_t core_next_wake_ns(const struct core *core, int64_t now_ns);

/* Whether the core wants this SAMPLE. While a job waits or has just crashed, it wants each that differs from the core's
 * state; at other times only one that teaches something. Drivers need not feed, and so not store, any other. */
bool core_sample_is_due(const struct core *core, const struct record *sample);

/* Whether decisions depend on measured activity and use, so that a driver has to watch them while something waits. */
bool core_watches_load(const struct core *core);

/* For how long a GPU's residents must have been the same before a sample teaches anything about them. */
int64_t core_learning_delay_ns(const struct core *core);

/* Whether such a submission could ever run on this node as it is configured now; if not, *why says why not. While no
 * GPU is known yet, everything could. */
bool core_could_ever_run(const struct core *core, const struct record_submitted *submitted, struct reason *why);

/* Why the job waits (REASON_NONE: it does not, or there is none such). */
struct reason core_reason(const struct core *core, uint64_t job, int64_t now_ns);

/* Why one GPU would not take the waiting job now, were it the head (REASON_NONE: it would). */
struct reason core_gpu_reason(const struct core *core, uint64_t job, uint32_t gpu, int64_t now_ns);

/* How the job would use the GPU, were it to take it (enum share_mode, never SHARE_ANY); SHARE_ANY: no such job or GPU.
 */
uint32_t core_gpu_mode(const struct core *core, uint64_t job, uint32_t gpu);

/* The memory per GPU that would be reserved for the waiting job if it were placed now (-1: nobody knows). Also the
 * source of that figure (enum memory_source; may be NULL). */
int64_t core_reservation(const struct core *core, const struct job *job, uint32_t *source);

/* The SM activity of the user's workload alone on a GPU, in permille, as readings have taught; 0: none has. */
int32_t core_observed_activity(const struct core *core, uint32_t uid, const char *workload);

/* The first user by number; the next is at hh.next (core/user.h). They have what is learned of their workloads. */
const struct user *core_users(const struct core *core);

/* Looking at the state. Ended jobs are forgotten: find gives NULL for them. */
const struct job *core_find_job(const struct core *core, uint64_t id);

/* The same, but also one that ended since the last input, as its end has left it. */
const struct job *core_recall_job(const struct core *core, uint64_t id);

const struct gpu *core_gpu(const struct core *core, uint32_t gpu); /* NULL out of range; see core/ledger.h */
uint32_t core_gpu_count(const struct core *core);
const struct core_config *core_configuration(const struct core *core);
uint64_t core_waiting_count(const struct core *core);                 /* queued, also those that
                                                                       * depend on others; not held */
uint64_t core_job_count(const struct core *core);                     /* that have not ended */
const struct job *core_jobs(const struct core *core);                 /* the first of them; the next is at hh.next */
uint32_t core_job_count_of(const struct core *core, uint32_t uid);    /* of this user */
bool core_share_faulted_user(const struct core *core, uint32_t *uid); /* a user whose MPS server does not serve; false:
                                                                         none */

/* The whole state as canonical text: equal states give equal text. Owned by the caller. */
char *core_dump(const struct core *core);

#endif
