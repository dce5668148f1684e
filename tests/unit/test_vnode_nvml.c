/* The virtual libnvidia-ml.so.1 through dlopen, as its clients see it. */

#include "contention/contention.h"
#include "vnode_library.h"

static int setup(void **state)
{
    return open_node("a100x4-40g");
}

static struct attachment train(uint32_t index, double activity, int64_t bytes, bool mps)
{
    return train_on((struct place){.gpu = index}, activity, bytes, mps);
}

TEST(without_a_node)
{
    unsigned int count;

    unsetenv("CARMA_VNODE");
    assert_int_equal(NVML(nvmlInit_v2)(), NVML_ERROR_DRIVER_NOT_LOADED);
    assert_int_equal(NVML(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(NVML(nvmlShutdown)(), NVML_ERROR_UNINITIALIZED);
    setenv("CARMA_VNODE", "/nonexistent", 1);
    assert_int_equal(NVML(nvmlInitWithFlags)(0), NVML_ERROR_DRIVER_NOT_LOADED);
    setenv("CARMA_VNODE", "/dev/null", 1);
    assert_int_equal(NVML(nvmlInit)(), NVML_ERROR_DRIVER_NOT_LOADED);
    assert_string_equal(NVML(nvmlErrorString)(NVML_ERROR_DRIVER_NOT_LOADED), "Driver not loaded");
    assert_non_null(NVML(nvmlErrorString)(-5));
    assert_non_null(NVML(nvmlErrorString)(12345));
}

TEST_BETWEEN(identity, setup, teardown)
{
    struct nvml_device *device = gpu(2), *same = NULL;
    struct nvml_pci_info pci;
    unsigned int value;
    char text[96];
    int major, minor;

    assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS); /* a second user, and its end */
    assert_int_equal(NVML(nvmlShutdown)(), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlDeviceGetCount_v2)(&value), NVML_SUCCESS);
    assert_int_equal(value, 4);
    assert_string_equal(text_of(NVML(nvmlDeviceGetUUID), device), f.node.file->gpus[2].uuid);
    assert_int_equal(NVML(nvmlDeviceGetUUID)(device, text, 40), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(NVML(nvmlDeviceGetHandleByUUID)(f.node.file->gpus[2].uuid, &same), NVML_SUCCESS);
    assert_ptr_equal(same, device);
    assert_int_equal(NVML(nvmlDeviceGetHandleByUUID)("GPU-none", &same), NVML_ERROR_NOT_FOUND);
    assert_int_equal(NVML(nvmlDeviceGetPciInfo_v3)(device, &pci), NVML_SUCCESS);
    assert_string_equal(pci.bus_id, "00000000:11:00.0");
    assert_string_equal(pci.bus_id_old, "0000:11:00.0");
    assert_int_equal(pci.pci_device_id, 0x20b010de);
    assert_int_equal(NVML(nvmlDeviceGetHandleByPciBusId_v2)(pci.bus_id, &same), NVML_SUCCESS);
    assert_ptr_equal(same, device);
    assert_int_equal(NVML(nvmlDeviceGetHandleByPciBusId_v2)("0000:02:00.0", &same), NVML_ERROR_NOT_FOUND);
    assert_int_equal(NVML(nvmlDeviceGetCudaComputeCapability)(device, &major, &minor), NVML_SUCCESS);
    assert_int_equal(major * 10 + minor, 80);
    assert_string_equal(text_of(NVML(nvmlDeviceGetName), device), "NVIDIA A100-SXM4-40GB");
    assert_int_equal(number(NVML(nvmlDeviceGetIndex), device), 2);
    assert_int_equal(NVML(nvmlDeviceGetHandleByIndex_v2)(4, &same), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NVML(nvmlDeviceGetIndex)((struct nvml_device *)&value, &value), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NVML(nvmlDeviceGetIndex)(NULL, &value), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NVML(nvmlDeviceGetIndex)(device, NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NVML(nvmlDeviceGetFanSpeed)(device, &value), NVML_ERROR_NOT_SUPPORTED);
}

TEST_BETWEEN(memory_and_processes, setup, teardown)
{
    struct nvml_memory_v2 v2 = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
    struct nvml_memory v1;
    struct nvml_process_info infos[4];
    struct nvml_process_info_v1 old[4];
    struct nvml_process_detail details[4];
    struct nvml_process_detail_list list = {
        .version = NVML_VERSION(struct nvml_process_detail_list, 1), .count = 4, .processes = details};
    struct attachment mine = train(0, 0.5, 5 * GIB, false);
    unsigned int count = 0;

    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo_v2)(gpu(0), &v2), NVML_SUCCESS);
    assert_int_equal(v2.total, INT64_C(40960) * MIB);
    assert_int_equal(v2.reserved, INT64_C(424) * MIB);
    assert_int_equal(v2.used, 5 * GIB);
    assert_int_equal(v2.free, INT64_C(40536) * MIB - 5 * GIB);
    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo)(gpu(0), &v1), NVML_SUCCESS);
    assert_int_equal(v1.used, 5 * GIB + INT64_C(424) * MIB);
    assert_int_equal(v1.total - v1.used, v1.free);
    v2.version = NVML_VERSION(struct nvml_memory_v2, 1);
    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo_v2)(gpu(0), &v2), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);

    assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(gpu(0), &count, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(count, 1);
    assert_int_equal(processes_on(gpu(0), infos), 1);
    assert_int_equal(infos[0].pid, getpid());
    assert_int_equal(infos[0].used_bytes, 5 * GIB);
    assert_int_equal(infos[0].gpu_instance_id, NVML_NO_INSTANCE);
    count = 4;
    assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses)(gpu(0), &count, old), NVML_SUCCESS);
    assert_int_equal(old[0].used_bytes, 5 * GIB);
    assert_int_equal(NVML(nvmlDeviceGetRunningProcessDetailList)(gpu(0), &list), NVML_SUCCESS);
    assert_int_equal(list.count, 1);
    assert_int_equal(details[0].used_bytes, 5 * GIB);
    count = 0;
    assert_int_equal(NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3)(gpu(0), &count, NULL), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlDeviceGetGraphicsRunningProcesses_v3)(gpu(0), &count, NULL), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(gpu(1), &count, NULL), NVML_SUCCESS);
    attach_end(&mine);

    mine = train(0, 0.5, GIB, true); /* through MPS: in the other list */
    assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(gpu(0), &count, NULL), NVML_SUCCESS);
    count = 4;
    assert_int_equal(NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3)(gpu(0), &count, infos), NVML_SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(infos[0].used_bytes, GIB);
    attach_end(&mine);
}

