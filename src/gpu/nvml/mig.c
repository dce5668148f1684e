#include "gpu/nvml/mig.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "gpu/nvml/queries.h"

#define INDEX_LIMIT 64 /* instances of one GPU that are looked for; there are 7 at most so far */

static struct nvml_instance *instance_of(struct nvml_mig *mig, const char *uuid)
{
    struct nvml_instance *instance;

    for (size_t i = 0; i < mig->count; i++)
        if (strcmp(mig->instances[i].uuid, uuid) == 0)
            return &mig->instances[i];
    array_reserve(mig->instances, mig->capacity, mig->count + 1);
    instance = &mig->instances[mig->count++];
    *instance = (struct nvml_instance){0};
    snprintf(instance->uuid, sizeof instance->uuid, "%s", uuid);
    return instance;
}

/* Drivers name an instance "NVIDIA A100-SXM4-40GB MIG 1g.5gb". Where one does not, its profile is put together as
 * nvidia-smi does: slices of compute, of the GPU, and memory in GiB, rounded up. */
static void name_instance(const struct nvml_calls *calls, struct nvml_instance *instance, const char *parent_name)
{
    struct nvml_attributes attributes = {0};
    char name[NVML_NAME_ROOM] = "", compute[16] = "";

    if (calls->name && calls->name(instance->handle, name, sizeof name) == NVML_SUCCESS) {
        name[sizeof name - 1] = '\0';
        if (strstr(name, "MIG")) {
            snprintf(instance->name, sizeof instance->name, "%s", name);
            return;
        }
    }
    if (!calls->attributes || calls->attributes(instance->handle, &attributes) != NVML_SUCCESS ||
        attributes.memory_mib > UINT32_MAX) {
        snprintf(instance->name, sizeof instance->name, "%.80s MIG", parent_name);
        return;
    }
    if (attributes.compute_instance_slices != attributes.gpu_instance_slices)
        snprintf(compute, sizeof compute, "%uc.", attributes.compute_instance_slices);
    snprintf(instance->name, sizeof instance->name, "%.50s MIG %s%ug.%llugb", parent_name, compute,
             attributes.gpu_instance_slices, (attributes.memory_mib + 1023) / 1024);
}

/* A GPU has as many slices as it can have instances: 7, or 4 of an A30. */
static void measure_part(const struct nvml_calls *calls, struct nvml_instance *instance, unsigned int slices)
{
    struct nvml_attributes attributes = {0};

    instance->part_permille = 0;
    if (calls->attributes && calls->attributes(instance->handle, &attributes) == NVML_SUCCESS && slices > 0 &&
        attributes.compute_instance_slices <= slices)
        instance->part_permille = (uint16_t)(attributes.compute_instance_slices * 1000 / slices);
}

/* Finds the identity of this handle's instance. */
static int identify(const struct nvml_calls *calls, struct nvml_mig *mig, struct nvml_device *handle,
                    const char *parent_name, unsigned int slices)
{
    char uuid[NVML_UUID_ROOM] = "";
    struct nvml_instance *instance;
    int rc = calls->uuid(handle, uuid, sizeof uuid);

    if (rc != NVML_SUCCESS)
        return rc;
    uuid[sizeof uuid - 1] = '\0';
    if (!uuid[0] || strlen(uuid) >= sizeof instance->uuid) /* drivers before R470 had longer ones */
        return NVML_ERROR_UNKNOWN;
    instance = instance_of(mig, uuid);
    instance->seen = true;
    if (instance->handle == handle && instance->described)
        return NVML_SUCCESS;
    instance->handle = handle;
    instance->described = calls->attributes == NULL;
    measure_part(calls, instance, slices);
    name_instance(calls, instance, parent_name);
    if (!calls->gpu_instance || calls->gpu_instance(handle, &instance->ids.gpu) != NVML_SUCCESS)
        instance->ids.gpu = NVML_NO_INSTANCE;
    instance->described |= instance->part_permille > 0 && instance->ids.gpu != NVML_NO_INSTANCE;
    if (!calls->compute_instance || calls->compute_instance(handle, &instance->ids.compute) != NVML_SUCCESS)
        instance->ids.compute = NVML_NO_INSTANCE;
    return NVML_SUCCESS;
}

