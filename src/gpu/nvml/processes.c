#include "gpu/nvml/processes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PID_LIMIT      4194304 /* PID_MAX_LIMIT of 64-bit kernels: pids are below it */
#define FIRST_ROOM     32
#define LAST_ROOM      8192 /* processes on one GPU; a list that wants more is not trusted */
#define ENTRY_ROOM     64
#define GROWTH_RETRIES 8

/* Some drivers wrote 32 bytes for each 24-byte entry of _v3, some 16. So the buffer is larger than the layout asks for.
 * It is zeroed, so that unwritten entries are recognised. */
_Static_assert(ENTRY_ROOM >= 2 * sizeof(struct nvml_process_info), "no slack for a driver's longer entries");

struct list {
    struct gpu_process *items; /* owned */
    size_t count;
    size_t capacity;
};

static void list_release(struct list *list)
{
    free(list->items);
}

static int call(const struct nvml_list_calls *calls, int version, struct nvml_device *device, unsigned int *count,
                void *entries)
{
    if (version == 3)
        return calls->v3 ? calls->v3(device, count, entries) : NVML_ERROR_FUNCTION_NOT_FOUND;
    if (version == 2)
        return calls->v2 ? calls->v2(device, count, entries) : NVML_ERROR_FUNCTION_NOT_FOUND;
    return calls->v1 ? calls->v1(device, count, entries) : NVML_ERROR_FUNCTION_NOT_FOUND;
}

/* Calls with a buffer that grows until the list fits: processes may come between two tries. */
static int fetch(const struct nvml_list_calls *calls, int version, struct nvml_device *device, unsigned char **entries,
                 unsigned int *count)
{
    unsigned int room = FIRST_ROOM;
    int rc = NVML_ERROR_INSUFFICIENT_SIZE;

    for (int try = 0; try < GROWTH_RETRIES && rc == NVML_ERROR_INSUFFICIENT_SIZE && room <= LAST_ROOM; try++) {
        free_ptr(entries);
        *entries = xcalloc(room, ENTRY_ROOM);
        *count = room;
        rc = call(calls, version, device, count, *entries);
        if (rc == NVML_SUCCESS && *count > room)
            return NVML_ERROR_UNKNOWN;
        room = *count > room ? *count + FIRST_ROOM : 2 * room;
    }
    return rc;
}

/* The request. */
struct query {
    struct nvml_device *device;
    int64_t memory_bytes;
    const struct nvml_instance_ids *only; /* or NULL: all processes */
    bool named;                           /* `only` those that the driver says are its */
};

enum { OTHERS, OURS, UNKNOWN };

/* The process's owner. The handle of an instance lists its own, but drivers differ in whether they then name it. */
static int whose(const struct query *query, const unsigned char *entry, int version)
{
    int unnamed = query->named ? UNKNOWN : OURS;
    struct nvml_process_info info;

    if (!query->only)
        return OURS;
    if (version == 1)
        return unnamed;
    memcpy(&info, entry, sizeof info);
    if (info.gpu_instance_id == NVML_NO_INSTANCE)
        return unnamed;
    if (info.gpu_instance_id != query->only->gpu)
        return OTHERS;
    if (info.compute_instance_id == NVML_NO_INSTANCE)
        return unnamed;
    return info.compute_instance_id == query->only->compute ? OURS : OTHERS;
}

/* Appends the entries, unless one of them cannot be: then the driver's layout is not the one we read it by. */
static bool append(struct list *list, const unsigned char *entries, unsigned int count, int version, bool mps,
                   const struct query *query)
{
    size_t stride = version == 1 ? sizeof(struct nvml_process_info_v1) : sizeof(struct nvml_process_info);
    size_t before = list->count;

    array_reserve(list->items, list->capacity, list->count + count);
    for (unsigned int i = 0; i < count; i++) {
        struct nvml_process_info_v1 entry; /* the newer layout begins with it */
        int owner = whose(query, entries + i * stride, version);
        bool told, possible;
        memcpy(&entry, entries + i * stride, sizeof entry);
        told = entry.used_bytes != NVML_VALUE_NOT_AVAILABLE;
        possible = entry.pid > 0 && entry.pid < PID_LIMIT && (!told || entry.used_bytes <= INT64_MAX);
        if (owner == OURS && told && query->memory_bytes >= 0)
            possible &= entry.used_bytes <= (unsigned long long)query->memory_bytes;
        if (!possible || owner == UNKNOWN) {
            list->count = before;
            return false;
        }
        if (owner == OURS)
            list->items[list->count++] = (struct gpu_process){
                .pid = (int32_t)entry.pid, .mps = mps, .used_bytes = told ? (int64_t)entry.used_bytes : -1};
    }
    return true;
}

