/* The table of users, with all that was learned of their workloads: made, and forgotten. */
#ifndef CARMA_CORE_USERS_H
#define CARMA_CORE_USERS_H

#include <stdint.h>

#include "base/error.h"

struct core;
struct job;
struct record_forgotten;
struct record_share_given;
struct user;

/* Made where there is none. Owned by the core. */
struct user *user_of(struct core *core, uint32_t uid);
void users_free(struct core *core);

/* An administrator gives the user, known or not yet, a share of the GPUs, and puts him in a group with one. */
int users_give_share(struct core *core, const struct record_share_given *given, struct error *err);

/* The group of that name, with that share; "" and 0: none. */
int users_put_in_group(struct core *core, struct user *user, const char *name, uint32_t share, struct error *err);

/* The job was submitted: its workload is the latest, and the oldest may be forgotten for it. */
void users_submitted(struct core *core, const struct job *job);

/* An administrator takes back what was learned: of the user, of the workload, or of the user's workload. Jobs that run
 * keep their reservations. Of the unknown user: the published distribution counts again. */
int users_forget(struct core *core, const struct record_forgotten *forgotten, struct error *err);

#endif
