/* The view of NVML's clients of a node with faults, and of MIG instances. Time runs 1000 times faster. */

#include "contention/contention.h"
#include "vnode/domain.h"
#include "vnode/inject.h"
#include "vnode_library.h"

static int setup(void **state)
{
    return open_node("h100x2-mig");
}

static struct nvml_device *instance(unsigned int index)
{
    struct nvml_device *mig = NULL;

    assert_int_equal(NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu(0), index, &mig), NVML_SUCCESS);
    return mig;
}

static struct attachment train(struct place place, double activity, int64_t bytes)
{
    return train_on(place, activity, bytes, false);
}

/* On GPU `g` (1: the one that is not in MIG mode), until it is cleared. */
static void strike(const char *fault, uint32_t g)
{
    struct strike strike = {.gpus = 1u << g, .until_ns = INT64_MAX};

    fail_if(inject(&f.node, fault, &strike, &trouble) < 0, trouble);
}

/* A GPM metric of a place over 20 ms: of a GPU where gpu_instance is NVML_NO_INSTANCE. NVML's code. */
static int gpm(struct nvml_device *device, unsigned int gpu_instance, unsigned int id, double *value)
{
    struct nvml_gpm_metrics_get *get = calloc(1, sizeof *get + sizeof get->metrics[0]);
    struct nvml_gpm_sample **samples[] = {&get->sample1, &get->sample2};
    int rc = NVML_SUCCESS;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(NVML(nvmlGpmSampleAlloc)(samples[i]), NVML_SUCCESS);
        if (rc == NVML_SUCCESS)
            rc = gpu_instance == NVML_NO_INSTANCE ? NVML(nvmlGpmSampleGet)(device, *samples[i])
                                                  : NVML(nvmlGpmMigSampleGet)(device, gpu_instance, *samples[i]);
        sleep_wall_ms(20);
    }
    get->version = NVML_GPM_METRICS_GET_VERSION;
    get->count = 1;
    get->metrics[0].id = id;
    if (rc == NVML_SUCCESS)
        rc = NVML(nvmlGpmMetricsGet)(get);
    *value = get->metrics[0].value;
    NVML(nvmlGpmSampleFree)(get->sample1);
    NVML(nvmlGpmSampleFree)(get->sample2);
    free(get);
    return rc;
}

static double metric(struct nvml_device *device, unsigned int gpu_instance, unsigned int id)
{
    double value;

    assert_int_equal(gpm(device, gpu_instance, id, &value), NVML_SUCCESS);
    return value;
}

TEST_BETWEEN(instances_are_devices, setup, teardown)
{
    const struct node_gpu *whole = &f.node.file->gpus[0];
    struct nvml_memory_v2 memory = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
    struct nvml_attributes attributes;
    struct nvml_bar1_memory window;
    struct nvml_device *other = NULL;
    struct nvml_utilization utilization;
    unsigned int value, pending;

    assert_int_equal(NVML(nvmlDeviceGetMigMode)(gpu(0), &value, &pending), NVML_SUCCESS);
    assert_int_equal(value, NVML_FEATURE_ENABLED);
    assert_int_equal(NVML(nvmlDeviceGetMigMode)(gpu(1), &value, &pending), NVML_SUCCESS);
    assert_int_equal(value, NVML_FEATURE_DISABLED);
    assert_int_equal(number(NVML(nvmlDeviceGetMaxMigDeviceCount), gpu(0)), 7);
    assert_int_equal(NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu(0), 4, &other), NVML_ERROR_NOT_FOUND);
    assert_int_equal(NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu(1), 0, &other), NVML_ERROR_NOT_FOUND);

    assert_int_equal(number(NVML(nvmlDeviceIsMigDeviceHandle), instance(1)), 1);
    assert_int_equal(number(NVML(nvmlDeviceIsMigDeviceHandle), gpu(0)), 0);
    assert_string_equal(text_of(NVML(nvmlDeviceGetUUID), instance(1)), whole->instances[1].uuid);
    assert_memory_equal(whole->instances[1].uuid, "MIG-", 4);
    assert_int_equal(NVML(nvmlDeviceGetHandleByUUID)(whole->instances[1].uuid, &other), NVML_SUCCESS);
    assert_ptr_equal(other, instance(1));
    assert_string_equal(text_of(NVML(nvmlDeviceGetName), instance(1)), "NVIDIA H100 80GB HBM3 MIG 2g.20gb");
    assert_int_equal(number(NVML(nvmlDeviceGetGpuInstanceId), instance(1)), 2);
    assert_int_equal(number(NVML(nvmlDeviceGetComputeInstanceId), instance(1)), 0);
    assert_int_equal(NVML(nvmlDeviceGetGpuInstanceId)(gpu(1), &value), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(NVML(nvmlDeviceGetAttributes_v2)(instance(0), &attributes), NVML_SUCCESS);
    assert_int_equal(attributes.gpu_instance_slices, 3);
    assert_int_equal(attributes.multiprocessor_count, 3 * 16);
    assert_int_equal(attributes.memory_mib, 80999 / 8 * 4 + 3); /* half of the memory for jobs, in whole MiB */
    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo_v2)(instance(2), &memory), NVML_SUCCESS);
    assert_int_equal(memory.total, INT64_C(80999) * MIB / 8);
    assert_int_equal(NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(instance(2), &other), NVML_SUCCESS);
    assert_ptr_equal(other, gpu(0));
    assert_int_equal(NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(gpu(0), &other), NVML_ERROR_INVALID_ARGUMENT);

    assert_int_equal(NVML(nvmlDeviceGetBAR1MemoryInfo)(gpu(1), &window), NVML_SUCCESS);
    assert_int_equal(window.total, 128 * GIB);
    assert_int_equal(NVML(nvmlDeviceGetBAR1MemoryInfo)(instance(0), &window), NVML_SUCCESS);
    assert_int_equal(window.total, 64 * GIB);

    /* A real one does not answer this either. */
    assert_int_equal(NVML(nvmlDeviceGetUtilizationRates)(gpu(0), &utilization), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(instance(0), &value), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(gpu(0), &value), NVML_SUCCESS);
}

