#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/install.h"
#include "base/memory.h"
#include "base/units.h"
#include "base/usage.h"
#include "trace/workloads.h"
#include "vnode/train.h"

enum {
    OPT_WORKLOADS = 256,
    OPT_MEMORY,
    OPT_PEAK,
    OPT_ACTIVITY,
    OPT_SECONDS,
    OPT_GPUS,
    OPT_JITTER,
    OPT_SEED,
    OPT_CKPT,
    OPT_PROGRESS,
    OPT_FAIL,
    OPT_FAIL_AT,
};

struct options {
    const char *workload, *workloads;
    int64_t memory_bytes, peak_bytes, gpus, seed; /* -1: not said */
    double activity, seconds, jitter, fail_at;    /* seconds -1: not said */
    bool checkpoint, progress;
    const struct train_failure *failure;
};

static const struct argp_option option_table[] = {
    {"workload", 'w', "ID", 0, "Behave like this workload of the workloads file", 0},
    {"workloads", OPT_WORKLOADS, "FILE", 0, "The workloads file (share/carma/workloads.csv)", 0},
    {"memory", OPT_MEMORY, "SIZE", 0, "GPU memory to hold, per GPU (instead of --workload)", 1},
    {"peak", OPT_PEAK, "SIZE", 0, "GPU memory to need once, at the end of the climb (the same)", 1},
    {"sm-activity", OPT_ACTIVITY, "SHARE", 0, "SM activity when alone, 0 to 1 (0.5)", 1},
    {"seconds", OPT_SECONDS, "SECONDS", 0, "Training time when alone, in node time (the workload's, or 60)", 1},
    {"gpus", OPT_GPUS, "N", 0, "How many of the visible GPUs to use (the workload's, or 1)", 1},
    {"jitter", OPT_JITTER, "FRACTION", 0, "Standard deviation of the training time, 0 to 0.3 (0)", 2},
    {"seed", OPT_SEED, "N", 0, "Of the jitter: the same seed gives the same time (1)", 2},
    {"checkpoint", OPT_CKPT, NULL, 0, "Write a checkpoint on SIGUSR1; go on from one that is there", 2},
    {"progress", OPT_PROGRESS, NULL, 0, "Tell CARMA_PROGRESS_FILE the seconds of work that are done", 2},
    {"fail", OPT_FAIL, "KIND", 0, "Fail in this way", 3},
    {"fail-at", OPT_FAIL_AT, "SECONDS", 0, "So long after the start, in node time (30: its memory is held)", 3},
    {0},
};

static double number(struct argp_state *state, const char *name, const char *text, double low, double high)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value >= low && value <= high))
        usage_error(state, "%s '%s' is not a number from %g to %g", name, text, low, high);
    return value;
}

static int64_t integer(struct argp_state *state, const char *name, const char *text, int64_t low, int64_t high)
{
    struct error err;
    int64_t value = low;

    if (parse_integer(text, low, high, &value, &err) < 0)
        usage_error(state, "%s: %s", name, err.text);
    return value;
}

static int64_t size(struct argp_state *state, const char *name, const char *text)
{
    struct error err;
    int64_t bytes = 0;

    if (parse_size(text, &bytes, &err) < 0)
        usage_error(state, "%s: %s", name, err.text);
    return bytes;
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'w':
        o->workload = arg;
        return 0;
    case OPT_WORKLOADS:
        o->workloads = arg;
        return 0;
    case OPT_MEMORY:
        o->memory_bytes = size(state, "--memory", arg);
        return 0;
    case OPT_PEAK:
        o->peak_bytes = size(state, "--peak", arg);
        return 0;
    case OPT_ACTIVITY:
        o->activity = number(state, "--sm-activity", arg, 0, 1);
        return 0;
    case OPT_SECONDS:
        o->seconds = number(state, "--seconds", arg, 0.001, 1e8);
        return 0;
    case OPT_GPUS:
        o->gpus = integer(state, "--gpus", arg, 1, NODE_MAX_GPUS);
        return 0;
    case OPT_JITTER:
        o->jitter = number(state, "--jitter", arg, 0, 0.3);
        return 0;
    case OPT_SEED:
        o->seed = integer(state, "--seed", arg, 0, INT64_MAX);
        return 0;
    case OPT_CKPT:
        o->checkpoint = true;
        return 0;
    case OPT_PROGRESS:
        o->progress = true;
        return 0;
    case OPT_FAIL:
        o->failure = train_failure_find(arg);
        if (!o->failure)
            usage_error(state, "--fail '%s' is not one of the failures", arg);
        return 0;
    case OPT_FAIL_AT:
        o->fail_at = number(state, "--fail-at", arg, 0, 1e8);
        return 0;
    case ARGP_KEY_ARG:
        usage_error(state, "'%s' is not an option", arg);
        return 0;
    case ARGP_KEY_END:
        if (!o->workload == (o->memory_bytes < 0))
            usage_error(state, "say either --workload or --memory");
        if (o->peak_bytes >= 0 && o->peak_bytes < o->memory_bytes)
            usage_error(state, "--peak is less than --memory");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

static double uniform(uint64_t *seed) /* in (0, 1]; splitmix64's step */
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ (z >> 31)) >> 11) + 1) * 0x1p-53;
}

