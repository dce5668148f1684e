/* A device's activity now. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "contention/contention.h"
#include "vnode/nvml_node.h"
#include "vnode/physics.h"

/* Temperature follows the power draw at once (there is no thermal model): these are at idle and at full power. */
#define IDLE_CELSIUS     32
#define FULL_CELSIUS     70
#define SLOWDOWN_CELSIUS 89
#define SHUTDOWN_CELSIUS 92

static double power_w(const struct node_gpu *gpu, const struct node_gpu_now *now)
{
    return contention_power_w(now->sm_activity, gpu->idle_w, gpu->full_w);
}

/* A consistent copy of the GPU's own part of the state; not for MIG handles. */
#define read_now(device, gpu, now, at_ns) read_now_for(__func__, device, gpu, now, at_ns)
static int read_now_for(const char *call, struct nvml_device *device, const struct node_gpu **gpu,
                        struct node_gpu_now *now, int64_t *at_ns)
{
    struct node_bank *bank;
    int rc = nvml_whole_gpu_for(call, device, gpu);

    if (rc == NVML_SUCCESS)
        rc = nvml_begin(device, gpu, &bank);
    if (rc != NVML_SUCCESS)
        return rc;
    *now = bank->gpus[device->gpu];
    *at_ns = bank->updated_ns;
    nvml_end();
    return NVML_SUCCESS;
}

static int not_modelled(struct nvml_device *device)
{
    const struct node_gpu *gpu;
    int rc = nvml_whole_gpu(device, &gpu);

    return rc == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : rc;
}

int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
    const struct node_gpu *gpu;
    struct node_bank *bank;
    int64_t used, usable;

    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != NVML_VERSION(struct nvml_memory_v2, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    NVML_ASK(nvml_begin(device, &gpu, &bank));
    used = device->instance ? physics_instance_used_bytes(bank, device->gpu, device->instance)
                            : physics_used_bytes(bank, device->gpu);
    nvml_end();
    if (gpu->unified)
        return NVML_ERROR_NOT_SUPPORTED;
    usable = physics_usable_bytes(nvml_node()->file, device->gpu, device->instance);
    memory->reserved = device->instance ? 0 : (unsigned long long)gpu->reserved_bytes;
    memory->total = (unsigned long long)usable + memory->reserved;
    memory->used = (unsigned long long)used;
    memory->free = (unsigned long long)(usable - used);
    if (nvml_fault(device, NODE_FAULT_BLANK))
        memory->used = memory->free = NVML_VALUE_NOT_AVAILABLE;
    if (nvml_fault(device, NODE_FAULT_OVER_RANGE))
        memory->used = 2 * memory->total;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
    struct nvml_memory_v2 now = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};

    NVML_ASK(nvml_checked(nvmlDeviceGetMemoryInfo_v2(device, &now), memory));
    *memory = (struct nvml_memory){.total = now.total, .free = now.free, .used = now.used + now.reserved};
    return NVML_SUCCESS;
}

int nvmlVirtualHostMemory(int64_t *total_bytes, int64_t *available_bytes)
{
    struct nvml_device *device = nvml_handle(0, 0);
    const struct node_gpu *gpu;
    struct node_bank *bank;
    int rc = nvml_begin(device, &gpu, &bank);

    if (rc != NVML_SUCCESS || !gpu->unified) {
        if (rc == NVML_SUCCESS)
            nvml_end();
        return -1;
    }
    *total_bytes = gpu->total_bytes;
    *available_bytes = physics_usable_bytes(nvml_node()->file, 0, 0) - physics_used_bytes(bank, 0);
    nvml_end();
    return 0;
}

/* The window through which the host sees the memory: the power of two that holds it, as on the real boards. An instance
 * has its part of that. Mapped memory is not modelled: nothing. */
int nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_bar1_memory *memory)
{
    const struct node_gpu *gpu;
    int64_t window = GIB;

    NVML_ASK(nvml_checked(nvml_gpu(device, &gpu), memory));
    while (window < gpu->total_bytes)
        window *= 2;
    if (device->instance)
        window = lround((double)gpu->instances[device->instance - 1].total_bytes * 8 / gpu->total_bytes) * window / 8;
    *memory = (struct nvml_bar1_memory){.total = (unsigned long long)window, .free = (unsigned long long)window};
    return NVML_SUCCESS;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
    const struct node_gpu *gpu;
    struct node_gpu_now now;
    int64_t at_ns;

    NVML_ASK(nvml_checked(read_now(device, &gpu, &now, &at_ns), utilization));
    /* `memory`, the memory interface's busy time, is not modelled; there is no way to say so but 0 */
    *utilization = (struct nvml_utilization){.gpu = (unsigned int)lround(100 * now.busy)};
    if (gpu->mig)
        return NVML_ERROR_NOT_SUPPORTED; /* as the real one: its instances' activity is not reported together */
    if (nvml_fault(device, NODE_FAULT_STUCK_ZERO))
        utilization->gpu = 0;
    if (nvml_fault(device, NODE_FAULT_OVER_RANGE))
        utilization->gpu = 173;
    if (nvml_fault(device, NODE_FAULT_BLANK))
        utilization->gpu = utilization->memory = UINT_MAX;
    return NVML_SUCCESS;
}

static int idle_engine(struct nvml_device *device, unsigned int *percent, unsigned int *period_us)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_whole_gpu(device, &gpu), percent && period_us));
    *percent = 0;
    *period_us = 167000;
    return NVML_SUCCESS;
}

int nvmlDeviceGetEncoderUtilization(struct nvml_device *device, unsigned int *percent, unsigned int *period_us)
{
    return idle_engine(device, percent, period_us);
}

int nvmlDeviceGetDecoderUtilization(struct nvml_device *device, unsigned int *percent, unsigned int *period_us)
{
    return idle_engine(device, percent, period_us);
}

/* The driver's answers about them, faults included. */

static int told_power(struct nvml_device *device, const struct node_gpu *gpu, const struct node_gpu_now *now,
                      unsigned int *mw)
{
    if (nvml_fault(device, NODE_FAULT_NO_POWER))
        return NVML_ERROR_NOT_SUPPORTED;
    *mw = nvml_fault(device, NODE_FAULT_BLANK) ? UINT_MAX : (unsigned int)lround(1000 * power_w(gpu, now));
    return NVML_SUCCESS;
}

static int told_energy(struct nvml_device *device, const struct node_gpu_now *now, unsigned long long *mj)
{
    if (nvml_fault(device, NODE_FAULT_NO_ENERGY))
        return NVML_ERROR_NOT_SUPPORTED;
    *mj = nvml_fault(device, NODE_FAULT_BLANK) ? ULLONG_MAX
                                               : (unsigned long long)(now->energy_mj - now->energy_hidden_mj);
    return NVML_SUCCESS;
}

int nvmlDeviceGetPowerUsage(struct nvml_device *device, unsigned int *mw)
{
    const struct node_gpu *gpu;
    struct node_gpu_now now;
    int64_t at_ns;

    NVML_ASK(nvml_checked(read_now(device, &gpu, &now, &at_ns), mw));
    return told_power(device, gpu, &now, mw);
}

int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, unsigned long long *mj)
{
    const struct node_gpu *gpu;
    struct node_gpu_now now;
    int64_t at_ns;

    NVML_ASK(nvml_checked(read_now(device, &gpu, &now, &at_ns), mj));
    return told_energy(device, &now, mj);
}

int nvmlDeviceGetTemperature(struct nvml_device *device, unsigned int sensor, unsigned int *celsius)
{
    const struct node_gpu *gpu;
    struct node_gpu_now now;
    int64_t at_ns;

    NVML_ASK(nvml_checked(read_now(device, &gpu, &now, &at_ns), celsius && sensor == NVML_TEMPERATURE_GPU));
    *celsius = (unsigned int)lround(IDLE_CELSIUS + (FULL_CELSIUS - IDLE_CELSIUS) * (power_w(gpu, &now) - gpu->idle_w) /
                                                       (gpu->full_w - gpu->idle_w));
    if (nvml_fault(device, NODE_FAULT_HOT))
        *celsius = SLOWDOWN_CELSIUS;
    return NVML_SUCCESS;
}

int nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature *temperature)
{
    unsigned int celsius;
    int rc;

    if (!temperature)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != NVML_VERSION(struct nvml_temperature, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    rc = nvmlDeviceGetTemperature(device, temperature->sensor, &celsius);
    if (rc == NVML_SUCCESS)
        temperature->celsius = (int)celsius;
    return rc;
}

int nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, unsigned int threshold, unsigned int *celsius)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_whole_gpu(device, &gpu), celsius));
    if (threshold != NVML_TEMPERATURE_THRESHOLD_SHUTDOWN && threshold != NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
        return NVML_ERROR_NOT_SUPPORTED;
    *celsius = threshold == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN ? SHUTDOWN_CELSIUS : SLOWDOWN_CELSIUS;
    return NVML_SUCCESS;
}

int nvmlDeviceGetFanSpeed(struct nvml_device *device, unsigned int *percent)
{
    return not_modelled(device); /* as the passively cooled boards that the profiles stand for */
}

int nvmlDeviceGetPcieThroughput(struct nvml_device *device, unsigned int counter, unsigned int *kib_per_s)
{
    return not_modelled(device);
}

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, unsigned int kind, unsigned int counter,
                                unsigned long long *count)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_whole_gpu(device, &gpu), count));
    *count = kind == NVML_ECC_UNCORRECTED && nvml_fault(device, NODE_FAULT_ECC);
    return NVML_SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(struct nvml_device *device, unsigned int clock, unsigned int *mhz)
{
    const struct node_gpu *gpu;

    NVML_ASK(nvml_checked(nvml_whole_gpu(device, &gpu), mhz && clock <= NVML_CLOCK_VIDEO));
    *mhz = clock == NVML_CLOCK_MEM ? gpu->clock_memory_mhz : gpu->clock_max_mhz;
    return NVML_SUCCESS;
}

int nvmlDeviceGetClockInfo(struct nvml_device *device, unsigned int clock, unsigned int *mhz)
{
    const struct node_gpu *gpu;
    struct node_gpu_now now;
    int64_t at_ns;
    int rc = read_now(device, &gpu, &now, &at_ns);

    if (rc == NVML_SUCCESS)
        rc = nvmlDeviceGetMaxClockInfo(device, clock, mhz);
    if (rc == NVML_SUCCESS && clock != NVML_CLOCK_MEM && now.busy == 0)
        *mhz = gpu->clock_idle_mhz;
    else if (rc == NVML_SUCCESS && clock != NVML_CLOCK_MEM && nvml_fault(device, NODE_FAULT_HOT))
        *mhz /= 2;
    return rc;
}

/* Idle, or held at its power limit: nothing else holds its clocks down here. */
int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *device, unsigned long long *reasons)
{
    const struct node_gpu *gpu;
    struct node_gpu_now now;
    int64_t at_ns;

    NVML_ASK(nvml_checked(read_now(device, &gpu, &now, &at_ns), reasons));
    *reasons = now.busy == 0                                             ? NVML_CLOCKS_IDLE
               : 1000 * power_w(gpu, &now) >= 0.98 * gpu->power_limit_mw ? NVML_CLOCKS_POWER_CAP
                                                                         : 0;
    if (nvml_fault(device, NODE_FAULT_HOT))
        *reasons |= NVML_CLOCKS_HEAT;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *device, unsigned long long *reasons)
{
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

static int field(struct nvml_device *device, const struct node_gpu *gpu, const struct node_gpu_now *now,
                 struct nvml_field_value *value)
{
    value->value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    switch (value->field_id) {
    case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
        value->value_type = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
        return told_energy(device, now, &value->value.as_ulonglong);
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT:
        return told_power(device, gpu, now, &value->value.as_uint);
    case NVML_FI_DEV_POWER_MIN_LIMIT:
        value->value.as_uint = gpu->power_limit_min_mw;
        return NVML_SUCCESS;
    case NVML_FI_DEV_POWER_MAX_LIMIT:
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
    case NVML_FI_DEV_POWER_CURRENT_LIMIT:
        value->value.as_uint = gpu->power_limit_mw;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetFieldValues(struct nvml_device *device, int count, struct nvml_field_value *values)
{
    const struct node_gpu *gpu;
    struct node_gpu_now now;
    int64_t at_ns;

    NVML_ASK(read_now(device, &gpu, &now, &at_ns));
    if (count < 0 || (count > 0 && !values))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        values[i].at_us = at_ns / NS_PER_US;
        values[i].latency_us = 0;
        memset(&values[i].value, 0, sizeof values[i].value);
        values[i].nvml_return = field(device, gpu, &now, &values[i]);
    }
    return NVML_SUCCESS;
}