TEST_BETWEEN(activity, setup, teardown)
{
    struct nvml_gpm_metrics_get *get = calloc(1, sizeof *get + 3 * sizeof get->metrics[0]);
    struct nvml_gpm_support support = {.version = NVML_GPM_SUPPORT_VERSION};
    struct nvml_field_value values[2] = {{.field_id = NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION}, {.field_id = 9999}};
    struct attachment mine = train(1, 0.5, GIB, false);
    struct nvml_utilization utilization;
    unsigned int mw, count = 1;
    unsigned long long before_mj, after_mj;
    struct nvml_process_utilization sample;
    double watts = contention_power_w(0.5, 53.8, 275.5);

    assert_int_equal(NVML(nvmlGpmQueryDeviceSupport)(gpu(1), &support), NVML_SUCCESS);
    assert_int_equal(support.supported, 1);
    assert_int_equal(NVML(nvmlGpmSampleAlloc)(&get->sample1), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlGpmSampleAlloc)(&get->sample2), NVML_SUCCESS);
    get->version = NVML_GPM_METRICS_GET_VERSION;
    get->count = 3;
    get->metrics[0].id = NVML_GPM_METRIC_SM_UTIL;
    get->metrics[1].id = NVML_GPM_METRIC_GRAPHICS_UTIL;
    get->metrics[2].id = NVML_GPM_METRIC_DRAM_BW_UTIL;
    assert_int_equal(NVML(nvmlGpmMetricsGet)(get), NVML_ERROR_INVALID_ARGUMENT); /* nothing sampled */
    assert_int_equal(NVML(nvmlGpmSampleGet)(gpu(1), get->sample1), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlDeviceGetTotalEnergyConsumption)(gpu(1), &before_mj), NVML_SUCCESS);
    sleep_wall_ms(30);
    assert_int_equal(NVML(nvmlDeviceGetTotalEnergyConsumption)(gpu(1), &after_mj), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlGpmSampleGet)(gpu(1), get->sample2), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlGpmMetricsGet)(get), NVML_SUCCESS);
    assert_int_equal(get->metrics[0].nvml_return, NVML_SUCCESS);
    assert_near(get->metrics[0].value, 50, 1e-6);
    assert_near(get->metrics[1].value, 100 * pow(0.5, 0.4), 1e-6);
    assert_int_equal(get->metrics[2].nvml_return, NVML_SUCCESS);
    assert_near(get->metrics[2].value, 30, 1e-6); /* 0.6 of the SM activity */
    get->metrics[2].id = 999;
    assert_int_equal(NVML(nvmlGpmMetricsGet)(get), NVML_SUCCESS);
    assert_int_equal(get->metrics[2].nvml_return, NVML_ERROR_NOT_SUPPORTED);
    assert_true(after_mj - before_mj >= (unsigned long long)(watts * 30 * 1000) - 1); /* 30 ms are 30 s here */

    assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(gpu(1), &mw), NVML_SUCCESS);
    assert_near(mw, 1000 * watts, 1);
    assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(gpu(0), &mw), NVML_SUCCESS);
    assert_near(mw, 53800, 1);
    assert_int_equal(NVML(nvmlDeviceGetUtilizationRates)(gpu(1), &utilization), NVML_SUCCESS);
    assert_int_equal(utilization.gpu, 76); /* 0.5^0.4 */
    assert_int_equal(NVML(nvmlDeviceGetProcessUtilization)(gpu(1), &sample, &count, 0), NVML_SUCCESS);
    assert_int_equal(sample.sm, 76);
    assert_int_equal(NVML(nvmlDeviceGetProcessUtilization)(gpu(0), &sample, &count, 0), NVML_ERROR_NOT_FOUND);
    assert_int_equal(NVML(nvmlDeviceGetFieldValues)(gpu(1), 2, values), NVML_SUCCESS);
    assert_int_equal(values[0].nvml_return, NVML_SUCCESS);
    assert_int_equal(values[0].value_type, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
    assert_true(values[0].value.as_ulonglong >= after_mj);
    assert_int_equal(values[1].nvml_return, NVML_ERROR_NOT_SUPPORTED);
    NVML(nvmlGpmSampleFree)(get->sample1);
    NVML(nvmlGpmSampleFree)(get->sample2);
    free(get);
    attach_end(&mine);
}

