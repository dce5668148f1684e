/* Shared by the files of the node. node.c takes readings in, node_energy.c shares energy out, node_memory.c counts the
 * jobs' memory. node_stray.c names the processes on GPUs that their job was not given. node_evidence.c gathers the
 * evidence of a failure, node_report.c tells of faults and of GPUs held unused, node_untold.c of what NVML does not
 * tell, node_closed.c why GPUs take no job, node_json.c shows it all, node_notes.c what is to be said beside it. */
#ifndef CARMA_DAEMON_NODE_NODE_INTERNAL_H
#define CARMA_DAEMON_NODE_NODE_INTERNAL_H

#include "base/share.h"
#include "daemon/node/attribution.h"
#include "daemon/node/claim.h"
#include "daemon/node/energy.h"
#include "daemon/node/node.h"
#include "gpu/monitor/monitor.h"
#include "gpu/window.h"

struct store_batch;

/* The first metrics (enum gpu_metric) have a window: SM activity, SM occupancy, DRAM activity. */
#define NODE_WINDOWS 3

#define NODE_NO_NUMBER UINT32_MAX

#define NODE_LIMITS sizeof((struct gpu_node_reading *)NULL)->limits

/* Energy of a physical GPU: its own, or that of all of its MIG instances. */
struct node_meter {
    char uuid[GPU_UUID_SIZE];
    struct energy_meter meter;
    struct energy_resident *set; /* owned: the residents as they were set last */
    size_t set_count;
    struct node_meter *next;
};

/* Reports about a GPU, so that each is made once. */
struct node_told {
    int64_t closed_sum_ns; /* until when it is closed, summed over users */
    bool index_known;
    uint32_t index;
    int64_t xid_at_ns;
    uint32_t sources[GPU_METRIC_COUNT];    /* as told, GPU_SOURCE_COUNT: nothing yet */
    uint32_t candidates[GPU_METRIC_COUNT]; /* its present number, if that is another ... */
    uint32_t held[GPU_METRIC_COUNT];       /* ... and for how many readings it has been */
    char refused[256];                     /* what NVML does not tell, as told */
    uint32_t refused_held;                 /* for how many readings it has been otherwise */
};

/* A GPU that NVML counts and that does not tell its UUID. */
struct node_unnamed {
    uint32_t index;
    int32_t error;
};

/* A job with processes on a GPU that it was not given, as the log was told. */
struct node_stray {
    uint64_t job;
    int64_t told_ns; /* of its last line */
    uint32_t untold; /* processes that were found since */
};

#define NODE_RECENT  16
#define NODE_PROBLEM 512

/* Memory as it was read a moment ago. */
struct node_sample {
    int64_t at_ns;
    int64_t used_bytes;
    int64_t total_bytes;
};

/* A GPU or a MIG instance as last read. */
struct node_gpu {
    char uuid[GPU_UUID_SIZE];
    uint32_t number; /* the core's; NODE_NO_NUMBER: one with instances that take jobs in its place */
    struct gpu_reading reading;
    struct gpu_window windows[NODE_WINDOWS];
    int64_t at_ns;  /* of `reading`; 0: none since the daemon started */
    int claim;      /* claim_gpu's answer */
    bool has_rival; /* another daemon's, as was told */
    struct claim_holder rival;
    bool there;
    bool seen;     /* in the latest reading, if only with an error: */
    int32_t error; /* as there, as the next */
    uint16_t refused[GPU_REFUSED_COUNT];
    uint32_t untold; /* readings in a row in which it was there, and not enough of it told to place jobs on it */
    uint32_t well;   /* readings in a row without an error */
    struct node_sample recent[NODE_RECENT]; /* a ring */
    uint64_t recent_count;                  /* ever */
    struct attribution attribution;
    int64_t others_ns;         /* when others' processes were last there, or may have been; 0: never */
    struct node_stray *strays; /* owned: of the last minute */
    size_t stray_count, stray_capacity;
    int32_t statistics[NODE_WINDOWS]; /* the configured one; -1: not measured */
    int64_t active_ns;                /* when its SMs were last observed busy, or it was first read */
    double memory_byte_seconds;
    double sm_activity_seconds;
    struct node_told told;
};

/* How the jobs of the GPU share it: as configured, or where that is `auto` as the node can. *why (static, or the
 * daemon's): why it is not shared as `auto` would; "": it is, or something else is configured. */
enum share_mode node_share_of(const struct node *node, uint32_t number, const struct gpu_reading *reading,
                              const char **why);

struct node {
    struct daemon *daemon;
    const struct node_calls *calls; /* borrowed */
    struct gpu_monitor *monitor;
    struct node_gpu **gpus; /* owned array of owned, in the order of first appearance */
    uint32_t count;
    size_t capacity;
    struct attributor *attributor;
    struct node_meter *meters; /* owned */
    uv_timer_t *flush;         /* of energy */
    bool flushing;
    char limits[NODE_LIMITS]; /* as told */
    char limits_candidate[NODE_LIMITS];
    uint32_t limits_held;
    uv_timer_t *blind; /* since the latest reading */
    bool told_of_profile, told_of_share, told_of_order;
    uint32_t caps_major;        /* of the device nodes of MIG instances; 0: there are none */
    char *mig_minors;           /* owned; their jobs; NULL: unknown */
    bool unread;                /* carma-monitor has no readings: nothing is placed */
    char problem[NODE_PROBLEM]; /* why */
    struct node_unnamed unnamed[GPU_MAX_DEVICES];
    uint32_t unnamed_count, unnamed_told;
};

