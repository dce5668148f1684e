/* Shared by the files of /metrics. metrics.c has the table and walks it; metrics_gpu.c has the figures of GPUs and of
 * the jobs on them. metrics_node.c has those of the node and its users. */
#ifndef CARMA_DAEMON_METRICS_METRICS_INTERNAL_H
#define CARMA_DAEMON_METRICS_METRICS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/ledger.h"
#include "daemon/metrics/prometheus.h"
#include "daemon/node/node_internal.h"
#include "store/history.h"

/* A metric's subject, which decides its labels. */
enum metric_of {
    METRIC_OF_NODE,     /* one sample */
    METRIC_OF_BUILD,    /* as above, with the version */
    METRIC_OF_STATE,    /* each state in which a job has not ended */
    METRIC_OF_DECISION, /* each kind of decision */
    METRIC_OF_GPU,      /* each GPU and MIG instance; one in MIG mode, too */
    METRIC_OF_KIND,     /* as above, with its name and kind */
    METRIC_OF_SOURCE,   /* as above, with the source of the figure */
    METRIC_OF_JOB,      /* each job that has GPUs */
    METRIC_OF_NAME,     /* as above, with its description */
    METRIC_OF_SHARE,    /* each job on each of its GPUs */
    METRIC_OF_STRAY,    /* each process of a job on a GPU that this was not given */
    METRIC_OF_END,      /* each state in which a job can have ended */
    METRIC_OF_OOM,      /* each cause of a crash out of GPU memory */
    METRIC_OF_CAPTURE,  /* each outcome of an automatic capture */
    METRIC_OF_WAIT,     /* a histogram of waiting times */
    METRIC_OF_USER,     /* each user that ever had a job */
    METRIC_OF_COUNT
};

/* A sample's subject: members that do not apply are NULL or 0. */
struct metric_subject {
    uint32_t number;              /* a state, a type of records, an enum gpu_metric, an enum exit_cause */
    const struct gpu *gpu;        /* NULL: one in MIG mode, which the core does not know */
    const struct node_gpu *entry; /* never NULL with a GPU; not `there`: not read lately */
    const struct job_view *view;
    const struct metrics_user *user;
    const struct attribution_unmanaged *process;
};

/* Users may be many: uids cost nothing where there are user namespaces. The first users, in the order of uids, have
 * their own series. A user beyond them never gets one, so the sum of the others does not fall. */
#define METRICS_MOST_USERS 1000

struct metrics_user {
    uint32_t uid;
    char *name; /* owned; may be NULL; of the others, the text in its place */
    bool others;
    struct history_sums sums;
    int64_t unstored_mj; /* of their energy */
};

/* A party's part of a GPU's energy that is not stored yet. */
struct metrics_unstored {
    uint64_t party;
    int64_t mj;
};

/* Values gathered once for all metrics. */
struct metrics_scene {
    const struct daemon *daemon;
    int64_t now_ns;
    char hostname[64];
    uint64_t counts[JOB_STATE_COUNT];
    int64_t oldest_ns;             /* when the one that waits longest was submitted; now_ns: none waits */
    const struct job_view **views; /* owned array of borrowed: those that have GPUs */
    size_t view_count, view_capacity;
    struct metrics_user *users; /* owned array, in the order of uids, the others last */
    size_t user_count, user_capacity;
    struct metrics_unstored *unstored; /* owned array */
    size_t unstored_count, unstored_capacity;
    struct history_sums sums; /* of all users */
    int64_t submitted;        /* jobs, likewise */
};

/* False: it is not known. The value is in the metric's unit. */
typedef bool metric_value(const struct metrics_scene *scene, const struct metric_subject *subject, int64_t *value);

/* Defines a metric_value by two expressions of `scene` and of the subject: whether the value is known, and the value.
 */
#define METRIC(name, subject, known, told)                                                                             \
    bool name(const struct metrics_scene *scene, const struct metric_subject *subject, int64_t *value)                 \
    {                                                                                                                  \
        bool is_known = (known);                                                                                       \
        *value = is_known ? (told) : 0;                                                                                \
        return is_known;                                                                                               \
    }

struct metric {
    const char *name;
    enum prometheus_type type;
    enum prometheus_unit unit;
    enum metric_of of;
    metric_value *value;
    uint32_t number; /* METRIC_OF_SOURCE: enum gpu_metric; METRIC_OF_GPU: enum gpu_fact_kind, where it is of one */
    const char *help;
};

/* metrics_node.c */
metric_value metric_one, metric_host_memory, metric_node_time, metric_time_scale, metric_store_trouble, metric_jobs,
    metric_oldest_wait, metric_decisions, metric_submitted, metric_ends, metric_oom, metric_retries, metric_captures;
metric_value metric_user_gpu_time, metric_user_energy, metric_user_ends, metric_user_oom, metric_user_retries;
metric_value metric_resident_memory, metric_open_files, metric_most_files, metric_processor_time, metric_start_time;

/* metrics_gpu.c */
metric_value metric_gpu_lost, metric_gpu_drained, metric_gpu_unknown, metric_gpu_jobs, metric_gpu_total,
    metric_gpu_used, metric_gpu_reserved, metric_gpu_unmanaged, metric_gpu_free, metric_gpu_measure,
    metric_gpu_active_time, metric_gpu_read_time, metric_gpu_power, metric_gpu_idle_power, metric_gpu_energy,
    metric_gpu_idle_energy, metric_gpu_unmanaged_energy, metric_gpu_xid, metric_gpu_xids, metric_gpu_fact,
    metric_gpu_clock, metric_gpu_throttled;
metric_value metric_job_reserved, metric_job_used, metric_stray, metric_job_peak, metric_job_over, metric_job_victims,
    metric_job_slowdown, metric_job_gpu_time, metric_job_energy;

#endif
