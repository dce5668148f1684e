/* DCGM as a source of metrics, against a libdcgm of the tests' own (tests/fakes/fake_dcgm.c). Node time runs a hundred
 * times faster here, so that no pause between two tries is waited for long. */
#include "unit.h"

#include <dlfcn.h>

#include "gpu/dcgm/abi.h"
#include "gpu/dcgm/dcgm.h"

#define SCALE 100
#define UUID  "GPU-00000000-0000-0000-0000-00000000000"

static struct gpu_node_reading seen;
static void *source;
static int (*fake_count)(const char *what);

static void begin(const char *words)
{
    void *library = dlopen(FAKE_DCGM, RTLD_NOW | RTLD_LOCAL), *function;

    assert_non_null(library);
    function = dlsym(library, "fake_dcgm_count");
    memcpy(&fake_count, &function, sizeof function);
    setenv("FAKE_DCGM", words, 1);
    fail_if(gpu_source_dcgm.open(FAKE_DCGM, NS_PER_SEC, &source, &trouble) < 0, trouble);
}

static int end(void **state)
{
    gpu_source_dcgm.close(source);
    source = NULL;
    return fake_count("open");
}

#define DCGM_TEST(name) TEST_BETWEEN(name, NULL, end)

/* A node of two GPUs as NVML leaves it, that lacks every metric. */
static void nvml_reading(void)
{
    memset(&seen, 0, sizeof seen);
    seen.at_ns = nodetime_now_ns();
    seen.count = 2;
    for (uint32_t i = 0; i < seen.count; i++) {
        snprintf(seen.gpus[i].uuid, sizeof seen.gpus[i].uuid, UUID "%u", i % 10);
        seen.gpus[i].index = i;
    }
}

static void look(void)
{
    gpu_source_dcgm.read(source, &seen);
}

static void look_at(const char *words)
{
    setenv("FAKE_DCGM", words, 1);
    nvml_reading();
    look();
}

static void begin_and_look_at(const char *words)
{
    begin(words);
    look_at(words);
}

static int64_t value(uint32_t gpu, uint32_t metric)
{
    const struct gpu_measure *measure = &seen.gpus[gpu].metrics[metric];

    if (measure->source == GPU_SOURCE_NONE)
        return -1;
    assert_int_equal(measure->source, GPU_SOURCE_DCGM);
    assert_int_equal(measure->zero, 0);
    return measure->value;
}

static void has_nothing(void)
{
    for (uint32_t i = 0; i < seen.count; i++)
        for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
            assert_int_equal(value(i, metric), -1);
}

static void says(const char *text)
{
    assert_has(seen.limits, text);
    assert_true(strlen(seen.limits) < sizeof seen.limits - 1); /* not cut off */
}

DCGM_TEST(test_every_metric_is_its_field)
{
    begin_and_look_at("");
    for (uint32_t i = 0; i < 2; i++) { /* the fake's numbers, DCGM's ids being in another order than NVML's */
        assert_int_equal(value(i, GPU_GRAPHICS_ACTIVITY), 10 + 250 * i);
        assert_int_equal(value(i, GPU_SM_ACTIVITY), 20 + 250 * i);
        assert_int_equal(value(i, GPU_SM_OCCUPANCY), 30 + 250 * i);
        assert_int_equal(value(i, GPU_TENSOR_ACTIVITY), 40 + 250 * i);
        assert_int_equal(value(i, GPU_DRAM_ACTIVITY), 50 + 250 * i);
        assert_int_equal(value(i, GPU_PCIE_TX), 1009000000);
        assert_int_equal(value(i, GPU_PCIE_RX), 1010000000);
    }
    assert_string_equal(seen.limits, "");
    assert_int_equal(fake_count("connect"), 1);
    assert_int_equal(fake_count("embedded"), 0);
    assert_int_equal(fake_count("watch"), 2); /* all of a GPU's fields at once */
    look_at("");
    assert_int_equal(fake_count("watch"), 2);
    assert_int_equal(fake_count("connect"), 1);
}

