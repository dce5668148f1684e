/* What the callbacks share: the options that a user gave, and the arguments of plugstack.conf. The options of a job
 * become Slurm's counts at its submission (job_submit.lua), and only these make a lease: here they say how it may be
 * shared. */
#ifndef CARMA_SLURM_PLUGIN_PLUGIN_H
#define CARMA_SLURM_PLUGIN_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

struct settings {
    char socket[108]; /* carmad's */
    char spool[200];  /* shared with carma-slurm-agent */
    int64_t wait_ms;  /* for a lease, in all */
    bool others_all;  /* a job that Slurm counts no GPU for sees all GPUs of the node, and else none */
};

struct options {
    bool asked;           /* any of carma's options was given */
    int64_t memory_bytes; /* on each GPU; 0: not given */
    int64_t gpus;         /* on each node */
    char share[16];
};

extern struct settings plugin_settings; /* of this process: each callback reads its arguments anew */

/* Reads plugstack.conf's arguments. Returns the first that is unknown or has a wrong value; NULL: all are right. */
const char *settings_read(struct settings *settings, int count, char *const arguments[]);

enum option {
    OPTION_MEMORY = 1,
    OPTION_GPUS,
    OPTION_SHARE,
    OPTION_EXCLUSIVE,
    OPTION_ESTIMATE, /* --carma-summary and its like: cli_filter.lua makes a request of them */
};

/* false: the value is not one of the option. */
bool options_set(struct options *options, enum option option, const char *value);

#endif
