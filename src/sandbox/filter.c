#include "sandbox/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/memory.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filter does not know this processor's system calls"
#endif

#define X32_CALLS   0x40000000u /* other numbers for the same calls */
#define PROGRAM_MAX 128

struct rule {
    int call;
    int error; /* 0: the call does nothing and succeeds */
};

static const struct rule always[] = {
    {SYS_add_key, ENOSYS}, /* keyrings belong to the user and to no namespace */
    {SYS_keyctl, ENOSYS},
    {SYS_request_key, ENOSYS},
    {SYS_io_uring_setup, ENOSYS}, /* its calls pass no filter */
    {SYS_bpf, EPERM},             /* these two see the whole machine, where its settings let users */
    {SYS_perf_event_open, EPERM},
    {SYS_ioprio_set, EPERM}, /* it could leave the lowest class */
    {SYS_setns, EPERM},
    {SYS_unshare, EPERM}, /* in a user namespace of its own it would have rights again */
    {SYS_clone3, ENOSYS}, /* its flags cannot be read here; C libraries use clone() then */
};

static const struct rule where_watched[] = {
    {SYS_memfd_create, ENOSYS}, /* memory that belongs to no process */
    {SYS_shmget, ENOSYS},
    {SYS_sched_setaffinity, 0}, /* its cores are all the limit on CPU time that there is */
};

/* Families of sockets that are within the network namespace. */
static const unsigned families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

#define NEW_NAMESPACES                                                                                                 \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

struct program {
    struct sock_filter code[PROGRAM_MAX];
    unsigned short length;
};

static void put(struct program *program, unsigned code, unsigned operand, unsigned skip_if, unsigned skip_else)
{
    program->code[program->length++] =
        (struct sock_filter)BPF_JUMP((unsigned short)code, operand, (unsigned char)skip_if, (unsigned char)skip_else);
}

static void load(struct program *program, size_t offset)
{
    put(program, BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0);
}

static void refuse(struct program *program, int error)
{
    put(program, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error, 0, 0);
}

static void put_rules(struct program *program, const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(program, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)rules[i].call, 0, 1);
        refuse(program, rules[i].error);
    }
}

/* The low half of it, on both processors. */
static void load_argument(struct program *program, int number)
{
    load(program, offsetof(struct seccomp_data, args) + (size_t)number * sizeof(uint64_t));
}

/* An argument of a call is looked at by the code between this and its end, which refuses or goes on. */
static size_t begin_call(struct program *program, int call, int argument)
{
    put(program, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 0);
    load_argument(program, argument);
    return program->length - 2u;
}

static void end_call(struct program *program, size_t begin)
{
    put(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    program->code[begin].jf = (unsigned char)(program->length - begin - 1);
}

static void put_sockets(struct program *program, int call)
{
    size_t begin = begin_call(program, call, 0);

    for (size_t i = 0; i < array_size(families); i++) {
        put(program, BPF_JMP | BPF_JEQ | BPF_K, families[i], 0, 1);
        put(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    }
    refuse(program, EAFNOSUPPORT);
    end_call(program, begin);
}

static void put_clone(struct program *program)
{
    size_t begin = begin_call(program, SYS_clone, 0);

    put(program, BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1);
    refuse(program, EPERM);
    end_call(program, begin);
}

/* Sockets keep the sizes of buffers that they begin with (unowned.h): asking for others does nothing. */
static void put_buffers(struct program *program)
{
    static const unsigned sizes[] = {SO_SNDBUF, SO_RCVBUF};
    size_t begin = begin_call(program, SYS_setsockopt, 1);

    put(program, BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 1, 0);
    put(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    load_argument(program, 2);
    for (size_t i = 0; i < array_size(sizes); i++) {
        put(program, BPF_JMP | BPF_JEQ | BPF_K, sizes[i], 0, 1);
        refuse(program, 0);
    }
    end_call(program, begin);
}

int filter_install(bool watched, struct error *err)
{
    struct program program = {.length = 0};
    struct sock_fprog whole;

    load(&program, offsetof(struct seccomp_data, arch));
    put(&program, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    refuse(&program, ENOSYS);
    load(&program, offsetof(struct seccomp_data, nr));
    put(&program, BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1);
    refuse(&program, ENOSYS);
    put_rules(&program, always, array_size(always));
    if (watched) {
        put_rules(&program, where_watched, array_size(where_watched));
        put_buffers(&program);
    }
    put_clone(&program);
    put_sockets(&program, SYS_socket);
    put_sockets(&program, SYS_socketpair);
    put(&program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    whole = (struct sock_fprog){.len = program.length, .filter = program.code};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) < 0)
        return error_set(err, errno, "no filter of system calls can be installed: %s", strerror(errno));
    return 0;
}
