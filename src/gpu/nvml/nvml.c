#include "gpu/nvml/nvml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "gpu/nvml/devices.h"
#include "gpu/nvml/facts.h"
#include "gpu/nvml/queries.h"

struct nvml {
    struct nvml_calls calls;
    bool started; /* NVML was initialised */
    struct nvml_devices devices;
    unsigned denied; /* a bit for each of enum denied, of the look that runs */
};

/* Values that a driver may keep to itself. */
enum denied { DENIED_METRICS, DENIED_PROCESSES, DENIED_XIDS, DENIED_MIG, DENIED_OTHER, DENIED_COUNT };

static void nvml_close(void *state);

static int cannot_serve(const struct nvml *nvml, const char *what, int code, struct error *err)
{
    return error_set(err, ENODEV, "NVML of %s %s: %s (%d): see that nvidia-smi works on this machine", nvml->calls.path,
                     what, nvml_code_text(&nvml->calls, code), code);
}

static int nvml_open(const struct gpu_backend_options *options, void **state, struct error *err)
{
    struct nvml *nvml = xcalloc(1, sizeof *nvml);
    int rc = nvml_calls_load(&nvml->calls, options->library, err);
    unsigned int count = 0;
    int code;

    if (rc < 0) {
        free(nvml);
        return rc;
    }
    code = nvml->calls.init();
    nvml->started = code == NVML_SUCCESS;
    if (!nvml->started)
        rc = cannot_serve(nvml, "does not start", code, err);
    else if ((code = nvml->calls.count(&count)) != NVML_SUCCESS)
        rc = cannot_serve(nvml, "cannot count the GPUs", code, err);
    else if (count > GPU_MAX_DEVICES)
        rc = error_set(err, E2BIG, "NVML shows %u GPUs, carma can use %d: hide some of them from it", count,
                       GPU_MAX_DEVICES);
    if (rc < 0) {
        nvml_close(nvml);
        return rc;
    }
    if (options->without_gpm)
        nvml->calls.gpm_support = NULL; /* the function that is asked first, as if the library lacked it */
    nvml->devices.skip = options->skip;
    nvml->devices.touch = options->touch;
    nvml->devices.touch_user = options->user;
    *state = nvml;
    return 0;
}

/* Notes a denied query; returns whether the device failed. */
static bool failed(struct nvml *nvml, enum denied what, int code)
{
    if (code == NVML_ERROR_NO_PERMISSION)
        nvml->denied |= 1u << what;
    return nvml_device_failed(code);
}

/* The same of one that sets a bit of `valid`: where that is missing the code says why. */
static bool untold(struct nvml *nvml, enum denied what, int code, enum gpu_reading_bit bit, struct gpu_reading *reading)
{
    nvml_note_refused(reading, bit, code);
    return failed(nvml, what, code);
}

static int read_device(struct nvml *nvml, struct nvml_known_device *device, struct gpu_reading *reading)
{
    const struct nvml_calls *calls = &nvml->calls;
    uint16_t *no_memory = &reading->refused[__builtin_ctz(GPU_HAS_MEMORY)];
    int64_t memory_bytes;
    int rc;

    if (device->code != NVML_SUCCESS)
        return device->code;
    rc = nvml_read_memory(calls, device->handle, reading);
    if (untold(nvml, DENIED_OTHER, rc, GPU_HAS_MEMORY, reading))
        return rc;
    memory_bytes = reading->valid & GPU_HAS_MEMORY ? reading->total_bytes + reading->reserved_bytes : -1;
    rc = nvml_processes_read(calls, device->handle, memory_bytes, reading);
    if (untold(nvml, DENIED_PROCESSES, rc, GPU_HAS_PROCESSES, reading))
        return rc;
    if (*no_memory == NVML_ERROR_NOT_SUPPORTED)
        nvml_read_unified_memory(calls, device->handle, reading);
    if (reading->valid & GPU_HAS_MEMORY)
        *no_memory = NVML_SUCCESS;
    rc = nvml_read_power(calls, device->handle, reading);
    if (untold(nvml, DENIED_OTHER, rc, GPU_HAS_POWER, reading))
        return rc;
    rc = nvml_read_energy(calls, device->handle, reading);
    if (untold(nvml, DENIED_OTHER, rc, GPU_HAS_ENERGY, reading))
        return rc;
    rc = device->mig.on ? NVML_SUCCESS : nvml_read_utilization(calls, device->handle, reading);
    if (!device->mig.on && untold(nvml, DENIED_OTHER, rc, GPU_HAS_UTILIZATION, reading))
        return rc;
    nvml_read_facts(calls, device->handle, reading->facts);
    rc = nvml_gpm_read(calls, &device->gpm, device->handle, NVML_NO_INSTANCE, nodetime_now_ns(), reading->metrics);
    if (nvml_device_failed(rc) || (!device->mig.on && failed(nvml, DENIED_METRICS, rc))) /* of parts, not of a whole */
        return rc;
    rc = nvml_mig_find(calls, &device->mig, device->handle, device->name);
    reading->refused[GPU_REFUSED_MIG] = (uint16_t)device->mig.refused;
    return failed(nvml, DENIED_MIG, rc) ? rc : NVML_SUCCESS;
}

/* Values read before it failed cannot be trusted. */
static void set_error(struct gpu_reading *reading, struct nvml_gpm *gpm, int code)
{
    reading->error = code;
    if (code == NVML_SUCCESS)
        return;
    reading->valid = 0;
    memset(reading->refused, 0, sizeof reading->refused);
    memset(reading->metrics, 0, sizeof reading->metrics);
    memset(reading->facts, 0, sizeof reading->facts);
    reading->process_count = 0;
    gpm->sampled = false;
}