DCGM_TEST(test_the_age_is_dcgms_own)
{
    begin("");
    look_at("old=0.5");
    int64_t age_ns = nodetime_now_ns() - seen.gpus[0].metrics[GPU_SM_ACTIVITY].at_ns;
    assert_true(age_ns >= SCALE * NS_PER_SEC / 2 && age_ns < 2 * SCALE * NS_PER_SEC);
    look_at("old=6");
    has_nothing();
    says("DCGM's latest sm_activity of GPU 0 is too old");
    look_at("early"); /* no value is from the future */
    assert_true(value(0, GPU_SM_ACTIVITY) == 20);
    assert_true(seen.gpus[0].metrics[GPU_SM_ACTIVITY].at_ns <= nodetime_now_ns());
}

DCGM_TEST(test_what_is_there_stays)
{
    begin("");
    nvml_reading();
    seen.gpus[0].metrics[GPU_SM_ACTIVITY] = (struct gpu_measure){.source = GPU_SOURCE_GPM, .value = 777};
    snprintf(seen.limits, sizeof seen.limits, "said before");
    setenv("FAKE_DCGM", "blank=2", 1);
    look();
    assert_int_equal(seen.gpus[0].metrics[GPU_SM_ACTIVITY].source, GPU_SOURCE_GPM);
    assert_int_equal(seen.gpus[0].metrics[GPU_SM_ACTIVITY].value, 777);
    assert_string_equal(seen.limits, "said before");
}

DCGM_TEST(test_what_cannot_be_is_no_value)
{
    begin("");
    for (int kind = 0; kind < 4; kind++) {
        char words[32];
        snprintf(words, sizeof words, "blank=%d", kind);
        look_at(words);
        has_nothing();
        says(kind == DCGM_BLANK_NOT_SUPPORTED   ? "DCGM has no sm_activity of GPU 0: Not supported (-6)"
             : kind == DCGM_BLANK_NOT_PERMITTED ? "(-17): run nv-hostengine, or carmad, as root"
                                                : "");
    }
    look_at("blank=0");
    assert_string_equal(seen.limits, ""); /* it may only not have come yet */
    look_at("over");
    has_nothing();
    look_at("nan");
    assert_int_equal(value(0, GPU_SM_ACTIVITY), -1);
    look_at("just-over");
    assert_int_equal(value(0, GPU_SM_ACTIVITY), 1000);
    look_at("status=-18");
    has_nothing();
    says("(-18)");
    look_at("extra"); /* of entities and fields that nobody asked for */
    assert_int_equal(value(0, GPU_SM_ACTIVITY), 20);
}

DCGM_TEST(test_no_engine_runs)
{
    for (int modules = 8; modules <= 16; modules++) { /* for every length of this release's list */
        char words[64];
        snprintf(words, sizeof words, "no-engine,modules=%d", modules);
        begin_and_look_at(words);
        assert_int_equal(value(1, GPU_SM_ACTIVITY), 270);
        assert_int_equal(fake_count("embedded"), 1);
        assert_int_equal(end(NULL), 0);
    }
    begin_and_look_at("no-engine,embedded=-29");
    has_nothing();
    says("DCGM cannot be asked: This operation requires root (-29): run nv-hostengine, or carmad, as root");
    look_at("no-engine,embedded=-29"); /* at once: it waits */
    says("requires root");
    assert_int_equal(fake_count("embedded"), 1);
    usleep(30000); /* more than 1 s of node time */
    look_at("");
    assert_int_equal(value(0, GPU_SM_ACTIVITY), 20);
}

DCGM_TEST(test_the_engine_that_is_named)
{
    setenv(GPU_DCGM_ENGINE_ENV, "/run/dcgm", 1);
    begin_and_look_at("no-engine,socket-engine");
    assert_int_equal(value(0, GPU_SM_ACTIVITY), 20);
    assert_int_equal(end(NULL), 0);
    setenv(GPU_DCGM_ENGINE_ENV, "gpu-server:5555", 1);
    begin_and_look_at(""); /* no other one is asked or started in its place */
    has_nothing();
    says("DCGM cannot be asked: The connection is not valid (-21)");
    assert_int_equal(fake_count("connect"), 1);
    assert_int_equal(fake_count("embedded"), 0);
    unsetenv(GPU_DCGM_ENGINE_ENV);
}

static void refuses(const char *words, const char *text)
{
    begin_and_look_at(words);
    has_nothing();
    says(text);
    assert_int_equal(end(NULL), 0);
}

