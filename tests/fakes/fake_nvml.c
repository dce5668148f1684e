/* An NVML of the tests' own: two GPUs whose answers the environment variable FAKE_NVML chooses, a list of words with
 * commas between them, read at each call:
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
 *     lost                    GPU 1 is lost (all its queries fail); lost-late: only from its power reading on
 *     no-handle               GPU 1's handle is not to be had
 *     utilization=N power=N energy=N   these queries return N
 *     busy=N                  utilisation in percent
 *     gpm=N                   SM_UTIL is N percent (default 37.5); gpm-error: the metric has no value
 *     no-gpm                  the device does not support GPM
 *     hang=N                  the N-th look at GPU 0 (and those after it) hang
 *     crash=N                 the N-th look kills the process
 *
 * FAKE_NVML_OLD makes a library of the first driver generation: none of the functions with a version suffix, no
 * energy, MPS lists or GPM. FAKE_NVML_MIDDLE makes one that has process lists up to _v2 and the old memory call.
 * FAKE_NVML_EMPTY makes one without any basic function. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/nvml_abi.h"

#define MIB 1048576ull

#if !defined(FAKE_NVML_OLD) && !defined(FAKE_NVML_MIDDLE) && !defined(FAKE_NVML_EMPTY)
#define FAKE_NVML_NEW
#endif

struct nvml_device {
    unsigned int index;
};

/* Whether FAKE_NVML has the word; *value gets what stands after its "=", if there is one. */
static bool has(const char *word, double *value)
{
    const char *at = getenv("FAKE_NVML");
    size_t length = strlen(word);

    for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, word, length) != 0)
            continue;
        if (at[length] == '=') {
            if (value)
                *value = strtod(at + length + 1, NULL);
            return value != NULL;
        }
        if (at[length] == '\0' || at[length] == ',')
            return value == NULL;
    }
    return false;
}

static int code(const char *word)
{
    double value = NVML_SUCCESS;

    has(word, &value);
    return (int)value;
}

#ifdef FAKE_NVML_EMPTY
NVML_API int nvmlShutdown(void)
{
    return code("shutdown");
}
#else
static struct nvml_device devices[2] = {{0}, {1}};

static bool lost(const struct nvml_device *device)
{
    return device->index == 1 && has("lost", NULL);
}

/* The text, and the index of the GPU. */
static int text_out(const struct nvml_device *device, const char *before, char *text, unsigned int room)
{
    if (lost(device))
        return NVML_ERROR_GPU_IS_LOST;
    return (unsigned int)snprintf(text, room, "%s%u", before, device->index) < room ? NVML_SUCCESS
                                                                                    : NVML_ERROR_INSUFFICIENT_SIZE;
}

static int init(void)
{
    if (has("noisy", NULL)) {
        printf("the driver greets you\n");
        fflush(stdout);
    }
    return code("init");
}

static int count_out(unsigned int *count)
{
    double value = 2;

    has("count", &value);
    *count = (unsigned int)value;
    return NVML_SUCCESS;
}

static int handle_out(unsigned int index, struct nvml_device **device)
{
    if (index >= 2)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (index == 1 && has("no-handle", NULL))
        return NVML_ERROR_GPU_IS_LOST;
    *device = &devices[index];
    return NVML_SUCCESS;
}

#ifdef FAKE_NVML_OLD
int nvmlInit(void)
{
    return init();
}

int nvmlDeviceGetCount(unsigned int *count)
{
    return count_out(count);
}

int nvmlDeviceGetHandleByIndex(unsigned int index, struct nvml_device **device)
{
    return handle_out(index, device);
}
#else
int nvmlInit_v2(void)
{
    return init();
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    return count_out(count);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvml_device **device)
{
    return handle_out(index, device);
}
#endif

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
    return text_out(device, "GPU-00000000-0000-0000-0000-00000000000", text, room);
}

int nvmlDeviceGetName(struct nvml_device *device, char *text, unsigned int room)
{
    return text_out(device, "Fake GPU ", text, room);
}

/* Each look at GPU 0 begins with its memory. */
static void look(const struct nvml_device *device)
{
    static int looks;
    double last;

    if (device->index != 0)
        return;
    looks++;
    if (has("hang", &last) && looks >= last)
        for (;;)
            pause();
    if (has("crash", &last) && looks >= last)
        kill(getpid(), SIGKILL);
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
#ifndef FAKE_NVML_NEW
    look(device);
#endif
    if (lost(device))
        return NVML_ERROR_GPU_IS_LOST;
    *memory = (struct nvml_memory){.total = 40960 * MIB, .used = 1536 * MIB, .free = 39424 * MIB};
    return NVML_SUCCESS;
}

