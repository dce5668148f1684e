/* The settings of an administrator or a user: one table of keys that the file, `--set` and the help share.
 *
 * Built-in defaults < configuration file < `--set key=value`. */
#ifndef CARMA_CONFIG_CONFIG_H
#define CARMA_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "config/share.h"
#include "core/config.h"
#include "estimate/profile.h"

/* Which figure becomes a job's memory request when none is declared: one recorded with the job under that name. Else
 * the estimator of that name computes it from the job's summary or capture. DECLARED: none. MEASURED: only a recorded
 * one. HISTORY: only the core's knowledge of earlier runs (core.learn), which every other choice also uses first.
 */
enum estimator_choice {
    ESTIMATOR_AUTO,
    ESTIMATOR_DECLARED,
    ESTIMATOR_MEASURED,
    ESTIMATOR_HORUS,
    ESTIMATOR_FAKETENSOR,
    ESTIMATOR_GPUMEMNET,
    ESTIMATOR_REPLAY,
    ESTIMATOR_HISTORY
};

/* By which engine containers run: the first that is there, one of them, or not at all. */
enum container { CONTAINER_AUTO, CONTAINER_PODMAN, CONTAINER_APPTAINER, CONTAINER_OFF };

enum device_cgroup { DEVICE_CGROUP_AUTO, DEVICE_CGROUP_OFF };

enum visible_devices { VISIBLE_DEVICES_UUID, VISIBLE_DEVICES_INDEX };

enum engine_choice { ENGINE_LOCAL, ENGINE_SLURM };

enum auto_capture { AUTO_CAPTURE_OFF, AUTO_CAPTURE_ON };

struct config {
    struct core_config core;
    char policy[128]; /* the name as given; core.policy is its meaning to the core */
    struct share_setting share;
    enum estimator_choice estimator;
    int32_t estimate_quantile_permille;
    uint32_t engine;               /* enum engine_choice */
    uint32_t auto_capture;         /* enum auto_capture */
    char *machine_profile;         /* owned; a built-in name or an absolute path; NULL: that of the node's GPUs */
    uint32_t max_queued;           /* jobs that have not ended */
    int64_t max_texts_per_user;    /* bytes of submissions in the store; 0: any */
    int64_t retention_ns;          /* node time */
    int64_t history_retention_ns;  /* as above, of the accounting; less than retention_ns counts as that */
    int64_t sample_period_ns;      /* node time */
    int64_t job_memory_max_bytes;  /* of the host, for each job; 0: any */
    uint32_t job_pids_max;         /* processes and threads of a job; 0: any */
    uint32_t job_cpu_weight;       /* a job's share of busy processors, beside other groups (cgroup v2, cpu.weight) */
    int64_t start_timeout_ns;      /* wall time: from a job's fork to the execution of its command, at the most */
    int64_t grace_ns;              /* wall time: between asking a job to stop and killing it */
    int64_t time_limit_default_ns; /* node time; of jobs that say none; 0: none */
    int64_t time_limit_max_ns;     /* node time; 0: any */
    int64_t idle_limit_default_ns; /* likewise; 0: none */
    int64_t idle_limit_interactive_ns; /* of those that somebody sits at; 0: as others */
    int64_t idle_limit_max_ns;         /* 0: any */
    bool savings;                      /* it is simulated what sharing has saved */
    int64_t idle_report_ns;            /* node time after which a job that does not use its GPUs is told of; 0: never */
    char *nvml_library;                /* owned; NULL: the system's libnvidia-ml.so.1 */
    char *dcgm_library;                /* owned; NULL: the system's libdcgm.so.4 or .3 */
    char *mps_control;                 /* owned; a path, or a name for PATH; NULL: nvidia-cuda-mps-control */
    char *mps_pipe_directory;          /* owned; of a control daemon that is not carma's; NULL: carma runs its own */
    int64_t mps_memory_limit_bytes;    /* pinned device memory, the same; 0: not limited */
    char *state_directory;             /* owned */
    char *socket;                      /* owned */
    char *listen;                      /* owned; an address of base/address.h; NULL: TCP is not listened on */
    char *token_file;                  /* owned; base/trust/token.h; there where `listen` is */
    char *admin_group;                 /* owned; NULL: none */
    char *user_shares;                 /* owned; config/user_shares.h; NULL: none */
    char *share_groups;                /* owned; the same */
    char *submit_filter;               /* owned; daemon/submit/submission_filter.c; NULL: none */
    char *hpc_job_mapping_dir;         /* owned; NULL: none */
    uint32_t device_cgroup;            /* enum device_cgroup */
    uint32_t container;                /* enum container */
    uint32_t visible_devices;          /* enum visible_devices */
};

