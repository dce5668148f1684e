/* How a job fails on request, with the words that PyTorch and CUDA have for it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "vnode/domain.h"
#include "vnode/fault.h"
#include "vnode/physics.h"
#include "vnode/train.h"

#define HANDLE_BYTES     (256 * MIB) /* the memory of a library's handle and its workspace */
#define HOST_STEP_BYTES  (16 * MIB)
#define HOST_BOUND_BYTES (256 * MIB) /* of host memory: a test bench takes no more than that */
#define XID_ECC          48

/* CUDA's own words for its errors. */
static const char *cuda_text(uint32_t error)
{
    switch (error) {
    case CUDA_FAULT_ECC:
        return "uncorrectable ECC error encountered";
    case CUDA_FAULT_ILLEGAL_ADDRESS:
        return "an illegal memory access was encountered";
    case CUDA_FAULT_LAUNCH_FAILED:
        return "unspecified launch failure";
    case CUDA_FAULT_MPS_RPC_FAILURE:
        return "the remote procedural call between the MPS server and the MPS client failed";
    case CUDA_FAULT_MPS_SERVER_NOT_READY:
        return "the MPS server is not ready to accept new MPS client requests";
    case CUDA_FAULT_MPS_CLIENT_TERMINATED:
        return "the MPS client has been terminated by the server";
    default:
        return "unknown error";
    }
}

/* Python's way to tell an exception, `what` with its class. */
static void print_exception(const char *line, const char *what)
{
    fflush(stdout);
    fprintf(stderr,
            "Traceback (most recent call last):\n"
            "  File \"train.py\", line 1, in <module>\n"
            "    %s\n"
            "%s\n",
            line, what);
}

void train_print_cuda_error(uint32_t error)
{
    CLEANUP(free_ptr) char *what = xasprintf("torch.AcceleratorError: CUDA error: %s", cuda_text(error));

    print_exception("loss.backward()", what);
    fputs(
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
        "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n",
        stderr);
}

/* A message about memory that the GPU does not support: the free part of it is unknown. */
static int print_false_shortage(struct attachment *attachment, struct error *err)
{
    struct shortage shortage = {.wanted_bytes = 512 * MIB, .free_bytes = 8 * MIB};
    struct node_slot slot;
    int64_t now_ns;
    int rc = attach_look(attachment, &slot, &now_ns, err);

    if (rc < 0)
        return rc;
    shortage.held_bytes = slot.uses[0].bytes;
    shortage.total_bytes = physics_usable_bytes(attachment->node->file, slot.uses[0].gpu, slot.uses[0].instance);
    train_print_out_of_memory(&shortage);
    return 0;
}

