/* The virtual node's NVML, loaded as its clients load it. */
#ifndef CARMA_TESTS_VNODE_LIBRARY_H
#define CARMA_TESTS_VNODE_LIBRARY_H

#include "unit.h"

#include <dlfcn.h>

#include "gpu/nvml/abi.h"
#include "vnode_fixture.h"

static struct fixture f;
static void *library;

/* The function of that name, with its type from the ABI's header. */
#define NVML(name) ((__typeof__(&name))find(#name))

static void *find(const char *name)
{
    void *function = dlsym(library, name);

    if (!function)
        fail_msg("the library has no %s", name);
    return function;
}

static int teardown(void **state)
{
    assert_int_equal(NVML(nvmlShutdown)(), NVML_SUCCESS);
    fixture_close(&f);
    return 0;
}

static struct nvml_device *gpu(unsigned int index)
{
    struct nvml_device *device = NULL;

    assert_int_equal(NVML(nvmlDeviceGetHandleByIndex_v2)(index, &device), NVML_SUCCESS);
    return device;
}

#endif
