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

static inline int open_node(const char *profile)
{
    fixture_open(&f, profile);
    assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(NVML(nvmlShutdown)(), NVML_SUCCESS);
    fixture_close(&f);
    return 0;
}

/* Puts this process there, training from now on, with `bytes` of memory. */
static inline struct attachment train_on(struct place place, double activity, int64_t bytes, bool mps)
{
    struct node_slot wanted = {.use_count = 1,
                               .mps = mps,
                               .work_ns = 1e18,
                               .train_from_ns = node_now_ns(&f.node),
                               .uses = {{.gpu = place.gpu, .instance = place.instance, .activity = activity}}};
    static struct shortage shortage;
    struct attachment attachment;

    assert_int_equal(attach_begin(&attachment, &f.node, &wanted, NULL), 0);
    assert_int_equal(attach_hold(&attachment, &bytes, &shortage, NULL), 0);
    return attachment;
}

static struct nvml_device *gpu(unsigned int index)
{
    struct nvml_device *device = NULL;

    assert_int_equal(NVML(nvmlDeviceGetHandleByIndex_v2)(index, &device), NVML_SUCCESS);
    return device;
}

/* What a function tells of a device as a number. */
static inline unsigned int number(int (*function)(struct nvml_device *, unsigned int *), struct nvml_device *device)
{
    unsigned int value;

    assert_int_equal(function(device, &value), NVML_SUCCESS);
    return value;
}

/* Likewise as a text, until the next call. */
static inline const char *text_of(int (*function)(struct nvml_device *, char *, unsigned int),
                                  struct nvml_device *device)
{
    static char text[96];

    assert_int_equal(function(device, text, sizeof text), NVML_SUCCESS);
    return text;
}

/* The processes of a device that are no MPS clients; how many, of at most 4. */
static inline unsigned int processes_on(struct nvml_device *device, struct nvml_process_info infos[static 4])
{
    unsigned int count = 4;

    assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, infos), NVML_SUCCESS);
    return count;
}

static inline unsigned long long used_on(struct nvml_device *device)
{
    struct nvml_memory_v2 memory = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};

    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo_v2)(device, &memory), NVML_SUCCESS);
    return memory.used;
}

/* The main of their programs: node time runs 1000 times faster. */
#define RUN_LIBRARY_TESTS                                                                                              \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        setenv("CARMA_TIME_SCALE", "1000", 1);                                                                         \
        library = dlopen(CARMA_NVML, RTLD_NOW | RTLD_LOCAL);                                                           \
        if (library)                                                                                                   \
            return unit_tests_run("tests", NULL, NULL);                                                                \
        fprintf(stderr, "%s\n", dlerror());                                                                            \
        return 1;                                                                                                      \
    }

#endif
