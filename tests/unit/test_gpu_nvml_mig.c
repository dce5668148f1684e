/* GPUs in MIG mode in the NVML backend: their instances, their processes, changes of the mode. */
#include "nvml_fixture.h"

TEST(test_mig)
{
    const struct gpu_reading *gpu = &reading.gpus[0], *first = &reading.gpus[1], *second = &reading.gpus[2];

    look(FAKE_NEW, "mig", 2);
    assert_int_equal(reading.count, 4);
    assert_int_equal(gpu->kind, GPU_PARTITIONED);
    assert_string_equal(gpu->parent, "");
    assert_int_equal(gpu->valid, GPU_HAS_MEMORY | GPU_HAS_PROCESSES | GPU_HAS_POWER | GPU_HAS_ENERGY);
    assert_int_equal(gpu->process_count, 3);
    assert_int_equal(first->kind, GPU_INSTANCE);
    assert_string_equal(first->uuid, "MIG-00000000-0000-0000-0000-0000000000010");
    assert_string_equal(first->parent, gpu->uuid);
    assert_string_equal(first->name, "Fake GPU MIG 1g.5gb number 0");
    assert_int_equal(first->gpu_instance, 1);
    assert_int_equal(first->compute_instance, 0);
    assert_int_equal(first->valid, GPU_HAS_MEMORY | GPU_HAS_PROCESSES);
    assert_int_equal(first->total_bytes, 4862 * MIB);
    assert_int_equal(first->used_bytes, MIB);
    assert_int_equal(first->process_count, 1);
    assert_int_equal(first->processes[0].pid, 1000);
    assert_metric(first, GPU_SM_ACTIVITY, 30);
    assert_metric(first, GPU_TENSOR_ACTIVITY, 125);
    assert_int_equal(first->metrics[GPU_PCIE_TX].source, GPU_SOURCE_NONE); /* this one is refused, the others are not */
    assert_int_equal(second->gpu_instance, 3);
    assert_int_equal(second->process_count, 2);
    assert_int_equal(second->processes[1].pid, 1002);
    assert_metric(second, GPU_SM_ACTIVITY, 90);
    assert_int_equal(reading.gpus[3].kind, GPU_WHOLE);
    assert_metric(&reading.gpus[3], GPU_SM_ACTIVITY, 375);
    assert_string_equal(reading.limits, "");
}

TEST(test_processes_of_an_instance)
{
    const char *ways[] = {"mig,mig-lists-all", "mig,mig-lists=3", "mig,mig-lists=999", "mig,v3=13",
                          "mig,mig-lists=3,v3=25"};
    const struct gpu_reading *first = &reading.gpus[1], *second = &reading.gpus[2];

    for (size_t i = 0; i < array_size(ways); i++) {
        look(FAKE_NEW, ways[i], 1);
        assert_true(first->valid & second->valid & GPU_HAS_PROCESSES);
        assert_int_equal(first->process_count, 1);
        assert_int_equal(first->processes[0].pid, 1000);
        assert_int_equal(second->process_count, 2);
        assert_int_equal(second->processes[0].pid, 1001);
    }
    look(FAKE_NEW, "mig,mig-unnamed", 1); /* the handle's own list needs no names */
    assert_int_equal(second->process_count, 2);
    look(FAKE_NEW, "mig,mig-unnamed,mig-lists=3", 1); /* the parent's does */
    assert_false((first->valid | second->valid) & GPU_HAS_PROCESSES);
    assert_int_equal(second->process_count, 0);
    /* the last use more than an instance has: nonsense in the second's list, no matter in the first's */
    look(FAKE_NEW, "mig,mig-lists-all,processes=5862", 1);
    assert_true(first->valid & GPU_HAS_PROCESSES);
    assert_int_equal(first->process_count, 1);
    assert_false(second->valid & GPU_HAS_PROCESSES);
}

TEST(test_mig_changes)
{
    begin_and_look("");
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.gpus[0].kind, GPU_WHOLE);
    look_again("mig");
    assert_int_equal(reading.count, 4);
    assert_int_equal(reading.gpus[0].kind, GPU_PARTITIONED);
    look_again("mig-one");
    assert_int_equal(reading.count, 3);
    assert_string_equal(reading.gpus[1].uuid, "MIG-00000000-0000-0000-0000-0000000000010");
    look_again("mig,mig-odd=10"); /* a time-out: there was none before, so there is none */
    assert_int_equal(reading.count, 3);
    look_again("mig");
    look_again("mig,mig-odd=10"); /* now it may still be there */
    assert_int_equal(reading.count, 4);
    look_again("mig,mig-mode=10"); /* no answer means no change */
    assert_int_equal(reading.gpus[0].kind, GPU_PARTITIONED);
    look_again("mig,gone=999"); /* the parent failed, and so did they, under their names */
    assert_int_equal(reading.count, 4);
    assert_int_equal(reading.gpus[0].error, 0);
    look_again("mig,gone=15");
    assert_int_equal(reading.count, 4);
    assert_int_equal(reading.gpus[2].error, NVML_ERROR_GPU_IS_LOST);
    assert_int_equal(reading.gpus[2].valid, 0);
    assert_int_equal(reading.gpus[2].kind, GPU_INSTANCE);
    assert_string_equal(reading.gpus[2].uuid, "MIG-00000000-0000-0000-0000-0000000000030");
    look_again("");
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.gpus[0].kind, GPU_WHOLE);
    look_again("mig,long-uuid,uuid=10"); /* nobody has a name now */
    end();
}

TEST(test_instances_without_a_name)
{
    look(FAKE_NEW, "mig,mig-plain-names", 1);
    assert_string_equal(reading.gpus[1].name, "Fake GPU 0 MIG 2g.10gb");
    assert_string_equal(reading.gpus[2].name, "Fake GPU 0 MIG 1c.2g.10gb");
}

RUN_NVML_TESTS
