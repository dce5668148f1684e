/* An NVML of the tests' own: two GPUs whose answers the environment variable FAKE_NVML chooses. It is a list of words
 * with commas between them, read at each call:
 *
 *     init=N                  nvmlInit returns N
 *     noisy                   nvmlInit prints to stdout
 *     count=N                 how many GPUs are counted
 *     memory-v2=N             nvmlDeviceGetMemoryInfo_v2 returns N
 *     processes=N             GPU 0 runs N processes, pids 1000..., using 1, 2, ... MiB (default 2)
 *     v3=N                    the _v3 process lists return N
 *     v3-is-longer            the _v3 process lists have 32 bytes an entry, as some 535 drivers' had
 *     v3-is-v1                the _v3 process lists have the first version's layout
 *     all-garbage             every version of the process lists is nonsense
 *     no-process-memory       memory of processes is not available
 *     growing                 GPU 0's list is too long for the first three buffers, then it has 100 processes
 *     always-short            the process lists never fit
 *     mps                     GPU 0 has MPS clients: pid 1000, in both lists, and pid 2000, only in the MPS list
 *     mps=N                   the MPS lists return N
 *     lost                    GPU 1 is lost (all its queries fail); lost-late: only from its power reading on;
 *                             lost-as=N: they return N
 *     no-handle               GPU 1's handle is not to be had
 *     utilization=N power=N energy=N   these queries return N
 *     busy=N                  utilisation in percent
 *     v3-protected            with v3-is-longer: the surplus field says "not available", not 0
 *     gpm=N                   SM_UTIL is N percent (default 37.5); gpm-error: the metric has no value
 *     pcie=N                  PCIe traffic towards the host in MiB/s (default 100)
 *     no-gpm                  the device does not support GPM
 *     gpm-single              GPM refuses to be asked for more than one metric at once
 *     gpm-sample=N            taking a sample returns N
 *     swap                    the two GPUs have each other's index
 *     twins                   both GPUs have one UUID
 *     uuid=N                  nvmlDeviceGetUUID returns N
 *     long-uuid               UUIDs, of instances too, are longer than any of today's
 *     gone=N                  counting and every device's handle return N, as after a driver reload
 *     gone-later=N            the same from the second look at GPU 0 on; gone-between=N: from after it
 *     power-mw=N energy-mj=N total=N   these values (MiB of memory in all)
 *     xid=N                   an Xid N of GPU 1 is reported, once for as long as the word stays the same
 *     xid-elsewhere           ... of a device that was never asked for
 *     register=N              registering for events returns N
 *     mig                     GPU 0 is in MIG mode, with instances at the indices 0 and 2 (GPU instances 1 and 3); the
 *                             first runs pid 1000, the second pids 1001 and 1002, which use 1, 2 and 3 MiB
 *     mig-one                 ... with the first of them only
 *     mig-mode=N              nvmlDeviceGetMigMode returns N
 *     mig-odd=N               the handle of the instance at index 2 returns N
 *     mig-lists=N             the process lists of an instance's handle return N
 *     mig-lists-all           they list the processes of the whole GPU; mig-unnamed: without the instances' ids
 *     mig-plain-names         an instance's name is its GPU's
 *     persistence=N compute-mode=N ecc=N   these of both GPUs (default 1, 0, 0); mode-of-1=N: the compute mode of GPU 1
 *     hang=N                  the N-th look at GPU 0 (and those after it) hang
 *     crash=N                 the N-th look kills the process
 *
 * FAKE_NVML_OLD makes a library of the first driver generation: none of the functions with a version suffix, no
 * energy, MPS lists or GPM. FAKE_NVML_MIDDLE makes one that has process lists up to _v2 and the old memory call.
 * FAKE_NVML_EMPTY makes one without any basic function, FAKE_NVML_BARE one with nothing but these. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "gpu/nvml/abi.h"

#define FAKE_WORDS "FAKE_NVML"
#include "words.h"

#define MIB 1048576ull

#if !defined(FAKE_NVML_OLD) && !defined(FAKE_NVML_MIDDLE) && !defined(FAKE_NVML_EMPTY) && !defined(FAKE_NVML_BARE)
#define FAKE_NVML_NEW
#endif
#ifdef FAKE_NVML_OLD
#define V2(name) name
#else
#define V2(name) name##_v2
#endif

struct nvml_device {
    unsigned int index;
    unsigned int instance; /* 0: a GPU; else its number in GPU 0, which is its GPU instance's id as well */
};