static void forget_unseen(const struct nvml_calls *calls, struct nvml_mig *mig)
{
    size_t kept = 0;

    for (size_t i = 0; i < mig->count; i++) {
        if (mig->instances[i].seen)
            mig->instances[kept++] = mig->instances[i];
        else
            nvml_gpm_release(calls, &mig->instances[i].gpm);
    }
    mig->count = kept;
}

static int find_instances(const struct nvml_calls *calls, struct nvml_mig *mig, struct nvml_device *parent,
                          const char *parent_name)
{
    unsigned int limit = 0;
    int result = NVML_SUCCESS;
    bool complete = true;
    int rc = calls->mig_count && calls->mig_handle && calls->uuid ? calls->mig_count(parent, &limit)
                                                                  : NVML_ERROR_FUNCTION_NOT_FOUND;

    for (size_t i = 0; i < mig->count; i++)
        mig->instances[i].seen = false;
    mig->refused = rc;
    if (rc != NVML_SUCCESS)
        return nvml_worse(result, rc);
    if (limit > INDEX_LIMIT)
        limit = INDEX_LIMIT;
    for (unsigned int i = 0; i < limit && !nvml_device_failed(result); i++) {
        struct nvml_device *handle = NULL;
        rc = calls->mig_handle(parent, i, &handle);
        if (rc == NVML_ERROR_NOT_FOUND || rc == NVML_ERROR_INVALID_ARGUMENT) /* a gap */
            continue;
        if (rc == NVML_SUCCESS)
            rc = identify(calls, mig, handle, parent_name, limit);
        complete &= rc == NVML_SUCCESS;
        mig->refused = mig->refused ? mig->refused : rc;
        result = nvml_worse(result, rc);
    }
    if (complete) /* else one that is not found may still be there */
        forget_unseen(calls, mig);
    return result;
}

int nvml_mig_find(const struct nvml_calls *calls, struct nvml_mig *mig, struct nvml_device *parent,
                  const char *parent_name)
{
    unsigned int current = NVML_FEATURE_DISABLED, pending;
    int rc = calls->mig_mode ? calls->mig_mode(parent, &current, &pending) : NVML_ERROR_FUNCTION_NOT_FOUND;

    mig->refused = NVML_SUCCESS;
    if (nvml_device_failed(rc))
        return rc;
    if (rc == NVML_SUCCESS || rc == NVML_ERROR_NOT_SUPPORTED || rc == NVML_ERROR_FUNCTION_NOT_FOUND) {
        mig->on = rc == NVML_SUCCESS && current == NVML_FEATURE_ENABLED;
        mig->told = true;
    } else if (!mig->told) {
        mig->refused = rc;
    }
    if (!mig->on) {
        nvml_mig_release(calls, mig);
        return nvml_worse(NVML_SUCCESS, mig->refused);
    }
    return find_instances(calls, mig, parent, parent_name);
}

int nvml_instance_read(const struct nvml_calls *calls, struct nvml_instance *instance, struct nvml_device *parent,
                       struct gpu_reading *reading)
{
    int result = nvml_read_memory(calls, instance->handle, reading);
    int64_t memory_bytes = reading->valid & GPU_HAS_MEMORY ? reading->total_bytes + reading->reserved_bytes : -1;

    int processes;

    nvml_note_refused(reading, GPU_HAS_MEMORY, result);
    if (nvml_device_failed(result))
        return result;
    processes = nvml_processes_read_instance(calls, instance->handle, parent, &instance->ids, memory_bytes, reading);
    nvml_note_refused(reading, GPU_HAS_PROCESSES, processes);
    result = nvml_worse(nvml_worse(NVML_SUCCESS, result), processes);
    if (nvml_device_failed(result) || instance->ids.gpu == NVML_NO_INSTANCE)
        return result;
    return nvml_worse(
        result, nvml_gpm_read(calls, &instance->gpm, parent, instance->ids.gpu, nodetime_now_ns(), reading->metrics));
}

void nvml_mig_release(const struct nvml_calls *calls, struct nvml_mig *mig)
{
    for (size_t i = 0; i < mig->count; i++)
        nvml_gpm_release(calls, &mig->instances[i].gpm);
    free(mig->instances);
    *mig = (struct nvml_mig){.on = mig->on, .told = mig->told, .refused = mig->refused};
}
