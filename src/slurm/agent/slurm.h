/* Asking and telling slurmctld through scontrol and scancel. */
#ifndef CARMA_SLURM_AGENT_SLURM_H
#define CARMA_SLURM_AGENT_SLURM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "slurm/plugin/text.h"

/* Runs a program of Slurm's, named in $PATH, with at most 8 arguments up to a NULL. 0, or a negative errno and Slurm's
 * words: -ENOENT where Slurm does not know the job, -EAGAIN where slurmctld does not answer, -EIO otherwise. */
int slurm_run(const char *program, const char *const arguments[], struct text *output, struct error *err);

/* One line of "NAME=value" words. */
int slurm_show_job(uint32_t job, struct text *line, struct error *err);
int slurm_show_node(const char *node, struct text *line, struct error *err);

#endif