#ifdef FAKE_NVML_NEW
int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
    look(device);
    if (lost(device))
        return NVML_ERROR_GPU_IS_LOST;
    if (memory->version != NVML_VERSION(struct nvml_memory_v2, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code("memory-v2"))
        return code("memory-v2");
    *memory = (struct nvml_memory_v2){.version = memory->version, .total = 40960 * MIB, .reserved = 512 * MIB,
                                      .used = 1024 * MIB, .free = 39424 * MIB};
    return NVML_SUCCESS;
}
#endif

struct entry {
    unsigned int pid;
    unsigned long long used_bytes;
};

static struct entry entry_at(unsigned int i, bool mps)
{
    struct entry entry = {.pid = 1000 + i, .used_bytes = (i + 1) * MIB};

    if (mps)
        entry = i ? (struct entry){2000, 64 * MIB} : (struct entry){1000, 8 * MIB};
    if (has("no-process-memory", NULL))
        entry.used_bytes = NVML_VALUE_NOT_AVAILABLE;
    return entry;
}

/* Writes the entries `stride` bytes apart. */
static int list(const struct nvml_device *device, bool mps, int version, size_t stride, unsigned int *count, void *out)
{
    static unsigned int grown;
    double wanted = mps ? (has("mps", NULL) ? 2 : 0) : 2;
    char rows[40];

    if (lost(device))
        return NVML_ERROR_GPU_IS_LOST;
    if (version == 3 && code("v3"))
        return code("v3");
    if (mps && code("mps"))
        return code("mps");
    if (!mps)
        has("processes", &wanted);
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
        struct entry entry = entry_at(i, mps);
        if (has("all-garbage", NULL))
            entry.pid = 0;
        memset(rows, 0, sizeof rows);
        memcpy(rows, &entry, sizeof entry);
        if (stride > sizeof entry)
            memset(rows + sizeof entry, 0xff, 8); /* no MIG instances */
        memcpy((char *)out + i * stride, rows, stride);
    }
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, unsigned int *count,
                                         struct nvml_process_info_v1 *infos)
{
    return list(device, false, 1, sizeof *infos, count, infos);
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, unsigned int *count,
                                            struct nvml_process_info *infos)
{
    return list(device, false, 2, sizeof *infos, count, infos);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v2(struct nvml_device *device, unsigned int *count,
                                               struct nvml_process_info *infos)
{
    return list(device, true, 2, sizeof *infos, count, infos);
}
#endif

#ifdef FAKE_NVML_NEW
int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned int *count,
                                            struct nvml_process_info *infos)
{
    return list(device, false, 3, sizeof *infos, count, infos);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvml_device *device, unsigned int *count,
                                               struct nvml_process_info *infos)
{
    return list(device, true, 3, sizeof *infos, count, infos);
}
#endif

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
    double busy = 90;

    if (lost(device))
        return NVML_ERROR_GPU_IS_LOST;
    has("busy", &busy);
    *utilization = (struct nvml_utilization){.gpu = (unsigned int)busy, .memory = 12};
    return code("utilization");
}

int nvmlDeviceGetPowerUsage(struct nvml_device *device, unsigned int *mw)
{
    if (lost(device) || (device->index == 1 && has("lost-late", NULL)))
        return NVML_ERROR_GPU_IS_LOST;
    *mw = 123456;
    return code("power");
}

#ifdef FAKE_NVML_NEW
int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, unsigned long long *mj)
{
    if (lost(device))
        return NVML_ERROR_GPU_IS_LOST;
    *mj = 9876543210ull;
    return code("energy");
}

struct nvml_gpm_sample {
    struct timespec at;
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
        return NVML_ERROR_GPU_IS_LOST;
    clock_gettime(CLOCK_MONOTONIC, &sample->at);
    return NVML_SUCCESS;
}

/* As strict as NVML: the samples in order, and 100 ms apart. */
int nvmlGpmMetricsGet(struct nvml_gpm_metrics_get *get)
{
    double value = 37.5, apart_s;

    if (get->version != NVML_GPM_METRICS_GET_VERSION || get->count != 1 ||
        get->metrics[0].id != NVML_GPM_METRIC_SM_UTIL)
        return NVML_ERROR_INVALID_ARGUMENT;
    apart_s = (double)(get->sample2->at.tv_sec - get->sample1->at.tv_sec) +
              (double)(get->sample2->at.tv_nsec - get->sample1->at.tv_nsec) / 1e9;
    if (apart_s < 0.0999)
        return NVML_ERROR_INVALID_ARGUMENT;
    has("gpm", &value);
    get->metrics[0].value = value;
    get->metrics[0].nvml_return = has("gpm-error", NULL) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
    return NVML_SUCCESS;
}
#endif
#endif
