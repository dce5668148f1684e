/* A step as the plugin tells of it, and what the prolog has written down of its job: facts in the spool, which is
 * root's alone. */
#ifndef CARMA_SLURM_STEP_STEP_H
#define CARMA_SLURM_STEP_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "slurm/shared/size.h"

/* What identifies a step. */
struct step {
    const char *socket, *spool; /* plugstack.conf's */
    const char *name;           /* "12", "batch", "interactive"; "" in a prolog or epilog */
    uint32_t job, restart;
    char cluster[64], node[64];
    bool batch;
    bool known; /* what Slurm has counted for the job: */
    struct counts counts;
};

void step_read(struct step *step);

/* One of srun's, and not the script's or salloc's shell. */
bool step_is_numbered(const struct step *step);

/* Of the counted memory, on each GPU. */
int64_t step_memory_bytes(const struct step *step);

/* Whether carma gives this node's GPUs: its agent has made the spool. */
bool step_node_is_ours(const struct step *step);

/* The plugin asks slurmctld: the words `code`, 0 or a negative errno, `gpus`, `gpumem`, ... have its answer. */
void step_ask_slurm(const struct step *step);

/* That answer becomes facts of the spool, and is read from there. */
void step_write_down(struct step *step);
void step_forget(const struct step *step);

#endif
