/* The processes on a device. A process shows from the moment it holds memory there, as one does with its CUDA
 * context. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "vnode/nvml_node.h"
#include "vnode/physics.h"

/* This slot's use of the device, a GPU with its instances or one of them, where it belongs in the list of `mode`, else
 * NULL. */
static const struct node_use *listed(const struct node_slot *slot, const struct nvml_device *device,
                                     enum nvml_process_mode mode)
{
    if (slot->phase == NODE_SLOT_FREE || mode == NVML_PROCESS_MODE_GRAPHICS ||
        (mode == NVML_PROCESS_MODE_MPS) != (slot->mps != 0))
        return NULL;
    for (uint32_t k = 0; k < slot->use_count && k < NODE_MAX_GPUS; k++)
        if (slot->uses[k].gpu == device->gpu && slot->uses[k].bytes > 0 &&
            (device->instance == 0 || slot->uses[k].instance == device->instance))
            return &slot->uses[k];
    return NULL;
}

/* Writes one process, of which all is in *detail, in the layout that the function's version has. */
typedef void write_process(void *infos, unsigned int i, const struct nvml_process_detail *detail);

static void write_v1(void *infos, unsigned int i, const struct nvml_process_detail *detail)
{
    ((struct nvml_process_info_v1 *)infos)[i] =
        (struct nvml_process_info_v1){.pid = detail->pid, .used_bytes = detail->used_bytes};
}

static void write_v2(void *infos, unsigned int i, const struct nvml_process_detail *detail)
{
    ((struct nvml_process_info *)infos)[i] = (struct nvml_process_info){
        .pid = detail->pid,
        .used_bytes = detail->used_bytes,
        .gpu_instance_id = detail->gpu_instance_id,
        .compute_instance_id = detail->compute_instance_id,
    };
}

static void write_detail(void *infos, unsigned int i, const struct nvml_process_detail *detail)
{
    ((struct nvml_process_detail *)infos)[i] = *detail;
}

static struct nvml_process_detail detail_of(const struct nvml_device *device, const struct node_gpu *gpu,
                                            const struct node_slot *slot, const struct node_use *use)
{
    struct nvml_process_detail detail = {
        .pid = (unsigned int)slot->pid,
        .used_bytes = nvml_fault(device, NODE_FAULT_HIDE_MEMORY) || nvml_fault(device, NODE_FAULT_BLANK)
                          ? NVML_VALUE_NOT_AVAILABLE
                          : (unsigned long long)use->bytes,
        .gpu_instance_id = NVML_NO_INSTANCE,
        .compute_instance_id = NVML_NO_INSTANCE,
    };

    if (use->instance > 0 && use->instance <= gpu->instance_count) {
        detail.gpu_instance_id = gpu->instances[use->instance - 1].gpu_instance;
        detail.compute_instance_id = gpu->instances[use->instance - 1].compute_instance;
    }
    return detail;
}

#define list(device, mode, count, infos, write) list_for(__func__, device, mode, count, infos, write)
static int list_for(const char *call, struct nvml_device *device, enum nvml_process_mode mode, unsigned int *count,
                    void *infos, write_process *write)
{
    const struct node_gpu *gpu;
    struct node_bank *bank;
    unsigned int room, found = 0;

    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    NVML_ASK(nvml_begin_for(call, device, &gpu, &bank));
    room = infos ? *count : 0;
    for (uint32_t i = 0; i < bank->slot_high && !nvml_fault(device, NODE_FAULT_HIDE_PROCESSES); i++) {
        const struct node_use *use = listed(&bank->slots[i], device, mode);

        if (use && found++ < room) {
            struct nvml_process_detail detail = detail_of(device, gpu, &bank->slots[i], use);

            write(infos, found - 1, &detail);
        }
    }
    nvml_end();
    *count = found;
    return found <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* The _v3 functions. Some drivers of the 535 series wrote the larger layout of the detail list here, into the caller's
 * smaller structures. This writes as much of it as fits, so that a caller with a small array is not overrun. */
#define list_v3(device, mode, count, infos) list_v3_for(__func__, device, mode, count, infos)
static int list_v3_for(const char *call, struct nvml_device *device, enum nvml_process_mode mode, unsigned int *count,
                       struct nvml_process_info *infos)
{
    struct nvml_process_detail details[NODE_MAX_SLOTS];
    size_t room_bytes;

    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!infos || nvml_node() == NULL || fault_gpus(nvml_node(), NODE_FAULT_R535) == 0)
        return list_for(call, device, mode, count, infos, write_v2);
    room_bytes = *count * sizeof *infos;
    *count = *count < NODE_MAX_SLOTS ? *count : NODE_MAX_SLOTS;
    NVML_ASK(list_for(call, device, mode, count, details, write_detail));
    if (!nvml_fault(device, NODE_FAULT_R535))
        for (unsigned int i = 0; i < *count; i++)
            write_v2(infos, i, &details[i]);
    else
        memcpy(infos, details, *count * sizeof *details < room_bytes ? *count * sizeof *details : room_bytes);
    return NVML_SUCCESS;
}

