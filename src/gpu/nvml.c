#include "gpu/nvml.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "gpu/nvml_calls.h"
#include "gpu/nvml_processes.h"

#define GPM_INTERVAL_NS (100 * NS_PER_MS) /* the least that NVML asks for between two GPM samples */
#define GPM_ROUNDING    1.0               /* percent above 100 that are still taken for 100 */

struct device {
    unsigned int index;
    struct nvml_device *handle; /* NULL while NVML does not give it */
    char uuid[GPU_UUID_SIZE];
    char name[GPU_NAME_SIZE];
    bool gpm;
    struct nvml_gpm_sample *earlier, *later; /* with gpm */
    int64_t earlier_at_ns;                   /* node time; -1: no sample was taken yet */
};

struct nvml {
    struct nvml_calls calls;
    unsigned int count;
    struct device devices[GPU_MAX_DEVICES];
    struct nvml_gpm_metrics_get *metrics; /* owned */
};

static void nvml_close(void *state);

/* Whether the code says that the GPU, or the driver under it, failed, rather than that one query is not to be had. */
static bool device_failed(int code)
{
    switch (code) {
    case NVML_ERROR_UNINITIALIZED:
    case NVML_ERROR_DRIVER_NOT_LOADED:
    case NVML_ERROR_IRQ_ISSUE:
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_RESET_REQUIRED:
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
    case NVML_ERROR_GPU_NOT_FOUND:
        return true;
    default:
        return false;
    }
}

static const char *code_text(const struct nvml_calls *calls, int code)
{
    const char *text = calls->error_string ? calls->error_string(code) : NULL;

    return text ? text : "NVML error";
}

/* GPM where the device and the library have all of it. */
static void prepare_gpm(const struct nvml_calls *calls, struct device *device)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_SUPPORT_VERSION};

    device->earlier_at_ns = -1;
    if (!calls->gpm_support || !calls->gpm_alloc || !calls->gpm_free || !calls->gpm_get || !calls->gpm_metrics)
        return;
    if (calls->gpm_support(device->handle, &support) != NVML_SUCCESS || !support.supported)
        return;
    if (calls->gpm_alloc(&device->earlier) != NVML_SUCCESS)
        return;
    if (calls->gpm_alloc(&device->later) != NVML_SUCCESS) {
        calls->gpm_free(device->earlier);
        return;
    }
    device->gpm = true;
}

/* Finds the device and who it is; NVML's code. */
static int identify(const struct nvml_calls *calls, struct device *device)
{
    struct nvml_device *handle = NULL;
    char uuid[NVML_UUID_ROOM] = "", name[NVML_NAME_ROOM] = "";
    int rc = calls->handle(device->index, &handle);

    if (rc != NVML_SUCCESS)
        return rc;
    rc = calls->uuid ? calls->uuid(handle, uuid, sizeof uuid) : NVML_ERROR_FUNCTION_NOT_FOUND;
    uuid[sizeof uuid - 1] = '\0';
    if (rc != NVML_SUCCESS)
        return rc;
    if (!calls->name || calls->name(handle, name, sizeof name) != NVML_SUCCESS)
        snprintf(name, sizeof name, "GPU %u", device->index);
    name[sizeof name - 1] = '\0';
    snprintf(device->uuid, sizeof device->uuid, "%.*s", (int)sizeof device->uuid - 1, uuid);
    snprintf(device->name, sizeof device->name, "%s", name);
    device->handle = handle;
    prepare_gpm(calls, device);
    return NVML_SUCCESS;
}

