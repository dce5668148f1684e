/* A CUDA driver's library of the tests' own, on a virtual node (CARMA_VNODE): its one GPU is the node's first. A
 * primary context takes FAKE_CUDA_CONTEXT_MIB (default 400) of its memory, as NVML then shows. FAKE_CUDA=none: it finds
 * no GPU; FAKE_CUDA=broken: contexts cannot be made; FAKE_CUDA=unlaunchable: kernels cannot be started.
 *
 * No kernel is run: PTX is taken as text that has an entry of the name that is asked for. A launch of `spin` keeps as
 * much of the node's GPU busy as there are blocks for its 108 SMs, while it is waited for. Its first parameter is the
 * time. One of `work` takes no time. Memory is taken of the node's first GPU. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "vnode/attach.h"

enum { SUCCESS = 0, ERROR_OUT_OF_MEMORY = 2, ERROR_UNKNOWN = 999 };

#pragma GCC visibility push(default)
int cuInit(unsigned int flags);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int length, int device);
int cuDeviceGetUuid_v2(unsigned char uuid[16], int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(void *context);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
int cuMemAlloc_v2(uint64_t *address, size_t count);
int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t count);
int cuGetErrorName(int code, const char **name);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                   unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, void *stream,
                   void **parameters, void **extra);
int cuCtxSynchronize(void);
#pragma GCC visibility pop

static struct node node;
static struct attachment attachment;
static int64_t context_bytes;

static int is(const char *word)
{
    const char *fake = getenv("FAKE_CUDA");

    return fake && strcmp(fake, word) == 0;
}

int cuInit(unsigned int flags)
{
    (void)flags;
    return node.file || node_open(&node, NULL, NULL) == 0 ? SUCCESS : ERROR_UNKNOWN;
}

int cuDeviceGetCount(int *count)
{
    *count = !is("none");
    return SUCCESS;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = 0;
    return ordinal == 0 ? SUCCESS : ERROR_UNKNOWN;
}

int cuDeviceGetName(char *name, int length, int device)
{
    snprintf(name, (size_t)length, "%s", node.file->gpus[device].name);
    return SUCCESS;
}

int cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
    const char *at = node.file->gpus[device].uuid + strlen("GPU-");

    for (int i = 0; i < 16; i++) {
        unsigned int byte = 0;
        at += *at == '-';
        sscanf(at, "%2x", &byte);
        uuid[i] = (unsigned char)byte;
        at += 2;
    }
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    switch (attribute) {
    case 13: /* clock, kHz */
        *value = 1410000;
        return SUCCESS;
    case 16: /* multiprocessors */
        *value = 108;
        return SUCCESS;
    case 36: /* memory's clock, kHz */
        *value = 1215000;
        return SUCCESS;
    case 37: /* bits of its bus */
        *value = 5120;
        return SUCCESS;
    default:
        return ERROR_UNKNOWN;
    }
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    const char *mib = getenv("FAKE_CUDA_CONTEXT_MIB");
    struct node_slot wanted = {.use_count = 1, .uses = {{.gpu = (uint32_t)device}}};
    int64_t bytes[NODE_MAX_GPUS] = {0};
    struct shortage shortage;

    if (is("broken") || attach_begin(&attachment, &node, &wanted, NULL))
        return ERROR_UNKNOWN;
    bytes[0] = context_bytes = (mib ? atoi(mib) : 400) * MIB;
    *context = &attachment;
    return attach_hold(&attachment, bytes, &shortage, NULL) ? ERROR_UNKNOWN : SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    attach_end(&attachment);
    return SUCCESS;
}

int cuCtxSetCurrent(void *context)
{
    return context == &attachment ? SUCCESS : ERROR_UNKNOWN;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    const struct node_gpu *gpu = &node.file->gpus[0];

    *total_bytes = (size_t)(gpu->total_bytes - gpu->reserved_bytes);
    *free_bytes = *total_bytes - (size_t)context_bytes;
    return SUCCESS;
}

int cuMemAlloc_v2(uint64_t *address, size_t count)
{
    int64_t bytes[NODE_MAX_GPUS] = {context_bytes + (int64_t)count};
    struct shortage shortage;
    int rc = attach_hold(&attachment, bytes, &shortage, NULL);

    if (rc == 0)
        context_bytes = bytes[0];
    *address = 4096;
    return rc == 0 ? SUCCESS : rc == -ENOMEM ? ERROR_OUT_OF_MEMORY : ERROR_UNKNOWN;
}

int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t count)
{
    (void)value, (void)count;
    return address ? SUCCESS : ERROR_UNKNOWN;
}

int cuGetErrorName(int code, const char **name)
{
    *name = code == ERROR_UNKNOWN         ? "CUDA_ERROR_UNKNOWN"
            : code == ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                          : "CUDA_ERROR_OTHER";
    return SUCCESS;
}

#define SMS 108

static struct attachment launched; /* the running kernels, from the first launch until they are waited for */
static uint64_t pending_ns;
static char spin[] = "spin", work[] = "work";

int cuModuleLoadData(void **module, const void *image)
{
    *module = (void *)(uintptr_t)image;
    return strncmp(image, ".version", strlen(".version")) == 0 ? SUCCESS : ERROR_UNKNOWN;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    char entry[64];

    snprintf(entry, sizeof entry, ".entry %s(", name);
    *function = strcmp(name, spin) == 0 ? spin : work;
    return strstr(module, entry) ? SUCCESS : ERROR_UNKNOWN;
}

int cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                   unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, void *stream,
                   void **parameters, void **extra)
{
    struct node_slot wanted = {.use_count = 1, .uses = {{.activity = grid_x < SMS ? (double)grid_x / SMS : 1}}};

    (void)shared_bytes, (void)stream, (void)extra;
    if (is("unlaunchable") || !attachment.node || block_x == 0 || block_x > 1024 ||
        grid_y * grid_z * block_y * block_z != 1)
        return ERROR_UNKNOWN;
    if (function == work)
        return SUCCESS;
    pending_ns += *(uint64_t *)parameters[0];
    if (launched.node)
        return SUCCESS;
    wanted.work_ns = 1e18; /* until it is waited for */
    return attach_begin(&launched, &node, &wanted, NULL) ? ERROR_UNKNOWN : SUCCESS;
}

int cuCtxSynchronize(void)
{
    usleep((useconds_t)(pending_ns / 1000));
    pending_ns = 0;
    attach_end(&launched);
    return SUCCESS;
}
