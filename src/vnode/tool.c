/* carma-vnode: makes virtual GPU nodes, shows them, injects faults (docs/vnode.md). */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "base/usage.h"
#include "contention/contention.h"
#include "vnode/attach.h"
#include "vnode/inject.h"
#include "vnode/physics.h"
#include "vnode/profile.h"

struct options {
    const struct command *command;
    const char *state, *profile;
    int mode;
    int64_t spread_seed; /* 0: the profile's */
    const char *fault, *gpu;
    double seconds; /* 0: until it is cleared */
    int64_t xid, pid, code;
    const char *call;
};

enum { OPT_MODE = 256, OPT_SPREAD_SEED, OPT_GPU, OPT_FOR, OPT_XID, OPT_PID, OPT_CALL, OPT_CODE };

static const struct argp_option option_table[] = {
    {"profile", 'p', "NAME", 0, "of the node to create: a name of share/carma/nodes, or a file (a100x4-40g)", 0},
    {"mode", OPT_MODE, "OCTAL", 0, "the users of the node: its file's permissions (0666, as of /dev/nvidia0)", 0},
    {"spread-seed", OPT_SPREAD_SEED, "N", 0,
     "how unlike workloads of one activity are, as under that seed of simulate (1)", 0},
    {"gpu", OPT_GPU, "N", 0, "that the fault is on: an index or a UUID (all GPUs)", 1},
    {"for", OPT_FOR, "SECONDS", 0, "of node time that the fault lasts (until it is cleared)", 1},
    {"xid", OPT_XID, "N", 0, "to tell", 1},
    {"pid", OPT_PID, "PID", 0, "of the process that the fault is of", 1},
    {"call", OPT_CALL, "NAME", 0, "of NVML that fails, such as nvmlDeviceGetMemoryInfo", 1},
    {"code", OPT_CODE, "N", 0, "NVML's, with which it fails, such as 3 (NOT_SUPPORTED)", 1},
    {0},
};

static int create(const struct options *options, struct error *err);
static int show(const struct options *options, struct error *err);
static int inject_fault(const struct options *options, struct error *err);
static int clear(const struct options *options, struct error *err);

static const struct command {
    const char *name;
    int (*run)(const struct options *options, struct error *err);
} commands[] = {{"create", create}, {"show", show}, {"inject", inject_fault}, {"clear", clear}};

static int64_t integer(const struct argp_state *state, const char *name, const char *text)
{
    struct error err;
    int64_t value = 0;

    if (parse_integer(text, 1, INT32_MAX, &value, &err) < 0)
        usage_error(state, "%s: %s", name, err.text);
    return value;
}