/* A job on 2 of 7 slices: slowed to their share, seen where it is, and only there. */
TEST_BETWEEN(a_job_on_an_instance, setup, teardown)
{
    CLEANUP(attach_end) struct attachment mine = train((struct place){.gpu = 0, .instance = 2}, 0.5, 5 * GIB);
    struct nvml_process_info infos[4];
    const int64_t too_much = 21 * GIB;
    static struct shortage shortage;
    struct node_slot slot;
    int64_t now_ns;
    double value, rate = contention_mig_rate(&contention_default, 0.5, 2, 0.25);

    assert_int_equal(attach_look(&mine, &slot, &now_ns, NULL), 0);
    assert_near(slot.rate, rate, 1e-9);
    assert_int_equal(attach_hold(&mine, &too_much, &shortage, NULL), -ENOMEM);
    assert_int_equal(shortage.total_bytes, f.node.file->gpus[0].instances[1].total_bytes);

    assert_int_equal(used_on(instance(1)), 5 * GIB);
    assert_int_equal(used_on(instance(0)), 0);
    assert_int_equal(used_on(gpu(0)), 5 * GIB);
    assert_int_equal(processes_on(instance(0), infos), 0);
    for (int whole = 0; whole < 2; whole++) {
        assert_int_equal(processes_on(whole ? gpu(0) : instance(1), infos), 1);
        assert_int_equal(infos[0].pid, getpid());
        assert_int_equal(infos[0].gpu_instance_id, 2);
        assert_int_equal(infos[0].compute_instance_id, 0);
    }

    assert_near(metric(gpu(0), 2, NVML_GPM_METRIC_SM_UTIL), 100 * 0.5 * rate * 7 / 2, 1e-6); /* of its slices */
    assert_near(metric(gpu(0), 2, NVML_GPM_METRIC_SM_OCCUPANCY), 50 * 0.5 * rate * 7 / 2, 1e-6);
    assert_near(metric(gpu(0), 1, NVML_GPM_METRIC_SM_UTIL), 0, 0);
    assert_near(metric(gpu(0), NVML_NO_INSTANCE, NVML_GPM_METRIC_SM_UTIL), 100 * 0.5 * rate, 1e-6);
    assert_int_equal(gpm(gpu(0), 9, NVML_GPM_METRIC_SM_UTIL, &value), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpm(gpu(1), 1, NVML_GPM_METRIC_SM_UTIL, &value), NVML_ERROR_NOT_SUPPORTED);
}

static void *ask_power(void *device)
{
    unsigned int mw;

    return (void *)(intptr_t)NVML(nvmlDeviceGetPowerUsage)(device, &mw);
}