DCGM_TEST(test_engines_that_cannot)
{
    refuses("gpus=-3", "DCGM cannot be asked: an error that DCGM does not name (-3)");
    refuses("hierarchy=-3", "DCGM cannot be asked");
    refuses("add=-24", "DCGM cannot be asked");
    refuses("watch=-36", "DCGM cannot profile GPU 0: Profiling is not supported (-36)");
    refuses("watch=-37", "(-37)");
    refuses("watch=-29", "(-29): run nv-hostengine, or carmad, as root");
    begin_and_look_at("hierarchy=-6"); /* no part of DCGM's knows MIG */
    assert_int_equal(value(0, GPU_SM_ACTIVITY), 20);
}

DCGM_TEST(test_one_gpu_fails_alone)
{
    begin_and_look_at("watch=-36,watch-gpu-1");
    assert_int_equal(value(0, GPU_SM_ACTIVITY), 20);
    assert_int_equal(value(1, GPU_SM_ACTIVITY), -1);
    says("DCGM cannot profile GPU 1");
    usleep(30000);
    look_at(""); /* a GPU is not asked again for a metric that it lacks */
    assert_int_equal(value(1, GPU_SM_ACTIVITY), -1);
}

DCGM_TEST(test_what_may_pass_is_tried_again)
{
    begin_and_look_at("watch-once=-37");
    assert_int_equal(value(1, GPU_SM_ACTIVITY), -1); /* DCGM's first */
    assert_int_equal(value(0, GPU_SM_ACTIVITY), 20);
    usleep(30000);
    look_at("watch-once=-37");
    assert_int_equal(value(1, GPU_SM_ACTIVITY), 270);
    assert_string_equal(seen.limits, "");
}

DCGM_TEST(test_fields_that_cannot_be_measured_at_once)
{
    for (int most = 1; most <= 7; most++) {
        char words[32];
        snprintf(words, sizeof words, "at-once=%d", most);
        begin_and_look_at(words);
        for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
            assert_true(value(0, metric) > 0 && value(1, metric) > 0);
        assert_string_equal(seen.limits, "");
        assert_int_equal(end(NULL), 0);
    }
    begin_and_look_at("never=1004");
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        assert_int_equal(value(1, metric) > 0, metric != GPU_TENSOR_ACTIVITY);
    says("DCGM cannot measure tensor_activity of GPU 0 beside the other metrics (-38)");
}

DCGM_TEST(test_a_lost_connection_is_made_again)
{
    const char *words = "lost=5,refused=1,embedded=-29"; /* each look asks for the metrics of two GPUs */

    begin_and_look_at(words);
    look_at(words);
    assert_int_equal(value(0, GPU_SM_ACTIVITY), 20);
    look_at(words);
    has_nothing();
    says("DCGM cannot be asked: The connection is not valid (-21)");
    assert_int_equal(fake_count("open"), 0);
    usleep(30000);
    int64_t asked_ns = nodetime_now_ns();
    look_at(words);
    has_nothing(); /* refused */
    do {
        usleep(2000);
        look_at(words);
    } while (value(0, GPU_SM_ACTIVITY) < 0);
    assert_true(nodetime_now_ns() - asked_ns >= 2 * NS_PER_SEC); /* the second pause is twice as long as the first */
    assert_int_equal(value(0, GPU_SM_ACTIVITY), 20);
    assert_int_equal(fake_count("connect"), 3);
}

DCGM_TEST(test_zeros_after_an_xid)
{
    begin("idle");
    for (int i = 0; i < 5; i++) {
        look_at("idle"); /* no Xid: zeros are zeros */
        seen.gpus[0].valid |= GPU_HAS_UTILIZATION;
        seen.gpus[0].utilization_permille = 900;
        assert_int_equal(value(0, GPU_SM_ACTIVITY), 0);
    }
    for (int i = 0; i < 5; i++) {
        look_at("idle,xid=31"); /* no kernel runs */
        assert_int_equal(value(0, GPU_SM_ACTIVITY), 0);
    }
    for (int i = 0; i < 4; i++) {
        setenv("FAKE_DCGM", "stuck,xid=31", 1);
        nvml_reading();
        seen.gpus[0].valid |= GPU_HAS_UTILIZATION;
        seen.gpus[0].utilization_permille = 900;
        look();
        assert_int_equal(value(0, GPU_SM_ACTIVITY), i < 2 ? 0 : -1);
    }
    says("DCGM shows zeros for GPU 0 since its Xid, while kernels run: it is asked anew");
    assert_int_equal(fake_count("unwatch"), 0);
    usleep(30000);
    look_at("stuck,xid=31");
    assert_int_equal(fake_count("unwatch"), 1);
    assert_int_equal(value(0, GPU_SM_ACTIVITY), 20);
    assert_int_equal(value(1, GPU_SM_ACTIVITY), 0); /* this one's zeros are not contradicted */
}

