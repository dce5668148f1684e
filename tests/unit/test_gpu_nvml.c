/* Every fallback of the NVML backend, through the real loader, against tests/fakes/fake_nvml.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "gpu/frame.h"
#include "gpu/nvml/abi.h"
#include "gpu/nvml/nvml.h"

static struct gpu_node_reading reading;

/* Looks `times`, 105 ms apart, at a library that behaves as `words` say. */
static void look(const char *library, const char *words, int times)
{
    struct error err = {""};
    void *looker = NULL;

    setenv("FAKE_NVML", words, 1);
    if (gpu_backend_nvml.open(&(struct gpu_backend_options){.library = library}, &looker, &err) < 0)
        fail_msg("%s", err.text);
    while (times--) {
        assert_int_equal(gpu_backend_nvml.read(looker, &reading, &err), 0);
        if (times)
            usleep(105000);
    }
    gpu_backend_nvml.close(looker);
}

/* A backend over more than one look, while the library's answers change. */
static void *backend;
static struct gpu_backend_options options = {.library = FAKE_NEW};

static void begin(const char *words)
{
    struct error err = {""};

    setenv("FAKE_NVML", words, 1);
    if (gpu_backend_nvml.open(&options, &backend, &err) < 0)
        fail_msg("%s", err.text);
}

static void look_again(const char *words)
{
    struct error err = {""};

    setenv("FAKE_NVML", words, 1);
    if (gpu_backend_nvml.read(backend, &reading, &err) < 0)
        fail_msg("%s", err.text);
}

static void end(void)
{
    gpu_backend_nvml.close(backend);
}

static void assert_metric(const struct gpu_reading *gpu, enum gpu_metric metric, int64_t value)
{
    assert_int_equal(gpu->metrics[metric].source, GPU_SOURCE_GPM);
    assert_int_equal(gpu->metrics[metric].value, value);
}