TEST_BETWEEN(hung_calls, setup, teardown)
{
    struct nvml_device *hung = gpu(1);
    struct strike until = {.gpus = 2};
    pthread_t thread;
    unsigned int mw;
    void *answer;

    strike("hang", 1);
    assert_int_equal(pthread_create(&thread, NULL, ask_power, hung), 0);
    sleep_wall_ms(50);
    assert_int_equal(pthread_tryjoin_np(thread, &answer), EBUSY);
    assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(gpu(0), &mw), NVML_SUCCESS); /* it holds nothing */
    assert_int_equal(NVML(nvmlDeviceGetCount_v2)(&mw), NVML_SUCCESS);
    inject_clear(&f.node);
    assert_int_equal(pthread_join(thread, &answer), 0);
    assert_int_equal((intptr_t)answer, NVML_SUCCESS);

    until.until_ns = node_now_ns(&f.node) + 50 * NS_PER_SEC; /* 50 ms of wall time */
    assert_int_equal(inject(&f.node, "hang", &until, NULL), 0);
    assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(hung, &mw), NVML_SUCCESS);
    assert_true(node_now_ns(&f.node) >= until.until_ns);
}

TEST_BETWEEN(a_reloaded_driver, setup, teardown)
{
    struct attachment mine = train((struct place){.gpu = 1}, 1, GIB);
    struct nvml_device *device = gpu(1);
    unsigned long long before_mj, after_mj;
    struct node_slot slot;
    unsigned int count;
    int64_t now_ns;

    sleep_wall_ms(20); /* 20 s at more than 70 W */
    assert_int_equal(NVML(nvmlDeviceGetTotalEnergyConsumption)(device, &before_mj), NVML_SUCCESS);
    assert_true(before_mj > 1400 * 1000);
    strike("driver-reload", 1);
    assert_int_equal(NVML(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_DRIVER_NOT_LOADED);
    assert_int_equal(attach_look(&mine, &slot, &now_ns, NULL), 0);
    assert_int_equal(slot.fault, CUDA_FAULT_UNKNOWN);
    attach_end(&mine);
    inject_clear(&f.node);
    assert_int_equal(NVML(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED); /* it knows nothing of us */
    assert_int_equal(NVML(nvmlDeviceGetTotalEnergyConsumption)(device, &after_mj), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(NVML(nvmlShutdown)(), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlDeviceGetTotalEnergyConsumption)(gpu(1), &after_mj), NVML_SUCCESS);
    assert_true(after_mj < before_mj);
}

static void *tell_later(void *xid)
{
    struct strike strike = {.gpus = 2, .until_ns = INT64_MAX, .xid = *(uint32_t *)xid};

    sleep_wall_ms(30);
    inject(&f.node, "xid", &strike, NULL);
    return NULL;
}

TEST_BETWEEN(xids_are_events, setup, teardown)
{
    struct nvml_event_set *set = NULL;
    struct nvml_event_data data;
    uint32_t later = 94;
    pthread_t thread;

    assert_int_equal(fault_xid(&f.node, 1, 0, 13, 0), 0); /* before anybody asked */
    assert_int_equal(NVML(nvmlEventSetCreate)(&set), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlDeviceRegisterEvents)(gpu(1), NVML_EVENT_XID_CRITICAL_ERROR, set), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 0), NVML_ERROR_TIMEOUT);
    assert_int_equal(fault_xid(&f.node, 0, 2, 31, 0), 0); /* on a GPU that was not asked for */
    assert_int_equal(fault_xid(&f.node, 1, 0, 48, 0), 0);
    assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 1000), NVML_SUCCESS);
    assert_ptr_equal(data.device, gpu(1));
    assert_int_equal(data.data, 48);
    assert_true(data.type == NVML_EVENT_XID_CRITICAL_ERROR);
    assert_int_equal(data.gpu_instance_id, NVML_NO_INSTANCE);
    assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 10), NVML_ERROR_TIMEOUT);

    assert_int_equal(NVML(nvmlDeviceRegisterEvents)(gpu(0), NVML_EVENT_XID_CRITICAL_ERROR, set), NVML_SUCCESS);
    assert_int_equal(fault_xid(&f.node, 0, 2, 31, 0), 0);
    assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 1000), NVML_SUCCESS);
    assert_int_equal(data.gpu_instance_id, 2);
    assert_int_equal(pthread_create(&thread, NULL, tell_later, &later), 0);
    assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 10000), NVML_SUCCESS); /* comes while it waits */
    assert_int_equal(data.data, 94);
    pthread_join(thread, NULL);
    assert_int_equal(NVML(nvmlEventSetFree)(set), NVML_SUCCESS);
}

RUN_LIBRARY_TESTS
