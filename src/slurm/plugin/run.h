/* Helpers that run as child processes of Slurm's: a program's output, and the tail of a user's file. */
#ifndef CARMA_SLURM_PLUGIN_RUN_H
#define CARMA_SLURM_PLUGIN_RUN_H

#include <stdint.h>
#include <sys/types.h>

#include "slurm/plugin/text.h"

/* What a program prints and says, at most 64 KiB. 0: it ended with status 0; -ETIMEDOUT: it was killed; -EIO otherwise.
 */
int run_output(char *const argv[], int64_t deadline_ms, struct text *output);

/* What work() writes to the descriptor, in a child: for what cannot be told to hurry. */
int run_work(void (*work)(const void *what, int to), const void *what, int64_t deadline_ms, struct text *output);

struct run_user {
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    int group_count;
};

/* The last 64 KiB of a regular file, opened with the user's rights. */
int run_tail(const char *path, const struct run_user *user, int64_t deadline_ms, struct text *output);

#endif
