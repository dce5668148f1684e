/* The device filter of a job's control group. Its program is run by a small interpreter, on any machine. The kernel
 * runs it too, where this one lets us (root, version 2 of control groups, BPF). */
#include "unit.h"

#include <dlfcn.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "launch/cgroup/cgroup.h"
#include "launch/cgroup/device_filter.h"

#define CAPS 237

/* The part of eBPF that the program uses; -1: an unknown instruction, or no end. */
static int64_t interpret(const struct bpf_insn *program, size_t count, const struct bpf_cgroup_dev_ctx *asked)
{
    uint64_t r[11] = {0};

    for (size_t at = 0; at < count; at++) {
        const struct bpf_insn *i = &program[at];
        uint64_t number = (uint64_t)(int64_t)i->imm;
        bool jumps = false;

        switch (i->code) {
        case BPF_LDX | BPF_MEM | BPF_W:
            if (i->src_reg != BPF_REG_1 || i->off < 0 || (size_t)i->off + 4 > sizeof *asked)
                return -1;
            memcpy(&r[i->dst_reg], (const char *)asked + i->off, 4);
            break;
        case BPF_ALU64 | BPF_AND | BPF_K:
            r[i->dst_reg] &= number;
            break;
        case BPF_ALU64 | BPF_MOV | BPF_K:
            r[i->dst_reg] = number;
            break;
        case BPF_JMP | BPF_JA:
            jumps = true;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            jumps = r[i->dst_reg] == number;
            break;
        case BPF_JMP | BPF_JNE | BPF_K:
            jumps = r[i->dst_reg] != number;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            jumps = r[i->dst_reg] >= number;
            break;
        case BPF_JMP | BPF_EXIT:
            return (int64_t)r[BPF_REG_0];
        default:
            return -1;
        }
        if (jumps && i->off < 0)
            return -1; /* refused by older kernels */
        at += jumps ? (size_t)i->off : 0;
    }
    return -1;
}

static const struct device_filter two_gpus = {.gpu_count = 2, .gpus = {0, 3}};
static const struct device_filter instance = {
    .gpu_count = 1, .gpus = {1}, .caps_major = CAPS, .cap_count = 2, .caps = {12, 13}};

static void expect(const struct device_filter *filter, uint32_t type, uint32_t major, uint32_t minor, int64_t verdict)
{
    struct bpf_insn program[DEVICE_FILTER_ROOM];
    size_t count = device_filter_program(filter, program);

    for (uint32_t access = 1; access < 8; access++) {
        const struct bpf_cgroup_dev_ctx asked = {.access_type = access << 16 | type, .major = major, .minor = minor};
        if (interpret(program, count, &asked) != verdict)
            fail_msg("%u:%u of type %u: not %d", major, minor, type, (int)verdict);
    }
}

TEST(test_program)
{
    static const struct device_filter none = {0};

    for (uint32_t minor = 0; minor < 300; minor++) {
        expect(&two_gpus, BPF_DEVCG_DEV_CHAR, 195, minor, minor == 0 || minor == 3 || minor >= 254);
        expect(&none, BPF_DEVCG_DEV_CHAR, 195, minor, minor >= 254);
        expect(&instance, BPF_DEVCG_DEV_CHAR, 195, minor, minor == 1 || minor >= 254);
        expect(&instance, BPF_DEVCG_DEV_CHAR, CAPS, minor, minor < 3 || minor == 12 || minor == 13);
        expect(&two_gpus, BPF_DEVCG_DEV_CHAR, CAPS, minor, 1); /* no such nodes here: it is another driver's */
        expect(&two_gpus, BPF_DEVCG_DEV_BLOCK, 195, minor, 1);
        expect(&two_gpus, BPF_DEVCG_DEV_CHAR, 1, minor, 1);
    }
}

TEST(test_largest)
{
    struct device_filter filter = {.gpu_count = RECORD_MAX_GPUS, .caps_major = CAPS, .cap_count = DEVICE_FILTER_CAPS};
    struct bpf_insn program[DEVICE_FILTER_ROOM];

    for (uint32_t i = 0; i < DEVICE_FILTER_CAPS; i++)
        filter.caps[i] = 3 + 2 * i;
    for (uint32_t i = 0; i < RECORD_MAX_GPUS; i++)
        filter.gpus[i] = 2 * i;
    assert_true(device_filter_program(&filter, program) <= DEVICE_FILTER_ROOM);
    expect(&filter, BPF_DEVCG_DEV_CHAR, 195, 2 * (RECORD_MAX_GPUS - 1), 1);
    expect(&filter, BPF_DEVCG_DEV_CHAR, 195, 1, 0);
    expect(&filter, BPF_DEVCG_DEV_CHAR, CAPS, 3 + 2 * (DEVICE_FILTER_CAPS - 1), 1);
    expect(&filter, BPF_DEVCG_DEV_CHAR, CAPS, 4, 0);
}

