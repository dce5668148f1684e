#include "unit.h"

#include "vnode_fixture.h"

static const struct {
    const char *name;
    uint32_t gpus;
    int64_t total_mib, usable_mib;
} shipped_profiles_rows[] = {{"a100x4-40g", 4, 40960, 40536},       {"h100x8-80g", 8, 81559, 80999},
                             {"h200x1", 1, 143771, 143156},         {"gh200x1", 1, 97871, 97256},
                             {"a100x4-40g-nogpm", 4, 40960, 40536}, {"a100x2-mig", 2, 40960, 40536},
                             {"h100x2-mig", 2, 81559, 80999}};

EACH_ROW(TEST, shipped_profiles, shipped_profiles_rows)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/data/nodes/%s.ini", CARMA_SOURCE, row->name);
    struct node_file file;

    fail_if(profile_read(path, &file, &trouble) < 0, trouble);
    assert_string_equal(file.profile, row->name);
    assert_int_equal(file.gpu_count, row->gpus);
    assert_int_equal(file.cuda_version, 12040);
    for (uint32_t g = 0; g < file.gpu_count; g++) {
        assert_int_equal(file.gpus[g].total_bytes, row->total_mib * MIB);
        assert_int_equal(file.gpus[g].total_bytes - file.gpus[g].reserved_bytes, row->usable_mib * MIB);
        assert_true(g == 0 || file.gpus[g].pci_bus != file.gpus[g - 1].pci_bus);
    }
}

/* Replaces `from` by `to` in the A100's profile and reads that. */
static void refused(const char *from, const char *to, const char *complaint)
{
    CLEANUP(free_ptr) char *good = NULL;
    CLEANUP(strbuf_release) struct strbuf bad = {0};
    char path[] = "/tmp/carma-profile.XXXXXX.ini", *at;
    struct node_file file;
    size_t length;
    int fd = mkstemps(path, 4);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(file_read(CARMA_SOURCE "/data/nodes/a100x4-40g.ini", 65536, &good, &length, &trouble), 0);
    at = strstr(good, from);
    assert_non_null(at);
    strbuf_append(&bad, good, (size_t)(at - good));
    strbuf_puts(&bad, to);
    strbuf_puts(&bad, at + strlen(from));
    assert_int_equal(file_write_atomic(path, bad.text, bad.length, 0600, &trouble), 0);
    assert_int_equal(profile_read(path, &file, &trouble), -EINVAL);
    if (!strstr(trouble.text, complaint) || !strstr(trouble.text, path))
        fail_msg("'%s' does not say '%s'", trouble.text, complaint);
    unlink(path);
}

TEST(bad_profiles)
{
    struct node_file file;

    refused("gpus = 4", "gpus = 17", ":4: gpus = '17' should be a number from 1 to 16");
    refused("gpus = 4", "gpus = four", "gpus = 'four'");
    refused("gpus = 4", "", "'gpus' of section [node] is missing");
    refused("gpus = 4", "gpus = 4\ngpus = 4", ":5: gpus = '4' should be given once only");
    refused("gpus = 4", "colour = red", ":4: colour = 'red' should be left out");
    refused("gpus = 4", "four", ":4: this is neither");
    refused("reserved_mib = 424", "reserved_mib = 40960", "leaves nothing");
    refused("idle_w = 53.8", "idle_w = 400", "idle_w should be less");
    refused("idle_w = 53.8", "idle_w = nan", "idle_w = 'nan'");
    refused("pcie_generation = 4", "pcie_generation = 4\ngpm = maybe", "gpm = 'maybe' should be yes or no");
    refused("pcie_generation = 4", "pcie_generation = 4\n[mig]\ngpus = 1", "[mig] needs gpus");
    refused("pcie_generation = 4", "pcie_generation = 4\n[mig]\ngpus = 5\ninstances = 1g.5gb", "[mig] needs gpus");
    refused("pcie_generation = 4", "pcie_generation = 4\n[mig]\ngpus = 1\ninstances = 1g.5gb small", "instances as");
    refused("pcie_generation = 4", "pcie_generation = 4\n[mig]\ngpus = 1\ninstances = 1g.1gb", "less than an eighth");
    refused("pcie_generation = 4", "pcie_generation = 4\n[mig]\ngpus = 1\ninstances = 4g.20gb 4g.20gb",
            "8 of 7 compute slices and 8 of 8 memory slices");
    assert_error(profile_read("/nonexistent/node.ini", &file, &trouble), -ENOENT, "/nonexistent/node.ini");
}
