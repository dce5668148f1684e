/* Records: everything that enters the core and everything it decides, as flat data.
 *
 * A driver commits an input together with the decisions that follow from it in one transaction, then acts on them.
 * Applying the stored records in order rebuilds the state exactly. `record_fields` names every member, so that codecs,
 * comparisons and random generators are written once (src/api/record_json.h, tests/property).
 *
 * Units: bytes, nanoseconds of node time, permille. -1 means "not known" where a field says so. */
#ifndef CARMA_CORE_RECORD_H
#define CARMA_CORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/share.h"
#include "core/config.h"

#define RECORD_MAX_GPUS      64 /* GPUs of one job: the most of any in the public traces */
#define RECORD_UUID_SIZE     48 /* "GPU-" or "MIG-" and a UUID, NUL included */
#define RECORD_NO_GPU        UINT32_MAX
#define RECORD_MAX_SIGNAL    64  /* Linux has signals 1 to 64 */
#define PRIOR_BINS           81  /* up to 512 MiB, then eighths of each power of two, up to 512 GiB */
#define RECORD_WORKLOAD_SIZE 64  /* identifies runs of "the same" job, NUL included */
#define RECORD_GROUP_SIZE    32  /* a group's name, NUL included */
#define RECORD_WHY_SIZE      128 /* an administrator's words, NUL included */
#define ALLOTMENT_USERS      16
#define GPU_NAME_ROOM        64 /* the driver's name of a GPU, cut where it is longer; NUL included */
#define GPU_TYPE_SIZE        64 /* a job's words about the GPUs that suit it, NUL included */

enum record_type {
#define RECORD(type, name, whose, stays) RECORD_##type,
#include "core/records.def"
    RECORD_TYPE_COUNT
};

/* Why a job's process tree ended. GPU_OOM and GPU_HANDLE are retried. MPS_FAULT and GPU_ERROR, which were not the job's
 * doing, are requeued. TIMEOUT and LOST are where the job asks for it. */
enum exit_cause {
    EXIT_COMPLETED,  /* status 0 */
    EXIT_FAILED,     /* any other failure: the job's own; also a job that caused an MPS fault or an application's Xid */
    EXIT_GPU_OOM,    /* failed, and its output holds a framework's GPU out-of-memory error */
    EXIT_SIGNALLED,  /* killed by a signal that carma did not send */
    EXIT_GPU_HANDLE, /* failed, and a GPU library (cuBLAS, cuDNN) could not allocate its handle or workspace */
    EXIT_HOST_OOM,   /* the host's memory ran out: the kernel killed it, or its output says so */
    EXIT_MPS_FAULT,  /* the victim of another client's fault under MPS */
    EXIT_GPU_ERROR,  /* the GPU failed under it: a hardware Xid, fallen off the bus */
    EXIT_TIMEOUT,    /* its time limit; it ended by itself once it was warned of that, but had not done */
    EXIT_LOST,       /* nobody knows: its shepherd died, with the machine or by itself */
    EXIT_ORPHAN,     /* a lease: its processes are gone, and nobody said how they ended */
    EXIT_EXPIRED,    /* a lease: no process came to use it */
    EXIT_IDLE,       /* its idle limit: it held GPUs and did not use them */
    EXIT_CAUSE_COUNT
};

/* Where a memory request comes from. */
enum memory_source {
    SOURCE_UNKNOWN,  /* nobody knows: reserved_bytes is -1 */
    SOURCE_DECLARED, /* the submitter's --gpu-memory */
    SOURCE_RECORDED, /* a figure recorded with the job (a .rad file's measured or estimated column) */
    SOURCE_ESTIMATED,
    SOURCE_LEARNED,  /* earlier runs of the same workload (decided at placement, never submitted) */
    SOURCE_OBSERVED, /* it runs, and was observed to need this (decided then, never submitted) */
    SOURCE_RAISED,   /* it ran out of GPU memory with less (decided at its retry, never submitted) */
    SOURCE_PRIOR,    /* nobody knows: a quantile over other workloads (decided at placement, never submitted) */
    SOURCE_COUNT
};

