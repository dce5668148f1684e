/* Jobs that this node has put back, and that wait at Slurm: on which nodes they may start, and when. */
#ifndef CARMA_SLURM_AGENT_WAITING_H
#define CARMA_SLURM_AGENT_WAITING_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "slurm/agent/agent.h"
#include "slurm/agent/slurm.h"

/* Before that a start is refused by the node where the last one was killed: "credential revoked". */
enum { WAITING_LEAST_S = 3, WAITING_LONGEST_S = 300 };

/* EXCLUDE_A_WHILE: the node has no room now. EXCLUDE_UNLESS_LAST: until the job has run. Both where another node is
 * left to it. EXCLUDE_FOR_GOOD: the node can never hold it. */
enum exclusion { EXCLUDE_A_WHILE, EXCLUDE_UNLESS_LAST, EXCLUDE_FOR_GOOD };

/* Excludes this node, for a job that slurmd and the spool know by the number `job`. One that names its nodes gets no
 * other, unless it is for good. Whether another node is left to it. */
bool waiting_exclude(const struct agent *agent, uint32_t job, const struct slurm_job *slurms, enum exclusion how);

/* Ends this node's exclusions of WAITING_LONGEST_S. With `room`, a lease here has ended: those of the oldest jobs, and
 * their delays. */
void waiting_look(const struct agent *agent, bool room);

/* Whether a waiting_look() had room since then. */
bool waiting_had_room(time_t since_s);

/* Whether `nodes`, lines "STATE NAME GRES", has as many others than `own` as are wanted that take jobs, count GPU
 * memory, and are no lines of `excluded`. */
bool waiting_leaves_others(const char *nodes, const char *excluded, const char *own, int64_t wanted);

#endif
