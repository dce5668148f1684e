/* A task of a job that Slurm counts no GPU for: it can open no GPU's device node. */
#ifndef CARMA_SLURM_PLUGIN_OTHERS_H
#define CARMA_SLURM_PLUGIN_OTHERS_H

#include <stdbool.h>
#include <stddef.h>

/* The calling process's group in the unified hierarchy, where Slurm has made it for a task. */
bool others_own_group(char *path, size_t size);

/* Puts a filter without GPUs on that group; where Slurm has none, the process enters a group of carma's that has one.
 * 0, or a negative errno where the kernel or the machine has no such groups. */
int others_hide_gpus(void);

#endif