/* The instances of a GPU that failed have failed as well. */
static void read_instances(struct nvml *nvml, struct nvml_known_device *device, int code, struct gpu_node_reading *out)
{
    for (size_t i = 0; i < device->mig.count && out->count < GPU_MAX_DEVICES; i++) {
        struct nvml_instance *instance = &device->mig.instances[i];
        struct gpu_reading *reading = &out->gpus[out->count++];
        int rc = code == NVML_SUCCESS ? nvml_instance_read(&nvml->calls, instance, device->handle, reading) : code;
        set_error(reading, &instance->gpm, failed(nvml, DENIED_MIG, rc) ? rc : NVML_SUCCESS);
        reading->kind = GPU_INSTANCE;
        reading->index = device->index;
        reading->minor = device->minor;
        reading->gpu_instance = instance->ids.gpu;
        reading->compute_instance = instance->ids.compute;
        reading->compute_mode = device->compute_mode;
        reading->compute = device->compute;
        reading->part_permille = instance->part_permille;
        memcpy(reading->parent, device->uuid, sizeof reading->parent);
        memcpy(reading->uuid, instance->uuid, sizeof reading->uuid);
        memcpy(reading->name, instance->name, sizeof reading->name);
    }
}

static void read_one(struct nvml *nvml, struct nvml_known_device *device, struct gpu_node_reading *out)
{
    struct gpu_reading *reading = &out->gpus[out->count++];

    set_error(reading, &device->gpm, read_device(nvml, device, reading));
    if (reading->error && !device->mig.told)
        reading->refused[GPU_REFUSED_MIG] = (uint16_t)reading->error;
    reading->kind = device->mig.on ? GPU_PARTITIONED : GPU_WHOLE;
    reading->index = device->index;
    reading->minor = device->minor;
    reading->compute_mode = device->compute_mode;
    reading->compute = device->compute;
    reading->xid = device->xid;
    reading->xid_count = device->xid_count;
    reading->xid_at_ns = device->xid_at_ns;
    memcpy(reading->uuid, device->uuid, sizeof reading->uuid);
    memcpy(reading->name, device->name, sizeof reading->name);
    read_instances(nvml, device, reading->error, out);
}

static void explain_denied(unsigned denied, struct gpu_node_reading *out)
{
    static const char *const names[DENIED_COUNT] = {"GPM metrics", "processes", "Xid events", "MIG instances",
                                                    "some counters"};
    size_t used;

    if (!denied)
        return;
    used = (size_t)snprintf(out->limits, sizeof out->limits, "no permission for ");
    for (int i = 0, named = 0; i < DENIED_COUNT; i++)
        if (denied & 1u << i)
            used +=
                (size_t)snprintf(out->limits + used, sizeof out->limits - used, "%s%s", named++ ? ", " : "", names[i]);
    snprintf(out->limits + used, sizeof out->limits - used,
             ": run as root, or set the driver's NVreg_RestrictProfilingToAdminUsers=0");
}

/* The code by which the driver was unloaded or replaced, maybe between one GPU and the next; NVML_SUCCESS: it was not.
 * A GPU that answers so alone, while the driver still counts, is one that failed. */
static int session_end(const struct nvml *nvml, const struct gpu_node_reading *reading)
{
    uint32_t over = 0;
    unsigned int count;
    int code = NVML_SUCCESS;

    for (uint32_t i = 0; i < reading->count; i++)
        if (nvml_session_over(reading->gpus[i].error)) {
            code = reading->gpus[i].error;
            over++;
        }
    if (over < reading->count && code != NVML_SUCCESS)
        code = nvml->calls.count(&count);
    return nvml_session_over(code) ? code : NVML_SUCCESS;
}

static int nvml_read(void *state, struct gpu_node_reading *out, struct error *err)
{
    struct nvml *nvml = state;
    size_t wanted = 0;
    int code;

    memset(out, 0, sizeof *out);
    out->at_ns = nodetime_now_ns();
    nvml->denied = 0;
    code = nvml_devices_find(&nvml->calls, &nvml->devices);
    if (nvml_session_over(code))
        return cannot_serve(nvml, "lost its driver", code, err);
    failed(nvml, DENIED_XIDS, nvml_devices_take_xids(&nvml->calls, &nvml->devices, out->at_ns));
    for (size_t i = 0; i < nvml->devices.count; i++) {
        nvml_devices_touch(&nvml->devices, (int)nvml->devices.items[i]->index);
        if (out->count < GPU_MAX_DEVICES)
            read_one(nvml, nvml->devices.items[i], out);
        wanted += 1 + nvml->devices.items[i]->mig.count;
    }
    nvml_devices_touch(&nvml->devices, -1);
    code = session_end(nvml, out);
    if (code != NVML_SUCCESS)
        return cannot_serve(nvml, "lost its driver", code, err);
    if (wanted > GPU_MAX_DEVICES)
        snprintf(out->limits, sizeof out->limits,
                 "%zu GPUs and MIG instances are more than the %d that carma can use: the last are left out", wanted,
                 GPU_MAX_DEVICES);
    else
        explain_denied(nvml->denied, out);
    return 0;
}

static void nvml_close(void *state)
{
    struct nvml *nvml = state;

    if (!nvml)
        return;
    nvml_devices_release(&nvml->calls, &nvml->devices);
    if (nvml->started && nvml->calls.shutdown)
        nvml->calls.shutdown();
    nvml_calls_unload(&nvml->calls);
    free(nvml);
}

const struct gpu_backend gpu_backend_nvml = {.open = nvml_open, .read = nvml_read, .close = nvml_close};