#ifdef FAKE_NVML_EMPTY
NVML_API int nvmlShutdown(void)
{
    return code("shutdown");
}
#else
static struct nvml_device devices[2] = {{0, 0}, {1, 0}};
static int looks; /* at GPU 0 */

static int gone(void)
{
    if (looks > 0 && code("gone-later"))
        return code("gone-later");
    return looks > 1 && code("gone-between") ? code("gone-between") : code("gone");
}

int V2(nvmlInit)(void)
{
    if (has("noisy", NULL)) {
        printf("the driver greets you\n");
        fflush(stdout);
    }
    return code("init");
}

int V2(nvmlDeviceGetCount)(unsigned int *count)
{
    *count = (unsigned int)number("count", 2);
    return gone();
}

int V2(nvmlDeviceGetHandleByIndex)(unsigned int index, struct nvml_device **device)
{
    if (gone())
        return gone();
    if (index >= 2)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (has("swap", NULL))
        index = 1 - index;
    if (index == 1 && has("no-handle", NULL))
        return NVML_ERROR_GPU_IS_LOST;
    *device = &devices[index];
    return NVML_SUCCESS;
}

#ifndef FAKE_NVML_BARE
#ifdef FAKE_NVML_NEW
static struct nvml_device instances[2] = {{0, 1}, {0, 3}}, stranger = {7, 0};
#endif

static int lost(const struct nvml_device *device)
{
    if (device->index != 1)
        return NVML_SUCCESS;
    if (looks > 1 && code("gone-between"))
        return code("gone-between");
    return has("lost", NULL) ? NVML_ERROR_GPU_IS_LOST : code("lost-as");
}

static int unless_lost(const struct nvml_device *device, int answer)
{
    return lost(device) ? lost(device) : answer;
}

/* The text, and the index of the GPU. */
static int text_out(const struct nvml_device *device, const char *before, char *text, unsigned int room)
{
    unsigned int index = has("twins", NULL) ? 0 : device->index;
    bool fits = (unsigned int)snprintf(text, room, "%s%u", before, index) < room;

    return unless_lost(device, fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE);
}

int nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

const char *nvmlErrorString(int error)
{
    return error == NVML_ERROR_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Some Error";
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *text, unsigned int room)
{
    char before[80];

    if (code("uuid"))
        return code("uuid");
    if (!device->instance)
        return text_out(device,
                        has("long-uuid", NULL) ? "GPU-GPU-00000000-0000-0000-0000-00000000000/11/22/33"
                                               : "GPU-00000000-0000-0000-0000-00000000000",
                        text, room);
    snprintf(before, sizeof before, "MIG-%s00000000-0000-0000-0000-00000000000%u",
             has("long-uuid", NULL) ? "GPU-GPU-GPU-" : "", device->instance);
    return text_out(device, before, text, room);
}

int nvmlDeviceGetName(struct nvml_device *device, char *text, unsigned int room)
{
    if (device->instance && !has("mig-plain-names", NULL))
        return text_out(device, "Fake GPU MIG 1g.5gb number ", text, room);
    return text_out(device, "Fake GPU ", text, room);
}

