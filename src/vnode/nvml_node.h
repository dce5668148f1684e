/* What the files of the virtual libnvidia-ml share: the open node, and devices as handles on it. Nothing here aborts;
 * what is allocated is checked. Functions return NVML's codes. */
#ifndef CARMA_VNODE_NVML_NODE_H
#define CARMA_VNODE_NVML_NODE_H

#include "gpu/nvml_abi.h"
#include "vnode/node.h"

struct nvml_device {
    uint32_t index;
};

/* The device's fixed facts; *gpu stays valid until the last nvmlShutdown. */
int nvml_gpu(struct nvml_device *device, const struct node_gpu **gpu);

/* The device's state as of now, under the node's lock until nvml_end(). */
int nvml_begin(struct nvml_device *device, const struct node_gpu **gpu, struct node_bank **bank);
void nvml_end(void);

/* NVML_ERROR_INSUFFICIENT_SIZE where it does not fit. */
int nvml_copy_text(const char *text, char *to, unsigned int room);

#endif
