#include "gpu/dcgm/entities.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define ROUNDING       0.01 /* a share this much above 1 is still taken for 1 */
#define TRAFFIC_MOST   1e12 /* bytes a second: more than any link has */
#define NONE           UINT32_MAX
#define UUID_PERIOD_US (30 * 1000000LL) /* it does not change */

unsigned short dcgm_metric_field(uint32_t metric)
{
    static const unsigned short fields[GPU_METRIC_COUNT] = {
        [GPU_SM_ACTIVITY] = DCGM_FIELD_SM_ACTIVITY,
        [GPU_SM_OCCUPANCY] = DCGM_FIELD_SM_OCCUPANCY,
        [GPU_DRAM_ACTIVITY] = DCGM_FIELD_DRAM_ACTIVITY,
        [GPU_TENSOR_ACTIVITY] = DCGM_FIELD_TENSOR_ACTIVITY,
        [GPU_PCIE_TX] = DCGM_FIELD_PCIE_TX,
        [GPU_PCIE_RX] = DCGM_FIELD_PCIE_RX,
        [GPU_GRAPHICS_ACTIVITY] = DCGM_FIELD_GRAPHICS_ACTIVITY,
    };

    return fields[metric];
}

uint32_t dcgm_field_metric(unsigned short field)
{
    uint32_t metric = 0;

    while (metric < GPU_METRIC_COUNT && dcgm_metric_field(metric) != field)
        metric++;
    return metric;
}

static int blank_status(double above)
{
    if (above == DCGM_BLANK_NOT_SUPPORTED)
        return DCGM_NOT_SUPPORTED;
    return above == DCGM_BLANK_NOT_PERMITTED ? DCGM_NO_PERMISSION : DCGM_NO_DATA;
}

/* The value of a metric's field, or why there is none. */
static struct dcgm_value read_metric(uint32_t metric, const struct dcgm_field_value *from)
{
    struct dcgm_value value = {.status = from->status, .at_us = from->at_us};
    bool traffic = metric == GPU_PCIE_TX || metric == GPU_PCIE_RX;
    double most = traffic ? TRAFFIC_MOST : 1 + ROUNDING;

    if (value.status != DCGM_OK)
        return value;
    if (from->type == DCGM_TYPE_INT64 && from->value.int64 >= DCGM_BLANK_INT64)
        value.status = blank_status((double)(from->value.int64 - DCGM_BLANK_INT64));
    else if (from->type == DCGM_TYPE_DOUBLE && from->value.number >= DCGM_BLANK_DOUBLE)
        value.status = blank_status(from->value.number - DCGM_BLANK_DOUBLE);
    else if (from->type == DCGM_TYPE_INT64)
        value.number = (double)from->value.int64;
    else if (from->type == DCGM_TYPE_DOUBLE)
        value.number = from->value.number;
    else
        value.status = DCGM_NO_DATA;
    if (value.status == DCGM_OK && !(value.number >= 0 && value.number <= most)) /* nor a NaN */
        value.status = DCGM_NO_DATA;
    if (!traffic)
        value.number = fmin(value.number, 1);
    return value;
}

static struct dcgm_entity *find_pair(const struct dcgm_entities *entities, struct dcgm_pair pair)
{
    for (size_t i = 0; i < entities->count; i++)
        if (entities->items[i].pair.group == pair.group && entities->items[i].pair.id == pair.id)
            return &entities->items[i];
    return NULL;
}

void dcgm_entities_take(struct dcgm_entities *entities, struct dcgm_pair pair, const struct dcgm_field_value *values,
                        int count)
{
    struct dcgm_entity *entity = find_pair(entities, pair);

    for (int i = 0; entity && i < count; i++) {
        const struct dcgm_field_value *from = &values[i];
        struct dcgm_gpu *gpu = &entities->gpus[entity->gpu];
        uint32_t metric = dcgm_field_metric(from->field);

        if (metric < GPU_METRIC_COUNT)
            entity->values[metric] = read_metric(metric, from);
        else if (from->status != DCGM_OK || pair.group != DCGM_ENTITY_GPU)
            continue;
        else if (from->field == DCGM_FIELD_UUID && from->type == DCGM_TYPE_STRING)
            snprintf(gpu->uuid, sizeof gpu->uuid, "%.*s", (int)sizeof gpu->uuid - 1, from->value.text);
        else if (from->field == DCGM_FIELD_XID && from->type == DCGM_TYPE_INT64 && from->value.int64 < DCGM_BLANK_INT64)
            gpu->xid = from->value.int64;
    }
}

static struct dcgm_entity *add(struct dcgm_entities *entities, struct dcgm_pair pair, uint32_t gpu)
{
    struct dcgm_entity *entity;

    array_reserve(entities->items, entities->capacity, entities->count + 1);
    entity = &entities->items[entities->count++];
    *entity = (struct dcgm_entity){.pair = pair, .gpu = gpu, .gpu_instance = NONE, .compute_instance = NONE};
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        entity->values[metric].status = DCGM_NO_DATA;
    return entity;
}