/* Each look at GPU 0 begins with its memory. */
static void look(const struct nvml_device *device)
{
    if (device->index != 0 || device->instance)
        return;
    looks++;
    while (looks >= number("hang", INT32_MAX))
        pause();
    if (looks >= number("crash", INT32_MAX))
        kill(getpid(), SIGKILL);
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
#ifndef FAKE_NVML_NEW
    look(device);
#endif
    *memory = (struct nvml_memory){.total = 40960 * MIB, .used = 1536 * MIB, .free = 39424 * MIB};
    return unless_lost(device, NVML_SUCCESS);
}

#ifdef FAKE_NVML_NEW
int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
    unsigned int instance = device->instance;

    look(device);
    if (lost(device))
        return lost(device);
    if (memory->version != NVML_VERSION(struct nvml_memory_v2, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = (instance ? 4864 : (unsigned long long)number("total", 40960)) * MIB;
    memory->reserved = (instance ? 2 : 512) * MIB;
    memory->used = (instance ? instance : 1024) * MIB;
    memory->free = (instance ? 4862 - instance : 39424) * MIB;
    return code("memory-v2");
}
#endif

struct entry {
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int gpu_instance, compute_instance; /* not of the first version's layout */
};

static bool mig(void)
{
    return has("mig", NULL) || has("mig-one", NULL);
}

static struct entry entry_at(unsigned int i, bool mps)
{
    struct entry entry = {1000 + i, (i + 1) * MIB, NVML_NO_INSTANCE, NVML_NO_INSTANCE};

    if (mps && i)
        entry.pid = 2000;
    if (mps)
        entry.used_bytes = (i ? 64 : 8) * MIB;
    if (mig() && !has("mig-unnamed", NULL)) {
        entry.gpu_instance = i ? 3 : 1;
        entry.compute_instance = 0;
    }
    if (has("no-process-memory", NULL))
        entry.used_bytes = NVML_VALUE_NOT_AVAILABLE;
    return entry;
}

/* Writes the entries `stride` bytes apart. */
static int list(const struct nvml_device *device, bool mps, int version, size_t stride, unsigned int *count, void *out)
{
    static unsigned int grown;
    double wanted = mps ? (has("mps", NULL) ? 2 : 0) : mig() ? 3 : 2;
    unsigned int first = 0;

    if (lost(device))
        return lost(device);
    if (device->instance && code("mig-lists"))
        return code("mig-lists");
    if (version == 3 && code("v3"))
        return code("v3");
    if (mps && code("mps"))
        return code("mps");
    if (!mps)
        wanted = number("processes", wanted);
    if (device->instance && !mps && !has("mig-lists-all", NULL)) {
        first = device->instance == 1 ? 0 : 1;
        wanted = device->instance == 1 ? 1 : 2;
    }
    if (device->index != 0)
        wanted = 0;
    if (device->index == 0 && !mps && has("growing", NULL))
        wanted = ++grown > 3 ? 100 : *count + grown; /* more than the caller's last buffer, a few times */
    if (has("always-short", NULL))
        wanted = *count + 1;
    if (*count < wanted) {
        *count = (unsigned int)wanted;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    *count = (unsigned int)wanted;
    if (version == 3 && has("v3-is-longer", NULL))
        stride = 32;
    if (version == 3 && has("v3-is-v1", NULL))
        stride = sizeof(struct nvml_process_info_v1);
    for (unsigned int i = 0; i < *count; i++) {
        struct entry entry = entry_at(first + i, mps);
        char *row = (char *)out + i * stride;
        if (has("all-garbage", NULL))
            entry.pid = 0;
        memset(row, has("v3-protected", NULL) ? 0xff : 0, stride);
        memcpy(row, &entry, stride < sizeof entry ? stride : sizeof entry);
    }
    return NVML_SUCCESS;
}

#define LISTS(name, info, mps, version)                                                                                \
    int name(struct nvml_device *device, unsigned int *count, struct info *infos)                                      \
    {                                                                                                                  \
        return list(device, mps, version, sizeof *infos, count, infos);                                                \
    }

LISTS(nvmlDeviceGetComputeRunningProcesses, nvml_process_info_v1, false, 1)
#ifndef FAKE_NVML_OLD
LISTS(nvmlDeviceGetComputeRunningProcesses_v2, nvml_process_info, false, 2)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvml_process_info, true, 2)
#endif
#ifdef FAKE_NVML_NEW
LISTS(nvmlDeviceGetComputeRunningProcesses_v3, nvml_process_info, false, 3)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml_process_info, true, 3)
#endif

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
    *utilization = (struct nvml_utilization){.gpu = (unsigned int)number("busy", 90), .memory = 12};
    return unless_lost(device, code("utilization"));
}