struct record_gpu {
    uint32_t gpu; /* the core's number of the GPU: 0, 1, ... in the order of first appearance */
    char uuid[RECORD_UUID_SIZE];
    int64_t total_bytes;      /* memory that jobs can use: the driver's total without its reserve; of one that was never
                               * usable 0 */
    uint32_t share;           /* enum share_mode, as configured for it */
    bool instance;            /* a MIG instance: a process can use only one, so no job of several GPUs goes there */
    int32_t part_permille;    /* of its GPU's SMs, of a MIG instance; 0: all */
    char name[GPU_NAME_ROOM]; /* "NVIDIA A100-SXM4-40GB"; "": not known (yet) */
    uint32_t compute;         /* its compute capability: 80 is 8.0, sm_80; 0: not known */
};

#define PRIORITY_MOST 10 /* of a job, and as far below 0 */

struct record_submitted {
#define WANT(type, member, kind, from) type member;
#define WORDS(member, size)            char member[size];
#include "core/wants.def"
    char workload[RECORD_WORKLOAD_SIZE];
};

struct record_estimated {
    int64_t request_bytes;  /* memory per GPU */
    int32_t smact_permille; /* expected solo SM activity, or -1 */
};

struct record_edited {
    struct record_submitted wants; /* all that it wants now; its workload stays */
    int64_t begin_ns;              /* it does not begin before; 0: at any time; -1: as it is */
};

/* Where a job goes among those of its user that wait and have its priority. */
enum ordered_where { ORDERED_FIRST, ORDERED_LAST, ORDERED_BEFORE };

struct record_ordered {
    uint64_t last;   /* the last of its array that goes with it; the job itself: it goes alone */
    uint32_t where;  /* enum ordered_where */
    uint64_t before; /* ORDERED_BEFORE: this job */
};

/* What a job waits for. Stored as a number: a new kind goes behind DEPENDS_TIME. */
enum depends_kind {
    DEPENDS_OK,     /* that another completes */
    DEPENDS_ANY,    /* that it ends */
    DEPENDS_NOT_OK, /* that it ends otherwise: fails, is cancelled, can never run */
    DEPENDS_START,  /* that it starts, or ends before that; and delay_ns more */
    DEPENDS_TIME,   /* that the time `delay_ns` comes */
    DEPENDS_KINDS
};

struct record_depends {
    uint64_t on;   /* a job with a smaller number, which has not ended; of DEPENDS_TIME 0 */
    uint32_t kind; /* enum depends_kind */
    int64_t delay_ns;
};

enum job_command {
#define COMMAND(name, whose, from, to, order) COMMAND_##name,
#include "core/commands.def"
    COMMAND_COUNT
};

struct record_commanded {
    uint32_t command;  /* enum job_command */
    uint32_t argument; /* SIGNAL: its number; else 0 */
    uint32_t uid;      /* who said so: the job's user, or an administrator */
};

struct record_told {
    uint32_t count;
};

/* Why: 0: it can never run here. */
struct record_refused {
    uint64_t on; /* the job on which it depended in vain */
};

struct record_sample {
    uint32_t gpu;
    int64_t used_bytes;      /* of total_bytes, by anybody, in the window's last sample */
    int64_t unmanaged_bytes; /* of used_bytes, by unmanaged processes; -1: the driver cannot attribute memory */
    int32_t smact_permille;  /* the configured statistic of the window, or -1: not measured */
    int32_t smocc_permille;  /* SM occupancy, the same */
    int32_t dram_permille;   /* DRAM activity, the same */
    bool others;             /* in the window a process was there that is of no resident, or that cannot be told */
};

/* What was found about GPU memory at the end of a run, beside its cause: bits (core/verdict.h weighs them). */
enum exit_evidence {
    EVIDENCE_OUTPUT = 1, /* its output says that it ran out */
    EVIDENCE_FILE = 2,   /* a file says so that its GPU processes wrote to */
    EVIDENCE_STEPS = 4,  /* steps followed the message, or it said itself that it went on */
    EVIDENCE_ITSELF = 8, /* the process that the status is of used the GPU itself: 0 is the normal end of its work */
    EVIDENCE_FENCE = 16, /* it had come to its fence */
    EVIDENCE_LIMITED =
        32, /* it had a fence or neighbours, and the observed memory bears out that this left it too little */
    EVIDENCE_OWN = 64,     /* it ended with an error of its own: a bug */
    EVIDENCE_SERVER = 128, /* its MPS server's log says that it was refused memory shortly before its end */
    EVIDENCE_FULL = 256    /* a GPU that it used and shared was full at its end */
};

