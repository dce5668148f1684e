/* The part of the device filter that may live in a foreign process: it allocates nothing and ends nothing. */
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch/cgroup/device_filter.h"

#define NVIDIA_MAJOR    195
#define NVIDIA_ALL_FROM 254 /* of its minors, those that every process needs */
#define CAPS_FIRST      3   /* before it: rights that belong to no instance; their nodes have modes of their own */

uint32_t device_filter_major(const char *devices, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = devices; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        uint32_t major;
        int at;

        if (strncmp(line, "Block devices:", 14) == 0)
            return 0;
        if (sscanf(line, " %" SCNu32 " %n", &major, &at) == 1 && strncmp(line + at, name, length) == 0 &&
            (line[at + (int)length] == '\n' || line[at + (int)length] == '\0'))
            return major;
    }
    return 0;
}

/* ---- The program ---- */

/* All jumps lead forward, as older kernels require: `to_allow` and `to_caps` are filled in where their targets are. */
struct assembler {
    struct bpf_insn *program;
    size_t count;
    size_t to_allow[DEVICE_FILTER_ROOM];
    size_t to_allow_count;
};

static size_t put(struct assembler *as, uint8_t code, uint8_t to, uint8_t from, int16_t offset, int32_t number)
{
    as->program[as->count] =
        (struct bpf_insn){.code = code, .dst_reg = to, .src_reg = from, .off = offset, .imm = number};
    return as->count++;
}

static void allow_if(struct assembler *as, uint8_t comparison, uint8_t what, uint32_t number)
{
    as->to_allow[as->to_allow_count++] = put(as, BPF_JMP | comparison | BPF_K, what, 0, 0, (int32_t)number);
}

static void leave(struct assembler *as, int32_t verdict)
{
    put(as, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, verdict);
    put(as, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void lead_here(struct assembler *as, size_t jump)
{
    as->program[jump].off = (int16_t)(as->count - jump - 1);
}

size_t device_filter_program(const struct device_filter *filter, struct bpf_insn *program)
{
    enum { TYPE = BPF_REG_2, MAJOR = BPF_REG_3, MINOR = BPF_REG_4 };
    struct assembler as = {.program = program};
    size_t to_gpus, to_caps = 0;

    put(&as, BPF_LDX | BPF_MEM | BPF_W, TYPE, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, access_type), 0);
    put(&as, BPF_LDX | BPF_MEM | BPF_W, MAJOR, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, major), 0);
    put(&as, BPF_LDX | BPF_MEM | BPF_W, MINOR, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, minor), 0);
    put(&as, BPF_ALU64 | BPF_AND | BPF_K, TYPE, 0, 0, 0xffff); /* above it: reading, writing, making */
    allow_if(&as, BPF_JNE, TYPE, BPF_DEVCG_DEV_CHAR);
    to_gpus = put(&as, BPF_JMP | BPF_JEQ | BPF_K, MAJOR, 0, 0, NVIDIA_MAJOR);
    if (filter->caps_major)
        to_caps = put(&as, BPF_JMP | BPF_JEQ | BPF_K, MAJOR, 0, 0, (int32_t)filter->caps_major);
    as.to_allow[as.to_allow_count++] = put(&as, BPF_JMP | BPF_JA, 0, 0, 0, 0);
    lead_here(&as, to_gpus);
    allow_if(&as, BPF_JGE, MINOR, NVIDIA_ALL_FROM);
    for (uint32_t i = 0; i < filter->gpu_count; i++)
        allow_if(&as, BPF_JEQ, MINOR, filter->gpus[i]);
    leave(&as, 0);
    if (filter->caps_major) {
        lead_here(&as, to_caps);
        for (uint32_t i = 0; i < filter->cap_count; i++)
            allow_if(&as, BPF_JEQ, MINOR, filter->caps[i]);
        for (uint32_t minor = 0; minor < CAPS_FIRST; minor++)
            allow_if(&as, BPF_JEQ, MINOR, minor);
        leave(&as, 0);
    }
    for (size_t i = 0; i < as.to_allow_count; i++)
        lead_here(&as, as.to_allow[i]);
    leave(&as, 1);
    return as.count;
}

/* ---- Into the kernel ---- */

#define LOAD_TRIES 100

int device_filter_load(const struct device_filter *filter)
{
    struct bpf_insn program[DEVICE_FILTER_ROOM];
    union bpf_attr attributes;
    int fd = -1;

    memset(&attributes, 0, sizeof attributes); /* unknown members have to be zero */
    attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attributes.insn_cnt = (uint32_t)device_filter_program(filter, program);
    attributes.insns = (uintptr_t)program;
    attributes.license = (uintptr_t) "Apache-2.0";
    for (int tries = 0; tries < LOAD_TRIES; tries++) {
        fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes);
        if (fd >= 0 || errno != EAGAIN) /* the kernel's check of the program ends so where a signal comes */
            break;
    }
    return fd < 0 ? -errno : fd;
}

int device_filter_put(int program, int cgroup)
{
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof attributes);
    attributes.target_fd = (uint32_t)cgroup;
    attributes.attach_bpf_fd = (uint32_t)program;
    attributes.attach_type = BPF_CGROUP_DEVICE;
    attributes.attach_flags = BPF_F_ALLOW_MULTI;
    return syscall(SYS_bpf, BPF_PROG_ATTACH, &attributes, sizeof attributes) < 0 ? -errno : 0;
}
