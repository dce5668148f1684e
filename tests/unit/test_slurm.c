/* Slurm's plugin and agent without a Slurm: sizes, lists of GRES, options, the spool. */
#include "unit.h"

#include "slurm/agent/counts.h"
#include "slurm/agent/waiting.h"
#include "slurm/plugin/plugin.h"
#include "slurm/shared/ask.h"
#include "slurm/shared/size.h"
#include "slurm/shared/spool.h"

TEST(test_sizes)
{
    static const char *const bad[] = {"12", "12GB", "-1G", "0x10G", "1e3G", "9999999999T"};
    int64_t bytes = 0;
    const char *end;

    assert_true(size_parse("12G", false, &bytes, NULL) && bytes == 12 * GIB);
    assert_true(size_parse("1.5g", false, &bytes, NULL) && bytes == 3 * GIB / 2);
    assert_true(size_parse("12288M", false, &bytes, NULL) && bytes == 12 * GIB);
    assert_true(size_parse("171798691840", true, &bytes, NULL) && bytes == 160 * GIB);
    assert_true(size_parse("4T,gpubig", false, &bytes, &end) && bytes == 4 * TIB && strcmp(end, ",gpubig") == 0);
    for (size_t i = 0; i < array_size(bad); i++)
        assert_false(size_parse(bad[i], false, &bytes, NULL));
    assert_false(size_parse("", true, &bytes, NULL));
}

TEST(test_counts_of_a_list)
{
    int64_t count = 0;

    assert_true(size_of_gres("gres:gpumem:12288M,gres:gpubig:1", "gpumem", &count) && count == 12 * GIB);
    assert_true(size_of_gres("gres:gpumem:12288M,gres:gpubig", "gpubig", &count) && count == 1);
    assert_true(size_of_gres("gres/gpubig:1,gres/gpumem:1G", "gpumem", &count) && count == GIB);
    assert_true(size_of_gres("gpumemory:1G,gpumem:2G", "gpumem", &count) && count == 2 * GIB);
    assert_true(size_of_gres("gpumem(CNT:1024),gpuslot(CNT:3)", "gpuslot", &count) && count == 3);
    assert_false(size_of_gres("gpumem(CNT:1024", "gpumem", &count));
    assert_false(size_of_gres("gres:gpubig:1", "gpumem", &count));
    assert_false(size_of_gres("gpumem:x", "gpumem", &count));
    assert_false(size_of_gres("", "gpumem", &count));
}

TEST(test_counts_of_a_job)
{
    struct counts counts = counts_of_gres("gpumem(CNT:3072),gpusm(CNT:1200),gpuslot(CNT:4)");

    assert_true(counts.memory_bytes == 3072 && counts.gpus == 2 && !counts.guess);
    counts = counts_of_gres("gpumem(CNT:3072),gpuslot(CNT:3)");
    assert_true(counts.gpus == 1 && counts.guess);
    assert_true(counts_of_gres("gpumem(CNT:3072)").gpus == 0 && counts_of_gres("gpuslot(CNT:4)").gpus == 0);
    assert_true(counts_of_gres("gpumem(CNT:0),gpuslot(CNT:4)").gpus == 0 &&
                counts_of_gres("gpumem(CNT:9),gpuslot(CNT:1)").gpus == 0);
}

TEST(test_settings)
{
    char *good[] = {(char *)"socket=/run/x/sock", (char *)"wait=3", (char *)"spool=/var/x", (char *)"others=all"};
    char *bad[] = {(char *)"wait=0",     (char *)"wait=61",     (char *)"socket=relative",
                   (char *)"colour=red", (char *)"others=some", (char *)"wait"};
    struct settings settings;

    assert_null(settings_read(&settings, 4, good));
    assert_string_equal(settings.socket, "/run/x/sock");
    assert_string_equal(settings.spool, "/var/x");
    assert_int_equal(settings.wait_ms, 3000);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_ptr_equal(settings_read(&settings, 1, &bad[i]), bad[i]);
}

TEST(test_options)
{
    struct options options = {.gpus = 1};

    assert_true(options_set(&options, OPTION_MEMORY, "12G") && options.memory_bytes == 12 * GIB && options.asked);
    assert_true(options_set(&options, OPTION_GPUS, "2") && options.gpus == 2);
    assert_true(options_set(&options, OPTION_SHARE, "mps"));
    assert_true(options_set(&options, OPTION_EXCLUSIVE, NULL));
    assert_false(options_set(&options, OPTION_MEMORY, "0G"));
    assert_false(options_set(&options, OPTION_MEMORY, "much"));
    assert_false(options_set(&options, OPTION_GPUS, "0"));
    assert_false(options_set(&options, OPTION_GPUS, "2x"));
    assert_false(options_set(&options, OPTION_GPUS, "65"));
    assert_false(options_set(&options, OPTION_SHARE, "streams"));
}

static void expect_request(const char *old, int64_t gpus, int64_t bytes, bool big, const char *wanted)
{
    struct counts_node node = {.gpus = 4, .whole_bytes = 40 * GIB, .has_big = big, .sm = 1500};
    CLEANUP(strbuf_release) struct strbuf list = {0};

    counts_request(old, &node, gpus, bytes, &list);
    assert_string_equal(list.text, wanted);
}

