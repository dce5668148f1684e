#include "vnode/inject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "vnode/domain.h"

#define STRIKES_ONCE NODE_FAULT_KINDS

/* The CUDA error of a process that an Xid stops; 0: the process is not stopped. */
static uint32_t cuda_fault_of(uint32_t xid)
{
    switch (xid) {
    case 13: /* graphics engine exception */
    case 43: /* GPU stopped processing */
    case 45: /* preemptive removal */
        return CUDA_FAULT_LAUNCH_FAILED;
    case 31: /* MMU fault */
        return CUDA_FAULT_ILLEGAL_ADDRESS;
    case 48: /* double bit ECC error */
    case 94: /* contained memory error */
    case 95: /* uncontained memory error */
        return CUDA_FAULT_ECC;
    default:
        return CUDA_FAULT_UNKNOWN;
    }
}

static int unusable(int rc, struct error *err)
{
    return error_set(err, -rc, "the virtual node cannot be used: %s", strerror(-rc));
}

/* Ends all processes on these GPUs, by the driver. */
static int fail_processes(struct node *node, uint32_t gpus, uint32_t fault, struct error *err)
{
    struct node_bank *bank;
    int rc = node_begin(node, &bank);

    if (rc < 0)
        return unusable(rc, err);
    for (uint32_t i = 0; i < bank->slot_high; i++)
        for (uint32_t k = 0; k < bank->slots[i].use_count && k < NODE_MAX_GPUS; k++)
            if (bank->slots[i].phase != NODE_SLOT_FREE && gpus >> bank->slots[i].uses[k].gpu & 1)
                bank->slots[i].fault = fault;
    node_commit(node);
    node_wake(node);
    return 0;
}

static int tell_xids(struct node *node, uint32_t gpus, uint32_t xid, int32_t pid, struct error *err)
{
    int rc = 0;

    for (uint32_t g = 0; g < node->file->gpu_count && rc == 0; g++)
        if (gpus >> g & 1)
            rc = fault_xid(node, g, 0, xid, pid);
    return rc < 0 ? unusable(rc, err) : 0;
}

static int strike_lost(struct node *node, const struct strike *strike, struct error *err)
{
    int rc = tell_xids(node, strike->gpus, strike->xid ? strike->xid : 79, 0, err);

    return rc < 0 ? rc : fail_processes(node, strike->gpus, CUDA_FAULT_UNKNOWN, err);
}

static int strike_reload(struct node *node, const struct strike *strike, struct error *err)
{
    struct node_bank *bank;
    int rc = node_begin(node, &bank);

    if (rc < 0)
        return unusable(rc, err);
    for (uint32_t g = 0; g < node->file->gpu_count; g++)
        bank->gpus[g].energy_hidden_mj = bank->gpus[g].energy_mj;
    atomic_fetch_add(&node->file->driver_loads, 1);
    node_commit(node);
    return fail_processes(node, fault_all_gpus(node), CUDA_FAULT_UNKNOWN, err);
}

static int strike_reindex(struct node *node, const struct strike *strike, struct error *err)
{
    uint32_t count = node->file->gpu_count, first = atomic_load(&node->file->order[0]);

    for (uint32_t i = 0; i + 1 < count; i++)
        atomic_store(&node->file->order[i], atomic_load(&node->file->order[i + 1]));
    atomic_store(&node->file->order[count - 1], first);
    return 0;
}

static int strike_stuck(struct node *node, const struct strike *strike, struct error *err)
{
    return tell_xids(node, strike->gpus, strike->xid ? strike->xid : 43, 0, err);
}

static int fail_process(struct node *node, int32_t pid, uint32_t fault, struct error *err)
{
    int rc = domain_fail(node, pid, fault);

    if (rc == -ESRCH)
        return error_set(err, ESRCH, "--pid %d is not a process on the node: see carma-vnode show", pid);
    return rc < 0 ? unusable(rc, err) : 0;
}

static int strike_xid(struct node *node, const struct strike *strike, struct error *err)
{
    int rc;

    if (strike->xid == 0)
        return error_set(err, EINVAL, "say which Xid: --xid 31");
    rc = strike->pid ? fail_process(node, strike->pid, cuda_fault_of(strike->xid), err) : 0;
    return rc < 0 ? rc : tell_xids(node, strike->gpus, strike->xid, strike->pid, err);
}

static int strike_mps(struct node *node, const struct strike *strike, struct error *err)
{
    if (strike->pid == 0)
        return error_set(err, EINVAL, "say which client: --pid PID");
    return fail_process(node, strike->pid, CUDA_FAULT_LAUNCH_FAILED, err);
}

