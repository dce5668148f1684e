/* Shared by the files of the virtual libnvidia-ml: the open node, and devices as handles on it. Nothing here aborts;
 * allocations are checked. Functions return NVML's codes. */
#ifndef CARMA_VNODE_NVML_NODE_H
#define CARMA_VNODE_NVML_NODE_H

#include "gpu/nvml/abi.h"
#include "vnode/fault.h"
#include "vnode/node.h"

struct nvml_device {
    uint32_t gpu;      /* of the node, for every index */
    uint32_t instance; /* as in struct node_use: 0: the whole GPU */
};

/* `rc`, or NVML_ERROR_INVALID_ARGUMENT where that is NVML_SUCCESS but the other arguments are bad. */
static inline int nvml_checked(int rc, bool arguments)
{
    return rc == NVML_SUCCESS && !arguments ? NVML_ERROR_INVALID_ARGUMENT : rc;
}

/* Ends the caller with the code of a call that is not answered. */
#define NVML_ASK(call)                                                                                                 \
    do {                                                                                                               \
        int nvml_rc = (call);                                                                                          \
                                                                                                                       \
        if (nvml_rc != NVML_SUCCESS)                                                                                   \
            return nvml_rc;                                                                                            \
    } while (0)

/* These find the caller's name, by which a call can be made to fail: they are for the functions of NVML themselves, or
 * for helpers that hand the name on. */
#define nvml_ready()                nvml_ready_for(__func__)
#define nvml_gpu(device, gpu)       nvml_gpu_for(__func__, device, gpu)
#define nvml_whole_gpu(device, gpu) nvml_whole_gpu_for(__func__, device, gpu)

/* Whether NVML answers at all: opened, the driver there. Waits while all calls hang (vnode/fault.h). */
int nvml_ready_for(const char *call);

/* The device's fixed facts, of the whole GPU for a MIG handle too; *gpu stays valid until the last nvmlShutdown. A lost
 * GPU answers nothing; one with hanging calls makes its caller wait. */
int nvml_gpu_for(const char *call, struct nvml_device *device, const struct node_gpu **gpu);

/* The same, for questions that a MIG handle does not answer. */
int nvml_whole_gpu_for(const char *call, struct nvml_device *device, const struct node_gpu **gpu);

/* The device's state as of now, under the node's lock until nvml_end(). */
#define nvml_begin(device, gpu, bank) nvml_begin_for(__func__, device, gpu, bank)
int nvml_begin_for(const char *call, struct nvml_device *device, const struct node_gpu **gpu, struct node_bank **bank);
void nvml_end(void);

/* Whether the fault is in force on the device's GPU. */
bool nvml_fault(const struct nvml_device *device, enum node_fault_kind kind);

/* The handle of a GPU or of an instance of it. */
struct nvml_device *nvml_handle(uint32_t gpu, uint32_t instance);

/* The index that the GPU had when NVML was opened. */
uint32_t nvml_index(uint32_t gpu);

/* The node, while it is open; else NULL. */
struct node *nvml_node(void);

/* NVML_ERROR_INSUFFICIENT_SIZE where it does not fit. */
int nvml_copy_text(const char *text, char *to, unsigned int room);

/* Defines a query of one number: an expression of `device` and of the `gpu` that `find` (as nvml_gpu) finds for it. */
#define NVML_NUMBER(function, find, expression)                                                                        \
    int function(struct nvml_device *device, unsigned int *value)                                                      \
    {                                                                                                                  \
        const struct node_gpu *gpu;                                                                                    \
        int rc = nvml_checked(find(device, &gpu), value);                                                              \
                                                                                                                       \
        if (rc == NVML_SUCCESS)                                                                                        \
            *value = (expression);                                                                                     \
        return rc;                                                                                                     \
    }

#endif