struct record_exited {
    uint32_t cause;          /* enum exit_cause */
    int32_t status;          /* exit status, or 128 + signal */
    int64_t requested_bytes; /* GPU_OOM: size of the failed allocation; -1: unknown */
    int64_t free_bytes;      /* GPU_OOM: memory free at that time; -1: unknown */
    int64_t used_bytes;  /* the most that was in use, by anybody, on one of its GPUs in the run's last samples; -1: none
                            was observed. The evidence for an out-of-memory message */
    uint32_t failed_gpu; /* GPU_ERROR: which of them failed, as the driver reports; of one GPU's instances, the
                            first; RECORD_NO_GPU: it did not say */
    uint32_t evidence;   /* bits of enum exit_evidence; 0 also from an earlier carma */
};

/* Of one of them, or both. */
struct record_forgotten {
    bool of_user; /* of user `uid` alone */
    uint32_t uid;
    char workload[RECORD_WORKLOAD_SIZE]; /* "": all */
};

struct record_share_given {
    uint32_t uid;
    uint32_t share;                /* 1 to USER_MOST_SHARE; every user begins with 1 */
    char group[RECORD_GROUP_SIZE]; /* "": he is in none */
    uint32_t group_share;          /* its share: the same; 0: he is in none */
};

/* An administrator closes a GPU, or opens it again: then without `why`. */
struct record_drained {
    uint32_t gpu; /* RECORD_NO_GPU: the node: all, and those that come later */
    uint32_t uid; /* the administrator */
    char why[RECORD_WHY_SIZE];
};

/* GPUs that are for these users alone, from a time to another (core/gpus/allotment.h). */
struct record_allotted {
    uint32_t number; /* from 1 on */
    uint32_t uid;    /* the administrator */
    int64_t from_ns, until_ns;
    uint32_t gpu_count, gpus[RECORD_MAX_GPUS];
    uint32_t user_count, users[ALLOTMENT_USERS];
    char why[RECORD_WHY_SIZE]; /* "": not said */
};

struct record_allotment_ended {
    uint32_t number;
    uint32_t uid; /* the administrator */
};

/* The last time that a GPU failed under a workload. */
struct record_failure {
    uint32_t gpu; /* RECORD_NO_GPU: none, or a run of the workload has completed since */
    int64_t at_ns;
};

/* The last job that left a GPU on which it had exceeded its grant beside others (core/need/overuse.h). */
struct record_overused {
    uint64_t job; /* 0: none */
    int64_t bytes;
    int64_t left_ns;
};

/* Who drained a GPU, or the node; zeros: it is not. */
struct record_drain {
    uint32_t uid;
    int64_t since_ns;
    char why[RECORD_WHY_SIZE];
};

/* The starts that died on a GPU (core/gpus/closing.h): stored as an array of numbers. */
#define CLOSING_STARTS    3
#define CLOSING_USERS     3
#define CLOSING_EVERYBODY UINT32_MAX
#define CLOSING_NUMBERS   (sizeof(struct closing_user) / sizeof(uint32_t))
struct record_closing {
    uint32_t count; /* of the numbers below */
    struct closing_user {
        uint32_t uid, last_s;
        uint32_t workloads[CLOSING_STARTS]; /* hashes, oldest first; 0: no more. Full: the GPU is closed to him */
    } users[CLOSING_USERS];                 /* full: it is closed to everybody */
};

struct record_share_fault {
    uint32_t gpu;
    bool faulted; /* false: it serves again */
    bool of_user; /* the server is that of user `uid` on all GPUs; `gpu` says nothing */
    uint32_t uid;
};

struct record_lost {
    bool final; /* an earlier carma, which tried no lost job again, wrote it: the job has ended with it */
};

struct record_memory {
    uint32_t gpu;
    int64_t bytes;
};

struct record_progressed {
    int64_t micro_steps_per_s; /* the mean over the last span_ns */
    int64_t span_ns;
    int64_t total; /* steps of a pass, which tells the kind of step; 0: not said */
};

struct record_placed {
    uint32_t count;
    uint32_t gpus[RECORD_MAX_GPUS];
    int64_t reserved_bytes;      /* reserved on each GPU; -1: not known (the reserve view reserves the whole GPU) */
    uint32_t reservation_source; /* enum memory_source */
    int32_t slowdown_permille;   /* as predicted for the worst of the jobs concerned; 1000: none */
    int64_t fence_bytes;         /* the driver's limit on each of its processes on each GPU; -1: none */
    uint32_t threads_percent;    /* likewise, of each GPU's threads; 0: none */
    uint32_t share; /* enum share_mode: how its processes use the GPUs; SHARE_ANY: an earlier carma did not say */
    bool shared;    /* some GPU had a resident before */
    bool retry;     /* is of the class of retries (core/waiting/order.c) */
};