/* Appends one of the lists by the newest version that works. */
static int read_list(const struct nvml_list_calls *calls, bool mps, const struct query *query, struct list *list)
{
    int rc = NVML_ERROR_FUNCTION_NOT_FOUND;

    for (int version = 3; version >= 1; version--) {
        CLEANUP(free_ptr) unsigned char *entries = NULL;
        unsigned int count = 0;
        int this_rc = fetch(calls, version, query->device, &entries, &count);
        if (this_rc == NVML_SUCCESS && !append(list, entries, count, version, mps, query))
            this_rc = NVML_ERROR_UNKNOWN;
        if (this_rc != NVML_ERROR_FUNCTION_NOT_FOUND)
            rc = this_rc;
        if (rc != NVML_ERROR_FUNCTION_NOT_FOUND && rc != NVML_ERROR_ARGUMENT_VERSION_MISMATCH &&
            rc != NVML_ERROR_NOT_SUPPORTED && rc != NVML_ERROR_UNKNOWN)
            break;
    }
    return rc;
}

static int by_pid(const void *left, const void *right)
{
    const struct gpu_process *a = left, *b = right;

    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Drivers list an MPS client in either list or in both: it is one process, and its memory counts once. */
static void merge(struct list *list)
{
    size_t kept = 0;

    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_pid);
    for (size_t i = 0; i < list->count; i++) {
        struct gpu_process *last = kept ? &list->items[kept - 1] : NULL;
        const struct gpu_process *item = &list->items[i];
        if (last && last->pid == item->pid) {
            last->mps |= item->mps;
            if (item->used_bytes > last->used_bytes)
                last->used_bytes = item->used_bytes;
        } else {
            list->items[kept++] = *item;
        }
    }
    list->count = kept;
}

static int read_lists(const struct nvml_calls *calls, const struct query *query, struct gpu_reading *reading)
{
    CLEANUP(list_release) struct list list = {0};
    int rc = read_list(&calls->compute, false, query, &list);
    int mps_rc;

    if (rc != NVML_SUCCESS)
        return rc;
    mps_rc = read_list(&calls->mps, true, query, &list);
    if (mps_rc != NVML_SUCCESS && mps_rc != NVML_ERROR_FUNCTION_NOT_FOUND && mps_rc != NVML_ERROR_NOT_SUPPORTED)
        return mps_rc; /* there may be MPS clients that we do not see */
    merge(&list);
    reading->process_count = (uint32_t)list.count;
    if (list.count)
        memcpy(reading->processes, list.items,
               (list.count < GPU_MAX_PROCESSES ? list.count : GPU_MAX_PROCESSES) * sizeof *list.items);
    reading->valid |= GPU_HAS_PROCESSES;
    return NVML_SUCCESS;
}

int nvml_processes_read(const struct nvml_calls *calls, struct nvml_device *device, int64_t memory_bytes,
                        struct gpu_reading *reading)
{
    return read_lists(calls, &(struct query){.device = device, .memory_bytes = memory_bytes}, reading);
}

int nvml_processes_read_instance(const struct nvml_calls *calls, struct nvml_device *instance,
                                 struct nvml_device *parent, const struct nvml_instance_ids *ids, int64_t memory_bytes,
                                 struct gpu_reading *reading)
{
    struct query query = {.device = instance, .memory_bytes = memory_bytes, .only = ids};
    int rc = read_lists(calls, &query, reading);

    if (rc == NVML_SUCCESS || nvml_device_failed(rc))
        return rc;
    query.device = parent;
    query.named = true;
    return read_lists(calls, &query, reading);
}
