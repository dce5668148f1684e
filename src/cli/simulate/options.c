/* The command line of carma simulate. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/nearest.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/simulate/simulate.h"

#define SEEDS_MAX  10000
#define GPUS_MAX   4096
#define JITTER_MAX 0.3
#define STEPS_MAX  10000

enum {
    KEY_TRACE = 0x200,
    KEY_WORKLOADS,
    KEY_VC,
    KEY_LAST,
    KEY_NODE,
    KEY_GPUS,
    KEY_GPU_MEMORY,
    KEY_POLICY,
    KEY_SET,
    KEY_COMPARE,
    KEY_SHARE,
    KEY_ESTIMATOR,
    KEY_OOM_RETRY,
    KEY_MAX_SLOWDOWN,
    KEY_SEEDS,
    KEY_FIRST_SEED,
    KEY_JITTER,
    KEY_CAPACITY,
    KEY_U_EXPONENT,
    KEY_CROWDING,
    KEY_SPREAD,
    KEY_CHECKPOINTS,
    KEY_TIMELINE,
    KEY_STEPS,
    KEY_REPLAY,
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "What is run:", 1},
    {"trace", KEY_TRACE, "FILE", 0,
     "the jobs: of carma's format, of a published one, an installed trace (thesis_90), or a carmad's state directory: "
     "its own past",
     1},
    {"workloads", KEY_WORKLOADS, "FILE", 0, "the needs of the trace's workloads (default: the installed ones)", 1},
    {"vc", KEY_VC, "NAME", 0, "only this virtual cluster of a trace that has several", 1},
    {"last", KEY_LAST, "TIME", 0, "of a carmad's past only the jobs that were submitted within this time, e.g. 7d", 1},
    {"node", KEY_NODE, "PROFILE", 0, "the server: a name of share/carma/nodes, or a file (default: a100x4-40g)", 1},
    {"gpus", KEY_GPUS, "N", 0, "this number of GPUs instead of the profile's", 1},
    {"gpu-memory", KEY_GPU_MEMORY, "SIZE", 0, "this usable memory of each instead of the profile's", 1},
    {NULL, 0, NULL, 0, "How it is decided:", 2},
    {"policy", KEY_POLICY, "NAME", 0,
     "a policy or preset, as the setting `policy`; NAME@ESTIMATOR gives it an estimator of its own, NAME/KEY=VALUE "
     "settings",
     2},
    {"compare", KEY_COMPARE, "P1,P2,...", 0, "these policies in one table, with the change against the first", 2},
    {"set", KEY_SET, "KEY=VALUE", 0, "a setting of carmad, on top of each policy's own (carmad --settings lists them)",
     2},
    {"estimator", KEY_ESTIMATOR, "NAME", 0,
     "a job's request: oracle, declared (nothing), recorded:COLUMN (measured, horus, faketensor, gpumemnet), or an "
     "estimate from its workload's summary: auto, replay, gpumemnet, horus, faketensor "
     "(default: as the policy's setting `estimator`)",
     2},
    {"oom-retry", KEY_OOM_RETRY, "MODE", 0, "as the setting `oom_retry`", 2},
    {"recovery", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 2}, /* its name in 0.1 */
    {"max-slowdown", KEY_MAX_SLOWDOWN, "F", 0, "as the setting `max_slowdown`", 2},
    {NULL, 0, NULL, 0, "The simulated world:", 3},
    {"share", KEY_SHARE, "MODE", 0,
     "how jobs share a GPU: auto (default: a user's by MPS, those of several users by time-slicing where that pays), "
     "time-slice, mps (each user's by one server on all GPUs), mps:gpu (one server for "
     "each "
     "GPU), mps:node (one for all; default of the presets of the thesis), exclusive, mig or mig:SLICES of 7",
     3},
    {"seeds", KEY_SEEDS, "N", 0, "run N times, with seeds 1 to N (default 1)", 3},
    {"first-seed", KEY_FIRST_SEED, "N", 0, "begin with seed N, not 1", 3},
    {"jitter", KEY_JITTER, "F", 0, "vary run times by a normal factor with this standard deviation, e.g. 0.03", 3},
    {"capacity", KEY_CAPACITY, "F", 0, "the throughput of a shared GPU, in saturated GPUs (default 1)", 3},
    {"u-exponent", KEY_U_EXPONENT, "F", 0, "exponent of the shared utilisation (default 1)", 3},
    {"crowding", KEY_CROWDING, "F", 0, "how much more busier jobs get of a shared GPU (default 1)", 3},
    {"spread", KEY_SPREAD, "F", 0, "how unlike workloads of one activity are in that, as a deviation (default 0.6)", 3},
    {"checkpoints", KEY_CHECKPOINTS, NULL, 0, "all jobs may be moved off a GPU (docs/fairness.md)", 3},
    {NULL, 0, NULL, 0, "What is told:", 4},
    {"json", CLI_JSON_KEY, NULL, 0, "print the figures as JSON (docs/formats/simulate.md)", 4},
    {"timeline", KEY_TIMELINE, "FILE", 0, "write each GPU's state over time, under the first seed, as CSV", 4},
    {"steps", KEY_STEPS, "N", 0, "with --json: also the GPUs over time, as means over N steps", 4},
    {"replay", KEY_REPLAY, "DIR", 0,
     "instead: decide the past of the carmad with this state directory afresh, and compare", 4},
    {0},
};