static void *poll_energy(void *failed)
{
    unsigned long long last = 0, mj;

    for (int i = 0; i < 500; i++) {
        if (NVML(nvmlDeviceGetTotalEnergyConsumption)(gpu(0), &mj) != NVML_SUCCESS || mj < last)
            *(bool *)failed = true;
        last = mj;
    }
    return NULL;
}

TEST_BETWEEN(threads_and_forks, setup, teardown)
{
    pthread_t threads[3];
    bool failed[3] = {false};
    int status;

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, poll_energy, &failed[i]);
    pid_t pid = fork();
    if (pid == 0) {
        bool child_failed = false;

        poll_energy(&child_failed); /* goes on with its parent's handles */
        _exit(child_failed);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_false(failed[i]);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Everything that the ABI's header declares is there, and nothing else of ours is to be seen. */
TEST(symbols)
{
    FILE *header = fopen(CARMA_SOURCE "/src/gpu/nvml/abi.h", "r"), *nm;
    char line[512], name[128];
    unsigned int found = 0;

    assert_non_null(header);
    while (fgets(line, sizeof line, header)) {
        const char *at = strstr(line, "nvml");

        if (strncmp(line, "NVML_API ", 9) != 0 || !at || sscanf(at, "%127[A-Za-z0-9_]", name) != 1)
            continue;
        find(name);
        found++;
    }
    fclose(header);
    assert_true(found > 80);

    nm = popen("nm -D --defined-only " CARMA_NVML, "r");
    assert_non_null(nm);
    while (fgets(line, sizeof line, nm))
        if (sscanf(line, "%*s %*s %127s", name) != 1 || strncmp(name, "nvml", 4) != 0)
            fail_msg("the library shows '%s'", name);
    assert_int_equal(pclose(nm), 0);
}

RUN_LIBRARY_TESTS