/* 1 + jitter * a standard normal number (Box-Muller). */
static double jitter_factor(double jitter, int64_t seed)
{
    uint64_t state = (uint64_t)seed;
    double radius = sqrt(-2 * log(uniform(&state)));

    return fmax(0.1, 1 + jitter * radius * cos(2 * M_PI * uniform(&state)));
}

static int plan_workload(const struct options *o, struct train_plan *plan, struct error *err)
{
    CLEANUP(free_ptr) char *path = o->workloads ? xstrdup(o->workloads) : install_path("share/carma/workloads.csv");
    struct workloads workloads;
    const struct workload *w;
    int rc = workloads_read(&workloads, path, err);

    if (rc < 0)
        return rc;
    w = workloads_find(&workloads, o->workload);
    if (!w) {
        rc = error_set(err, ENOENT, "'%s' has no workload '%.60s'", path, o->workload);
    } else {
        snprintf(plan->id, sizeof plan->id, "%s", w->id);
        plan->gpus = o->gpus > 0 ? (uint32_t)o->gpus : w->gpus;
        plan->work_ns = o->seconds > 0 ? o->seconds * 1e9 : (double)w->solo_runtime_ns;
        for (uint32_t k = 0; k < plan->gpus; k++) {
            plan->resident_bytes[k] = workload_resident_bytes(w, k);
            plan->peak_bytes[k] = workload_need_bytes(w, k);
            plan->activity[k] = workload_smact_permille(w, k) / 1000.0;
        }
    }
    workloads_release(&workloads);
    return rc;
}

/* The failures, below the options. */
static char *help_filter(int key, const char *text, void *input)
{
    CLEANUP(free_ptr) char *failures = NULL;

    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text; /* argp's own type */
    failures = train_failure_help();
    return xasprintf("%s\n\nFailures:\n%s", text, failures);
}

int train_options(int argc, char **argv, struct train_plan *plan, struct error *err)
{
    static const struct argp argp = {
        .options = option_table,
        .parser = on_option,
        .doc = "Behaves like a training job on a virtual GPU node: loads, takes GPU memory, and trains at the speed "
               "that its neighbours leave it. Runs out of memory as PyTorch does.\vUses the GPUs of "
               "CUDA_VISIBLE_DEVICES on the node of CARMA_VNODE. It goes through MPS where CUDA_MPS_PIPE_DIRECTORY has "
               "an MPS daemon's control pipe in it. See docs/vnode.md.",
        .help_filter = help_filter,
    };
    static const struct manual program = {
        .name = "carma-train",
        .section = 1,
        .summary = "behave like a training job on a virtual GPU node",
        .invocation = "carma-train",
        .argp = &argp,
        .see_also = "carma(1), carma-vnode(1)",
    };
    struct options o = {
        .memory_bytes = -1, .peak_bytes = -1, .gpus = -1, .seed = 1, .activity = 0.5, .seconds = -1, .fail_at = 30};

    usage_parse(&program, argc, argv, &o);
    *plan = (struct train_plan){.checkpoint = o.checkpoint,
                                .progress = o.progress,
                                .failure = o.failure,
                                .fail_at_ns = (int64_t)(o.fail_at * 1e9)};
    if (o.workload) {
        int rc = plan_workload(&o, plan, err);

        if (rc < 0)
            return rc;
    } else {
        plan->gpus = o.gpus > 0 ? (uint32_t)o.gpus : 1;
        plan->work_ns = (o.seconds > 0 ? o.seconds : 60) * 1e9;
        for (uint32_t k = 0; k < plan->gpus; k++) {
            plan->resident_bytes[k] = o.memory_bytes;
            plan->peak_bytes[k] = o.peak_bytes >= 0 ? o.peak_bytes : o.memory_bytes;
            plan->activity[k] = o.activity;
        }
    }
    plan->work_ns *= jitter_factor(o.jitter, o.seed);
    return 0;
}