#define LIST(function, mode, type, write)                                                                              \
    int function(struct nvml_device *device, unsigned int *count, type *infos)                                         \
    {                                                                                                                  \
        return list(device, mode, count, infos, write);                                                                \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, NVML_PROCESS_MODE_COMPUTE, struct nvml_process_info_v1, write_v1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, NVML_PROCESS_MODE_COMPUTE, struct nvml_process_info, write_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses, NVML_PROCESS_MODE_GRAPHICS, struct nvml_process_info_v1, write_v1)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, NVML_PROCESS_MODE_GRAPHICS, struct nvml_process_info, write_v2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, NVML_PROCESS_MODE_MPS, struct nvml_process_info_v1, write_v1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, NVML_PROCESS_MODE_MPS, struct nvml_process_info, write_v2)

#define LIST_V3(function, mode)                                                                                        \
    int function(struct nvml_device *device, unsigned int *count, struct nvml_process_info *infos)                     \
    {                                                                                                                  \
        return list_v3(device, mode, count, infos);                                                                    \
    }

LIST_V3(nvmlDeviceGetComputeRunningProcesses_v3, NVML_PROCESS_MODE_COMPUTE)
LIST_V3(nvmlDeviceGetGraphicsRunningProcesses_v3, NVML_PROCESS_MODE_GRAPHICS)
LIST_V3(nvmlDeviceGetMPSComputeRunningProcesses_v3, NVML_PROCESS_MODE_MPS)

int nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device, struct nvml_process_detail_list *details)
{
    if (!details)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (details->version != NVML_VERSION(struct nvml_process_detail_list, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (details->mode > NVML_PROCESS_MODE_MPS)
        return NVML_ERROR_INVALID_ARGUMENT;
    return list(device, details->mode, &details->count, details->processes, write_detail);
}

/* Processes of the compute list; the MPS server's own processes cannot be told apart. The sample is of this moment, so
 * it is newer than all that the caller saw before, by any clock of `since_us`. */
int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples,
                                    unsigned int *count, unsigned long long since_us)
{
    const struct node_gpu *gpu;
    struct node_bank *bank;
    unsigned int room, found = 0;
    int rc;

    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = nvml_whole_gpu(device, &gpu);
    if (rc == NVML_SUCCESS && gpu->mig)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS && nvml_fault(device, NODE_FAULT_NO_PERMISSION))
        rc = NVML_ERROR_NO_PERMISSION;
    if (rc == NVML_SUCCESS)
        rc = nvml_begin(device, &gpu, &bank);
    if (rc != NVML_SUCCESS)
        return rc;
    room = samples ? *count : 0;
    for (uint32_t i = 0; i < bank->slot_high && !nvml_fault(device, NODE_FAULT_HIDE_PROCESSES); i++) {
        const struct node_use *use = listed(&bank->slots[i], device, NVML_PROCESS_MODE_COMPUTE);

        if (use && found++ < room)
            samples[found - 1] = (struct nvml_process_utilization){
                .pid = (unsigned int)bank->slots[i].pid,
                .at_us = (unsigned long long)(bank->updated_ns / NS_PER_US),
                .sm = (unsigned int)lround(100 * fmin(1, physics_busy_share(&bank->slots[i], use))),
            };
    }
    nvml_end();
    *count = found;
    if (found == 0)
        return NVML_ERROR_NOT_FOUND;
    return found <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