static int nvml_open(const char *library, void **state, struct error *err)
{
    struct nvml *nvml = xcalloc(1, sizeof *nvml);
    int rc = nvml_calls_load(&nvml->calls, library, err);
    int code;

    if (rc < 0) {
        free(nvml);
        return rc;
    }
    code = nvml->calls.init();
    if (code != NVML_SUCCESS) {
        rc = error_set(err, ENODEV, "NVML of %s does not start: %s (%d): see that nvidia-smi works on this machine",
                       nvml->calls.path, code_text(&nvml->calls, code), code);
        nvml->calls.shutdown = NULL; /* nothing to shut down */
        nvml_close(nvml);
        return rc;
    }
    code = nvml->calls.count(&nvml->count);
    if (code != NVML_SUCCESS || nvml->count > GPU_MAX_DEVICES) {
        if (code != NVML_SUCCESS)
            rc = error_set(err, ENODEV,
                           "NVML of %s cannot count the GPUs: %s (%d): see that nvidia-smi works on this machine",
                           nvml->calls.path, code_text(&nvml->calls, code), code);
        else
            rc = error_set(err, E2BIG, "NVML shows %u GPUs, carma can use %d: hide some of them from it", nvml->count,
                           GPU_MAX_DEVICES);
        nvml->count = 0;
        nvml_close(nvml);
        return rc;
    }
    nvml->metrics = xcalloc(1, sizeof *nvml->metrics + NVML_GPM_METRICS_ROOM * sizeof nvml->metrics->metrics[0]);
    for (unsigned int i = 0; i < nvml->count; i++) {
        nvml->devices[i].index = i;
        identify(&nvml->calls, &nvml->devices[i]); /* one that fails is tried again, and reported, by each read */
    }
    *state = nvml;
    return 0;
}

/* All readers below return NVML's code and set their bit where they have a value. */

static int read_memory(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading)
{
    struct nvml_memory_v2 v2 = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
    struct nvml_memory v1 = {0};
    int rc = calls->memory_v2 ? calls->memory_v2(device, &v2) : NVML_ERROR_FUNCTION_NOT_FOUND;

    if (rc != NVML_SUCCESS && !device_failed(rc)) {
        rc = calls->memory_v1 ? calls->memory_v1(device, &v1) : NVML_ERROR_FUNCTION_NOT_FOUND;
        v2 = (struct nvml_memory_v2){.total = v1.total, .used = v1.used};
    }
    if (rc != NVML_SUCCESS)
        return rc;
    if (v2.total > INT64_MAX || v2.reserved > v2.total || v2.used > v2.total)
        return NVML_ERROR_UNKNOWN;
    reading->total_bytes = (int64_t)(v2.total - v2.reserved);
    reading->reserved_bytes = (int64_t)v2.reserved;
    reading->used_bytes = (int64_t)v2.used;
    reading->valid |= GPU_HAS_MEMORY;
    return rc;
}

static int read_utilization(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading)
{
    struct nvml_utilization utilization = {0};
    int rc = calls->utilization ? calls->utilization(device, &utilization) : NVML_ERROR_FUNCTION_NOT_FOUND;

    if (rc == NVML_SUCCESS && utilization.gpu <= 100) {
        reading->utilization_permille = (int32_t)utilization.gpu * 10;
        reading->valid |= GPU_HAS_UTILIZATION;
    }
    return rc;
}

static int read_power(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading)
{
    unsigned int mw = 0;
    int rc = calls->power ? calls->power(device, &mw) : NVML_ERROR_FUNCTION_NOT_FOUND;

    if (rc == NVML_SUCCESS) {
        reading->power_mw = mw;
        reading->valid |= GPU_HAS_POWER;
    }
    return rc;
}

static int read_energy(const struct nvml_calls *calls, struct nvml_device *device, struct gpu_reading *reading)
{
    unsigned long long mj = 0;
    int rc = calls->energy ? calls->energy(device, &mj) : NVML_ERROR_FUNCTION_NOT_FOUND;

    if (rc == NVML_SUCCESS && mj <= INT64_MAX) {
        reading->energy_mj = (int64_t)mj;
        reading->valid |= GPU_HAS_ENERGY;
    }
    return rc;
}

