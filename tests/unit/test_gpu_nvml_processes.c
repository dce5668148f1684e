/* The lists of processes that the NVML backend reads: layouts of drivers, garbage, long lists, MPS clients. */
#include "nvml_fixture.h"

TEST(test_process_lists_fall_back)
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
TEST(test_drivers_that_break_a_layout)
{
    const char *ways[] = {"v3-is-longer,processes=32", "v3-is-longer,v3-protected,processes=32",
                          "v3-is-v1,processes=32"};

    for (size_t way = 0; way < array_size(ways); way++) {
        look(FAKE_NEW, ways[way], 1);
        assert_true(reading.gpus[0].valid & GPU_HAS_PROCESSES);
        assert_int_equal(reading.gpus[0].process_count, 32);
        for (int i = 0; i < 32; i++) {
            assert_int_equal(reading.gpus[0].processes[i].pid, 1000 + i);
            assert_int_equal(reading.gpus[0].processes[i].used_bytes, (i + 1) * MIB);
        }
    }
    look(FAKE_NEW, "v3-is-longer,processes=1", 1); /* one entry reads the same in any layout */
    assert_int_equal(reading.gpus[0].process_count, 1);
    assert_int_equal(reading.gpus[0].processes[0].used_bytes, MIB);
}

TEST(test_garbage)
{
    look(FAKE_NEW, "all-garbage", 1);
    assert_false(reading.gpus[0].valid & GPU_HAS_PROCESSES);
    assert_int_equal(reading.gpus[0].process_count, 0);
    assert_true(reading.gpus[0].valid & GPU_HAS_MEMORY);
}

TEST(test_long_and_growing_lists)
{
    look(FAKE_NEW, "processes=200", 1);
    assert_int_equal(reading.gpus[0].process_count, 200);
    assert_int_equal(gpu_reading_listed(&reading.gpus[0]), GPU_MAX_PROCESSES);
    assert_int_equal(reading.gpus[0].processes[GPU_MAX_PROCESSES - 1].pid, 1000 + GPU_MAX_PROCESSES - 1);
    look(FAKE_NEW, "growing", 1);
    assert_true(reading.gpus[0].valid & GPU_HAS_PROCESSES);
    assert_int_equal(reading.gpus[0].process_count, 100);
    look(FAKE_NEW, "always-short", 1); /* ends, and is not a list */
    assert_false(reading.gpus[0].valid & GPU_HAS_PROCESSES);
    look(FAKE_NEW, "processes=1000000", 1);
    assert_false(reading.gpus[0].valid & GPU_HAS_PROCESSES);
}

TEST(test_mps_clients_count_once)
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

TEST(test_untold_process_memory)
{
    look(FAKE_NEW, "no-process-memory", 1);
    assert_true(reading.gpus[0].valid & GPU_HAS_PROCESSES);
    assert_int_equal(reading.gpus[0].process_count, 2);
    assert_int_equal(reading.gpus[0].processes[0].used_bytes, -1);
}

RUN_NVML_TESTS