TEST(test_raised_requests)
{
    expect_request("gres:gpumem:10G", 1, 12 * GIB, true, "gpumem:12288M");
    expect_request("gres:gpumem:10G", 1, 12 * GIB + 1, true, "gpumem:12289M");
    expect_request("gres:gpumem:10G", 1, 20 * GIB, true, "gpumem:20480M");
    expect_request("gres:gpumem:10G", 2, 20 * GIB + 1, true, "gpumem:40962M,gpubig:2");
    expect_request("gres:gpumem:10G", 2, 30 * GIB, false, "gpumem:61440M");
    expect_request("gres:gpumem:10G", 1, 90 * GIB, true, "gpumem:40960M,gpubig:1,gpusm:1500");
    expect_request("gres:gpumem:20G,gres:gpusm:600,nic:1", 2, 40 * GIB, true,
                   "gpumem:81920M,gpubig:2,gpusm:3000,nic:1");
    expect_request("gres/gpumem:20G,gres/gpusm:600,gres/nic:1", 2, 40 * GIB, true,
                   "gpumem:81920M,gpubig:2,gpusm:3000,nic:1");
    expect_request("gres:gpubig:1,gres:gpusm:300,gres:gpumem:30G", 1, 32 * GIB, true,
                   "gpumem:32768M,gpubig:1,gpusm:300");
}

static const struct {
    const char *old, *used;
    int64_t refusals;
    const char *wanted; /* NULL: it stays */
} beyond_what_is_free[] = {
    {"gres:gpumem:20G,gres:gpusm:600,gres:gpuslot:2", "gpusm:4800", 1, "gpumem:20G,gpusm:1201,gpuslot:2"},
    {"gpumem:20G,gpusm:1201", "gpusm:4800", 2, "gpumem:20G,gpusm:1951"},
    {"gpusm:600", "gpusm:4800", 9, "gpusm:6000"},
    {"gpusm:6000", "gpusm:4800", 9, NULL},
    {"gpumem:20G", "gpusm:4800", 1, NULL},
};

EACH_ROW(TEST, test_beyond_what_is_free, beyond_what_is_free)
{
    CLEANUP(strbuf_release) struct strbuf list = {0};

    assert_int_equal(counts_beyond_free(row->old, "gpumem:160G,gpusm:6000", row->used, row->refusals, &list),
                     row->wanted != NULL);
    if (row->wanted)
        assert_string_equal(list.text, row->wanted);
}

/* Slurm shortens lists, and a job that no node may take stays for ever. */
TEST(test_another_node_is_left)
{
    const char *nodes = "mixed n1 gpumem:160G,gpubig:4\nidle n10 gpumem:80G\nidle cpu1 (null)\ndrained n4 gpumem:80G\n";

    assert_true(waiting_leaves_others(nodes, NULL, "n1", 1));
    assert_false(waiting_leaves_others(nodes, NULL, "n1", 2));
    assert_true(waiting_leaves_others(nodes, "n1\nn2", "n3", 1));
    assert_false(waiting_leaves_others(nodes, "n1\n", "n10", 1));
    assert_false(waiting_leaves_others(nodes, "n10\n", "n1", 1));
    assert_false(waiting_leaves_others(NULL, NULL, "n1", 1));
}

static void expect_lowered(const char *list, int64_t usable, const char *wanted)
{
    CLEANUP(strbuf_release) struct strbuf lowered = {0};

    counts_lower(list, 4, usable, &lowered);
    assert_string_equal(lowered.text, wanted);
}

TEST(test_lowered_counts)
{
    expect_lowered("gpumem:160G,gpubig:4", 3, "gpumem:122880M,gpubig:3");
    expect_lowered("gpumem:160G,gpusm:4000,nic:2", 1, "gpumem:40960M,gpusm:1000,nic:2");
    expect_lowered("gpumem:160G,gpubig:4", 0, "gpumem:0M,gpubig:0");
}

TEST(test_properties)
{
    const char *line = "JobId=12 JobState=RUNNING Comment=a JobState=FAILED TresPerNode=gres:gpumem:1G \n";
    char value[32];

    assert_true(counts_property(line, "JobState", value, sizeof value));
    assert_string_equal(value, "RUNNING");
    assert_true(counts_property(line, "TresPerNode", value, sizeof value));
    assert_string_equal(value, "gres:gpumem:1G");
    assert_false(counts_property(line, "State", value, sizeof value));
    assert_false(counts_property(line, "TresPerNode", value, 5));
}

static char spool[64];

static int set_up(void **state)
{
    int rc = make_folder(state);

    snprintf(spool, sizeof spool, "%s/spool", folder);
    return rc;
}

TEST(test_spool)
{
    int64_t value = 0;
    struct stat info;
    char path[128];

    assert_int_equal(spool_put(spool, 12, "status", 256), -ENOENT); /* the agent makes it */
    assert_int_equal(mkdir(spool, 0700), 0);
    assert_false(spool_get(spool, 12, "status", &value));
    assert_int_equal(spool_put(spool, 12, "status", 256), 0);
    assert_true(spool_get(spool, 12, "status", &value));
    assert_int_equal(value, 256);
    assert_false(spool_get(spool, 1, "status", &value));
    spool_forget(spool, 12, "status");
    assert_false(spool_get(spool, 12, "status", &value));
    assert_int_equal(spool_order(spool, 12, 3, "retry", "gpus 1\n", NULL), 0);
    assert_false(spool_await(spool, 12, 3, "retry", ask_now_ms() + 20));
    assert_true(spool_await(spool, 12, 4, "retry", ask_now_ms()));
    snprintf(path, sizeof path, "%s/12.3.retry", spool);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(unlink(path), 0);
    assert_true(spool_await(spool, 12, 3, "retry", ask_now_ms() + 1000));
}

RUN_TESTS(set_up, remove_folder)