static void on_argument(struct options *options, char *arg, const struct argp_state *state)
{
    if (state->arg_num == 0) {
        for (size_t i = 0; i < array_size(commands); i++)
            if (strcmp(commands[i].name, arg) == 0)
                options->command = &commands[i];
        if (!options->command)
            usage_error(state, "say 'create', 'show', 'inject' or 'clear'");
    } else if (options->command->run == inject_fault && !options->fault) {
        options->fault = arg; /* the only one; or the first of two, which is the state */
    } else if (!options->state) {
        options->state = options->fault ? options->fault : arg;
        options->fault = options->fault ? arg : NULL;
    } else {
        usage_error(state, "'%s' is one argument too many", arg);
    }
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    char *end;

    switch (key) {
    case 'p':
        options->profile = arg;
        return 0;
    case OPT_MODE:
        options->mode = (int)strtol(arg, &end, 8);
        if (*end || end == arg || options->mode < 0600 || options->mode > 0777)
            usage_error(state, "--mode '%s' is not an octal mode from 0600 to 0777", arg);
        return 0;
    case OPT_SPREAD_SEED:
        options->spread_seed = integer(state, "--spread-seed", arg);
        return 0;
    case OPT_GPU:
        options->gpu = arg;
        return 0;
    case OPT_FOR:
        options->seconds = strtod(arg, &end);
        if (*end || end == arg || !(options->seconds > 0 && options->seconds <= 1e8))
            usage_error(state, "--for '%s' is not a number of seconds", arg);
        return 0;
    case OPT_XID:
        options->xid = integer(state, "--xid", arg);
        return 0;
    case OPT_PID:
        options->pid = integer(state, "--pid", arg);
        return 0;
    case OPT_CALL:
        options->call = arg;
        return 0;
    case OPT_CODE:
        options->code = integer(state, "--code", arg);
        return 0;
    case ARGP_KEY_ARG:
        on_argument(options, arg, state);
        return 0;
    case ARGP_KEY_END:
        if (!options->command)
            usage_error(state, "say 'create', 'show', 'inject' or 'clear'");
        if (options->command->run == create && !options->state)
            usage_error(state, "say which file shall hold the node's state");
        if (options->command->run == inject_fault && !options->fault)
            usage_error(state, "say which fault");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* The faults, below the options. */
static char *help_filter(int key, const char *text, void *input)
{
    CLEANUP(free_ptr) char *faults = NULL;

    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text; /* argp's own type */
    faults = inject_help();
    return xasprintf("%s\n\nFaults:\n%s", text, faults);
}

static int create(const struct options *options, struct error *err)
{
    struct node_file wanted;
    int rc = profile_read(options->profile, &wanted, err);

    if (options->spread_seed)
        wanted.spread_seed = (uint64_t)options->spread_seed;
    return rc < 0 ? rc : node_create(options->state, &wanted, options->mode, err);
}

static const char *phase_name(uint32_t phase)
{
    static const char *const names[] = {"free", "attached", "loading", "training", "finished"};

    return phase < sizeof names / sizeof *names ? names[phase] : "?";
}

static void print_gpu(const struct node_file *file, const struct node_bank *bank, uint32_t index)
{
    uint32_t g = atomic_load(&file->order[index]) % NODE_MAX_GPUS;
    const struct node_gpu *gpu = &file->gpus[g];
    const struct node_gpu_now *now = &bank->gpus[g];

    printf("GPU %u  %s  %s\n  memory %lld of %lld MiB, SM activity %.3f, power %.1f W, energy %.3f kJ\n", index,
           gpu->name, gpu->uuid, (long long)(physics_used_bytes(bank, g) / MIB),
           (long long)((gpu->total_bytes - gpu->reserved_bytes) / MIB), now->sm_activity,
           contention_power_w(now->sm_activity, gpu->idle_w, gpu->full_w), now->energy_mj / 1e6);
    for (uint32_t i = 0; i < gpu->instance_count; i++)
        printf("  MIG %s  %s\n    memory %lld of %lld MiB, SM activity %.3f\n", gpu->instances[i].profile,
               gpu->instances[i].uuid, (long long)(physics_instance_used_bytes(bank, g, 1 + i) / MIB),
               (long long)(gpu->instances[i].total_bytes / MIB), now->instances[i].sm_activity);
    for (uint32_t i = 0; i < bank->slot_high; i++)
        for (uint32_t k = 0; bank->slots[i].phase != NODE_SLOT_FREE && k < bank->slots[i].use_count; k++) {
            const struct node_slot *slot = &bank->slots[i];

            if (slot->uses[k].gpu != g)
                continue;
            printf("  process %d  %s%s", slot->pid, phase_name(slot->phase), slot->mps ? " (MPS)" : "");
            if (slot->uses[k].instance > 0)
                printf("  on %s", gpu->instances[(slot->uses[k].instance - 1) % NODE_MAX_INSTANCES].profile);
            printf("  %lld MiB", (long long)(slot->uses[k].bytes / MIB));
            if (slot->work_ns > 0)
                printf("  %.1f%% at %.3f of solo speed", 100 * slot->done_ns / slot->work_ns, slot->rate);
            printf("\n");
        }
}

static void print_gpus(const struct node_file *file, uint32_t gpus)
{
    for (uint32_t i = 0; i < file->gpu_count; i++)
        if (gpus >> atomic_load(&file->order[i]) & 1)
            printf(" %u", i);
    printf("\n");
}

static void print_faults(const struct node *node)
{
    uint32_t xids = atomic_load(&node->file->xid_count);

    for (int kind = 0; kind < NODE_FAULT_KINDS; kind++) {
        uint32_t gpus = fault_gpus(node, (enum node_fault_kind)kind);

        if (!gpus)
            continue;
        printf("fault %s on", inject_name((enum node_fault_kind)kind));
        print_gpus(node->file, gpus);
    }
    for (int i = 0; i < NODE_MAX_CALLS; i++) {
        const struct node_call_fault *fault = &node->file->calls[i];
        uint32_t gpus = atomic_load(&fault->gpus);

        if (!gpus || node_now_ns(node) >= atomic_load(&fault->until_ns))
            continue;
        printf("%s answers %d on", fault->call, fault->code);
        print_gpus(node->file, gpus);
    }
    if (xids > 0)
        printf("%u Xid%s, the latest %u\n", xids, xids == 1 ? "" : "s",
               node->file->xids[(xids - 1) % NODE_MAX_XIDS].xid);
}

static int show(const struct options *options, struct error *err)
{
    struct node_bank *bank;
    struct node node;
    int rc = node_open(&node, options->state, err);

    if (rc < 0)
        return rc;
    rc = node_begin(&node, &bank);
    if (rc < 0) {
        error_set(err, -rc, "the virtual node cannot be read: %s", strerror(-rc));
    } else {
        struct node_bank copy = *bank;

        node_commit(&node);
        printf("node %s, time scale %g, driver %s\n", node.file->profile, node.file->time_scale,
               node.file->driver_version);
        for (uint32_t i = 0; i < node.file->gpu_count; i++)
            print_gpu(node.file, &copy, i);
        print_faults(&node);
    }
    node_close(&node);
    return rc;
}

static int inject_fault(const struct options *options, struct error *err)
{
    struct strike strike = {.until_ns = INT64_MAX,
                            .xid = (uint32_t)options->xid,
                            .pid = (int32_t)options->pid,
                            .call = options->call,
                            .code = (int32_t)options->code};
    struct place places[NODE_MAX_GPUS];
    struct node node;
    int rc = node_open(&node, options->state, err);

    if (rc < 0)
        return rc;
    strike.gpus = fault_all_gpus(&node);
    if (options->seconds > 0)
        strike.until_ns = node_now_ns(&node) + (int64_t)(options->seconds * NS_PER_SEC);
    if (options->gpu && attach_visible(node.file, NULL, options->gpu, places) != 1) {
        rc = error_set(err, ENODEV, "--gpu '%.60s' is not one of the node's GPUs: see carma-vnode show", options->gpu);
    } else {
        if (options->gpu)
            strike.gpus = 1u << places[0].gpu;
        rc = inject(&node, options->fault, &strike, err);
    }
    node_close(&node);
    return rc;
}

static int clear(const struct options *options, struct error *err)
{
    struct node node;
    int rc = node_open(&node, options->state, err);

    if (rc < 0)
        return rc;
    inject_clear(&node);
    node_close(&node);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = option_table,
        .parser = on_option,
        .args_doc = "create STATE\nshow [STATE]\ninject [STATE] FAULT\nclear [STATE]",
        .doc = "Makes a virtual GPU node in the file STATE, or shows one (of $CARMA_VNODE). Also injects a fault of "
               "the driver into one, or clears all faults that last.\v"
               "CARMA_TIME_SCALE=N when the node is made: its clock, and all that runs on it, is N times faster.",
        .help_filter = help_filter,
    };
    static const struct manual program = {
        .name = "carma-vnode",
        .section = 1,
        .summary = "make, show and disturb virtual GPU nodes",
        .invocation = "carma-vnode",
        .argp = &argp,
        .see_also = "carma(1), carma-train(1), carmad(8)",
    };
    struct options options = {.profile = "a100x4-40g", .mode = 0666};
    struct error err;
    int rc;

    usage_parse(&program, argc, argv, &options);
    rc = nodetime_init(&err);
    if (rc == 0)
        rc = options.command->run(&options, &err);
    if (rc < 0) {
        fprintf(stderr, "carma-vnode: %s\n", err.text);
        return 1;
    }
    return 0;
}