static int strike_call(struct node *node, const struct strike *strike, struct error *err)
{
    int rc;

    if (!strike->call || !strike->code)
        return error_set(err, EINVAL, "say which call fails, and how: --call nvmlDeviceGetMemoryInfo --code 3");
    rc = fault_set_call(node, strike->call, strike->code, strike->gpus, strike->until_ns);
    return rc == -ENOSPC ? error_set(err, ENOSPC, "%d calls fail already: carma-vnode clear", NODE_MAX_CALLS)
           : rc < 0      ? error_set(err, EINVAL, "--call '%.60s' is not the name of an NVML call", strike->call)
                         : 0;
}

static const struct fault {
    const char *name;
    enum node_fault_kind kind;                                                        /* that lasts, or STRIKES_ONCE */
    int (*strike)(struct node *node, const struct strike *strike, struct error *err); /* NULL: it only lasts */
    const char *help;
} faults[] = {
    {"gpu-lost", NODE_FAULT_GPU_LOST, strike_lost, "calls on it answer GPU_IS_LOST; its processes die; Xid 79"},
    {"hang", NODE_FAULT_HANG, NULL, "calls on it do not return; on all GPUs: all calls"},
    {"driver-reload", NODE_FAULT_DRIVER_GONE, strike_reload,
     "processes die, calls fail; then counters are at 0, handles void"},
    {"reindex", STRIKES_ONCE, strike_reindex, "a process that opens NVML from now on finds each GPU one index lower"},
    {"no-permission", NODE_FAULT_NO_PERMISSION, NULL, "GPM and use by process answer NO_PERMISSION"},
    {"hide-memory", NODE_FAULT_HIDE_MEMORY, NULL, "a process's memory is not told"},
    {"hide-processes", NODE_FAULT_HIDE_PROCESSES, NULL, "lists of processes are empty"},
    {"hot", NODE_FAULT_HOT, NULL,
     "89 degrees, half the clock for that: of the readings alone, jobs are as fast as before"},
    {"ecc", NODE_FAULT_ECC, NULL, "an uncorrected error of its memory is counted"},
    {"r535", NODE_FAULT_R535, NULL, "_v3 lists of processes have a larger layout"},
    {"blank-values", NODE_FAULT_BLANK, NULL, "no value in the value's place"},
    {"over-range", NODE_FAULT_OVER_RANGE, NULL, "activities of 173 %, twice the memory in use"},
    {"stuck-zero", NODE_FAULT_STUCK_ZERO, strike_stuck, "an Xid (43), and activities are 0 from then on"},
    {"no-power", NODE_FAULT_NO_POWER, NULL, "power is NOT_SUPPORTED"},
    {"no-energy", NODE_FAULT_NO_ENERGY, NULL, "the energy counter is NOT_SUPPORTED"},
    {"call", STRIKES_ONCE, strike_call, "the NVML call --call (all its versions) answers --code"},
    {"xid", STRIKES_ONCE, strike_xid, "tells --xid; stops the process --pid"},
    {"mps-fault", STRIKES_ONCE, strike_mps, "the MPS client --pid fails, its neighbours with it"},
};

int inject(struct node *node, const char *name, const struct strike *strike, struct error *err)
{
    for (size_t i = 0; i < array_size(faults); i++) {
        if (strcmp(faults[i].name, name) != 0)
            continue;
        if (faults[i].kind != STRIKES_ONCE) /* first: a process that dies of it must not find the GPU well */
            fault_set(node, faults[i].kind, strike->gpus, strike->until_ns);
        return faults[i].strike ? faults[i].strike(node, strike, err) : 0;
    }
    return error_set(err, EINVAL, "'%.40s' is not a fault: see carma-vnode --help", name);
}

void inject_clear(struct node *node)
{
    for (int kind = 0; kind < NODE_FAULT_KINDS; kind++)
        fault_set(node, (enum node_fault_kind)kind, 0, 0);
    for (int i = 0; i < NODE_MAX_CALLS; i++)
        atomic_store(&node->file->calls[i].gpus, 0);
}

char *inject_help(void)
{
    struct strbuf text = {0};

    for (size_t i = 0; i < array_size(faults); i++)
        strbuf_printf(&text, "  %-16s%s\n", faults[i].name, faults[i].help);
    return strbuf_steal(&text);
}

const char *inject_name(enum node_fault_kind kind)
{
    for (size_t i = 0; i < array_size(faults); i++)
        if (faults[i].kind == kind)
            return faults[i].name;
    return "?";
}
