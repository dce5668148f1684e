#include "gpu/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define DEFAULT_LIBRARY "libcuda.so.1"

/* CUresult and CUdevice_attribute, as far as they are needed. */
enum { CUDA_SUCCESS = 0, CUDA_ERROR_NO_DEVICE = 100 };
enum { ATTRIBUTE_CLOCK_KHZ = 13, ATTRIBUTE_SM_COUNT = 16, ATTRIBUTE_MEMORY_CLOCK_KHZ = 36, ATTRIBUTE_BUS_BITS = 37 };

struct cuda {
    void *library;
    char path[256];
    bool taken;
    int (*init)(unsigned int flags);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_name)(char *name, int length, int device);
    int (*device_uuid)(unsigned char uuid[16], int device);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*context_retain)(void **context, int device);
    int (*context_release)(int device);
    int (*context_set)(void *context);
    int (*memory_info)(size_t *free, size_t *total);
    int (*error_name)(int code, const char **name);
    int device;
};

/* `newer` may be NULL. ISO C converts no object pointer to a function pointer, hence the copy. */
static bool find(const struct cuda *cuda, void *slot, const char *name, const char *newer)
{
    void *function = newer ? dlsym(cuda->library, newer) : NULL;

    if (!function)
        function = dlsym(cuda->library, name);
    memcpy(slot, &function, sizeof function);
    return function != NULL;
}

static bool find_all(struct cuda *cuda)
{
    find(cuda, &cuda->device_uuid, "cuDeviceGetUuid", "cuDeviceGetUuid_v2");
    find(cuda, &cuda->error_name, "cuGetErrorName", NULL);
    return find(cuda, &cuda->init, "cuInit", NULL) && find(cuda, &cuda->device_count, "cuDeviceGetCount", NULL) &&
           find(cuda, &cuda->device_get, "cuDeviceGet", NULL) &&
           find(cuda, &cuda->device_name, "cuDeviceGetName", NULL) &&
           find(cuda, &cuda->device_attribute, "cuDeviceGetAttribute", NULL) &&
           find(cuda, &cuda->context_retain, "cuDevicePrimaryCtxRetain", NULL) &&
           find(cuda, &cuda->context_release, "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2") &&
           find(cuda, &cuda->context_set, "cuCtxSetCurrent", NULL) &&
           find(cuda, &cuda->memory_info, "cuMemGetInfo_v2", NULL);
}

static int failed(const struct cuda *cuda, const char *call, int code, struct error *err)
{
    const char *name = NULL;

    if (!cuda->error_name || cuda->error_name(code, &name) || !name)
        name = "an error that it does not name";
    return error_set(err, EIO, "%s: %s: %s (%d)", cuda->path, call, name, code);
}

static int load(struct cuda *cuda, struct error *err)
{
    const char *named = getenv(GPU_CUDA_LIBRARY_ENV);

    snprintf(cuda->path, sizeof cuda->path, "%s", named && *named ? named : DEFAULT_LIBRARY);
    cuda->library = dlopen(cuda->path, RTLD_NOW | RTLD_LOCAL);
    if (!cuda->library)
        return error_set(err, ENOENT, "no GPU is usable here: cannot load %s, the CUDA driver's library", cuda->path);
    if (!find_all(cuda))
        return error_set(err, ENOSYS, "%s lacks the CUDA driver's functions: name another with " GPU_CUDA_LIBRARY_ENV,
                         cuda->path);
    return 0;
}

static int start(struct cuda *cuda, struct error *err)
{
    int code = cuda->init(0), count = 0;

    if (code == CUDA_SUCCESS)
        code = cuda->device_count(&count);
    if (code == CUDA_ERROR_NO_DEVICE || (code == CUDA_SUCCESS && count == 0))
        return error_set(err, ENODEV, "no GPU is usable here: %s finds none (is CUDA_VISIBLE_DEVICES right?)",
                         cuda->path);
    if (code)
        return failed(cuda, "cuInit", code, err);
    code = cuda->device_get(&cuda->device, 0);
    return code ? failed(cuda, "cuDeviceGet", code, err) : 0;
}

int cuda_open(struct cuda **cuda, struct error *err)
{
    struct cuda *opened = xcalloc(1, sizeof *opened);
    int rc = load(opened, err);

    if (rc == 0)
        rc = start(opened, err);
    if (rc) {
        cuda_close(opened);
        opened = NULL;
    }
    *cuda = opened;
    return rc;
}

void cuda_close(struct cuda *cuda)
{
    if (!cuda)
        return;
    cuda_context_give(cuda);
    if (cuda->library)
        dlclose(cuda->library);
    free(cuda);
}

static int32_t attribute(const struct cuda *cuda, int which)
{
    int value = 0;

    return cuda->device_attribute(&value, which, cuda->device) == CUDA_SUCCESS && value > 0 ? value : 0;
}

static void write_uuid(const unsigned char uuid[16], char text[static 48])
{
    size_t at = (size_t)snprintf(text, 48, "GPU-");

    for (int i = 0; i < 16; i++)
        at += (size_t)snprintf(text + at, 48 - at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

int cuda_gpu_facts(const struct cuda *cuda, struct cuda_gpu *gpu, struct error *err)
{
    unsigned char uuid[16];
    int code;

    *gpu = (struct cuda_gpu){0};
    code = cuda->device_name(gpu->name, (int)sizeof gpu->name - 1, cuda->device);
    if (code)
        return failed(cuda, "cuDeviceGetName", code, err);
    if (cuda->device_uuid && cuda->device_uuid(uuid, cuda->device) == CUDA_SUCCESS)
        write_uuid(uuid, gpu->uuid);
    gpu->sm_count = attribute(cuda, ATTRIBUTE_SM_COUNT);
    gpu->sm_clock_mhz = attribute(cuda, ATTRIBUTE_CLOCK_KHZ) / 1000;
    /* two transfers a clock */
    gpu->bandwidth_gbps =
        (int32_t)(2.0 * attribute(cuda, ATTRIBUTE_MEMORY_CLOCK_KHZ) * attribute(cuda, ATTRIBUTE_BUS_BITS) / 8 / 1e6 +
                  0.5);
    return 0;
}

int cuda_context_take(struct cuda *cuda, int64_t *free_bytes, struct error *err)
{
    size_t free = 0, total = 0;
    void *context;
    int code = cuda->context_retain(&context, cuda->device);

    if (code)
        return failed(cuda, "cuDevicePrimaryCtxRetain", code, err);
    cuda->taken = true;
    code = cuda->context_set(context);
    if (code)
        return failed(cuda, "cuCtxSetCurrent", code, err);
    code = cuda->memory_info(&free, &total);
    if (code)
        return failed(cuda, "cuMemGetInfo", code, err);
    *free_bytes = (int64_t)free;
    return 0;
}

void cuda_context_give(struct cuda *cuda)
{
    if (cuda->taken)
        cuda->context_release(cuda->device);
    cuda->taken = false;
}