static error_t take_number(double *value, const char *name, const char *arg, double low, double high,
                           struct argp_state *state)
{
    char *end;

    *value = strtod(arg, &end);
    if (end == arg || *end || !(*value >= low && *value <= high))
        return cli_bad_usage(state, "%s '%.40s' is not a number from %g to %g", name, arg, low, high);
    return 0;
}

static error_t take_count(int64_t *value, const char *name, const char *arg, int64_t high, struct argp_state *state)
{
    struct error err;

    return parse_integer(arg, 1, high, value, &err) ? cli_bad_usage(state, "%s: %s", name, err.text) : 0;
}

static int set_pair(struct config *config, const char *pair, struct error *err)
{
    if (strncmp(pair, "policy=", 7) == 0)
        return error_set(err, EINVAL, "'%.40s': name the policy by --policy or --compare", pair);
    return config_set_pair(config, pair, err);
}

/* Takes over `pair`. It is applied later, on top of each policy's own settings; where it is wrong is told of now. */
static error_t take_setting(struct simulate_options *wanted, char *pair, struct argp_state *state)
{
    struct config scratch;
    struct error err;
    int rc;

    array_reserve(wanted->settings, wanted->setting_capacity, wanted->setting_count + 1);
    wanted->settings[wanted->setting_count++] = pair;
    config_init_default(&scratch);
    rc = set_pair(&scratch, pair, &err);
    if (rc == 0 && strncmp(pair, "share=", 6) == 0)
        rc = error_set(&err, EINVAL, "'%.40s': say so by --share", pair);
    config_release(&scratch);
    return rc ? cli_bad_usage(state, "%s", err.text) : 0;
}

static error_t take_share(struct simulate_options *wanted, const char *arg, struct argp_state *state)
{
    enum share_mode way = share_name_find(arg, &wanted->mps_domain);
    bool known = way != SHARE_ANY && way != SHARE_MODE_COUNT;
    struct error err;

    wanted->mig_slices = 0;
    wanted->share = known ? way : SHARE_TIME_SLICE; /* within a MIG instance, too */
    wanted->share_given = true;
    if (known)
        return 0;
    if (strcmp(arg, "mig") != 0 && strncmp(arg, "mig:", 4) != 0)
        return nearest_refuse(&err, "share", arg,
                              "auto, time-slice, mps, mps:gpu, mps:node, exclusive, mig or mig:SLICES"),
               cli_bad_usage(state, "%s", err.text);
    wanted->mig_slices = 3;
    if (arg[3] &&
        (parse_integer(arg + 4, 1, 7, &wanted->mig_slices, NULL) || !sim_mig_instances((uint32_t)wanted->mig_slices)))
        return cli_bad_usage(state, "share '%.40s': a MIG instance has 1, 2, 3, 4 or 7 slices", arg);
    return 0;
}