/* Samples once, and compares with the sample of an earlier look. */
static int read_gpm(struct nvml *nvml, struct device *device, struct gpu_reading *reading)
{
    struct nvml_gpm_metrics_get *get = nvml->metrics;
    struct nvml_gpm_sample *swap = device->earlier;
    int64_t now_ns = nodetime_now_ns();
    bool compare = device->earlier_at_ns >= 0 && now_ns >= device->earlier_at_ns; /* else the clock was set back */
    int rc;

    if (!device->gpm || (compare && now_ns - device->earlier_at_ns < GPM_INTERVAL_NS))
        return NVML_SUCCESS;
    rc = nvml->calls.gpm_get(device->handle, device->later);
    if (rc != NVML_SUCCESS) {
        device->earlier_at_ns = -1;
        return rc;
    }
    if (compare) {
        get->version = NVML_GPM_METRICS_GET_VERSION;
        get->count = 1;
        get->sample1 = device->earlier;
        get->sample2 = device->later;
        memset(&get->metrics[0], 0, sizeof get->metrics[0]);
        get->metrics[0].id = NVML_GPM_METRIC_SM_UTIL;
        rc = nvml->calls.gpm_metrics(get);
        if (rc == NVML_SUCCESS)
            rc = get->metrics[0].nvml_return;
        /* A NaN fails the comparison. */
        if (rc == NVML_SUCCESS && get->metrics[0].value >= 0 && get->metrics[0].value <= 100 + GPM_ROUNDING) {
            reading->metrics[GPU_SM_ACTIVITY] = (struct gpu_measure){.source = GPU_SOURCE_GPM,
                                                                     .value = lround(fmin(get->metrics[0].value, 100) * 10),
                                                                     .at_ns = now_ns};
        }
    }
    device->earlier = device->later;
    device->later = swap;
    device->earlier_at_ns = now_ns;
    return rc;
}

static int read_device(struct nvml *nvml, struct device *device, struct gpu_reading *reading)
{
    const struct nvml_calls *calls = &nvml->calls;
    int64_t memory_bytes;
    int rc;

    if (!device->handle && (rc = identify(calls, device)) != NVML_SUCCESS)
        return rc;
    if (device_failed(rc = read_memory(calls, device->handle, reading)))
        return rc;
    memory_bytes = reading->valid & GPU_HAS_MEMORY ? reading->total_bytes + reading->reserved_bytes : -1;
    if (device_failed(rc = nvml_processes_read(calls, device->handle, memory_bytes, reading)))
        return rc;
    if (device_failed(rc = read_utilization(calls, device->handle, reading)))
        return rc;
    if (device_failed(rc = read_power(calls, device->handle, reading)))
        return rc;
    if (device_failed(rc = read_energy(calls, device->handle, reading)))
        return rc;
    if (device_failed(rc = read_gpm(nvml, device, reading)))
        return rc;
    return NVML_SUCCESS;
}

static void nvml_read(void *state, struct gpu_node_reading *out)
{
    struct nvml *nvml = state;

    memset(out, 0, sizeof *out);
    out->at_ns = nodetime_now_ns();
    out->count = nvml->count;
    for (unsigned int i = 0; i < nvml->count; i++) {
        struct device *device = &nvml->devices[i];
        struct gpu_reading *reading = &out->gpus[i];
        reading->error = read_device(nvml, device, reading);
        if (reading->error) { /* what was read before the GPU failed is not worth believing */
            reading->valid = 0;
            memset(reading->metrics, 0, sizeof reading->metrics);
            reading->process_count = 0;
        }
        reading->index = device->index;
        memcpy(reading->uuid, device->uuid, sizeof reading->uuid);
        memcpy(reading->name, device->name, sizeof reading->name);
    }
}

static void nvml_close(void *state)
{
    struct nvml *nvml = state;

    if (!nvml)
        return;
    for (unsigned int i = 0; i < nvml->count; i++) {
        if (nvml->devices[i].gpm) {
            nvml->calls.gpm_free(nvml->devices[i].earlier);
            nvml->calls.gpm_free(nvml->devices[i].later);
        }
    }
    if (nvml->calls.shutdown)
        nvml->calls.shutdown();
    nvml_calls_unload(&nvml->calls);
    free(nvml->metrics);
    free(nvml);
}

const struct gpu_backend gpu_backend_nvml = {.open = nvml_open, .read = nvml_read, .close = nvml_close};
