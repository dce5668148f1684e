/* What Slurm's commands and files say, for the checks of slurm.c. */
#ifndef CARMA_CLI_DOCTOR_SLURM_H
#define CARMA_CLI_DOCTOR_SLURM_H

#include "cli/doctor/doctor.h"

/* The value of NAME in the lines "NAME = value" of `scontrol show config`; NULL: not there. Owned by the caller. */
char *slurm_config_value(const char *config, const char *name);

/* Whether a file of Slurm's has a line with KEY=VALUE, in any case, and, unless that is NULL, the key `beside`.
 * Comments do not count. */
bool slurm_file_says(const struct doctor *doctor, const char *path, const char *key, const char *value,
                     const char *beside);

/* The path of carma's plugin as plugstack.conf or a file that it includes has it, and whether it is `required` there;
 * NULL: none names it. Owned by the caller. */
char *slurm_plugstack_find(const struct doctor *doctor, const char *path, bool *required);

/* Looks for a plugin in the folders of PluginDir. NULL: it is in none. Owned by the caller; without the root. */
char *slurm_plugin_place(const struct doctor *doctor, const char *plugin, const char *folders);

/* The release of Slurm that a plugin of carma was built with, major and minor. -EINVAL: it does not say. */
int slurm_plugin_release(const struct doctor *doctor, const char *path, unsigned release[2], struct error *err);

/* Of "gpumem:160G,gres:gpubig:4(S:0-1)"; -1: it does not count that. */
int64_t slurm_count_of(const char *list, const char *name);

/* Whether a count of memory is not that of the GPUs. */
bool slurm_differs(int64_t counted, int64_t there);

/* What Slurm counts for a job with a GPU of its own, in each partition of a node: `line` is scontrol's of it. */
void slurm_try_counts(struct doctor *doctor, const char *node, const char *line, int64_t gpu_bytes);

/* Whether the plugin is on the nodes beside this one, by ssh. */
void slurm_try_hosts(struct doctor *doctor, const char *node, const char *plugin, const char *folders, bool required);

#endif
