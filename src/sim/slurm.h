/* A model of Slurm's side of the two-level scheme, for one partition of equal nodes. It has a queue in the order of
 * submission, and a count of GRES for each node. Slurm sees no GPU.
 *
 * Two passes, as Slurm 22.05 has them. The main one starts jobs from the head of the queue until one fits no node's
 * counts. Every 30 s sched/backfill looks at up to 500 jobs. For the first of them that fits nowhere it keeps the node
 * that can take it soonest, by the limits of the jobs there. Behind that one, jobs start which do not delay it. A job
 * gets the first node, in the order of numbers, that has the counts (select/cons_tres with equal weights).
 *
 * A job that the node refused keeps its counts for 5 s. In that time its step fails, its epilog runs and slurmctld
 * requeues it. It keeps its place, and waits: 5 s, then twice as long each time, at most 5 minutes. A node that refused
 * it three times is excluded for it, until all nodes are. Pure. */
#ifndef CARMA_SIM_SLURM_H
#define CARMA_SIM_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum slurm_gres { SLURM_GPUMEM, SLURM_GPUBIG, SLURM_GPUSM, SLURM_GRES_COUNT };

#define SLURM_BACKFILL_NS   (INT64_C(30) * 1000000000) /* bf_interval */
#define SLURM_BACKFILL_JOBS 500                        /* bf_max_job_test */
#define SLURM_COMPLETING_NS (INT64_C(5) * 1000000000)

struct slurm_ask {
    int64_t counts[SLURM_GRES_COUNT]; /* on its node */
    int64_t limit_ns;                 /* the time limit: backfill goes by it, nobody is killed */
};

struct slurm;

/* Of `jobs` jobs, named 0, 1, ... in the order of their priority. */
struct slurm *slurm_new(uint32_t nodes, const int64_t counts[SLURM_GRES_COUNT], size_t jobs);
void slurm_free(struct slurm *slurm);

/* False: no node has as much. The job must not be there. begin_ns: it does not start before. */
bool slurm_submit(struct slurm *slurm, size_t job, const struct slurm_ask *ask, int64_t begin_ns, int64_t now_ns);

/* The next job that starts now, and where: its counts are taken. False: no other does. */
bool slurm_start(struct slurm *slurm, int64_t now_ns, size_t *job, uint32_t *node);

void slurm_refused(struct slurm *slurm, size_t job, int64_t now_ns); /* by the node that it was to start on */
void slurm_ended(struct slurm *slurm, size_t job);

/* When slurm_start may start a job though nothing has happened; INT64_MAX: never. */
int64_t slurm_next_ns(const struct slurm *slurm, int64_t now_ns);

int64_t slurm_free_count(const struct slurm *slurm, uint32_t node, enum slurm_gres gres);

#endif
