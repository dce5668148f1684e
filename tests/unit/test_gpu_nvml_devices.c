/* The identity of GPUs in the NVML backend: GPUs that go, come back, move or are skipped, and their Xids. */
#include "nvml_fixture.h"

TEST(test_a_lost_gpu)
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
TEST(test_a_gpu_goes_and_comes_back)
{
    begin_and_look("no-handle");
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
TEST(test_a_gpu_that_is_counted_no_more)
{
    begin_and_look("count=1");
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
TEST(test_the_index_changes)
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

TEST(test_identity_that_is_not_told)
{
    begin_and_look("uuid=3");
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

/* Where the driver was unloaded or replaced, be it during a look, only a new session helps. */
static const struct {
    const char *words;
    bool over;
} a_driver_reload[] = {{"gone=1", true},     {"gone=9", true},     {"gone=18", true},
                       {"gone=999", false},  {"gone=15", false},   {"gone-between=9", true},
                       {"lost-as=1", false}, {"lost-as=9", false}, {"lost", false}};

EACH_ROW(TEST, test_a_driver_reload, a_driver_reload)
{
    struct error err = {""};
    begin_and_look("");
    setenv("FAKE_NVML", row->words, 1);
    assert_int_equal(gpu_backend_nvml.read(backend, &reading, &err), row->over ? -ENODEV : 0);
    if (row->over)
        assert_non_null(strstr(err.text, "lost its driver"));
    else
        assert_int_equal(reading.count, 2);
    end();
}

TEST(test_xids)
{
    begin_and_look("");
    assert_int_equal(reading.gpus[1].xid_count, 0);
    assert_int_equal(reading.gpus[1].xid_at_ns, 0);
    look_again("xid=31");
    int64_t first_ns = reading.at_ns;
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
    begin_and_look("register=3");
    assert_string_equal(reading.limits, "");
    assert_true(reading.gpus[1].valid & GPU_HAS_MEMORY);
    end();
}

TEST(test_more_than_can_be_used)
{
    begin_and_look("count=64,mig");
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

TEST(test_a_gpu_that_is_skipped)
{
    options.touch = on_touch;
    options.user = touched;
    begin_and_look("");
    assert_int_equal(touches, 5);
    assert_memory_equal(touched, ((int[]){0, 1, 0, 1, -1}), 5 * sizeof(int));
    end();
    options.skip = 1;
    begin_and_look("hang=1");
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.gpus[0].error, NVML_ERROR_TIMEOUT);
    assert_string_equal(reading.gpus[0].uuid, "");
    assert_true(reading.gpus[1].valid & GPU_HAS_MEMORY);
    end();
    options = (struct gpu_backend_options){.library = FAKE_NEW};
}

RUN_NVML_TESTS
