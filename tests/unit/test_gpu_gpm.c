/* GPM on a clock of the test's own: when two samples are compared, and when they must not be. */
#include "unit.h"

#include "gpu/nvml/gpm.h"

struct nvml_gpm_sample {
    int number;
};

static struct nvml_gpm_sample samples[4];
static int made, freed, taken;
static int support_code, sample_code;
static unsigned int sampled_instance;
static const struct nvml_gpm_sample *compared[2];

static int support(struct nvml_device *device, struct nvml_gpm_support *answer)
{
    answer->supported = 1;
    return support_code;
}

static int make(struct nvml_gpm_sample **sample)
{
    *sample = &samples[made++];
    return made > (int)array_size(samples) ? NVML_ERROR_MEMORY : NVML_SUCCESS;
}

static int unmake(struct nvml_gpm_sample *sample)
{
    freed++;
    return NVML_SUCCESS;
}

static int take_mig(struct nvml_device *device, unsigned int gpu_instance_id, struct nvml_gpm_sample *sample)
{
    sampled_instance = gpu_instance_id;
    sample->number = ++taken;
    return sample_code;
}

static int take(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
    return take_mig(device, NVML_NO_INSTANCE, sample);
}

static int compare(struct nvml_gpm_metrics_get *get)
{
    compared[0] = get->sample1;
    compared[1] = get->sample2;
    for (unsigned int i = 0; i < get->count; i++)
        get->metrics[i].value = 50;
    return NVML_SUCCESS;
}

static const struct nvml_calls calls = {.gpm_support = support,
                                        .gpm_alloc = make,
                                        .gpm_free = unmake,
                                        .gpm_get = take,
                                        .gpm_get_mig = take_mig,
                                        .gpm_metrics = compare};

/* Whether a look at this time has values; of the samples numbered `earlier` and the one after, where it has. */
static void look(struct nvml_gpm *gpm, int64_t at_ms, int code, int earlier)
{
    struct gpu_measure metrics[GPU_METRIC_COUNT] = {{0}};

    assert_int_equal(nvml_gpm_read(&calls, gpm, NULL, NVML_NO_INSTANCE, at_ms * NS_PER_MS, metrics), code);
    for (int m = 0; m < GPU_METRIC_COUNT; m++)
        assert_int_equal(metrics[m].source, earlier ? GPU_SOURCE_GPM : GPU_SOURCE_NONE);
    if (!earlier)
        return;
    assert_int_equal(metrics[GPU_SM_ACTIVITY].at_ns, at_ms * NS_PER_MS);
    assert_int_equal(metrics[GPU_PCIE_RX].value, 50 * MIB);
    assert_int_equal(compared[0]->number, earlier);
    assert_int_equal(compared[1]->number, earlier + 1);
}

AROUND(begin)
{
    made = freed = taken = support_code = sample_code = 0;
}

TEST_BETWEEN(test_intervals, begin, NULL)
{
    struct nvml_gpm gpm = {0};

    look(&gpm, 1000, NVML_SUCCESS, 0);
    look(&gpm, 1099, NVML_SUCCESS, 0); /* too close, and not sampled: the interval goes on from the first */
    look(&gpm, 1100, NVML_SUCCESS, 1);
    look(&gpm, 2100, NVML_SUCCESS, 2);
    look(&gpm, 500, NVML_SUCCESS, 0); /* the clock was set back */
    look(&gpm, 600, NVML_SUCCESS, 4);
    nvml_gpm_release(&calls, &gpm);
    assert_int_equal(made, 2);
    assert_int_equal(freed, 2);
}

TEST_BETWEEN(test_failures, begin, NULL)
{
    struct nvml_gpm gpm = {0};

    support_code = NVML_ERROR_NO_PERMISSION;
    look(&gpm, 1000, NVML_ERROR_NO_PERMISSION, 0);
    support_code = NVML_ERROR_NOT_SUPPORTED; /* is not worth a mention */
    look(&gpm, 2000, NVML_SUCCESS, 0);
    support_code = NVML_ERROR_GPU_IS_LOST;
    look(&gpm, 3000, NVML_ERROR_GPU_IS_LOST, 0);
    support_code = NVML_SUCCESS; /* each look asks again */
    look(&gpm, 4000, NVML_SUCCESS, 0);
    look(&gpm, 5000, NVML_SUCCESS, 1);
    sample_code = NVML_ERROR_UNKNOWN;
    look(&gpm, 6000, NVML_SUCCESS, 0);
    sample_code = NVML_SUCCESS; /* nothing is compared across a look that failed */
    look(&gpm, 7000, NVML_SUCCESS, 0);
    look(&gpm, 8000, NVML_SUCCESS, 4);
    nvml_gpm_release(&calls, &gpm);
    assert_int_equal(freed, 2);
}

TEST_BETWEEN(test_instances_and_missing_functions, begin, NULL)
{
    struct gpu_measure metrics[GPU_METRIC_COUNT] = {{0}};
    struct nvml_calls fewer = calls;
    struct nvml_gpm gpm = {0};

    assert_int_equal(nvml_gpm_read(&calls, &gpm, NULL, 5, NS_PER_SEC, metrics), NVML_SUCCESS);
    assert_int_equal(sampled_instance, 5);
    fewer.gpm_get_mig = NULL;
    assert_int_equal(nvml_gpm_read(&fewer, &gpm, NULL, 5, 2 * NS_PER_SEC, metrics), NVML_SUCCESS);
    assert_int_equal(metrics[GPU_SM_ACTIVITY].source, GPU_SOURCE_NONE);
    nvml_gpm_release(&calls, &gpm);
    fewer.gpm_alloc = NULL;
    assert_int_equal(nvml_gpm_read(&fewer, &gpm, NULL, 5, 2 * NS_PER_SEC, metrics), NVML_SUCCESS);
    made = (int)array_size(samples) - 1; /* the second cannot be made: the first is given back */
    freed = 0;
    assert_int_equal(nvml_gpm_read(&calls, &gpm, NULL, 5, 2 * NS_PER_SEC, metrics), NVML_SUCCESS);
    assert_int_equal(freed, 1);
    assert_null(gpm.earlier);
}
