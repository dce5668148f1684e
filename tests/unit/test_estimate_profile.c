#include "unit.h"

#include "estimate/profile.h"

TEST(built_in_profiles_are_found_by_either_name)
{
    assert_ptr_equal(machine_profile_find("a100-40g-thesis"), machine_profile_builtin(0));
    assert_ptr_equal(machine_profile_find("A100-40G-Later"), machine_profile_builtin(1));
    assert_ptr_equal(machine_profile_find("NVIDIA A100-SXM4-40GB"), machine_profile_builtin(0));
    assert_string_equal(machine_profile_find("h200")->gpu, "NVIDIA H200");
    assert_string_equal(machine_profile_find("nvidia h200")->name, "h200");
    assert_string_equal(machine_profile_find("Tesla T4")->name, "t4");
    assert_string_equal(machine_profile_find("RTX 4090")->name, "rtx-4090");
    assert_string_equal(machine_profile_find("GeForce RTX 3060")->name, "rtx-3060");
    assert_string_equal(machine_profile_find("B200")->name, "b200");
    assert_null(machine_profile_find("h20"));
    assert_null(machine_profile_find("h2000"));
    assert_null(machine_profile_find(""));
}

/* The figures that the thesis's data show, and each card's own within reason: a wrong unit would be far off. */
TEST(built_in_profiles_are_plausible)
{
    const struct machine_profile *p = machine_profile_find(MACHINE_PROFILE_DEFAULT);
    assert_int_equal(p->context_bytes, 1429 * MIB);
    assert_int_equal(p->cudnn_bytes, 258 * MIB);
    assert_int_equal(p->cublas_workspace_bytes, 8 * MIB + 128 * KIB);
    assert_int_equal(p->memory_bytes, 40400 * MIB);
    assert_int_equal(p->sm_count, 108);
    for (size_t i = 0; (p = machine_profile_builtin(i)); i++) {
        assert_ptr_equal(machine_profile_find(p->name), p);
        assert_non_null(machine_profile_find(p->gpu));
        assert_true(strncmp(p->gpu, "NVIDIA ", 7) == 0 || strncmp(p->gpu, "Tesla ", 6) == 0);
        assert_true(p->context_bytes >= 150 * MIB && p->context_bytes <= 2 * GIB);
        assert_true(p->cudnn_bytes >= 0 && p->cudnn_bytes <= GIB);
        assert_true(p->memory_bytes >= 7 * GIB && p->memory_bytes <= 180 * GIB);
        assert_true(p->sm_count >= 24 && p->sm_count <= 148);
        assert_true(p->sm_clock_mhz >= 1400 && p->sm_clock_mhz <= 2600);
        assert_true(p->bandwidth_gbps >= 272 && p->bandwidth_gbps <= 8000);
        assert_true(*p->source);
        /* only the A100's context was measured: the others say so */
        assert_true(strstr(p->source, "measured") || strstr(p->source, "assumed"));
        assert_int_equal(strstr(p->source, "measured") != NULL, strncmp(p->name, "a100-40g-", 9) == 0);
    }
}

static struct machine_profile profile;

static int read_text(const char *text)
{
    return machine_profile_read(&profile, "dir/box.profile", text, strlen(text), &trouble);
}

TEST(each_key_is_read)
{
    static const struct machine_profile odd = {.name = "odd",
                                               .gpu = "A GPU = of its own",
                                               .source = "tests",
                                               .context_bytes = 1440 * MIB + 512 * KIB,
                                               .cudnn_bytes = 12345677,
                                               .cublas_workspace_bytes = 0,
                                               .memory_bytes = 40 * GIB,
                                               .sm_count = 7,
                                               .sm_clock_mhz = 1000,
                                               .bandwidth_gbps = 100};

    assert_int_equal(read_text("name = odd\ngpu = A GPU = of its own\nsource = tests\ncontext = 1475072KiB\n"
                               "cudnn = 12345677B\ncublas_workspace = 0MiB\nmemory = 40960MiB\nsm_count = 7\n"
                               "sm_clock_mhz = 1000\nbandwidth_gbps = 100\n"),
                     0);
    assert_memory_equal(&profile, &odd, sizeof profile);
}

TEST(what_a_file_leaves_out_is_the_gpus)
{
    assert_int_equal(read_text("# measured\n\n ; too\n\tgpu=NVIDIA H200\ncontext =  700 MiB\r\n"
                               "cudnn = 0\nmemory = 140G"),
                     0);
    assert_string_equal(profile.name, "box");
    assert_string_equal(profile.gpu, "NVIDIA H200");
    assert_int_equal(profile.context_bytes, 700 * MIB);
    assert_int_equal(profile.cudnn_bytes, 0);
    assert_int_equal(profile.memory_bytes, 140 * GIB);
    assert_int_equal(profile.sm_count, 132);
    assert_int_equal(profile.bandwidth_gbps, 4800);
    assert_int_equal(profile.cublas_workspace_bytes, 32 * MIB);
    assert_int_equal(read_text("gpu=X\ncontext=1M\ncudnn=1M\nmemory=1G\n"), 0);
    assert_int_equal(profile.sm_count, 0);
    assert_int_equal(profile.cublas_workspace_bytes, 8320 * KIB);
}

static const struct {
    const char *text, *says;
} wrong_files_are_told_with_their_line_rows[] = {
    {"", "box.profile:0: the file ends without 'gpu'"},
    {"gpu = X\ncontext = 1M\ncudnn = 1M\n", "box.profile:3: the file ends without 'memory'"},
    {"gpu = X\nfoo = 1\n", "box.profile:2: unknown key 'foo'"},
    {"gpu = X\ngpu = Y\n", "box.profile:2: gpu is set twice"},
    {"context\n", "box.profile:1: neither"},
    {"context = much\n", "box.profile:1: context: 'much' is not a size"},
    {"context = -1\n", "box.profile:1: context: '-1' is not a size"},
    {"context = 65G\n", "box.profile:1: context: '65G' is out of range: 0 B to 64.0 GiB"},
    {"memory = 1M\n", "box.profile:1: memory: '1M' is out of range"},
    {"sm_count = 0\n", "box.profile:1: sm_count: "},
    {"sm_count = 1.5\n", "box.profile:1: sm_count: "},
    {"gpu =\n", "box.profile:1: gpu: 0 characters: give 1 to 63"},
    {"gpu = \x1b[31m\n", "box.profile:1: a character that is not plain text"},
    {"gpu = X\ncontext = 1G\ncudnn = 1G\nmemory = 2G\n", "leave nothing of memory"},
};

EACH_ROW(TEST, wrong_files_are_told_with_their_line, wrong_files_are_told_with_their_line_rows)
{
    assert_int_equal(read_text(row->text), -EINVAL);
    assert_has(trouble.text, row->says);
}

TEST(large_files_are_refused)
{
    CLEANUP(free_ptr) char *text = xmalloc(MACHINE_PROFILE_MAX_BYTES + 1);
    memset(text, '#', MACHINE_PROFILE_MAX_BYTES + 1);
    assert_error(machine_profile_read(&profile, "f", text, 301, &trouble), -EINVAL, "longer than 300");
    memset(text, '\n', MACHINE_PROFILE_MAX_BYTES + 1);
    assert_error(machine_profile_read(&profile, "f", text, MACHINE_PROFILE_MAX_BYTES + 1, &trouble), -EINVAL,
                 "more than");
}
