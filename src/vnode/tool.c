/* carma-vnode: makes virtual GPU nodes and shows them (docs/vnode.md). */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nodetime.h"
#include "base/units.h"
#include "base/usage.h"
#include "contention/contention.h"
#include "vnode/node.h"
#include "vnode/physics.h"
#include "vnode/profile.h"

struct options {
    const char *command, *state, *profile;
    int mode;
};

enum { OPT_MODE = 256 };

static const struct argp_option option_table[] = {
    {"profile", 'p', "NAME", 0, "of the node to create: a name of share/carma/nodes, or a file (a100x4-40g)", 0},
    {"mode", OPT_MODE, "OCTAL", 0, "who may use the node: its file's permissions (0666, as of /dev/nvidia0)", 0},
    {0},
};

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
    case ARGP_KEY_ARG:
        if (state->arg_num == 0)
            options->command = arg;
        else if (state->arg_num == 1)
            options->state = arg;
        else
            usage_error(state, "'%s' is one argument too many", arg);
        return 0;
    case ARGP_KEY_END:
        if (!options->command || (strcmp(options->command, "create") != 0 && strcmp(options->command, "show") != 0))
            usage_error(state, "say 'create' or 'show'");
        if (strcmp(options->command, "create") == 0 && !options->state)
            usage_error(state, "say which file shall hold the node's state");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

static int create(const struct options *options, struct error *err)
{
    struct node_file wanted;
    int rc = profile_read(options->profile, &wanted, err);

    return rc < 0 ? rc : node_create(options->state, &wanted, options->mode, err);
}

static const char *phase_name(uint32_t phase)
{
    static const char *const names[] = {"free", "attached", "loading", "training", "finished"};

    return phase < sizeof names / sizeof *names ? names[phase] : "?";
}

static void print_gpu(const struct node_file *file, const struct node_bank *bank, uint32_t g)
{
    const struct node_gpu *gpu = &file->gpus[g];
    const struct node_gpu_now *now = &bank->gpus[g];

    printf("GPU %u  %s  %s\n  memory %lld of %lld MiB, SM activity %.3f, power %.1f W, energy %.3f kJ\n", g, gpu->name,
           gpu->uuid, (long long)(physics_used_bytes(bank, g) / MIB),
           (long long)((gpu->total_bytes - gpu->reserved_bytes) / MIB), now->sm_activity,
           contention_power_w(now->sm_activity, gpu->idle_w, gpu->full_w), now->energy_mj / 1e6);
    for (uint32_t i = 0; i < bank->slot_high; i++)
        for (uint32_t k = 0; bank->slots[i].phase != NODE_SLOT_FREE && k < bank->slots[i].use_count; k++) {
            const struct node_slot *slot = &bank->slots[i];

            if (slot->uses[k].gpu != g)
                continue;
            printf("  process %d  %s%s  %lld MiB", slot->pid, phase_name(slot->phase), slot->mps ? " (MPS)" : "",
                   (long long)(slot->uses[k].bytes / MIB));
            if (slot->work_ns > 0)
                printf("  %.1f%% at %.3f of solo speed", 100 * slot->done_ns / slot->work_ns, slot->rate);
            printf("\n");
        }
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
        for (uint32_t g = 0; g < node.file->gpu_count; g++)
            print_gpu(node.file, &copy, g);
    }
    node_close(&node);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = option_table,
        .parser = on_option,
        .args_doc = "create STATE\nshow [STATE]",
        .doc = "Makes a virtual GPU node in the file STATE, or shows one (of $CARMA_VNODE).\v"
               "CARMA_TIME_SCALE=N when the node is made: its clock, and all that runs on it, is N times faster.",
    };
    struct options options = {.profile = "a100x4-40g", .mode = 0666};
    struct error err;
    int rc;

    usage_parse(&argp, argc, argv, &options);
    rc = nodetime_init(&err);
    if (rc == 0)
        rc = strcmp(options.command, "create") == 0 ? create(&options, &err) : show(&options, &err);
    if (rc < 0) {
        fprintf(stderr, "carma-vnode: %s\n", err.text);
        return 1;
    }
    return 0;
}
