/* The values that the NVML backend takes from a GPU: fallbacks, and answers that cannot be values. */
#include "nvml_fixture.h"

TEST(test_memory_falls_back)
{
    look(FAKE_NEW, "memory-v2=25", 1); /* ARGUMENT_VERSION_MISMATCH */
    assert_int_equal(reading.gpus[0].total_bytes, 40960 * MIB);
    assert_int_equal(reading.gpus[0].used_bytes, 1536 * MIB);
    look(FAKE_NEW, "memory-v2=3", 1);
    assert_int_equal(reading.gpus[0].used_bytes, 1536 * MIB);
}

TEST(test_unsupported_is_never_zero)
{
    look(FAKE_NEW, "utilization=3,power=3,energy=3", 1);
    assert_int_equal(reading.gpus[0].valid, GPU_HAS_MEMORY | GPU_HAS_PROCESSES);
    assert_int_equal(reading.gpus[0].error, 0);
}

/* Codes that stand for "not available" are not values. */
TEST(test_values_that_cannot_be)
{
    look(FAKE_NEW, "power-mw=4294967295", 1);
    assert_false(reading.gpus[0].valid & GPU_HAS_POWER);
    look(FAKE_NEW, "energy-mj=9223372036854775808", 1);
    assert_false(reading.gpus[0].valid & GPU_HAS_ENERGY);
    look(FAKE_NEW, "total=0", 1);
    assert_false(reading.gpus[0].valid & GPU_HAS_MEMORY);
    look(FAKE_NEW, "total=1400", 1); /* 512 are reserved and 1024 in use */
    assert_false(reading.gpus[0].valid & GPU_HAS_MEMORY);
    look(FAKE_NEW, "total=1536", 1);
    assert_true(reading.gpus[0].valid & GPU_HAS_MEMORY);
    look(FAKE_NEW, "pcie=140737488355328", 2); /* DCGM's blank, in case NVML ever shows it */
    assert_int_equal(reading.gpus[0].metrics[GPU_PCIE_TX].source, GPU_SOURCE_NONE);
    assert_metric(&reading.gpus[0], GPU_PCIE_RX, MIB / 2);
    look(FAKE_NEW, "busy=101", 1);
    assert_false(reading.gpus[0].valid & GPU_HAS_UTILIZATION);
    assert_true(reading.gpus[0].valid & GPU_HAS_POWER);
}

/* How a GPU fares: a figure that is refused has its code, and closes nothing. */
TEST(test_facts)
{
    const struct gpu_fact *facts = reading.gpus[0].facts;

    look(FAKE_NEW, "ecc=3", 1);
    assert_int_equal(facts[GPU_ECC_UNCORRECTED].value, 3);
    assert_int_equal(facts[GPU_ECC_CORRECTED].value, 77);
    assert_int_equal(facts[GPU_TEMPERATURE].code, 13); /* the library has no such function */
    assert_int_equal(reading.gpus[0].error, 0);
    look(FAKE_NEW, "ecc=9223372036854775807", 1); /* a code for "not available" */
    assert_int_equal(facts[GPU_ECC_UNCORRECTED].code, 21);
}

/* A counter that began again after a driver reload is shown as it is: callers that sum it up take differences. */
TEST(test_an_energy_counter_that_restarts)
{
    begin("");
    look_again("energy-mj=5000");
    assert_int_equal(reading.gpus[0].energy_mj, 5000);
    look_again("energy-mj=12");
    assert_int_equal(reading.gpus[0].energy_mj, 12);
    assert_true(reading.gpus[0].valid & GPU_HAS_ENERGY);
    end();
}

TEST(test_sm_activity)
{
    const struct gpu_reading *gpu = &reading.gpus[0];
    const char *impossible[] = {"gpm=102", "gpm=-1", "gpm=nan", "gpm-error"};

    look(FAKE_NEW, "", 1); /* one sample is not enough for a metric */
    assert_false(gpu->metrics[GPU_SM_ACTIVITY].source);
    look(FAKE_NEW, "no-gpm", 2);
    assert_false(gpu->metrics[GPU_SM_ACTIVITY].source);
    assert_true(gpu->valid & GPU_HAS_UTILIZATION);
    for (size_t i = 0; i < array_size(impossible); i++) {
        look(FAKE_NEW, impossible[i], 2);
        assert_false(gpu->metrics[GPU_SM_ACTIVITY].source);
    }
    look(FAKE_NEW, "gpm-error", 2); /* the others are not lost with it */
    assert_metric(gpu, GPU_SM_OCCUPANCY, 250);
    look(FAKE_NEW, "gpm-single", 2); /* a library that does not know one of them refuses the call */
    assert_metric(gpu, GPU_SM_ACTIVITY, 375);
    assert_metric(gpu, GPU_PCIE_TX, 100 * MIB);
    look(FAKE_NEW, "gpm=100.4", 2); /* noise of a busy GPU */
    assert_true(gpu->metrics[GPU_SM_ACTIVITY].source);
    assert_int_equal(gpu->metrics[GPU_SM_ACTIVITY].value, 1000);
    look(FAKE_NEW, "gpm=12.36", 2);
    assert_int_equal(gpu->metrics[GPU_SM_ACTIVITY].value, 124);
}

/* Looks closer together than GPM allows: the value comes from the last sample that is old enough. */
TEST(test_sm_activity_of_frequent_looks)
{
    int values = 0;
    int64_t first_ns = 0;

    begin("");
    for (int i = 0; i < 12; i++) {
        look_again("");
        first_ns = i ? first_ns : reading.at_ns;
        values += reading.gpus[0].metrics[GPU_SM_ACTIVITY].source != 0;
        usleep(30000);
    }
    end();
    assert_in_range(values, 1, (reading.at_ns - first_ns) / (100 * NS_PER_MS) + 1);
}

RUN_NVML_TESTS
