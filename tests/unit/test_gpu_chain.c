/* The source asked for a metric, when, and the use of the answer: a backend and sources of the test's own. */
#include "unit.h"

#include "gpu/monitor/chain.h"

#define PERIOD_NS (1000 * NS_PER_MS)

/* The next look's result; the backend hands it out. */
static struct gpu_node_reading scene, seen;
static struct gpu_chain *chain;

static int backend_open(const struct gpu_backend_options *options, void **state, struct error *err)
{
    return options->library ? error_set(err, ENODEV, "no such backend") : 0;
}

static int read_code;

static int backend_read(void *state, struct gpu_node_reading *reading, struct error *err)
{
    *reading = scene;
    return read_code ? error_set(err, read_code, "the driver is gone") : 0;
}

static int closed;

static void backend_close(void *state)
{
    closed++;
}

static const struct gpu_backend backend = {backend_open, backend_read, backend_close};

/* A source that has `source_value` for every metric that is asked of it. */
static int opened, asked, open_code;
static int64_t source_value;
static const char *source_library;

static int source_open(const char *library, int64_t period_ns, void **state, struct error *err)
{
    assert_int_equal(period_ns, PERIOD_NS);
    source_library = library;
    opened++;
    return open_code ? error_set(err, open_code, "the source is not there: install it") : 0;
}

static void source_read(void *state, struct gpu_node_reading *reading)
{
    asked++;
    for (uint32_t i = 0; i < reading->count; i++)
        for (uint32_t m = 0; m < GPU_METRIC_COUNT; m++)
            if (reading->gpus[i].metrics[m].source == GPU_SOURCE_NONE)
                reading->gpus[i].metrics[m] =
                    (struct gpu_measure){.source = GPU_SOURCE_DCGM, .value = source_value, .at_ns = reading->at_ns};
}

static const struct gpu_metric_source source = {"second", source_open, source_read, backend_close};
static const struct gpu_chain_link with_source[] = {{&source, "the path"}, {NULL, NULL}};
static const struct gpu_chain_link alone[] = {{NULL, NULL}};

static void begin(const struct gpu_chain_link *links)
{
    memset(&scene, 0, sizeof scene);
    opened = asked = closed = open_code = 0;
    source_value = 300;
    scene.at_ns = 1000 * NS_PER_SEC;
    scene.count = 1;
    strcpy(scene.gpus[0].uuid, "GPU-a");
    scene.gpus[0].valid = GPU_HAS_UTILIZATION | GPU_HAS_PROCESSES;
    scene.gpus[0].utilization_permille = 900;
    assert_int_equal(gpu_chain_open(&backend, &(struct gpu_backend_options){0}, links, PERIOD_NS, &chain, &trouble), 0);
}

static void look(int times)
{
    for (int i = 0; i < times; i++) {
        assert_int_equal(gpu_chain_read(chain, &seen, &trouble), 0);
        scene.at_ns += PERIOD_NS;
    }
}

static void end(void)
{
    gpu_chain_close(chain);
}

static void set_all(struct gpu_reading *gpu, uint32_t from, int64_t value)
{
    for (uint32_t m = 0; m < GPU_METRIC_COUNT; m++)
        gpu->metrics[m] = (struct gpu_measure){.source = from, .value = value, .at_ns = scene.at_ns};
}

static void assert_measure(const struct gpu_measure *measure, uint32_t from, int64_t value)
{
    assert_int_equal(measure->source, from);
    if (from)
        assert_int_equal(measure->value, value);
}

/* The SM activity of GPU 0, as one more look finds it. */
static void look_finds(uint32_t from, int64_t value)
{
    look(1);
    assert_measure(&seen.gpus[0].metrics[GPU_SM_ACTIVITY], from, value);
}