struct record_reserved {
    uint32_t count;
    uint32_t gpus[RECORD_MAX_GPUS];
};

struct record_requeued {
    bool retry;
    uint32_t crashes;       /* crashes out of GPU memory, as its output said, so far */
    int64_t reserved_bytes; /* from now on */
    uint32_t reservation_source;
    bool unfenced;     /* the fence was carma's guess, and wrong: it starts without one from now on */
    uint64_t overuser; /* the job that ran it out of memory by using more than was reserved; 0: nobody did */
};

struct record_gave_up {
    bool memory; /* out of GPU memory; else the job has failed, unless the next member says more */
    uint32_t
        cause; /* enum exit_cause of its last end: EXIT_TIMEOUT, EXIT_IDLE and EXIT_LOST have states of their own */
};

/* The request for the next attempt, which will be a lease of its own. */
struct record_returned {
    uint32_t crashes;
    int64_t reserved_bytes;
    uint32_t reservation_source;
    uint64_t overuser; /* as in record_requeued */
};

struct record_moved {
    uint64_t slowed;         /* the job that is slowed beyond its bound there; it may be the one that is moved */
    int32_t slowed_permille; /* so much, of */
    int32_t bound_permille;
};

struct record_unused {
    int64_t since_ns;
};

enum idle_step { IDLE_NOT_TOLD, IDLE_WARNED, IDLE_WARNED_AGAIN, IDLE_ENDED };

struct record_idle {
    uint32_t step;   /* enum idle_step */
    int64_t ends_ns; /* it is ended then, unless it uses its GPUs */
};

struct record_shrunk {
    int64_t reserved_bytes;
    uint32_t reservation_source;
};

struct record_waited {
    int64_t until_ns;
};

/* The states of core.h's structs, member for member; their headers explain each (core/ledger.h, core/job.h,
 * core/learn/learn.h). */
struct record_state_core {
    int64_t next_decision_ns;
    uint64_t last_place;
    uint32_t round_robin_next;
    uint64_t reserved_job;
    uint32_t prior_count; /* 0: an earlier carma wrote it */
    uint32_t prior[PRIOR_BINS];
    uint32_t last_allotment;
    int64_t allotted_ns;
};

struct record_state_gpu {
    struct record_gpu gpu;
    bool share_faulted;
    uint64_t server;
    uint32_t server_uid;
#define CLOSED(member, reason) bool member;
#include "core/gpus/closed.def"
    bool measured;
    struct record_sample sample; /* but its `gpu` */
    uint64_t reserved_for;
    int64_t reserved_ns;
    uint64_t settling_job;
    int64_t closed_until_ns;
    int64_t changed_ns;
    int64_t learned_ns;
    struct record_closing closing;
    struct record_overused overused;
};

struct record_state_drained {
    uint32_t gpu; /* RECORD_NO_GPU: the node */
    struct record_drain drain;
};

struct record_state_profile {
    uint32_t uid; /* USER_UNKNOWN: an earlier carma wrote it (core/user.h) */
    char workload[RECORD_WORKLOAD_SIZE];
    uint32_t runs;
    bool tells;
    int64_t first_bytes;
    int64_t distance_sum;
    int64_t distance_squares;
    int64_t outgrown_bytes;
    int64_t peak_bytes;
    int64_t estimated_bytes;
    int32_t activity_permille;
    int64_t variance;
    struct record_failure failure;
};

struct record_state_measure { /* core/learn/pairs.h */
    uint32_t uid;
    char workload[RECORD_WORKLOAD_SIZE];
    uint32_t beside_uid;
    char beside[RECORD_WORKLOAD_SIZE]; /* "": alone */
    uint32_t share;
    uint32_t kind;
    int64_t value;
    int64_t unit;
    int64_t gpu_bytes;
    uint32_t readings;
    int64_t measured_ns;
};

struct record_state_prior {
    uint32_t uid;
    bool told;
    uint32_t count;
    uint32_t parts[PRIOR_BINS];
};

struct record_state_user {
    uint32_t uid;
    int64_t retries_ns;
    uint32_t retries;
    bool share_faulted;
    int64_t use;
    int64_t use_ns;
    uint32_t share;
    int64_t kept_ns;
    char group[RECORD_GROUP_SIZE];
    uint32_t group_share;
};

struct record_state_job {
    struct record_submitted wants;
#define STATE(part, type, member, kind, name) type member;
#include "core/job_state.def"
    struct record_failure failure;
};