static void instance(uint32_t i, uint32_t gpu_instance, uint32_t compute_instance)
{
    struct gpu_reading *gpu = &seen.gpus[i];

    *gpu =
        (struct gpu_reading){.kind = GPU_INSTANCE, .gpu_instance = gpu_instance, .compute_instance = compute_instance};
    snprintf(gpu->uuid, sizeof gpu->uuid, "MIG-%u-%u", gpu_instance, compute_instance);
    snprintf(gpu->parent, sizeof gpu->parent, UUID "0");
}

static void look_at_instances(const char *words)
{
    setenv("FAKE_DCGM", words, 1);
    nvml_reading();
    seen.count = 5;
    seen.gpus[0].kind = GPU_PARTITIONED;
    instance(2, 5, 1);
    instance(3, 3, 0);
    instance(4, 5, 0);
    look();
}

DCGM_TEST(test_instances)
{
    begin("mig");
    look_at_instances("mig");
    assert_int_equal(value(2, GPU_SM_ACTIVITY), 20 + 500 + 250); /* DCGM's compute instance 2 */
    assert_int_equal(value(3, GPU_SM_ACTIVITY), 20 + 250);       /* 0 */
    assert_int_equal(value(4, GPU_SM_ACTIVITY), 20 + 250 + 250); /* 1 */
    assert_int_equal(value(3, GPU_DRAM_ACTIVITY), 50 + 200);     /* of its GPU instance, which alone has it */
    assert_int_equal(value(4, GPU_DRAM_ACTIVITY), 50 + 250 + 200);
    assert_int_equal(value(4, GPU_PCIE_TX), -1);
    assert_string_equal(seen.limits, ""); /* no instance has traffic of its own */
    look_at_instances("mig,no-compute");
    assert_int_equal(value(4, GPU_SM_ACTIVITY), 20 + 250 + 200);

    nvml_reading(); /* one that DCGM does not know */
    instance(1, 4, 0);
    look();
    assert_int_equal(value(1, GPU_SM_ACTIVITY), -1);
    says("DCGM does not know an instance of GPU 0 (MIG-4-0)");
}

/* Instances that somebody makes later are looked for when NVML shows them. */
DCGM_TEST(test_gpus_that_come)
{
    begin_and_look_at("");
    assert_int_equal(fake_count("connect"), 1);
    look_at_instances("mig");
    assert_int_equal(fake_count("connect"), 2);
    assert_int_equal(value(3, GPU_SM_ACTIVITY), 20 + 250);
    look_at_instances("mig");
    assert_int_equal(fake_count("connect"), 2);
}

TEST(test_no_dcgm)
{
    assert_int_equal(gpu_source_dcgm.open("/nonexistent/libdcgm.so", NS_PER_SEC, &source, &trouble), -ENOENT);
    assert_string_equal(trouble.text, "cannot load DCGM's library /nonexistent/libdcgm.so");
    assert_error(gpu_source_dcgm.open(FAKE_NEW, NS_PER_SEC, &source, &trouble), -ENOSYS,
                 "lacks DCGM's functions: name another one with CARMA_DCGM_LIBRARY");
    setenv(GPU_DCGM_LIBRARY_ENV, "/elsewhere", 1);
    assert_error(gpu_source_dcgm.open(NULL, NS_PER_SEC, &source, &trouble), -ENOENT, "/elsewhere");
    unsetenv(GPU_DCGM_LIBRARY_ENV);
    setenv("FAKE_DCGM", "init=-7", 1);
    assert_error(gpu_source_dcgm.open(FAKE_DCGM, NS_PER_SEC, &source, &trouble), -ENODEV, "(-7)");
    gpu_source_dcgm.close(NULL);
}

int main(void)
{
    setenv("CARMA_TIME_SCALE", "100", 1);
    return unit_tests_run("tests", NULL, NULL);
}
