/* Learning activity from speeds on parts of a GPU: MIG instances have no reading of their SM activity without DCGM. */
#ifndef CARMA_CORE_PARTS_H
#define CARMA_CORE_PARTS_H

struct core;
struct job;
struct record;

/* Learns from the speed of a job that is alone on an instance, or on a whole GPU without a reading: two of its
 * workload's speeds, on parts of unlike sizes, give its SM activity. */
void parts_learn(struct core *core, struct job *job, const struct record *progressed);

#endif