TEST(test_nothing_lacks_nobody_is_asked)
{
    const struct gpu_backend_options none = {.library = "x"};

    assert_int_equal(gpu_chain_open(&backend, &none, with_source, PERIOD_NS, &chain, &trouble), -ENODEV);
    assert_string_equal(trouble.text, "no such backend");
    gpu_chain_close(NULL);
    begin(with_source);
    set_all(&scene.gpus[0], GPU_SOURCE_GPM, 0);
    look(5);
    assert_int_equal(opened, 0);
    assert_measure(&seen.gpus[0].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_GPM, 0);
    assert_string_equal(seen.limits, "");
    read_code = ENODEV;
    assert_int_equal(gpu_chain_read(chain, &seen, &trouble), -ENODEV);
    assert_string_equal(trouble.text, "the driver is gone");
    read_code = 0;
    end();
    assert_int_equal(closed, 1);
}

/* The first look has no interval: neither the source nor utilisation may step in for it. */
TEST(test_the_source_fills_what_lacks)
{
    begin(with_source);
    scene.gpus[0].metrics[GPU_PCIE_TX] = (struct gpu_measure){GPU_SOURCE_GPM, 0, 5 * MIB, 7};
    look(1);
    assert_int_equal(opened, 0);
    assert_measure(&seen.gpus[0].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_NONE, 0);
    look(1);
    assert_int_equal(opened, 1);
    assert_string_equal(source_library, "the path");
    assert_measure(&seen.gpus[0].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_DCGM, 300);
    assert_measure(&seen.gpus[0].metrics[GPU_PCIE_TX], GPU_SOURCE_GPM, 5 * MIB);
    assert_int_equal(seen.gpus[0].metrics[GPU_PCIE_TX].at_ns, 7);
    assert_string_equal(seen.limits, "");
    source_value =
        1001; /* impossible: no value, and no frame that the daemon refuses; one look is no reason to step in */
    look_finds(GPU_SOURCE_NONE, 0);
    look_finds(GPU_SOURCE_UTILIZATION, 900);
    end();
    assert_int_equal(closed, 2);
}

TEST(test_utilization_stands_in)
{
    begin(alone);
    scene.count = 4;
    for (int i = 1; i < 4; i++)
        scene.gpus[i] = scene.gpus[0];
    strcpy(scene.gpus[1].uuid, "GPU-b");
    scene.gpus[1].kind = GPU_PARTITIONED;
    strcpy(scene.gpus[2].uuid, "MIG-c");
    strcpy(scene.gpus[2].parent, "GPU-b");
    scene.gpus[2].kind = GPU_INSTANCE;
    strcpy(scene.gpus[3].uuid, "GPU-d");
    scene.gpus[3].valid = 0;
    look(2);
    assert_measure(&seen.gpus[0].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_UTILIZATION, 900);
    assert_int_equal(seen.gpus[0].metrics[GPU_SM_ACTIVITY].at_ns, seen.at_ns);
    assert_measure(&seen.gpus[0].metrics[GPU_DRAM_ACTIVITY], GPU_SOURCE_NONE, 0);
    for (int i = 1; i < 4; i++)
        assert_measure(&seen.gpus[i].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_NONE, 0);
    assert_string_equal(seen.limits, "SM activity is not measured");
    scene.count = 1;
    look(1);
    assert_string_equal(seen.limits, "SM activity is not measured, utilisation stands in");
    end();
}

TEST(test_a_source_that_cannot_open_is_tried_again_in_a_minute)
{
    begin(with_source);
    open_code = ENOENT;
    look(2);
    assert_int_equal(opened, 1);
    scene.at_ns = NS_PER_SEC; /* a clock that was set back starts the patience anew, and ends no wait for ever */
    look_finds(GPU_SOURCE_NONE, 0);
    look_finds(GPU_SOURCE_UTILIZATION, 900);
    assert_int_equal(opened, 2);
    opened = 1;
    look(59);
    assert_int_equal(opened, 1);
    assert_int_equal(asked, 0);
    assert_string_equal(seen.limits,
                        "SM activity is not measured, utilisation stands in: the source is not there: install it");
    look(1);
    assert_int_equal(opened, 2);
    open_code = 0;
    look(60);
    assert_int_equal(opened, 3);
    assert_measure(&seen.gpus[0].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_DCGM, 300);
    scene.gpus[0].metrics[GPU_SM_ACTIVITY] = (struct gpu_measure){GPU_SOURCE_GPM, 0, 10, 1};
    source_value = -1;
    look(1);
    assert_string_equal(seen.limits, "not all activity is measured");
    strcpy(scene.limits, "the backend's own");
    look(1);
    assert_string_equal(seen.limits, "the backend's own");
    end();
}

