/* The node's GPUs: carma-monitor's readings become records, and data for people. */
#ifndef CARMA_DAEMON_NODE_NODE_H
#define CARMA_DAEMON_NODE_NODE_H

#include "daemon/daemon.h"

/* Its questions and reports, so that it does not depend on the folder that runs jobs. */
struct node_calls {
    uint64_t (*owner_of)(const void *daemon, pid_t pid); /* attribution.h */
    void (*was_read)(struct daemon *daemon); /* a reading was taken in; inputs are of the turn that ends with it */
};

struct node *node_new(struct daemon *daemon, const struct node_calls *calls); /* borrowed */

/* The stored energy (energy.h), once its records are applied: its owners, and how far it was counted. */
int node_load_energy(struct node *node, struct error *err);

/* Ends the watching; energy that was shared out since the last time is handed to the store, which must still be
 * open. */
void node_stop(struct node *node);
void node_free(struct node *node);

/* Starts carma-monitor; its readings become inputs. */
void node_watch(struct node *node);

/* Feeds the core the readings that it wants, as inputs of the engine's current turn. */
void node_feed_samples(struct node *node);

/* The jobs on the GPUs may have changed: from now on energy is shared among the present ones, and dcgm-exporter told of
 * them. */
void node_follow_residents(struct node *node);

/* The machine that jobs are estimated for: the configured machine profile, else that of the node's first GPU that has
 * one, else the default. It has the memory of the node's largest GPU. */
void node_machine_profile(struct node *node, struct machine_profile *profile);

/* The driver's name of the first GPU that has been read; "": none has. */
const char *node_gpu_name(const struct node *node);

/* Why the owners of the memory on the core's GPU are unknown; "": they are known. */
const char *node_unmanaged_why(const struct node *node, uint32_t number);

/* The device nodes of the job's GPUs. False: it is not known of all of them which these are. */
struct device_filter;
bool node_devices_of(const struct node *node, const struct job_view *view, struct device_filter *filter);

/* GPUs that are reserved for users, or will be: all of them, and one. */
struct record_allotted;
json_t *node_reservations_to_json(const struct node *node);
json_t *node_reservation_to_json(const struct node *node, const struct record_allotted *allotted);

/* NVML's present index of the core's GPU; -1: it was not read. */
int64_t node_index_of(const struct node *node, uint32_t number);

/* Whether one of its GPUs is in MIG mode. */
bool node_has_instances(const struct node *node);

/* Which GPUs have other numbers than NVML's indices, in words; NULL: none. With MIG instances, which are numbered too:
 * all numbers, where their order is not NVML's. Owned by the caller. */
char *node_order_text(const struct node *node);

/* Whether all of the job's GPUs have been read since the daemon has started. */
bool node_was_read(const struct node *node, const struct job_view *view);

/* The job's processes on GPUs that it was not given. */
json_t *node_strays_to_json(const struct node *node, uint64_t job);

/* The readings of a job's GPUs when its run came to its end. */
struct node_evidence {
    bool complete;      /* each of them has been read since the end, or is gone */
    int64_t used_bytes; /* the most in use, by anybody, on one of them in the run's last samples; -1: there was none */
    int64_t free_bytes; /* the least free, likewise */
    uint32_t xid;       /* that was reported during the run and shortly before its end: a GPU's own failure before an
                           application's; 0: none */
    uint32_t xid_gpu;   /* by which: the core's number */
    bool lost;          /* one of them is gone */
    uint32_t lost_gpu;
    uint32_t failed_gpu; /* lost, or with an Xid of its own; of instances of one GPU, the first; RECORD_NO_GPU: none */
};

struct node_evidence node_evidence_of(const struct node *node, const struct job_view *view, int64_t started_ns,
                                      int64_t ended_ns);

/* On how many of the job's GPUs a reading since then shows its processes; -1: on none, but not all have been read. */
int node_used_by(const struct node *node, const struct job_view *view, int64_t since_ns);

json_t *node_resident_names(const struct node *node, const struct gpu *gpu); /* the jobs there, as people name them */
json_t *node_to_json(const struct node *node);                               /* docs/formats/http.md, GET /v1/gpus */

/* The node's energy beside the jobs': idle, and unmanaged processes; all as counted, in mJ. */
struct node_energy {
    int64_t idle_mj;
    int64_t unmanaged_mj;
};
struct node_energy node_energy_of_nobody(const struct node *node);

#endif
