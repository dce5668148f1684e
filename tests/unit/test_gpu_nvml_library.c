/* NVML libraries of all generations under the backend, and the errors of those that cannot serve it. */
#include "nvml_fixture.h"

static void refused(const char *library, const char *words, int code, const char *why)
{
    struct error err = {""};
    void *none = NULL;

    setenv("FAKE_NVML", words, 1);
    int rc = gpu_backend_nvml.open(&(struct gpu_backend_options){.library = library}, &none, &err);
    if (rc != code || !strstr(err.text, why))
        fail_msg("%d, '%s' (not %d about '%s')", rc, err.text, code, why);
    assert_null(none);
    assert_null(strchr(err.text, '\n'));
}

TEST(test_everything_of_a_new_library)
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
    assert_metric(gpu, GPU_SM_ACTIVITY, 375);
    assert_metric(gpu, GPU_SM_OCCUPANCY, 250);
    assert_metric(gpu, GPU_DRAM_ACTIVITY, 500);
    assert_metric(gpu, GPU_TENSOR_ACTIVITY, 125);
    assert_metric(gpu, GPU_GRAPHICS_ACTIVITY, 800);
    assert_metric(gpu, GPU_PCIE_TX, 100 * MIB);
    assert_metric(gpu, GPU_PCIE_RX, MIB / 2);
    assert_true(gpu->metrics[GPU_PCIE_RX].at_ns >= reading.at_ns);
    assert_int_equal(gpu->kind, GPU_WHOLE);
    assert_int_equal(gpu->xid_count, 0);
    assert_string_equal(reading.limits, "");
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
TEST(test_an_old_library)
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

TEST(test_a_library_of_between)
{
    const struct gpu_reading *gpu = &reading.gpus[0];

    look(FAKE_MIDDLE, "mps", 1);
    assert_int_equal(gpu->valid, GPU_HAS_MEMORY | GPU_HAS_PROCESSES | GPU_HAS_UTILIZATION | GPU_HAS_POWER);
    assert_int_equal(gpu->process_count, 3);
    assert_int_equal(gpu->processes[1].pid, 1001);
    assert_int_equal(gpu->processes[1].used_bytes, 2 * MIB);
    assert_int_equal(gpu->processes[2].pid, 2000);
}

/* Every function but the first three may be missing. */
TEST(test_a_bare_library)
{
    look(FAKE_BARE, "", 2);
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.gpus[1].error, NVML_ERROR_FUNCTION_NOT_FOUND);
    assert_int_equal(reading.gpus[1].valid, 0);
    assert_string_equal(reading.gpus[1].uuid, "");
    refused(FAKE_BARE, "init=9", -ENODEV, "NVML error (9)");
}

TEST(test_what_is_denied_is_said)
{
    const struct gpu_reading *gpu = &reading.gpus[0];

    look(FAKE_NEW, "gpm-sample=4", 2);
    assert_int_equal(gpu->metrics[GPU_SM_ACTIVITY].source, GPU_SOURCE_NONE);
    assert_true(gpu->valid & GPU_HAS_UTILIZATION);
    assert_non_null(strstr(reading.limits, "no permission for GPM metrics: run as root"));
    look(FAKE_NEW, "v3=4,register=4,energy=4,mig,mig-odd=4", 1);
    assert_non_null(strstr(reading.limits, "no permission for processes, Xid events, MIG instances, some counters: "));
    assert_null(strchr(reading.limits, '\n'));
    look(FAKE_NEW, "mig,gpm-sample=4", 2);
    assert_non_null(strstr(reading.limits, "no permission for GPM metrics, MIG instances: "));
    assert_true(reading.gpus[1].valid & GPU_HAS_MEMORY);
}

TEST(test_libraries_that_cannot_serve)
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

RUN_NVML_TESTS
