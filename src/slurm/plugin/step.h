/* A step as Slurm's processes know it, and what the prolog has written down of its job: facts in the spool, which is
 * root's alone. */
#ifndef CARMA_SLURM_PLUGIN_STEP_H
#define CARMA_SLURM_PLUGIN_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "slurm/plugin/size.h"
#include "slurm/plugin/spank.h"

#define STEP_BATCH       UINT32_C(0xfffffffb)
#define STEP_EXTERN      UINT32_C(0xfffffffc)
#define STEP_INTERACTIVE UINT32_C(0xfffffffa)

/* What identifies a step. */
struct step {
    uint32_t job, step, restart;
    char cluster[64], node[64], name[128], directory[512];
    bool known; /* what Slurm has counted for the job: */
    struct counts counts;
};

void step_read(spank_t spank, struct step *step);
void step_read_node(spank_t spank, char node[static 64]);

/* "12", "batch", ... */
void step_name(const struct step *step, char text[static 16]);

/* One of srun's, and not the script's or salloc's shell. */
bool step_is_numbered(const struct step *step);

/* Whether carma gives this node's GPUs: its agent has made the spool. */
bool step_node_is_ours(void);

/* What Slurm has counted for the job, asked of slurmctld, becomes facts of the spool. */
void step_write_down(uint32_t job, const char *node);
void step_forget(uint32_t job);

/* By scancel or the job's time limit. */
bool step_is_ended_by_slurm(const struct step *step);

#endif