TEST(test_nodes_of_an_instance)
{
    static const char devices[] = "Character devices:\n  1 mem\n195 nvidia-frontend\n237 nvidia-caps\n"
                                  "238 nvidia-caps-imex-channels\n\nBlock devices:\n 99 late\n";
    static const char minors[] = "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n"
                                 "gpu0/gi11/access 30\ngpu10/gi1/access 40\ngpu10/gi1/ci0/access 41\n";
    struct device_filter filter = {0};

    assert_int_equal(device_filter_major(devices, "nvidia-caps"), 237);
    assert_int_equal(device_filter_major(devices, "nvidia"), 0);
    assert_int_equal(device_filter_major(devices, "late"), 0);
    assert_int_equal(device_filter_major("", "mem"), 0);
    assert_int_equal(device_filter_add_instance(&filter, minors, 10, 1, 0), 0);
    assert_int_equal(filter.cap_count, 2);
    assert_int_equal(filter.caps[0], 40);
    assert_int_equal(filter.caps[1], 41);
    assert_int_equal(device_filter_add_instance(&filter, minors, 0, 1, 1), -ENOENT);
    assert_int_equal(device_filter_add_instance(&filter, minors, 1, 1, 0), -ENOENT);
}

TEST(test_text)
{
    const struct device_filter *const filters[] = {&two_gpus, &instance, &(struct device_filter){0}};
    static const char *const texts[] = {"0,3;0;", "1;237;12,13", ";0;"};
    static const char *const bad[] = {"", "1", "1;2", "a;0;", "1,;0;x", "1;0;2 ", "1;;2", "99999999999;0;", "1;0,1;"};
    struct device_filter filter;

    for (size_t i = 0; i < array_size(filters); i++) {
        CLEANUP(free_ptr) char *text = device_filter_print(filters[i]);
        assert_string_equal(text, texts[i]);
        assert_int_equal(device_filter_parse(text, &filter), 0);
        assert_memory_equal(&filter, filters[i], sizeof filter);
    }
    for (size_t i = 0; i < array_size(bad); i++)
        if (device_filter_parse(bad[i], &filter) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
}

/* A process of the group opens the node, with a filter or without. No driver is behind it, so ENXIO or ENODEV where the
 * kernel lets us come so far. */
static bool is_denied(const char *cgroup, const char *directory, unsigned major, unsigned minor)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%u-%u", directory, major, minor);
    int status;

    assert_int_equal(mknod(path, S_IFCHR | 0600, makedev(major, minor)), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(cgroup_enter(cgroup) < 0 ? 2 : open(path, O_RDWR) < 0 && errno == EPERM);
    waitpid(pid, &status, 0);
    unlink(path);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

static int interrupted; /* so many loads, as by signals on a busy machine */

long syscall(long number, ...)
{
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"), words[3];
    va_list rest;

    va_start(rest, number);
    for (size_t i = 0; i < array_size(words); i++)
        words[i] = va_arg(rest, long);
    va_end(rest);
    if (number != SYS_bpf || interrupted-- <= 0)
        return real(number, words[0], words[1], words[2]);
    errno = EAGAIN;
    return -1;
}

TEST(test_kernel)
{
    char directory[] = "/tmp/carma-devices-XXXXXX";
    char name[32];

    if (geteuid() != 0 || device_filter_try(&trouble) < 0) {
        printf("device filters cannot be had here\n");
        skip();
    }
    snprintf(name, sizeof name, "test-%d", (int)getpid());
    CLEANUP(free_ptr) char *cgroup = cgroup_make(name);
    assert_non_null(cgroup);
    assert_non_null(mkdtemp(directory));
    if (is_denied(cgroup, directory, 195, 1)) { /* before: a system that keeps us from all devices tells nothing of
                                                   ours */
        cgroup_remove(cgroup);
        rmdir(directory);
        free(cgroup); /* skip() does not return */
        cgroup = NULL;
        skip();
    }
    interrupted = 3;
    int program = device_filter_kept("1;237;12,13"), other = device_filter_kept(";0;");
    assert_true(program >= 0 && other >= 0 && other != program);
    assert_int_equal(device_filter_kept("1;237;12,13"), program);
    for (int i = 0; i < 40; i++) /* more than are kept: each is loaded again */
        assert_true(device_filter_kept((char[]){(char)('0' + i / 10), (char)('0' + i % 10), ';', '0', ';', '\0'}) >= 0);
    program = device_filter_kept("1;237;12,13");
    assert_int_equal(device_filter_put_on(program, cgroup, &trouble), 0);
    assert_false(is_denied(cgroup, directory, 195, 1));
    assert_true(is_denied(cgroup, directory, 195, 0));
    assert_true(is_denied(cgroup, directory, 195, 2));
    assert_false(is_denied(cgroup, directory, 195, 255));
    assert_false(is_denied(cgroup, directory, CAPS, 12));
    assert_true(is_denied(cgroup, directory, CAPS, 14));
    assert_false(is_denied(cgroup, directory, 1, 3));
    cgroup_remove(cgroup);
    assert_int_equal(rmdir(directory), 0);
    assert_int_equal(device_filter_attach(&instance, cgroup, &trouble), -ENOENT);
}