static void refused(const char *library, const char *words, int code, const char *why)
{
    struct error err = {""};
    void *none = NULL;
    int rc;

    setenv("FAKE_NVML", words, 1);
    rc = gpu_backend_nvml.open(&(struct gpu_backend_options){.library = library}, &none, &err);
    if (rc != code || !strstr(err.text, why))
        fail_msg("%d, '%s' (not %d about '%s')", rc, err.text, code, why);
    assert_null(none);
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
    look(FAKE_NEW, "always-short", 1); /* ends, and is not a list */
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
    begin("no-handle");
    look_again("no-handle");
    assert_string_equal(reading.gpus[1].uuid, "");
    look_again("");
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.gpus[1].error, 0);
    assert_true(reading.gpus[1].valid & GPU_HAS_MEMORY);
    look_again("lost");
    assert_int_equal(reading.gpus[1].error, NVML_ERROR_GPU_IS_LOST);
    assert_string_equal(reading.gpus[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
    look_again("no-handle");
    assert_int_equal(reading.count, 2);
    assert_string_equal(reading.gpus[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
    look_again("");
    assert_int_equal(reading.gpus[1].error, 0);
    end();
}

/* One that NVML counts no more is told of as missing, not left out in silence. */
static void test_a_gpu_that_is_counted_no_more(void **state)
{
    begin("count=1");
    look_again("count=1");
    assert_int_equal(reading.count, 1);
    look_again("");
    assert_int_equal(reading.count, 2);
    look_again("count=1");
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.gpus[0].error, 0);
    assert_int_equal(reading.gpus[1].error, NVML_ERROR_GPU_NOT_FOUND);
    assert_string_equal(reading.gpus[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
    look_again("count=100"); /* more than there can be: those that are there are read */
    assert_int_equal(reading.gpus[1].error, 0);
    assert_int_equal(reading.count, GPU_MAX_DEVICES);
    end();
}

/* The index is NVML's to change; the UUID is a GPU's identity, and its readings follow it. */
static void test_the_index_changes(void **state)
{
    begin("");
    look_again("xid=48");
    assert_int_equal(reading.gpus[1].xid, 48);
    look_again("xid=48,swap");
    assert_int_equal(reading.count, 2);
    assert_string_equal(reading.gpus[0].uuid, "GPU-00000000-0000-0000-0000-000000000001");
    assert_int_equal(reading.gpus[0].index, 0);
    assert_int_equal(reading.gpus[0].xid, 48);
    assert_string_equal(reading.gpus[0].name, "Fake GPU 1");
    assert_int_equal(reading.gpus[0].process_count, 0);
    assert_string_equal(reading.gpus[1].uuid, "GPU-00000000-0000-0000-0000-000000000000");
    assert_int_equal(reading.gpus[1].process_count, 2);
    /* the one that is lost is the one that was at the index that fails, not a new one */
    look_again("xid=48,swap,no-handle");
    assert_int_equal(reading.count, 2);
    look_again("xid=48,twins"); /* one UUID twice: the second has no identity */
    assert_int_equal(reading.count, 3);
    assert_int_equal(reading.gpus[0].error, 0);
    assert_string_equal(reading.gpus[0].uuid, "GPU-00000000-0000-0000-0000-000000000000");
    assert_int_equal(reading.gpus[1].error, NVML_ERROR_GPU_NOT_FOUND);
    assert_int_equal(reading.gpus[2].error, NVML_ERROR_UNKNOWN);
    assert_string_equal(reading.gpus[2].uuid, "");
    end();
}

static void test_identity_that_is_not_told(void **state)
{
    begin("uuid=3");
    look_again("uuid=3");
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.gpus[0].error, NVML_ERROR_NOT_SUPPORTED);
    assert_string_equal(reading.gpus[0].uuid, "");
    look_again("long-uuid");
    assert_int_equal(reading.gpus[0].error, NVML_ERROR_UNKNOWN);
    look_again("");
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.gpus[0].error, 0);
    look_again("uuid=10"); /* a time-out of this one query: the handle still is the GPU's */
    assert_int_equal(reading.gpus[0].error, 0);
    assert_true(reading.gpus[0].valid & GPU_HAS_MEMORY);
    assert_string_equal(reading.gpus[0].uuid, "GPU-00000000-0000-0000-0000-000000000000");
    end();
}

/* Where the driver was unloaded or replaced, only a new session helps. */
static void test_a_driver_reload(void **state)
{
    static const struct {
        const char *words;
        bool over;
    } cases[] = {{"gone=1", true}, {"gone=9", true}, {"gone=18", true}, {"gone=999", false}, {"gone=15", false}};

    for (size_t i = 0; i < array_size(cases); i++) {
        struct error err = {""};
        begin("");
        look_again("");
        setenv("FAKE_NVML", cases[i].words, 1);
        assert_int_equal(gpu_backend_nvml.read(backend, &reading, &err), cases[i].over ? -ENODEV : 0);
        if (cases[i].over)
            assert_non_null(strstr(err.text, "lost its driver"));
        else
            assert_int_equal(reading.count, 2);
        end();
    }
}

static void test_xids(void **state)
{
    int64_t first_ns;

    begin("");
    look_again("");
    assert_int_equal(reading.gpus[1].xid_count, 0);
    assert_int_equal(reading.gpus[1].xid_at_ns, 0);
    look_again("xid=31");
    first_ns = reading.at_ns;
    look_again("xid=31");
    assert_int_equal(reading.gpus[0].xid_count, 0);
    assert_int_equal(reading.gpus[1].xid, 31);
    assert_int_equal(reading.gpus[1].xid_count, 1);
    assert_int_equal(reading.gpus[1].xid_at_ns, first_ns);
    look_again("xid=79,lost"); /* its last words are kept */
    assert_int_equal(reading.gpus[1].error, NVML_ERROR_GPU_IS_LOST);
    assert_int_equal(reading.gpus[1].xid, 79);
    assert_int_equal(reading.gpus[1].xid_count, 2);
    look_again("xid=45"); /* the driver's part after it */
    assert_int_equal(reading.gpus[1].xid, 79);
    assert_int_equal(reading.gpus[1].xid_count, 3);
    look_again("xid=94,xid-elsewhere");
    assert_int_equal(reading.gpus[0].xid_count + reading.gpus[1].xid_count, 3);
    end();
    begin("register=3");
    look_again("register=3");
    assert_string_equal(reading.limits, "");
    assert_true(reading.gpus[1].valid & GPU_HAS_MEMORY);
    end();
}

static void test_mig(void **state)
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

static void test_processes_of_an_instance(void **state)
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

static void test_mig_changes(void **state)
{
    begin("");
    look_again("");
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

static void test_instances_without_a_name(void **state)
{
    look(FAKE_NEW, "mig,mig-plain-names", 1);
    assert_string_equal(reading.gpus[1].name, "Fake GPU 0 MIG 2g.10gb");
    assert_string_equal(reading.gpus[2].name, "Fake GPU 0 MIG 1c.2g.10gb");
}

static void test_more_than_can_be_used(void **state)
{
    begin("count=64,mig");
    look_again("count=64,mig");
    assert_int_equal(reading.count, GPU_MAX_DEVICES);
    assert_string_equal(reading.limits,
                        "66 GPUs and MIG instances are more than the 64 that carma can use: the last are "
                        "left out");
    look_again("count=62,mig");
    assert_string_equal(reading.limits, "");
    assert_int_equal(reading.count, GPU_MAX_DEVICES);
    end();
}

static int touched[16], touches;

static void on_touch(void *user, int index)
{
    assert_ptr_equal(user, touched);
    touched[touches++] = index;
}

static void test_a_gpu_that_is_skipped(void **state)
{
    options.touch = on_touch;
    options.user = touched;
    begin("");
    look_again("");
    assert_int_equal(touches, 5);
    assert_memory_equal(touched, ((int[]){0, 1, 0, 1, -1}), 5 * sizeof(int));
    end();
    options.skip = 1;
    begin("hang=1");
    look_again("hang=1");
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.gpus[0].error, NVML_ERROR_TIMEOUT);
    assert_string_equal(reading.gpus[0].uuid, "");
    assert_true(reading.gpus[1].valid & GPU_HAS_MEMORY);
    end();
    options = (struct gpu_backend_options){.library = FAKE_NEW};
}

/* Every function but the first three may be missing. */
static void test_a_bare_library(void **state)
{
    look(FAKE_BARE, "", 2);
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.gpus[1].error, NVML_ERROR_FUNCTION_NOT_FOUND);
    assert_int_equal(reading.gpus[1].valid, 0);
    assert_string_equal(reading.gpus[1].uuid, "");
    refused(FAKE_BARE, "init=9", -ENODEV, "NVML error (9)");
}

static void test_what_is_denied_is_said(void **state)
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

/* Codes that stand for "not available" are not values. */
static void test_values_that_cannot_be(void **state)
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
}

