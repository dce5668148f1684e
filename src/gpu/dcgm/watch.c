#include "gpu/dcgm/watch.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/nodetime.h"
#include "base/units.h"

#define PAUSE_FIRST_NS NS_PER_SEC
#define PAUSE_LAST_NS  (64 * NS_PER_SEC)
#define KEEP_S         30.0 /* for how long the engine keeps values */

void dcgm_pause_begin(struct dcgm_pause *pause, int64_t now_wall_ns)
{
    pause->wait_ns = pause->wait_ns ? 2 * pause->wait_ns : PAUSE_FIRST_NS;
    if (pause->wait_ns > PAUSE_LAST_NS)
        pause->wait_ns = PAUSE_LAST_NS;
    pause->until_wall_ns = now_wall_ns + nodetime_to_wall_ns(pause->wait_ns);
}

void dcgm_pause_end(struct dcgm_pause *pause)
{
    *pause = (struct dcgm_pause){0};
}

/* Whether the same call may succeed later with nothing done about it. */
static bool may_pass(int status)
{
    switch (status) {
    case DCGM_OK:
    case DCGM_NOT_SUPPORTED:
    case DCGM_NO_PERMISSION:
    case DCGM_GPU_NOT_SUPPORTED:
    case DCGM_REQUIRES_ROOT:
    case DCGM_PROFILING_NOT_SUPPORTED:
    case DCGM_PROFILING_MULTI_PASS:
        return false;
    default:
        return true;
    }
}

int64_t dcgm_epoch_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* An engine's groups have names of their own, also among those of other programs. */
static void unique_name(char name[static 64])
{
    static unsigned int made;

    snprintf(name, 64, "carma-%d-%u", (int)getpid(), made++);
}

static int make_field_group(const struct dcgm_watches *watches, const unsigned short *fields, int count, uintptr_t *id)
{
    char name[64];

    unique_name(name);
    return watches->calls->field_group_create(watches->handle, count, fields, name, id);
}

/* The index of the set of these fields, made where there is none. */
static int find_set(struct dcgm_watches *watches, const unsigned short *fields, int count, uint32_t *index)
{
    struct dcgm_field_set *set;
    int status;

    for (*index = 0; *index < watches->set_count; ++*index) {
        set = &watches->sets[*index];
        if (set->count == count && memcmp(set->fields, fields, (size_t)count * sizeof *fields) == 0)
            return DCGM_OK;
    }
    set = &watches->sets[*index]; /* every half of every half fits */
    status = make_field_group(watches, fields, count, &set->id);
    if (status != DCGM_OK)
        return status;
    memcpy(set->fields, fields, (size_t)count * sizeof *fields);
    set->count = count;
    watches->set_count++;
    return DCGM_OK;
}

/* Where they cannot be measured at once, each half by itself; the first status that stayed. */
static int watch_fields(struct dcgm_watches *watches, struct dcgm_watch *watch, const unsigned short *fields, int count)
{
    uint32_t set;
    int status = find_set(watches, fields, count, &set), rest;

    if (status == DCGM_OK)
        status =
            watches->calls->watch(watches->handle, watch->group, watches->sets[set].id, watches->period_us, KEEP_S, 0);
    if (status == DCGM_OK)
        watch->sets[watch->set_count++] = set;
    if (status != DCGM_PROFILING_MULTI_PASS || count == 1)
        return status;
    status = watch_fields(watches, watch, fields, (count + 1) / 2);
    rest = watch_fields(watches, watch, fields + (count + 1) / 2, count / 2);
    return status != DCGM_OK ? status : rest;
}

/* A group of the GPU and its parts. */
static int make_group(const struct dcgm_watches *watches, struct dcgm_watch *watch,
                      const struct dcgm_entities *entities, uint32_t gpu)
{
    char name[64];
    int status;

    unique_name(name);
    status = watches->calls->group_create(watches->handle, DCGM_GROUP_EMPTY, name, &watch->group);
    for (size_t i = 0; status == DCGM_OK && i < entities->count; i++) {
        const struct dcgm_entity *entity = &entities->items[i];
        if (entity->gpu == gpu)
            status = watches->calls->group_add(watches->handle, watch->group, entity->pair.group, entity->pair.id);
    }
    watch->grouped = status == DCGM_OK;
    return status;
}

void dcgm_watch_again(struct dcgm_watches *watches, const struct dcgm_entities *entities, uint32_t gpu)
{
    struct dcgm_watch *watch = &watches->gpus[gpu];
    unsigned short fields[GPU_METRIC_COUNT];

    for (uint32_t i = 0; i < watch->set_count; i++)
        watches->calls->unwatch(watches->handle, watch->group, watches->sets[watch->sets[i]].id);
    watch->set_count = 0;
    watch->since_us = dcgm_epoch_us();
    watch->status = watch->grouped ? DCGM_OK : make_group(watches, watch, entities, gpu);
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        fields[metric] = dcgm_metric_field(metric);
    if (watch->status == DCGM_OK)
        watch->status = watch_fields(watches, watch, fields, GPU_METRIC_COUNT);
    if (may_pass(watch->status))
        dcgm_pause_begin(&watch->pause, nodetime_monotonic_wall_ns());
    else
        watch->pause.until_wall_ns = 0;
    /* Best had, not needed: NVML tells of Xids, too. */
    if (watch->grouped && watches->xid_set)
        watches->calls->watch(watches->handle, watch->group, watches->xid_set, watches->period_us, KEEP_S, 1);
}

void dcgm_watches_begin(struct dcgm_watches *watches, const struct dcgm_calls *calls, uintptr_t handle,
                        int64_t period_us, const struct dcgm_entities *entities)
{
    const unsigned short xid = DCGM_FIELD_XID;

    *watches = (struct dcgm_watches){.calls = calls, .handle = handle, .period_us = period_us};
    if (make_field_group(watches, &xid, 1, &watches->xid_set) != DCGM_OK)
        watches->xid_set = 0;
    for (uint32_t gpu = 0; gpu < entities->gpu_count; gpu++)
        dcgm_watch_again(watches, entities, gpu);
}

static int take_values(int group, unsigned int id, struct dcgm_field_value *values, int count, void *user)
{
    dcgm_entities_take(user, (struct dcgm_pair){group, id}, values, count);
    return 0;
}

static bool connection_failed(int status)
{
    return status == DCGM_CONNECTION_NOT_VALID || status == DCGM_UNINITIALIZED;
}

int dcgm_watches_read(struct dcgm_watches *watches, struct dcgm_entities *entities)
{
    int64_t now_wall_ns = nodetime_monotonic_wall_ns();

    for (uint32_t gpu = 0; gpu < entities->gpu_count; gpu++) {
        struct dcgm_watch *watch = &watches->gpus[gpu];

        if (watch->pause.until_wall_ns && now_wall_ns >= watch->pause.until_wall_ns)
            dcgm_watch_again(watches, entities, gpu);
        if (connection_failed(watch->status))
            return watch->status;
        for (uint32_t i = 0; i <= watch->set_count; i++) {
            uintptr_t set = i < watch->set_count ? watches->sets[watch->sets[i]].id : watches->xid_set;
            int status;

            if (!watch->grouped || !set)
                continue;
            status = watches->calls->latest(watches->handle, watch->group, set, take_values, entities);
            if (connection_failed(status))
                return status;
        }
    }
    return DCGM_OK;
}