int simulate_set_policy(const char *wanted, struct config *config, struct simulate_estimator *estimator,
                        struct error *err)
{
    CLEANUP(free_ptr) char *name = xstrndup(wanted, strcspn(wanted, "/"));
    char *at = strchr(name, '@');
    int rc;

    if (at)
        *at++ = '\0';
    rc = config_set(config, "policy", name, err);
    return rc == 0 && at ? simulate_estimator_parse(at, estimator, err) : rc;
}

int simulate_set_own(const char *wanted, struct config *config, struct error *err)
{
    CLEANUP(free_ptr) char *pairs = xstrdup(strchrnul(wanted, '/'));
    char *next = NULL;
    int rc = 0;

    for (char *pair = strtok_r(pairs, "/", &next); pair && rc == 0; pair = strtok_r(NULL, "/", &next))
        rc = set_pair(config, pair, err);
    return rc;
}

static error_t check_policy(const char *wanted, struct argp_state *state)
{
    struct simulate_estimator estimator;
    struct config scratch;
    struct error err;
    int rc;

    config_init_default(&scratch);
    rc = simulate_set_policy(wanted, &scratch, &estimator, &err);
    if (rc == 0)
        rc = simulate_set_own(wanted, &scratch, &err);
    config_release(&scratch);
    return rc ? cli_bad_usage(state, "%s", err.text) : 0;
}

static error_t take_compare(struct simulate_options *wanted, const char *arg, struct argp_state *state)
{
    char *next = NULL;

    free_ptr(&wanted->compare);
    wanted->compare = xstrdup(arg);
    wanted->policy_count = 0;
    for (char *name = strtok_r(wanted->compare, ",", &next); name; name = strtok_r(NULL, ",", &next)) {
        if (wanted->policy_count == SIMULATE_POLICIES_MAX)
            return cli_bad_usage(state, "at most %d policies at a time", SIMULATE_POLICIES_MAX);
        if (check_policy(name, state))
            return ECANCELED;
        wanted->policies[wanted->policy_count++] = name;
    }
    return wanted->policy_count < 2 ? cli_bad_usage(state, "compare at least two policies: '%.40s'", arg) : 0;
}

