/* The table of jobs that have not ended. */
#ifndef CARMA_CORE_JOBS_H
#define CARMA_CORE_JOBS_H

#include "base/error.h"

struct core;
struct job;
struct record_edited;
struct record;

/* Adds the job of a SUBMITTED record, without a state. Shared by applying records and restoring a snapshot. */
int core_add_job(struct core *core, const struct record *submitted, struct job **added, struct error *err);
void core_end_job(struct core *core, struct job *job); /* that is in no list any more: it is kept aside */
void core_forget_ended(struct core *core);             /* those are freed */

/* -EINVAL: a job cannot be changed so while it waits. */
int core_check_edit(const struct job *job, const struct record_edited *edited, struct error *err);

#endif