/* A query for one number. */
#define GIVES(name, type, value, answer)                                                                               \
    int name(struct nvml_device *device, type *number_out)                                                             \
    {                                                                                                                  \
        *number_out = (type)(value);                                                                                   \
        return answer;                                                                                                 \
    }

GIVES(nvmlDeviceGetPowerUsage, unsigned int, number("power-mw", 123456),
      device->index == 1 && has("lost-late", NULL) ? NVML_ERROR_GPU_IS_LOST : unless_lost(device, code("power")))

#ifdef FAKE_NVML_NEW
GIVES(nvmlDeviceGetPersistenceMode, unsigned int, number("persistence", 1), NVML_SUCCESS)
GIVES(nvmlDeviceGetComputeMode, unsigned int,
      number(device->index == 1 ? "mode-of-1" : "compute-mode", number("compute-mode", 0)), NVML_SUCCESS)
GIVES(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, number("energy-mj", 9876543210),
      unless_lost(device, code("energy")))
GIVES(nvmlDeviceGetMaxMigDeviceCount, unsigned int, 7, NVML_SUCCESS)
GIVES(nvmlDeviceGetGpuInstanceId, unsigned int, device->instance,
      device->instance ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT)
GIVES(nvmlDeviceGetComputeInstanceId, unsigned int, 0, device->instance ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT)

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, unsigned int kind, unsigned int counter,
                                unsigned long long *count)
{
    *count = kind == 1 && counter == 0 ? (unsigned long long)number("ecc", 0) : 77;
    return NVML_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *text, unsigned int room)
{
    snprintf(text, room, "560.1.2");
    return NVML_SUCCESS;
}

struct nvml_gpm_sample {
    struct timespec at;
    unsigned int instance; /* 0: a whole GPU */
};

int nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support)
{
    if (support->version != NVML_GPM_SUPPORT_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->supported = !has("no-gpm", NULL);
    return NVML_SUCCESS;
}

int nvmlGpmSampleAlloc(struct nvml_gpm_sample **sample)
{
    *sample = calloc(1, sizeof **sample);
    return *sample ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

int nvmlGpmSampleFree(struct nvml_gpm_sample *sample)
{
    free(sample);
    return NVML_SUCCESS;
}

int nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
    if (lost(device))
        return lost(device);
    if (device->instance || (device->index == 0 && mig()))
        return NVML_ERROR_INVALID_ARGUMENT;
    clock_gettime(CLOCK_MONOTONIC, &sample->at);
    sample->instance = 0;
    return code("gpm-sample");
}

int nvmlGpmMigSampleGet(struct nvml_device *device, unsigned int gpu_instance_id, struct nvml_gpm_sample *sample)
{
    if (device->instance || device->index != 0 || !mig() || (gpu_instance_id != 1 && gpu_instance_id != 3))
        return NVML_ERROR_INVALID_ARGUMENT;
    clock_gettime(CLOCK_MONOTONIC, &sample->at);
    sample->instance = gpu_instance_id;
    return code("gpm-sample");
}

/* SM_UTIL of instances is 3 times the percent of their number. */
static int metric_value(struct nvml_gpm_metric *metric, unsigned int instance)
{
    static const double values[] = {[NVML_GPM_METRIC_GRAPHICS_UTIL] = 80,
                                    [NVML_GPM_METRIC_SM_OCCUPANCY] = 25,
                                    [NVML_GPM_METRIC_ANY_TENSOR_UTIL] = 12.5,
                                    [NVML_GPM_METRIC_DRAM_BW_UTIL] = 50};

    switch (metric->id) {
    case NVML_GPM_METRIC_SM_UTIL:
        metric->value = instance ? 3 * instance : number("gpm", 37.5);
        return has("gpm-error", NULL) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
    case NVML_GPM_METRIC_PCIE_TX_PER_SEC:
    case NVML_GPM_METRIC_PCIE_RX_PER_SEC:
        metric->value = metric->id == NVML_GPM_METRIC_PCIE_TX_PER_SEC ? number("pcie", 100) : 0.5;
        return instance ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
    default:
        metric->value = metric->id < sizeof values / sizeof *values ? values[metric->id] : 0;
        return metric->value > 0 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    }
}

/* As strict as NVML: two samples of one thing, in order, and 100 ms apart. */
int nvmlGpmMetricsGet(struct nvml_gpm_metrics_get *get)
{
    if (get->version != NVML_GPM_METRICS_GET_VERSION || get->sample1->instance != get->sample2->instance ||
        (get->count > 1 && has("gpm-single", NULL)))
        return NVML_ERROR_INVALID_ARGUMENT;
    double apart_s = (double)(get->sample2->at.tv_sec - get->sample1->at.tv_sec) +
                     (double)(get->sample2->at.tv_nsec - get->sample1->at.tv_nsec) / 1e9;
    if (apart_s < 0.0999)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < get->count; i++)
        get->metrics[i].nvml_return = metric_value(&get->metrics[i], get->sample1->instance);
    return NVML_SUCCESS;
}