static error_t check_usage(struct simulate_options *wanted, struct argp_state *state)
{
    if (wanted->replay)
        return wanted->source.trace ? cli_bad_usage(state, "--replay takes the jobs from the store: leave --trace out")
                                    : 0;
    if (!wanted->source.trace)
        return cli_bad_usage(state, "which trace? name its file by --trace");
    if (wanted->timeline && wanted->policy_count)
        return cli_bad_usage(state, "--timeline shows one policy: leave --compare out");
    if (wanted->steps && !wanted->json)
        return cli_bad_usage(state, "--steps are steps of --json: add that");
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct simulate_options *wanted = state->input;
    struct error err;

    switch (key) {
    case KEY_TRACE:
        wanted->source.trace = arg;
        return 0;
    case KEY_WORKLOADS:
        wanted->source.workloads = arg;
        return 0;
    case KEY_VC:
        wanted->source.vc = arg;
        return 0;
    case KEY_LAST:
        if (parse_duration(arg, &wanted->source.last_ns, &err))
            return cli_bad_usage(state, "--last: %s", err.text);
        return wanted->source.last_ns ? 0 : cli_bad_usage(state, "--last '%.40s' is no time: give one, e.g. 7d", arg);
    case KEY_NODE:
        wanted->profile = arg;
        return 0;
    case KEY_GPUS:
        return take_count(&wanted->gpus, "gpus", arg, GPUS_MAX, state);
    case KEY_GPU_MEMORY:
        if (parse_size(arg, &wanted->gpu_memory_bytes, &err))
            return cli_bad_usage(state, "--gpu-memory: %s", err.text);
        if (wanted->gpu_memory_bytes == 0)
            return cli_bad_usage(state, "--gpu-memory '%.40s' is not a size of a GPU: give its memory, e.g. 40G", arg);
        return 0;
    case KEY_POLICY:
        wanted->policy = arg;
        return check_policy(arg, state);
    case KEY_SET:
        return take_setting(wanted, xstrdup(arg), state);
    case KEY_OOM_RETRY:
        return take_setting(wanted, xasprintf("oom_retry=%s", arg), state);
    case KEY_MAX_SLOWDOWN:
        return take_setting(wanted, xasprintf("max_slowdown=%s", arg), state);
    case KEY_COMPARE:
        return take_compare(wanted, arg, state);
    case KEY_SHARE:
        return take_share(wanted, arg, state);
    case KEY_ESTIMATOR:
        wanted->estimator_given = true;
        return simulate_estimator_parse(arg, &wanted->estimator, &err) ? cli_bad_usage(state, "%s", err.text) : 0;
    case KEY_SEEDS:
        return take_count(&wanted->seeds, "seeds", arg, SEEDS_MAX, state);
    case KEY_FIRST_SEED:
        return take_count(&wanted->first_seed, "first-seed", arg, SEEDS_MAX, state);
    case KEY_JITTER:
        return take_number(&wanted->jitter, "jitter", arg, 0, JITTER_MAX, state);
    case KEY_CAPACITY:
        return take_number(&wanted->contention.capacity, "capacity", arg, 0.1, 10, state);
    case KEY_U_EXPONENT:
        return take_number(&wanted->contention.union_exponent, "u-exponent", arg, 0.1, 10, state);
    case KEY_CROWDING:
        return take_number(&wanted->contention.crowding, "crowding", arg, 0, 10, state);
    case KEY_SPREAD:
        return take_number(&wanted->contention.spread, "spread", arg, 0, 3, state);
    case KEY_CHECKPOINTS:
        wanted->checkpoints = true;
        return 0;
    case KEY_TIMELINE:
        wanted->timeline = arg;
        return 0;
    case KEY_STEPS:
        return take_count(&wanted->steps, "steps", arg, STEPS_MAX, state);
    case KEY_REPLAY:
        wanted->replay = arg;
        return 0;
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    case ARGP_KEY_ARG:
        return cli_bad_usage(state, "'%.40s' is one argument too many: a trace is named by --trace", arg);
    case ARGP_KEY_END:
        return check_usage(wanted, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The policies are a table elsewhere: the help's last part is made from it. Owned by argp. */
static char *add_policies(int key, const char *text, void *input)
{
    char *help = NULL;
    size_t length;
    FILE *out;

    if (key != ARGP_KEY_HELP_POST_DOC || !(out = open_memstream(&help, &length)))
        return (char *)text;
    fprintf(out, "%s\n\nPolicies, and presets (to which a policy may be added: thesis+lug):\n", text);
    config_policies_help(out);
    fclose(out);
    return help;
}

const struct argp simulate_argp = {
    .options = options,
    .parser = parse,
    .doc = "Run a trace's jobs on a virtual clock, decided by the core that carmad runs. Print makespan, wait times "
           "and JCT, out-of-memory crashes, energy, slowdowns and fairness between users."
           "\vJobs share GPUs as docs/contention.md models it: calibrated on published measurements, not validated. "
           "Runs with the same seeds give the same figures. The exit status is 3 where some job was refused, was given "
           "up or would wait for ever. Such a run is incomplete, and nothing is compared with it.",
    .help_filter = add_policies,
};