void config_init_default(struct config *config);
void config_release(struct config *config);

/* The file that is read when none is named: /etc/carma/carma.conf for root, else
 * $XDG_CONFIG_HOME/carma/carma.conf. Owned by the caller. */
char *config_default_path(void);

/* Of root's daemon. */
#define CONFIG_SYSTEM_STATE_DIRECTORY "/var/lib/carma"
#define CONFIG_SYSTEM_SOCKET          "/run/carma/carma.sock"

/* Where the daemon listens when nothing is set: $CARMA_SOCKET, else /run/carma/carma.sock for root, else
 * $XDG_RUNTIME_DIR/carma/carma.sock (where that is unset: /run/user/UID, else the state directory). Owned by the
 * caller. */
char *config_default_socket(void);

/* Reads lines `key = value`; `#` and `;` begin comment lines; there are no sections. -ENOENT when the file does not
 * exist. An error names file, line, key, value and the allowed values; *config may then hold the lines before it. */
int config_read_file(struct config *config, const char *path, struct error *err);

/* One setting. -EINVAL for an unknown key or a bad value; *config is then unchanged. */
int config_set(struct config *config, const char *key, const char *value, struct error *err);

/* `key=value`, as --set has it. */
int config_set_pair(struct config *config, const char *pair, struct error *err);

/* Checks across keys: the window holds a sample, a default socket path is not too long, a daemon that listens on TCP
 * has a token. Call once all is read. */
int config_check(const struct config *config, struct error *err);

/* How the GPU with carma's number and that UUID is to be shared. */
enum share_mode config_share_of(const struct config *config, uint32_t number, const char *uuid);

/* One key of the table, in words. */
struct config_key {
    const char *name;
    const char *help;    /* one line */
    const char *allowed; /* its allowed values */
    const char *preset;  /* its value where nothing sets it; "none" for no value */
};

/* The table, in its order; the texts are valid during the call. */
void config_each_key(void (*visit)(const struct config_key *key, void *user), void *user);

/* Whether the key bears on which job runs where and when, so that a simulation under another value can differ. This
 * holds for settings of the core or of the estimates; neither for `policy` itself nor for a path. */
bool config_key_decides(const char *key);

/* The keys that decide (and `machine_profile`) with a value that another configuration does not have, as config_set
 * takes it, exactly. The texts are valid during the call. */
void config_each_difference(const struct config *config, const struct config *other,
                            void (*visit)(const char *key, const char *value, void *user), void *user);

/* The table with the defaults of root's daemon, for every caller: for files that are read on other machines. */
void config_each_system_key(void (*visit)(const struct config_key *key, void *user), void *user);

/* A configuration file for root's daemon that says nothing: each key and its default as a comment. */
void config_file(FILE *out);

/* The table for a terminal: each key with its allowed values, its default and a line of text. */
void config_help(FILE *out);

/* The manual page carma.conf(5), of the same table. */
void config_manual(FILE *out);

/* Allowed values of `policy`: presets, then plain policies. */
void config_each_policy(void (*visit)(const char *name, const char *summary, void *user), void *user);

/* The same for a terminal: each preset and each plain policy with a line that describes it, and its origin. */
void config_policies_help(FILE *out);

/* The machine profile that is set: built in, or read from its file; its name is "" where none is set. */
int config_machine_profile(const struct config *config, struct machine_profile *profile, struct error *err);

/* "podman" or "apptainer"; NULL: the first that is there. */
const char *config_container_engine(const struct config *config);

const char *estimator_name(enum estimator_choice estimator); /* "auto", "declared", ... */
bool estimator_computes(enum estimator_choice estimator);    /* goes by summaries and captures */

#endif
