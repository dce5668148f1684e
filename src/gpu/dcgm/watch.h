/* The questions to a DCGM engine, GPU by GPU. Of this folder only. */
#ifndef CARMA_GPU_DCGM_WATCH_H
#define CARMA_GPU_DCGM_WATCH_H

#include <stdbool.h>

#include "gpu/dcgm/entities.h"

/* Waiting that doubles with each failure. */
struct dcgm_pause {
    int64_t until_wall_ns; /* monotonic; 0: not waiting */
    int64_t wait_ns;       /* node time */
};

void dcgm_pause_begin(struct dcgm_pause *pause, int64_t now_wall_ns);
void dcgm_pause_end(struct dcgm_pause *pause);

struct dcgm_field_set {
    unsigned short fields[GPU_METRIC_COUNT];
    int count;
    uintptr_t id;
};

/* The watches on one GPU and its parts. */
struct dcgm_watch {
    uintptr_t group;
    bool grouped;
    uint32_t sets[GPU_METRIC_COUNT]; /* indices of the field sets that are watched */
    uint32_t set_count;
    int status; /* DCGM_OK: all metrics are watched; else why some or all are not */
    int64_t since_us;
    struct dcgm_pause pause; /* before the next try, where `status` may pass */
    int zero_looks;          /* in a row that showed nothing but zeros after an Xid, though kernels ran */
};

struct dcgm_watches {
    const struct dcgm_calls *calls;
    uintptr_t handle;
    int64_t period_us; /* wall */
    struct dcgm_field_set sets[2 * GPU_METRIC_COUNT];
    uint32_t set_count;
    uintptr_t xid_set;
    struct dcgm_watch gpus[DCGM_MAX_GPUS];
};

/* Begins to watch every GPU of `entities`; each one's status says how that went. */
void dcgm_watches_begin(struct dcgm_watches *watches, const struct dcgm_calls *calls, uintptr_t handle,
                        int64_t period_us, const struct dcgm_entities *entities);

/* Watches a GPU anew. */
void dcgm_watch_again(struct dcgm_watches *watches, const struct dcgm_entities *entities, uint32_t gpu);

/* Brings the latest values into `entities`, and tries again the calls that had to wait. DCGM_OK, or the status with
 * which the connection failed. */
int dcgm_watches_read(struct dcgm_watches *watches, struct dcgm_entities *entities);

int64_t dcgm_epoch_us(void); /* now, as DCGM counts: microseconds since 1970 */

#endif