TEST(test_a_failed_gpu_lacks_nothing)
{
    begin(with_source);
    scene.gpus[0].error = 15;
    look(2);
    assert_int_equal(opened, 0);
    scene.gpus[0].error = 0;
    scene.gpus[0].uuid[0] = '\0';
    look(2);
    assert_int_equal(opened, 0);
    assert_string_equal(seen.limits, "");
    end();
}

TEST(test_zeros_stuck_since_an_xid)
{
    struct gpu_reading *gpu = &scene.gpus[0];

    begin(alone);
    set_all(gpu, GPU_SOURCE_GPM, 0);
    look_finds(GPU_SOURCE_GPM, 0); /* no Xid: believed */
    gpu->xid = 31;
    gpu->xid_count = 1;
    gpu->xid_at_ns = scene.at_ns;
    set_all(gpu, GPU_SOURCE_GPM, 400); /* the interval began before the Xid: no proof */
    look(1);
    set_all(gpu, GPU_SOURCE_GPM, 0);
    look_finds(GPU_SOURCE_NONE, 0);
    assert_measure(&seen.gpus[0].metrics[GPU_PCIE_RX], GPU_SOURCE_NONE, 0);
    assert_non_null(strstr(seen.limits, "zeros since an Xid"));
    look_finds(GPU_SOURCE_UTILIZATION, 900);
    gpu->utilization_permille = 0; /* then zero it may well be */
    look_finds(GPU_SOURCE_GPM, 0);
    assert_string_equal(seen.limits, "");
    gpu->process_count = 1; /* but not where something runs */
    look_finds(GPU_SOURCE_NONE, 0);
    gpu->utilization_permille = 900;
    gpu->metrics[GPU_PCIE_TX].value = 1; /* some traffic proves nothing about SMs */
    look_finds(GPU_SOURCE_UTILIZATION, 900);
    assert_measure(&seen.gpus[0].metrics[GPU_PCIE_TX], GPU_SOURCE_GPM, 1);
    gpu->metrics[GPU_SM_ACTIVITY].value = 1; /* it moves: from here on every zero is one */
    look(1);
    gpu->metrics[GPU_SM_ACTIVITY].value = 0;
    look_finds(GPU_SOURCE_GPM, 0);
    assert_measure(&seen.gpus[0].metrics[GPU_TENSOR_ACTIVITY], GPU_SOURCE_GPM, 0);
    gpu->xid_count = 2; /* until the next Xid */
    look(2);
    assert_measure(&seen.gpus[0].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_NONE, 0);
    end();
}

/* A metric stuck in one source is asked of the next, and judged there again. */
TEST(test_the_next_source_is_asked_for_what_is_stuck)
{
    begin(with_source);
    set_all(&scene.gpus[0], GPU_SOURCE_GPM, 0);
    scene.gpus[0].xid_count = 1;
    look(3);
    assert_measure(&seen.gpus[0].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_DCGM, 300);
    scene.gpus[0].xid_count = 2;
    source_value = 0;
    look(3);
    assert_measure(&seen.gpus[0].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_UTILIZATION, 900);
    end();
}

/* An instance's Xids are its parent's; that it works, only its processes say. */
TEST(test_a_stuck_instance)
{
    struct gpu_reading *parent = &scene.gpus[0], *instance = &scene.gpus[1];

    begin(alone);
    scene.count = 2;
    parent->kind = GPU_PARTITIONED;
    parent->xid_count = 1;
    instance->kind = GPU_INSTANCE;
    strcpy(instance->uuid, "MIG-b");
    strcpy(instance->parent, "GPU-a");
    instance->valid = GPU_HAS_PROCESSES;
    set_all(instance, GPU_SOURCE_GPM, 0);
    look(2);
    assert_measure(&seen.gpus[1].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_GPM, 0);
    instance->process_count = 1;
    look(1);
    assert_measure(&seen.gpus[1].metrics[GPU_SM_ACTIVITY], GPU_SOURCE_NONE, 0);
    end();
}
