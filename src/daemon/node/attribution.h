/* The owners of a GPU's memory: the processes that the driver lists, each with its job.
 *
 * Where the owners are unknown (the driver hides memory or processes, e.g. from a container), the ledger must not
 * guess. The result says so and why, and the GPU is then counted by its reservations (core/ledger.h). */
#ifndef CARMA_DAEMON_NODE_ATTRIBUTION_H
#define CARMA_DAEMON_NODE_ATTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/ledger.h"
#include "gpu/reading.h"
#include "launch/owner.h"

#define ATTRIBUTION_WHY 160

/* A process of no job of ours, or of one that was not given this GPU. */
struct attribution_unmanaged {
    uint64_t job; /* 0: of none */
    bool news;    /* it was not here before */
    int32_t pid;
    uint32_t uid;
    char command[OWNER_COMMAND_SIZE];
    int64_t used_bytes; /* -1: the driver does not say */
};

/* The memory of a job's processes. */
struct attribution_share {
    uint64_t job;
    int64_t used_bytes; /* -1: the driver does not say of all of them */
};

/* One GPU's reading, attributed. */
struct attribution {
    int64_t unmanaged_bytes;   /* used by others than jobs, processes or not; -1: cannot be told. our MPS servers
                                included:   jobs cannot have their memory */
    int64_t mps_server_bytes;  /* ... of that, by those servers */
    char why[ATTRIBUTION_WHY]; /* why it cannot; "" where it can */
    uint32_t share_count;
    struct attribution_share shares[GPU_MAX_PROCESSES];
    uint32_t unmanaged_count;
    struct attribution_unmanaged unmanaged[GPU_MAX_PROCESSES];
};

struct attributor; /* remembers the processes that it has found */

#define ATTRIBUTION_MPS_SERVER UINT64_MAX

/* `owner_of`: the job whose process has this pid, or ATTRIBUTION_MPS_SERVER; 0: none of ours. Asked once for each
 * process. */
struct attributor *attributor_new(uint64_t (*owner_of)(const void *user, pid_t pid), const void *user);
void attributor_free(struct attributor *attributor);

/* Before the GPUs of a further reading of the node; forgets the processes that the last one did not list. */
void attributor_begin(struct attributor *attributor);

/* `gpu`: the core's view of the GPU that was read. */
void attributor_judge(struct attributor *attributor, const struct gpu *gpu, const struct gpu_reading *reading,
                      struct attribution *result);

/* The memory of the job's processes; 0: it has none there; -1: the driver does not say. */
int64_t attribution_of(const struct attribution *attribution, uint64_t job);

#endif
