/* Asking and telling slurmctld through squeue, scontrol and scancel. */
#ifndef CARMA_SLURM_AGENT_SLURM_H
#define CARMA_SLURM_AGENT_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "base/strbuf.h"

/* Runs a program of Slurm's, named in $PATH, with at most 8 arguments up to a NULL. 0, or a negative errno and Slurm's
 * words: -ENOENT where Slurm does not know the job, -ESRCH where it is over, -EAGAIN where slurmctld does not answer,
 * -EIO otherwise. */
int slurm_run(const char *program, const char *const arguments[], struct strbuf *output, struct error *err);

/* Sets WHAT of the job. What is refused is said, but for a job that is over. */
int slurm_update(const char *job, const char *what, const char *value);

enum { SLURM_GRES_BYTES = 512 };

/* A job as slurmctld knows it. No user's text is in it. */
struct slurm_job {
    char name[48]; /* what means this job alone: 12, 8_3 of an array, 10+1 of a heterogeneous job */
    char
        whole[24]; /* what goes back to the queue: 10 for 10+1, whose components Slurm starts together; else the name */
    char state[24];              /* as in JobState= */
    char partition[2048];        /* while it waits: all that it may run in, by commas */
    char gres[SLURM_GRES_BYTES]; /* of each node */
    int64_t restarts;
    time_t begin_s; /* it does not start before; 0: at any time */
    bool held;
};

/* The job of slurmd's number, which is that of one task or component. The last task of an array has its array's number:
 * in a command of Slurm's that means all tasks. -ENOENT: Slurm has forgotten it. */
int slurm_show_job(uint32_t job, struct slurm_job *found, struct error *err);

/* The node as one line of "NAME=value" words. */
int slurm_show_node(const char *node, struct strbuf *line, struct error *err);

/* When the node's slurmd began, as slurmctld has heard. */
int slurm_node_began(const char *node, time_t *began, struct error *err);

#endif