static int fail_handle(struct attachment *attachment, struct train_plan *plan, struct error *err)
{
    struct shortage shortage;
    struct node_slot slot;
    int64_t bytes[NODE_MAX_GPUS], now_ns;
    int rc = attach_look(attachment, &slot, &now_ns, err);

    if (rc < 0)
        return rc;
    for (uint32_t k = 0; k < slot.use_count; k++)
        bytes[k] = slot.uses[k].bytes + HANDLE_BYTES;
    rc = attach_hold(attachment, bytes, &shortage, err);
    if (rc != -ENOMEM)
        return rc;
    print_exception("model(inputs)",
                    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`");
    return -EIO;
}

/* Takes host memory until it is refused (a limit of its own), is killed (its control group's), or has taken enough. In
 * the last case it does to itself as the kernel would. */
static int fail_host(struct attachment *attachment, struct train_plan *plan, struct error *err)
{
    for (int64_t taken = 0; taken < HOST_BOUND_BYTES; taken += HOST_STEP_BYTES) {
        char *step = malloc(HOST_STEP_BYTES);

        if (!step) {
            print_exception("batch = next(loader)",
                            "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't "
                            "allocate memory: you tried to allocate 16777216 bytes. Error code 12 (Cannot allocate "
                            "memory)");
            return -EIO;
        }
        memset(step, 1, HOST_STEP_BYTES); /* never freed: the process ends with it */
        __asm__ volatile("" : : "r"(step) : "memory");
    }
    raise(SIGKILL);
    return -EIO;
}

static int fail_access(struct attachment *attachment, struct train_plan *plan, struct error *err)
{
    int rc = domain_fail(attachment->node, attachment->pid, CUDA_FAULT_ILLEGAL_ADDRESS);

    return rc < 0 ? error_set(err, -rc, "the virtual node cannot be used: %s", strerror(-rc)) : 0;
}

static int fail_hardware(struct attachment *attachment, struct train_plan *plan, struct error *err)
{
    struct node_slot slot;
    int64_t now_ns;
    int rc = attach_look(attachment, &slot, &now_ns, err);

    if (rc < 0)
        return rc;
    rc = fault_xid(attachment->node, slot.uses[0].gpu, slot.uses[0].instance, XID_ECC, attachment->pid);
    if (rc == 0)
        rc = domain_fail(attachment->node, attachment->pid, CUDA_FAULT_ECC);
    return rc < 0 ? error_set(err, -rc, "the virtual node cannot be used: %s", strerror(-rc)) : 0;
}

static int fail_bug(struct attachment *attachment, struct train_plan *plan, struct error *err)
{
    print_exception("labels[index]", "IndexError: list index out of range");
    return -EIO;
}

static int fail_falsely(struct attachment *attachment, struct train_plan *plan, struct error *err)
{
    int rc = print_false_shortage(attachment, err);

    return rc < 0 ? rc : -EIO;
}

static int recover(struct attachment *attachment, struct train_plan *plan, struct error *err)
{
    struct shortage shortage;
    int rc = print_false_shortage(attachment, err);

    if (rc < 0)
        return rc;
    fputs("out of memory: going on with half the batch\n", stderr);
    for (uint32_t k = 0; k < plan->gpus; k++)
        plan->peak_bytes[k] = plan->resident_bytes[k] /= 2;
    return attach_hold(attachment, plan->resident_bytes, &shortage, err);
}

static int stop_working(struct attachment *attachment, struct train_plan *plan, struct error *err)
{
    return attach_idle(attachment, err);
}

static void ignore_term(struct train_plan *plan)
{
    signal(SIGTERM, SIG_IGN);
}

/* Trains in a grandchild, in a session of its own; this process ends with success at the failure's time, or with it. */
static void leave_grandchild(struct train_plan *plan)
{
    struct pollfd alive;
    int pipes[2];
    pid_t pid;

    fflush(stdout);
    if (pipe(pipes) < 0 || (pid = fork()) < 0) {
        perror("carma-train: no second process");
        exit(1);
    }
    if (pid == 0) {
        setsid();
        if (fork() != 0)
            _exit(0);
        close(pipes[0]);
        return; /* pipes[1] stays open as long as this process lives */
    }
    close(pipes[1]);
    alive = (struct pollfd){.fd = pipes[0]};
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    poll(&alive, 1, (int)((double)plan->fail_at_ns / nodetime_scale() / NS_PER_MS));
    exit(0);
}

static const struct train_failure failures[] = {
    {"library-handle", "cuBLAS finds no memory for its handle, if none is left", NULL, fail_handle},
    {"host-oom", "takes host memory until it is killed, 256 MiB at most", NULL, fail_host},
    {"illegal-access", "CUDA error 700; its MPS neighbours fail with it", NULL, fail_access},
    {"hardware", "an ECC error: Xid 48, CUDA error 214", NULL, fail_hardware},
    {"bug", "an exception of its own", NULL, fail_bug},
    {"false-oom", "an out-of-memory message, and nothing behind it", NULL, fail_falsely},
    {"recovered-oom", "the same message; goes on with half the memory", NULL, recover},
    {"idle", "holds its memory and does nothing, for ever", NULL, stop_working},
    {"ignore-term", "ignores SIGTERM, from the start", ignore_term, NULL},
    {"double-fork", "leaves a grandchild on the GPU and ends", leave_grandchild, NULL},
};

const struct train_failure *train_failure_find(const char *name)
{
    for (size_t i = 0; i < array_size(failures); i++)
        if (strcmp(failures[i].name, name) == 0)
            return &failures[i];
    return NULL;
}

char *train_failure_help(void)
{
    struct strbuf text = {0};

    for (size_t i = 0; i < array_size(failures); i++)
        strbuf_printf(&text, "  %-16s%s\n", failures[i].name, failures[i].help);
    return strbuf_steal(&text);
}