/* A counter that began again after a driver reload is shown as it is: callers that sum it up take differences. */
static void test_an_energy_counter_that_restarts(void **state)
{
    begin("");
    look_again("energy-mj=5000");
    assert_int_equal(reading.gpus[0].energy_mj, 5000);
    look_again("energy-mj=12");
    assert_int_equal(reading.gpus[0].energy_mj, 12);
    assert_true(reading.gpus[0].valid & GPU_HAS_ENERGY);
    end();
}

static void test_sm_activity(void **state)
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
static void test_sm_activity_of_frequent_looks(void **state)
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
        cmocka_unit_test(test_a_gpu_that_is_counted_no_more),
        cmocka_unit_test(test_the_index_changes),
        cmocka_unit_test(test_identity_that_is_not_told),
        cmocka_unit_test(test_a_driver_reload),
        cmocka_unit_test(test_xids),
        cmocka_unit_test(test_mig),
        cmocka_unit_test(test_processes_of_an_instance),
        cmocka_unit_test(test_mig_changes),
        cmocka_unit_test(test_instances_without_a_name),
        cmocka_unit_test(test_more_than_can_be_used),
        cmocka_unit_test(test_a_gpu_that_is_skipped),
        cmocka_unit_test(test_a_bare_library),
        cmocka_unit_test(test_what_is_denied_is_said),
        cmocka_unit_test(test_values_that_cannot_be),
        cmocka_unit_test(test_an_energy_counter_that_restarts),
        cmocka_unit_test(test_sm_activity),
        cmocka_unit_test(test_sm_activity_of_frequent_looks),
        cmocka_unit_test(test_libraries_that_cannot_serve),
    };

    unsetenv("CARMA_TIME_SCALE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