struct record_state_placement {
    uint32_t gpu;
    int64_t bytes;
    bool strayed; /* the job was not given this GPU, and was observed there */
};

struct record_state_depends {
    struct record_depends depends;
    uint32_t told_as; /* enum job_state of the job on which it depends: RUNNING or an end, of which it is to be told; 0:
                         of nothing */
    int64_t told_ns;  /* since then */
};

struct record_gpu_number {
    uint32_t gpu;
};

/* Queues by number: waiting, recovering, held, undecided, shrinking, kept, vain. */
#define RECORD_QUEUES          7
#define RECORD_QUEUE_SHRINKING 4

struct record_state_queued {
    uint32_t queue;
};

struct record {
    uint32_t type; /* enum record_type */
    int64_t at_ns;
    uint64_t job; /* 0: concerns no job */
    union {
        struct core_config config; /* RECONFIGURED */
        struct record_gpu gpu;     /* GPU_BACK, GPU_LOST */
        struct record_submitted submitted;
        struct record_estimated estimated;
        struct record_edited edited;
        struct record_ordered ordered;
        struct record_depends depends;
        struct record_commanded commanded;
        struct record_told told;
        struct record_refused refused;
        struct record_sample sample;
        struct record_memory memory;  /* FIRST_USE, OBSERVED */
        struct record_memory strayed; /* the most so far in this run; RECORD_NO_GPU: on all such GPUs together, as an
                                         earlier carma wrote it */
        struct record_progressed progressed;
        struct record_exited exited;
        struct record_lost lost;
        struct record_forgotten forgotten;
        struct record_share_given share_given;
        struct record_share_fault share_fault;
        struct record_drained drained;   /* GPU_DRAINED, GPU_RESUMED */
        struct record_allotted allotted; /* GPUS_ALLOTTED, STATE_ALLOTTED */
        struct record_allotment_ended allotment_ended;
        struct record_placed placed;
        struct record_requeued requeued;
        struct record_gave_up gave_up;
        struct record_returned returned;
        struct record_reserved reserved;
        struct record_moved moved;
        struct record_unused unused;
        struct record_idle idle;
        struct record_shrunk shrunk;
        struct record_shrunk grown;
        struct record_waited waited;
        struct record_state_core state_core;
        struct record_state_gpu state_gpu;
        struct record_state_drained state_drained;
        struct record_state_profile state_profile;
        struct record_state_measure state_measure;
        struct record_state_prior state_prior;
        struct record_state_user state_user;
        struct record_state_job state_job;
        struct record_state_placement state_placement;
        struct record_state_depends state_depends;
        struct record_gpu_number state_resident;
        struct record_state_queued state_queued;
    };
};

enum field_kind { FIELD_BOOL, FIELD_U32, FIELD_I32, FIELD_I64, FIELD_U64, FIELD_TEXT, FIELD_U32_ARRAY };

/* One member of a record of one type. `size`: of a FIELD_TEXT, the room; of a FIELD_U32_ARRAY, the most elements (how
 * many count is in the record's `count` field, which comes just before). */
struct record_field {
    uint32_t type;
    const char *name;
    enum field_kind kind;
    size_t offset;
    size_t size;
};

extern const struct record_field record_fields[];
extern const size_t record_field_count;

const char *record_type_name(uint32_t type);     /* "submitted"; "unknown" out of range */
const char *exit_cause_name(uint32_t cause);     /* "completed", "failed", "gpu_oom", ... */
const char *memory_source_name(uint32_t source); /* "unknown", "declared", "recorded", "estimated" */
bool record_is_decision(uint32_t type);
bool record_is_state(uint32_t type);

/* A growable list of records. Zero-initialise. */
struct record_list {
    struct record *items; /* owned */
    size_t count;
    size_t capacity;
};

struct record *record_list_add(struct record_list *list, const struct record *record);
void record_list_release(struct record_list *list);

/* Range of the fractions that a sample or a job may carry. */
static inline bool is_reading(int32_t permille)
{
    return permille >= -1 && permille <= 1000;
}

/* 0: no bound. A bound of 1 or less would forbid every placement. */
static inline bool is_slowdown(int32_t permille)
{
    return permille == 0 || permille >= 1000;
}

/* Of waits and time-outs. */
static inline bool is_interval(int64_t ns)
{
    return ns >= 0 && ns <= INT64_C(30) * 86400 * INT64_C(1000000000);
}

#endif
