/* A task's control group; and what a task of a job that Slurm counts no GPU for cannot open: any GPU's device node. */
#ifndef CARMA_SLURM_STEP_OTHERS_H
#define CARMA_SLURM_STEP_OTHERS_H

#include <sys/types.h>

/* The process's group in the unified hierarchy, where Slurm has made it for a task; the caller's. NULL: it has none. */
char *others_own_group(pid_t pid);

/* Puts a filter without GPUs on that group; where Slurm has none, the process enters a group of carma's that has one.
 * 0, or a negative errno where the kernel or the machine has no such groups. */
int others_hide_gpus(pid_t pid);

/* Puts the process into the group of that directory; from then on all that it starts is there. 0 or a negative errno.
 */
int others_enter(const char *directory, pid_t pid);

#endif
