/* Every fallback of the NVML backend, through the real loader, against tests/fakes/fake_nvml.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "gpu/frame.h"
#include "gpu/nvml.h"
#include "gpu/nvml_abi.h"

static struct gpu_node_reading reading;

/* Looks `times`, 105 ms apart, at a library that behaves as `words` say. */
static void look(const char *library, const char *words, int times)
{
    struct error err = {""};
    void *backend = NULL;

    setenv("FAKE_NVML", words, 1);
    if (gpu_backend_nvml.open(library, &backend, &err) < 0)
        fail_msg("%s", err.text);
    while (times--) {
        gpu_backend_nvml.read(backend, &reading);
        if (times)
            usleep(105000);
    }
    gpu_backend_nvml.close(backend);
}

static void refused(const char *library, const char *words, int code, const char *why)
{
    struct error err = {""};
    void *backend = NULL;
    int rc;

    setenv("FAKE_NVML", words, 1);
    rc = gpu_backend_nvml.open(library, &backend, &err);
    if (rc != code || !strstr(err.text, why))
        fail_msg("%d, '%s' (not %d about '%s')", rc, err.text, code, why);
    assert_null(backend);
    assert_null(strchr(err.text, '\n'));
}

static void test_everything_of_a_new_library(void **state)
{
    const struct gpu_reading *gpu = &reading.gpus[0];

    look(FAKE_NEW, "", 2);
    assert_int_equal(reading.count, 2);
    assert_true(reading.at_ns > 0);
    assert_string_equal(gpu->uuid, "GPU-00000000-0000-0000-0000-000000000000");
    assert_string_equal(gpu->name, "Fake GPU 0");
    assert_string_equal(reading.gpus[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
    assert_int_equal(reading.gpus[1].index, 1);
    assert_int_equal(gpu->valid, 31);
    assert_int_equal(gpu->error, 0);
    assert_int_equal(gpu->total_bytes, (40960 - 512) * MIB);
    assert_int_equal(gpu->reserved_bytes, 512 * MIB);
    assert_int_equal(gpu->used_bytes, 1024 * MIB);
    assert_int_equal(gpu->utilization_permille, 900);
    assert_int_equal(gpu->metrics[GPU_SM_ACTIVITY].value, 375);
    assert_int_equal(gpu->power_mw, 123456);
    assert_int_equal(gpu->energy_mj, 9876543210);
    assert_int_equal(gpu->process_count, 2);
    assert_int_equal(gpu->processes[0].pid, 1000);
    assert_int_equal(gpu->processes[0].used_bytes, MIB);
    assert_int_equal(gpu->processes[0].mps, 0);
    assert_int_equal(gpu->processes[1].pid, 1001);
    assert_int_equal(gpu->processes[1].used_bytes, 2 * MIB);
    assert_int_equal(reading.gpus[1].process_count, 0);
    assert_true(reading.gpus[1].valid & GPU_HAS_PROCESSES); /* an empty list is a list */
}

/* The first driver generation: old layouts, nothing newer is there. */
static void test_an_old_library(void **state)
{
    const struct gpu_reading *gpu = &reading.gpus[0];

    look(FAKE_OLD, "", 2);
    assert_int_equal(reading.count, 2);
    assert_int_equal(gpu->valid, GPU_HAS_MEMORY | GPU_HAS_PROCESSES | GPU_HAS_UTILIZATION | GPU_HAS_POWER);
    assert_int_equal(gpu->total_bytes, 40960 * MIB);
    assert_int_equal(gpu->reserved_bytes, 0);
    assert_int_equal(gpu->used_bytes, 1536 * MIB);
    assert_int_equal(gpu->process_count, 2);
    assert_int_equal(gpu->processes[1].pid, 1001);
    assert_int_equal(gpu->processes[1].used_bytes, 2 * MIB);
}

static void test_a_library_of_between(void **state)
{
    const struct gpu_reading *gpu = &reading.gpus[0];

    look(FAKE_MIDDLE, "mps", 1);
    assert_int_equal(gpu->valid, GPU_HAS_MEMORY | GPU_HAS_PROCESSES | GPU_HAS_UTILIZATION | GPU_HAS_POWER);
    assert_int_equal(gpu->process_count, 3);
    assert_int_equal(gpu->processes[1].pid, 1001);
    assert_int_equal(gpu->processes[1].used_bytes, 2 * MIB);
    assert_int_equal(gpu->processes[2].pid, 2000);
}

static void test_memory_falls_back(void **state)
{
    look(FAKE_NEW, "memory-v2=25", 1); /* ARGUMENT_VERSION_MISMATCH */
    assert_int_equal(reading.gpus[0].total_bytes, 40960 * MIB);
    assert_int_equal(reading.gpus[0].used_bytes, 1536 * MIB);
    look(FAKE_NEW, "memory-v2=3", 1);
    assert_int_equal(reading.gpus[0].used_bytes, 1536 * MIB);
}

static void test_process_lists_fall_back(void **state)
{
    const char *refusals[] = {"v3=3", "v3=13", "v3=25"};

    for (size_t i = 0; i < array_size(refusals); i++) {
        look(FAKE_NEW, refusals[i], 1);
        assert_true(reading.gpus[0].valid & GPU_HAS_PROCESSES);
        assert_int_equal(reading.gpus[0].process_count, 2);
        assert_int_equal(reading.gpus[0].processes[1].used_bytes, 2 * MIB);
    }
    look(FAKE_NEW, "v3=4", 1); /* NO_PERMISSION: no older version would do better */
    assert_false(reading.gpus[0].valid & GPU_HAS_PROCESSES);
    assert_int_equal(reading.gpus[0].error, 0);
}

/* Entries of 32 or 16 bytes where 24 are promised; of the longer ones as many as the first buffer may hold. */
static void test_drivers_that_break_a_layout(void **state)
{
    const char *ways[] = {"v3-is-longer,processes=32", "v3-is-v1,processes=32"};

    for (size_t way = 0; way < array_size(ways); way++) {
        look(FAKE_NEW, ways[way], 1);
        assert_true(reading.gpus[0].valid & GPU_HAS_PROCESSES);
        assert_int_equal(reading.gpus[0].process_count, 32);
        for (int i = 0; i < 32; i++) {
            assert_int_equal(reading.gpus[0].processes[i].pid, 1000 + i);
            assert_int_equal(reading.gpus[0].processes[i].used_bytes, (i + 1) * MIB);
        }
    }
}

static void test_garbage_is_not_believed(void **state)
{
    look(FAKE_NEW, "all-garbage", 1);
    assert_false(reading.gpus[0].valid & GPU_HAS_PROCESSES);
    assert_int_equal(reading.gpus[0].process_count, 0);
    assert_true(reading.gpus[0].valid & GPU_HAS_MEMORY);
    look(FAKE_NEW, "busy=101", 1);
    assert_false(reading.gpus[0].valid & GPU_HAS_UTILIZATION);
    assert_true(reading.gpus[0].valid & GPU_HAS_POWER);
}

static void test_long_and_growing_lists(void **state)
{
    look(FAKE_NEW, "processes=200", 1);
    assert_int_equal(reading.gpus[0].process_count, 200);
    assert_int_equal(gpu_reading_listed(&reading.gpus[0]), GPU_MAX_PROCESSES);
    assert_int_equal(reading.gpus[0].processes[GPU_MAX_PROCESSES - 1].pid, 1000 + GPU_MAX_PROCESSES - 1);
    look(FAKE_NEW, "growing", 1);
    assert_true(reading.gpus[0].valid & GPU_HAS_PROCESSES);
    assert_int_equal(reading.gpus[0].process_count, 100);
    look(FAKE_NEW, "always-short", 1); /* ends, and is no list */
    assert_false(reading.gpus[0].valid & GPU_HAS_PROCESSES);
    look(FAKE_NEW, "processes=1000000", 1);
    assert_false(reading.gpus[0].valid & GPU_HAS_PROCESSES);
}

static void test_mps_clients_count_once(void **state)
{
    const struct gpu_reading *gpu = &reading.gpus[0];

    look(FAKE_NEW, "mps", 1);
    assert_int_equal(gpu->process_count, 3);
    assert_int_equal(gpu->processes[0].pid, 1000);
    assert_int_equal(gpu->processes[0].mps, 1);
    assert_int_equal(gpu->processes[0].used_bytes, 8 * MIB);
    assert_int_equal(gpu->processes[1].pid, 1001);
    assert_int_equal(gpu->processes[1].mps, 0);
    assert_int_equal(gpu->processes[2].pid, 2000);
    assert_int_equal(gpu->processes[2].mps, 1);
    look(FAKE_NEW, "mps=3", 1); /* NOT_SUPPORTED: then there are none */
    assert_int_equal(gpu->process_count, 2);
    assert_true(gpu->valid & GPU_HAS_PROCESSES);
    look(FAKE_NEW, "mps=999", 1); /* there may be some that we do not see */
    assert_false(gpu->valid & GPU_HAS_PROCESSES);
    assert_int_equal(gpu->process_count, 0);
}

static void test_untold_process_memory(void **state)
{
    look(FAKE_NEW, "no-process-memory", 1);
    assert_true(reading.gpus[0].valid & GPU_HAS_PROCESSES);
    assert_int_equal(reading.gpus[0].process_count, 2);
    assert_int_equal(reading.gpus[0].processes[0].used_bytes, -1);
}

static void test_unsupported_is_never_zero(void **state)
{
    look(FAKE_NEW, "utilization=3,power=3,energy=3", 1);
    assert_int_equal(reading.gpus[0].valid, GPU_HAS_MEMORY | GPU_HAS_PROCESSES);
    assert_int_equal(reading.gpus[0].error, 0);
}

static void test_a_lost_gpu(void **state)
{
    const char *ways[] = {"lost", "no-handle", "lost-late"};

    for (size_t i = 0; i < array_size(ways); i++) {
        look(FAKE_NEW, ways[i], 2);
        assert_int_equal(reading.count, 2);
        assert_int_equal(reading.gpus[0].error, 0);
        assert_int_equal(reading.gpus[0].valid, 31);
        assert_int_equal(reading.gpus[1].error, NVML_ERROR_GPU_IS_LOST);
        assert_int_equal(reading.gpus[1].valid, 0);
        assert_int_equal(reading.gpus[1].index, 1);
    }
}

/* A GPU that is lost after it was seen keeps its name; one that comes back is read again. */
static void test_a_gpu_goes_and_comes_back(void **state)
{
    struct error err;
    void *backend;

    setenv("FAKE_NVML", "no-handle", 1);
    assert_int_equal(gpu_backend_nvml.open(FAKE_NEW, &backend, &err), 0);
    gpu_backend_nvml.read(backend, &reading);
    assert_string_equal(reading.gpus[1].uuid, "");
    setenv("FAKE_NVML", "", 1);
    gpu_backend_nvml.read(backend, &reading);
    assert_int_equal(reading.gpus[1].error, 0);
    assert_true(reading.gpus[1].valid & GPU_HAS_MEMORY);
    setenv("FAKE_NVML", "lost", 1);
    gpu_backend_nvml.read(backend, &reading);
    assert_int_equal(reading.gpus[1].error, NVML_ERROR_GPU_IS_LOST);
    assert_string_equal(reading.gpus[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
    gpu_backend_nvml.close(backend);
}

static void test_sm_activity(void **state)
{
    const struct gpu_reading *gpu = &reading.gpus[0];
    const char *impossible[] = {"gpm=102", "gpm=-1", "gpm=nan", "gpm-error"};

    look(FAKE_NEW, "", 1); /* one sample is none yet */
    assert_false(gpu->metrics[GPU_SM_ACTIVITY].source);
    look(FAKE_NEW, "no-gpm", 2);
    assert_false(gpu->metrics[GPU_SM_ACTIVITY].source);
    assert_true(gpu->valid & GPU_HAS_UTILIZATION);
    for (size_t i = 0; i < array_size(impossible); i++) {
        look(FAKE_NEW, impossible[i], 2);
        assert_false(gpu->metrics[GPU_SM_ACTIVITY].source);
    }
    look(FAKE_NEW, "gpm=100.4", 2); /* noise of a busy GPU */
    assert_true(gpu->metrics[GPU_SM_ACTIVITY].source);
    assert_int_equal(gpu->metrics[GPU_SM_ACTIVITY].value, 1000);
    look(FAKE_NEW, "gpm=12.36", 2);
    assert_int_equal(gpu->metrics[GPU_SM_ACTIVITY].value, 124);
}

/* Looks closer together than GPM allows: the value comes from the last sample that is old enough. */
static void test_sm_activity_of_frequent_looks(void **state)
{
    struct error err;
    void *backend;
    int values = 0;
    int64_t first_ns = 0;

    setenv("FAKE_NVML", "", 1);
    assert_int_equal(gpu_backend_nvml.open(FAKE_NEW, &backend, &err), 0);
    for (int i = 0; i < 12; i++) {
        gpu_backend_nvml.read(backend, &reading);
        first_ns = i ? first_ns : reading.at_ns;
        values += reading.gpus[0].metrics[GPU_SM_ACTIVITY].source != 0;
        usleep(30000);
    }
    gpu_backend_nvml.close(backend);
    assert_in_range(values, 1, (reading.at_ns - first_ns) / (100 * NS_PER_MS) + 1);
}

static void test_libraries_that_cannot_serve(void **state)
{
    refused("/nonexistent/libnvidia-ml.so", "", -ENOENT, "/nonexistent/libnvidia-ml.so");
    refused(FAKE_EMPTY, "", -ENOSYS, "lacks NVML's basic functions");
    refused(FAKE_NEW, "init=9", -ENODEV, "Driver Not Loaded (9)");
    refused(FAKE_NEW, "count=65", -E2BIG, "65 GPUs");
    setenv(GPU_NVML_LIBRARY_ENV, "/nonexistent/by-env.so", 1);
    refused(NULL, "", -ENOENT, "/nonexistent/by-env.so");
    refused("/nonexistent/by-argument.so", "", -ENOENT, "/nonexistent/by-argument.so");
    setenv(GPU_NVML_LIBRARY_ENV, FAKE_OLD, 1);
    look(NULL, "count=0", 1);
    assert_int_equal(reading.count, 0);
    unsetenv(GPU_NVML_LIBRARY_ENV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_of_a_new_library),
        cmocka_unit_test(test_an_old_library),
        cmocka_unit_test(test_a_library_of_between),
        cmocka_unit_test(test_memory_falls_back),
        cmocka_unit_test(test_process_lists_fall_back),
        cmocka_unit_test(test_drivers_that_break_a_layout),
        cmocka_unit_test(test_garbage_is_not_believed),
        cmocka_unit_test(test_long_and_growing_lists),
        cmocka_unit_test(test_mps_clients_count_once),
        cmocka_unit_test(test_untold_process_memory),
        cmocka_unit_test(test_unsupported_is_never_zero),
        cmocka_unit_test(test_a_lost_gpu),
        cmocka_unit_test(test_a_gpu_goes_and_comes_back),
        cmocka_unit_test(test_sm_activity),
        cmocka_unit_test(test_sm_activity_of_frequent_looks),
        cmocka_unit_test(test_libraries_that_cannot_serve),
    };

    unsetenv("CARMA_TIME_SCALE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