int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned int *current, unsigned int *pending)
{
    if (lost(device))
        return lost(device);
    if (device->index != 0 || device->instance)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = mig() ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return code("mig-mode");
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned int index, struct nvml_device **instance)
{
    if (device->index != 0 || device->instance || !mig())
        return NVML_ERROR_NOT_SUPPORTED;
    if (index == 2 && code("mig-odd"))
        return code("mig-odd");
    if (index != 0 && (index != 2 || has("mig-one", NULL)))
        return NVML_ERROR_NOT_FOUND;
    *instance = &instances[index / 2];
    return NVML_SUCCESS;
}

int nvmlDeviceGetAttributes_v2(struct nvml_device *device, struct nvml_attributes *attributes)
{
    *attributes = (struct nvml_attributes){
        .gpu_instance_slices = 2, .compute_instance_slices = device->instance == 1 ? 2 : 1, .memory_mib = 9856};
    return device->instance ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

struct nvml_event_set {
    unsigned int devices; /* a bit for each that is registered */
    double told;          /* the Xid that was reported last */
};

int nvmlEventSetCreate(struct nvml_event_set **set)
{
    *set = calloc(1, sizeof **set);
    return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

int nvmlDeviceRegisterEvents(struct nvml_device *device, unsigned long long types, struct nvml_event_set *set)
{
    if (types != NVML_EVENT_XID_CRITICAL_ERROR || device->instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    set->devices |= 1u << device->index;
    return code("register");
}

int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data, unsigned int timeout_ms)
{
    double xid = number("xid", 0);

    if (timeout_ms)
        abort(); /* carma must never wait for a driver */
    if (xid == set->told || !(set->devices & 2u))
        return NVML_ERROR_TIMEOUT;
    set->told = xid;
    *data = (struct nvml_event_data){.device = has("xid-elsewhere", NULL) ? &stranger : &devices[1],
                                     .type = NVML_EVENT_XID_CRITICAL_ERROR,
                                     .data = (unsigned long long)xid,
                                     .gpu_instance_id = NVML_NO_INSTANCE,
                                     .compute_instance_id = NVML_NO_INSTANCE};
    return NVML_SUCCESS;
}

int nvmlEventSetFree(struct nvml_event_set *set)
{
    free(set);
    return NVML_SUCCESS;
}
#endif
#endif
#endif
