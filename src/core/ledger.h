/* The ledger: each GPU's residents, and how much memory is free in each of the two views; what jobs hold of the node's
 * other resources (resources.def). */
#ifndef CARMA_CORE_LEDGER_H
#define CARMA_CORE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/job.h"

struct core;

/* Unmanaged memory up to this much does not keep a GPU from being idle: contexts of display servers and monitors. */
#define GPU_IDLE_UNMANAGED_BYTES (INT64_C(512) << 20)

/* A job whose memory is never observed (it does not use its GPU) keeps the GPU closed for at most this many settle
 * times. */
#define GPU_SETTLE_LIMIT 10

/* What other jobs may have of a GPU that is reserved (qualify.c): a cache. */
struct beside_reserved {
    uint64_t applied; /* core.applied then */
    int64_t bytes;    /* negative: nobody may come */
    uint64_t bands;   /* of their SM activity (slowdown.h) */
};

struct gpu {
    uint32_t number;
    char uuid[RECORD_UUID_SIZE];
    int64_t total_bytes;
    uint32_t share;        /* enum share_mode, as configured: SHARE_ANY counts as SHARE_TIME_SLICE */
    bool instance;         /* of MIG: a GPU of its own, but that a process can use only one */
    int32_t part_permille; /* of the physical GPU's SMs; 1000: it is whole */
    char name[GPU_NAME_ROOM];
    uint32_t compute;   /* as in struct record_gpu */
    bool share_faulted; /* its MPS server does not serve */
    uint64_t server; /* the job that began its MPS server, which has clients here or on another of its GPUs; 0: none */
    uint32_t server_uid; /* the job that it belongs to */
#define CLOSED(member, reason) bool member;
#include "core/gpus/closed.def"
    bool measured;           /* the fields below hold a sample's values */
    int64_t used_bytes;      /* by anybody */
    int64_t unmanaged_bytes; /* of it by nobody of ours; -1: the driver cannot attribute memory */
    int32_t smact_permille;  /* -1: not measured */
    int32_t smocc_permille;  /* the same */
    int32_t dram_permille;   /* the same */
    bool others;             /* processes of no resident were there, or may have been: its readings teach nothing */
    uint64_t reserved_for;   /* the job that has it reserved; 0: none */
    int64_t reserved_ns;     /* since when */
    uint64_t settling_job;   /* the job whose memory is not settled yet; 0: none */
    int64_t closed_until_ns;
    int64_t changed_ns; /* when a resident last came or went */
    int64_t learned_ns; /* when a sample last taught something about the residents */
    struct record_closing closing;
    struct record_overused overused;
    struct record_drain drain; /* drained: by whom and why; of the node core->drain */
    /* Caches, not state: a list by `opened`, latest first, of GPUs that may have more free memory than before. */
    uint64_t opened;           /* core.openings then */
    int64_t opened_settled_ns; /* the closed_until_ns that has passed and was noted */
    int64_t avoided_until_ns;  /* the first job that waits and avoids it (gpus/closing.h); 0: none does */
    struct gpu *opened_before, *opened_after;
    int64_t reserved_bytes;          /* by the residents; -1: one of them has an unknown reservation */
    const struct job *exclusive_job; /* the resident that holds it alone, or NULL */
    uint64_t residents_version;      /* raised where they, or what is known of their activity, change */
    struct beside_reserved beside_reserved;
    struct slowdown_takers *takers; /* owned: a cache (slowdown.h); NULL: none */
    struct job **residents;         /* owned array of borrowed jobs, in the order of arrival */
    uint32_t resident_count;
    size_t resident_capacity;
};

/* The residents' reservations: the sum of max(reservation, observed); a resident with an unknown need takes all. */
int64_t gpu_reserved_bytes(const struct gpu *gpu);

/* Free memory in the configured view, at least 0:
 *   monitor: total - used
 *   reserve: total - unmanaged - reserved - margin
 *   reserve, where memory is not attributed: total - max(used, reserved) - margin */
int64_t gpu_free_bytes(const struct core *core, const struct gpu *gpu);

/* Memory that a job alone on the GPU could have: total - unmanaged. */
int64_t gpu_idle_bytes(const struct gpu *gpu);

/* Whether it takes somebody's next job, as far as that is not a matter of the job (gpus/closed.def). */
bool gpu_is_open(const struct gpu *gpu);

/* Why it does not: a reason_code; REASON_NONE: it does. */
uint32_t gpu_closed_reason(const struct gpu *gpu);

/* What jobs hold of the node's other resources; a job that is placed takes its part, one that leaves its GPUs, or ends
 * without any, gives it back. */
const struct core_resources *core_resources_held(const struct core *core);
void resources_taken(struct core *core, const struct record_submitted *wants);
void resources_left(struct core *core, const struct record_submitted *wants);

/* Who drained it, and why; NULL: the node. */
const struct record_drain *gpu_drain(const struct core *core, const struct gpu *gpu);

/* Open, measured, without residents and without unmanaged memory worth mentioning. */
bool gpu_idle(const struct gpu *gpu);

/* Whether its residents alone cause its readings, as far as is known. */
bool gpu_is_of_residents(const struct gpu *gpu);

/* The job that holds it alone, since it is exclusive or the GPU is configured so; or NULL. */
const struct job *gpu_exclusive_resident(const struct gpu *gpu);

/* A new job's memory is still to be observed or to settle at now_ns. Not for longer than that can take: the clock may
 * have been set back since. */
bool gpu_settling(const struct core *core, const struct gpu *gpu, int64_t now_ns);

void gpu_add_resident(struct gpu *gpu, struct job *job, int64_t at_ns);
void gpu_remove_resident(struct core *core, struct gpu *gpu, struct job *job, int64_t at_ns);

/* A resident's reservation, or its observed memory, has changed. */
void gpu_rebook(struct gpu *gpu);

/* The job whose memory has yet to settle there; 0: none. */
void gpu_set_settling(struct core *core, struct gpu *gpu, uint64_t job);

/* Notes that the GPU may now take a job that it could not take before. */
void gpu_opens(struct core *core, struct gpu *gpu);
void gpus_open(struct core *core); /* each of them */

struct job_placement *job_placement_on(const struct job *job, uint32_t gpu); /* NULL: it is not there */

/* The most that the job was observed to hold on a GPU that it was not given; 0: nothing. And the same is noted: the sum
 * over all such GPUs is returned. */
int64_t job_stray_bytes_on(const struct job *job, uint32_t gpu);
int64_t job_strays(struct job *job, uint32_t gpu, int64_t bytes);

/* The most that the job was observed to hold, in this run, on one of its GPUs. */
int64_t job_peak_bytes(const struct job *job);

#endif