static int take_values(int group, unsigned int id, struct dcgm_field_value *values, int count, void *user)
{
    dcgm_entities_take(user, (struct dcgm_pair){group, id}, values, count);
    return 0;
}

static int ask_uuids(struct dcgm_entities *entities, const struct dcgm_calls *calls, uintptr_t handle)
{
    const unsigned short field = DCGM_FIELD_UUID;
    uintptr_t group, field_group;
    char name[64];
    int status;

    snprintf(name, sizeof name, "carma-%d-uuid", (int)getpid());
    status = calls->group_create(handle, DCGM_GROUP_EMPTY, name, &group);
    for (uint32_t i = 0; status == DCGM_OK && i < entities->gpu_count; i++)
        status = calls->group_add(handle, group, DCGM_ENTITY_GPU, entities->gpus[i].id);
    if (status == DCGM_OK)
        status = calls->field_group_create(handle, 1, &field, name, &field_group);
    if (status == DCGM_OK)
        status = calls->watch(handle, group, field_group, UUID_PERIOD_US, 0, 1);
    if (status == DCGM_OK)
        status = calls->update(handle, 1);
    if (status == DCGM_OK)
        status = calls->latest(handle, group, field_group, take_values, entities);
    if (status == DCGM_OK)
        calls->unwatch(handle, group, field_group);
    return status;
}

/* Parents come before their parts in DCGM's list; a part of an unknown parent is passed over. */
static int ask_parts(struct dcgm_entities *entities, const struct dcgm_calls *calls, uintptr_t handle)
{
    CLEANUP(free_ptr) struct dcgm_mig_hierarchy *hierarchy = xcalloc(1, sizeof *hierarchy);
    int status;

    if (!calls->hierarchy)
        return DCGM_OK;
    hierarchy->version = DCGM_VERSION(struct dcgm_mig_hierarchy, 2);
    status = calls->hierarchy(handle, hierarchy);
    if (status == DCGM_NOT_SUPPORTED || status == DCGM_NO_DATA)
        return DCGM_OK;
    for (size_t i = 0; status == DCGM_OK && i < hierarchy->count && i < array_size(hierarchy->parts); i++) {
        const struct dcgm_mig_part *part = &hierarchy->parts[i];
        const struct dcgm_entity *parent = find_pair(entities, part->parent);
        uint32_t gpu, gpu_instance;
        struct dcgm_entity *entity;

        if (!parent || find_pair(entities, part->entity))
            continue;
        gpu = parent->gpu;
        gpu_instance = part->entity.group == DCGM_ENTITY_GPU_INSTANCE ? part->nvml_gpu_instance : parent->gpu_instance;
        entity = add(entities, part->entity, gpu);
        entity->gpu_instance = gpu_instance;
        if (part->entity.group == DCGM_ENTITY_COMPUTE_INSTANCE)
            entity->compute_instance = part->nvml_compute_instance;
    }
    return status;
}

int dcgm_entities_ask(struct dcgm_entities *entities, const struct dcgm_calls *calls, uintptr_t handle)
{
    unsigned int ids[DCGM_MAX_GPUS];
    int count = 0, status = calls->gpus(handle, ids, &count);

    entities->gpu_count = 0;
    entities->count = 0;
    if (status != DCGM_OK)
        return status;
    for (int i = 0; i < count && i < DCGM_MAX_GPUS; i++) {
        entities->gpus[i] = (struct dcgm_gpu){.id = ids[i]};
        add(entities, (struct dcgm_pair){DCGM_ENTITY_GPU, ids[i]}, (uint32_t)i);
        entities->gpu_count++;
    }
    if (entities->gpu_count == 0)
        return DCGM_OK;
    status = ask_uuids(entities, calls, handle);
    return status == DCGM_OK ? ask_parts(entities, calls, handle) : status;
}

void dcgm_entities_release(struct dcgm_entities *entities)
{
    free_ptr(&entities->items);
    *entities = (struct dcgm_entities){0};
}

struct dcgm_entity *dcgm_entities_find(const struct dcgm_entities *entities, const struct gpu_reading *reading,
                                       struct dcgm_entity **outer)
{
    bool instance = reading->kind == GPU_INSTANCE;
    const char *uuid = instance ? reading->parent : reading->uuid;
    struct dcgm_entity *found = NULL;

    *outer = NULL;
    for (size_t i = 0; i < entities->count; i++) {
        struct dcgm_entity *entity = &entities->items[i];
        bool same = strcmp(entities->gpus[entity->gpu].uuid, uuid) == 0;

        if (!same || (entity->pair.group == DCGM_ENTITY_GPU) == instance)
            continue;
        if (!instance)
            return entity;
        if (entity->gpu_instance != reading->gpu_instance)
            continue;
        if (entity->pair.group == DCGM_ENTITY_GPU_INSTANCE)
            *outer = entity;
        else if (entity->compute_instance == reading->compute_instance)
            found = entity;
    }
    return found ? found : *outer;
}
