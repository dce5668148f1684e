/* The entities that a DCGM engine can measure: GPUs and the parts of those in MIG mode, with the latest value of each
 * metric. Of this folder only. */
#ifndef CARMA_GPU_DCGM_ENTITIES_H
#define CARMA_GPU_DCGM_ENTITIES_H

#include <stddef.h>

#include "gpu/dcgm/calls.h"
#include "gpu/reading.h"

struct dcgm_value {
    int status; /* DCGM_OK; else the reason for a missing value, DCGM_NO_DATA where it only has not come yet */
    double number;
    int64_t at_us; /* since the Unix epoch */
};

struct dcgm_entity {
    struct dcgm_pair pair;
    uint32_t gpu;                            /* index of the GPU that it is, or is a part of */
    uint32_t gpu_instance, compute_instance; /* NVML's ids, of a part */
    struct dcgm_value values[GPU_METRIC_COUNT];
};

struct dcgm_gpu {
    unsigned int id; /* DCGM's */
    char uuid[GPU_UUID_SIZE];
    int64_t xid; /* the latest; 0: none */
};

struct dcgm_entities {
    uint32_t gpu_count;
    struct dcgm_gpu gpus[DCGM_MAX_GPUS];
    struct dcgm_entity *items; /* owned */
    size_t count, capacity;
};

/* Asks the engine; DCGM's status. The old entities are forgotten. */
int dcgm_entities_ask(struct dcgm_entities *entities, const struct dcgm_calls *calls, uintptr_t handle);
void dcgm_entities_release(struct dcgm_entities *entities);

/* Takes values that DCGM gave for an entity; unknown entities are passed over. */
void dcgm_entities_take(struct dcgm_entities *entities, struct dcgm_pair pair, const struct dcgm_field_value *values,
                        int count);

/* Of a GPU or an instance; NULL: DCGM does not know it. Of an instance the compute instance first, then, in *outer
 * (NULL: there is none), the GPU instance that it is in. */
struct dcgm_entity *dcgm_entities_find(const struct dcgm_entities *entities, const struct gpu_reading *reading,
                                       struct dcgm_entity **outer);

/* The field that a metric is, and the metric that a field is (GPU_METRIC_COUNT: none). */
unsigned short dcgm_metric_field(uint32_t metric);
uint32_t dcgm_field_metric(unsigned short field);

#endif