struct node_gpu *node_gpu_numbered(const struct node *node, uint32_t number); /* NULL: not read yet */
struct node_gpu *node_gpu_of_uuid(const struct node *node, const char *uuid);

/* The GPU that it is a part of, or itself; NULL: not read. */
const struct node_gpu *node_physical(const struct node *node, const struct node_gpu *gpu);

/* "3, 4": the jobs on the GPU, or on the instances of a partitioned one; "" where there are none. Owned by the caller.
 */
char *node_jobs_on(const struct node *node, const struct node_gpu *gpu);

/* As the ledger counts it. It need not be told of samples while nothing waits, so no more than was free when last read.
 */
int64_t node_free_bytes(const struct node *node, const struct gpu *gpu, const struct node_gpu *entry);

/* node_energy.c */
void node_energy_read(struct node *node, const struct node_gpu *gpu); /* after its reading was taken in */
const struct energy_meter *node_energy_of(const struct node *node, const char *uuid); /* NULL: none */

/* Calls `take` for each party's part of a GPU's energy that is not stored yet: lost, and counted anew, if carmad were
 * killed. */
void node_energy_unstored(const struct node *node, void (*take)(uint64_t party, int64_t mj, void *user), void *user);
void node_energy_stop(struct node *node); /* unstored sums are handed to the store */
void node_energy_free(struct node *node);

/* node_memory.c: the jobs' memory on the GPUs, by the last reading; into a batch; and from the store, once its records
 * are applied. */
void node_follow_memory(struct node *node, int64_t at_ns);
void node_store_memory(const struct node *node, struct store_batch *batch);
int node_load_memory(struct node *node, struct error *err);

/* node_stray.c: processes of jobs on GPUs that were not given to these. Of a GPU whose reading was attributed: their
 * jobs, and a line in the log for new ones, one a minute of a job. After all GPUs: their memory there is charged to the
 * jobs. */
void node_stray_judge(const struct node *node, struct node_gpu *gpu);
void node_stray_charge(struct node *node);
int64_t node_stray_bytes(const struct node *node, uint64_t job); /* as far as the driver says, by the last reading */

/* node_devices.c: the kernel's facts about the GPUs' device nodes, which change with the driver. With each reading, so
 * that no start of a job waits for it. */
void node_read_devices(struct node *node);

/* node_evidence.c: keeps a reading for jobs that are about to end. */
void node_remember(struct node_gpu *gpu);

/* node_untold.c: before a reading of the node; of it one GPU without and one with a UUID; whether one that does not
 * tell enough is still taken for what it was; after all of them. */
void node_untold_begin(struct node *node);
void node_untold_unnamed(struct node *node, const struct gpu_reading *reading);
void node_untold_take(struct node_gpu *entry, const struct gpu_reading *reading);
bool node_untold_is_forgiven(const struct node_gpu *entry);
bool node_untold_is_open(const struct node_gpu *entry, const struct gpu_reading *reading);
void node_untold_report(struct node *node);

/* Why it is lost; NULL: it is not, or its instances take jobs in its place. `entry`, `gpu`: as known, else NULL. Owned
 * by the caller. */
char *node_why_lost(const struct node *node, const struct node_gpu *entry, const struct gpu *gpu);
json_t *node_untold_to_json(const struct node_gpu *entry, bool closed); /* besides the reason that it is */

/* GPUs with a line that the core does not know: with and without a UUID; the latter's place of a UUID, owned by the
 * caller. */
bool node_has_own_line(const struct node *node, const struct node_gpu *entry);
uint32_t node_lines_unnamed(const struct node *node, const struct node_unnamed **first);
char *node_unnamed_key(const struct node_unnamed *unnamed);
char *node_why_unnamed(const struct node_unnamed *unnamed);

/* node_closed.c: why nothing is placed on a GPU, every ground that holds in one text; NULL: jobs are, or its instances
 * take them. `entry`, `gpu`: as known, else NULL. Owned by the caller. And the same, with what keeps some jobs away, as
 * a list of grounds with who and since when (docs/formats/http.md). */
char *node_why_closed(const struct node *node, const struct node_gpu *entry, const struct gpu *gpu);
json_t *node_closed_to_json(const struct node *node, const struct node_gpu *entry, const struct gpu *gpu);

/* node_json.c */
const char *node_kind_name(uint32_t kind);
json_t *node_throttle_to_json(int64_t bits); /* of GPU_THROTTLE: their names */

/* The GPU in MIG mode that is shown before the core's GPU, its first instance; NULL: none. */
const struct node_gpu *node_heading_before(const struct node *node, uint32_t number);

/* node_series.c: readings over time (daemon/node/series.h). */
void node_series_add(const struct node *node, int64_t at_ns);

/* node_report.c: one line of the log each time something changes, none while it stays. */
void node_report_gpu(struct node *node, struct node_gpu *gpu);
void node_report_xid(const struct node *node, struct node_gpu *gpu);
void node_report_reading(struct node *node, const struct gpu_node_reading *reading);
void node_report_unused(struct node *node);
void node_report_order(struct node *node); /* at a start, if numbers are not NVML's */
void node_report_share(struct node *node); /* what the setting `share` says of GPUs that are not there */

/* An array of sentences about a GPU that the core knows; `entry` may be NULL. node_notes_tell logs what is new. */
json_t *node_notes_to_json(const struct node *node, const struct node_gpu *entry, const struct gpu *gpu);
void node_notes_tell(const struct node *node, struct node_gpu *entry);

#endif
