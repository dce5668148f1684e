/* carma simulate: a trace under one policy or several, on a virtual clock, by the core that carmad runs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show/term.h"
#include "cli/show/answer.h"
#include "cli/simulate/simulate.h"
#include "config/presets.h"
#include "trace/profile.h"

/* ---- Progress ---- */

#define PROGRESS_AFTER_NS (500 * NS_PER_MS) /* short runs show none */
#define PROGRESS_EVERY_NS (100 * NS_PER_MS)
#define PROGRESS_WIDTH    30

struct progress {
    int64_t next_wall_ns;
    const char *policy;
    size_t run, run_count;
    bool interactive;
};

static void show_progress(void *user, size_t ended, size_t count)
{
    struct progress *progress = user;
    int64_t now_ns;
    double done;

    if (!progress->interactive || (now_ns = nodetime_monotonic_wall_ns()) < progress->next_wall_ns)
        return;
    progress->next_wall_ns = now_ns + PROGRESS_EVERY_NS;
    done = ((double)progress->run + (double)ended / (double)count) / (double)progress->run_count;
    CLEANUP(free_ptr) char *bar = term_bar(done, 1, PROGRESS_WIDTH);
    fprintf(stderr, TERM_LINE_CLEAR "%s %3.0f%%  %s, run %zu of %zu", bar, done * 100, progress->policy,
            progress->run + 1, progress->run_count);
    fflush(stderr);
    cli_progress_shown = true;
}

/* ---- Runs ---- */

struct simulation {
    const struct simulate_options *wanted;
    struct sim_node node;
    char gpu_name[sizeof((struct node_profile *)NULL)->gpu_name];
    struct simulate_jobs jobs;
    struct sim_options options;
    struct progress progress;
};

/* The GPUs that an estimator assumes: as configured, else by their name, else the default. */
static int find_machine(const struct simulation *simulation, const struct config *config,
                        struct machine_profile *machine, struct error *err)
{
    const struct machine_profile *known = machine_profile_find(simulation->gpu_name);
    int rc = config_machine_profile(config, machine, err);

    if (rc)
        return rc;
    if (!*machine->name)
        *machine = known ? *known : *machine_profile_builtin(0);
    machine->memory_bytes = simulation->options.mig_slices
                                ? sim_mig_bytes(simulation->node.total_bytes, simulation->options.mig_slices)
                                : simulation->node.total_bytes;
    return 0;
}

/* The profile's, unless the jobs' own past or the command line says otherwise. */
static int find_node(struct simulation *simulation, struct error *err)
{
    const struct simulate_options *wanted = simulation->wanted;
    const struct simulate_jobs *jobs = &simulation->jobs;
    struct sim_node *node = &simulation->node;
    struct node_profile profile;
    int rc = node_profile_read(wanted->profile, &profile, err);

    if (rc)
        return rc;
    memcpy(simulation->gpu_name, profile.gpu_name, sizeof simulation->gpu_name);
    *node = (struct sim_node){
        .gpu_count = jobs->gpu_count ? jobs->gpu_count : profile.gpu_count,
        .total_bytes = jobs->gpu_bytes ? jobs->gpu_bytes : profile.total_bytes - profile.reserved_bytes,
        .idle_w = profile.idle_w,
        .full_w = profile.full_w,
    };
    if (wanted->gpus)
        node->gpu_count = (uint32_t)wanted->gpus;
    if (wanted->gpu_memory_bytes)
        node->total_bytes = wanted->gpu_memory_bytes;
    return 0;
}

static void fill_options(const struct simulate_options *wanted, struct sim_options *filled)
{
    sim_options_default(filled);
    filled->mig_slices = (uint32_t)wanted->mig_slices;
    filled->contention = wanted->contention;
    filled->jitter = wanted->jitter;
    filled->checkpoints = wanted->checkpoints;
}

static int run_policy(struct simulation *simulation, struct simulate_outcome *outcome, struct timeline *timeline,
                      struct error *err)
{
    int rc = 0;

    simulation->progress.policy = outcome->policy;
    for (size_t seed = 0; rc == 0 && seed < outcome->seeds; seed++) {
        struct sim_observer observer = {.user = &simulation->progress, .on_ended = show_progress};
        struct sim_result result;
        if (seed == 0 && timeline)
            observer = (struct sim_observer){.user = timeline, .on_gpu = timeline_add};
        simulation->options.seed = (uint64_t)simulation->wanted->first_seed + seed;
        simulation->options.contention.seed = simulation->options.seed;
        rc = sim_run(simulation->jobs.items, simulation->jobs.count, &simulation->node, &simulation->options, &observer,
                     &result, err);
        if (rc == 0) {
            simulate_outcome_add(outcome, seed, &result);
            sim_result_release(&result);
        }
        simulation->progress.run++;
    }
    return rc;
}

/* Settings written with the policy go before --share, and that before a preset's own settings. */
static void choose_share(const struct config *config, const struct simulate_options *wanted, struct sim_options *chosen)
{
    const char *of_preset = presets_simulated_share(config->policy);

    chosen->share = config->share.mode;
    if (chosen->share != SHARE_ANY)
        return;
    chosen->share = wanted->share;
    chosen->core.mps_domain = wanted->mps_domain;
    if (!wanted->share_given && of_preset)
        chosen->share = share_name_find(of_preset, &chosen->core.mps_domain);
}

static void name_share(const struct sim_options *options, char *name, size_t size)
{
    if (options->mig_slices)
        snprintf(name, size, "mig:%" PRIu32, options->mig_slices);
    else
        snprintf(name, size, "%s", share_name(options->share, options->core.mps_domain));
}

/* The run's settings under this policy: its meaning, then the settings for all, then those written with it. */
static int choose_policy(struct simulation *simulation, struct simulate_outcome *outcome, struct error *err)
{
    const char *policy = outcome->policy;
    const struct simulate_options *wanted = simulation->wanted;
    struct simulate_estimator estimator = wanted->estimator;
    struct machine_profile machine;
    struct config config;
    uint32_t mps_domain;
    int rc;

    config_init_default(&config);
    rc = simulate_set_policy(policy, &config, &estimator, err);
    for (size_t i = 0; rc == 0 && i < wanted->setting_count; i++)
        rc = config_set_pair(&config, wanted->settings[i], err);
    config.share.mode = SHARE_ANY;
    if (rc == 0)
        rc = simulate_set_own(policy, &config, err);
    mps_domain = config.core.mps_domain;
    config.core.mps_domain = MPS_DOMAIN_USER; /* mps:node is for us alone */
    if (rc == 0)
        rc = config_check(&config, err);
    config.core.mps_domain = mps_domain;
    if (!wanted->estimator_given && !strchr(policy, '@'))
        estimator = simulate_estimator_of(config.estimator);
    if (rc == 0)
        rc = find_machine(simulation, &config, &machine, err);
    if (rc == 0)
        rc = simulate_jobs_request(&simulation->jobs, &estimator, &machine, config.estimate_quantile_permille,
                                   &outcome->requests, err);
    simulation->options.core = config.core;
    choose_share(&config, wanted, &simulation->options);
    name_share(&simulation->options, outcome->share, sizeof outcome->share);
    simulation->options.sample_period_ns = config.sample_period_ns;
    config_release(&config);
    return rc;
}

static int run_one(struct simulation *simulation, struct simulate_outcome *outcome, struct error *err)
{
    const struct simulate_options *wanted = simulation->wanted;
    struct timeline timeline = {0};
    bool wants_timeline = wanted->timeline || wanted->steps;
    int rc = choose_policy(simulation, outcome, err);

    if (rc)
        return rc;
    if (wants_timeline)
        timeline_init(&timeline, simulation->node.gpu_count);
    rc = run_policy(simulation, outcome, wants_timeline ? &timeline : NULL, err);
    if (rc == 0 && wanted->timeline)
        rc = timeline_write_csv(&timeline, wanted->timeline, err);
    if (rc == 0 && wanted->steps)
        outcome->timeline = timeline_to_json(&timeline, simulation->jobs.items[0].arrival_ns, simulation->node.idle_w,
                                             (size_t)wanted->steps);
    timeline_release(&timeline);
    return rc;
}

static void print(const struct simulate_options *wanted, const struct simulate_outcome *outcomes, size_t count)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    if (wanted->json) {
        CLEANUP(json_release) json_t *json = simulate_to_json(outcomes, count);
        cli_print_json(json);
        return;
    }
    simulate_format(outcomes, count, term_width(stdout), term_colour(stdout), &out);
    fputs(out.text, stdout);
}

static int simulate(const struct simulate_options *wanted)
{
    struct simulation simulation = {.wanted = wanted};
    const char *const *policies = wanted->policy_count ? wanted->policies : &wanted->policy;
    size_t count = wanted->policy_count ? wanted->policy_count : 1, ready = 0;
    struct simulate_outcome outcomes[SIMULATE_POLICIES_MAX];
    uint32_t instances = wanted->mig_slices ? sim_mig_instances((uint32_t)wanted->mig_slices) : 1;
    int status = CLI_OK;
    struct error err;
    int rc = simulate_jobs_load(&simulation.jobs, &wanted->source, wanted->share, &wanted->contention, &err);

    if (rc == 0)
        rc = find_node(&simulation, &err);
    if (rc == 0)
        rc = simulate_jobs_check(&simulation.jobs, wanted->source.trace, simulation.node.gpu_count * instances, &err);
    fill_options(wanted, &simulation.options);
    if (simulation.jobs.past)
        simulation.options.contention.spread = 0; /* as that past was understood */
    simulation.progress = (struct progress){.next_wall_ns = nodetime_monotonic_wall_ns() + PROGRESS_AFTER_NS,
                                            .run_count = count * (size_t)wanted->seeds,
                                            .interactive = isatty(STDERR_FILENO)};
    for (; rc == 0 && ready < count; ready++) {
        simulate_outcome_init(&outcomes[ready], policies[ready], (size_t)wanted->seeds);
        rc = run_one(&simulation, &outcomes[ready], &err);
    }
    cli_end_progress();
    if (rc == 0)
        print(wanted, outcomes, count);
    for (size_t i = 0; i < ready; i++) {
        status = outcomes[i].incomplete ? CLI_INCOMPLETE : status;
        simulate_outcome_release(&outcomes[i]);
    }
    simulate_jobs_release(&simulation.jobs);
    return rc ? cli_fail("%s", err.text) : status;
}

int cmd_simulate(struct cli *cli, int argc, char **argv)
{
    struct simulate_options wanted = {.profile = "a100x4-40g",
                                      .policy = "default",
                                      .share = SHARE_AUTO,
                                      .seeds = 1,
                                      .first_seed = 1,
                                      .contention = contention_default,
                                      .estimator = {.column = -1}};
    int status;

    if (cli_parse(cli, argc, argv, &wanted, &status))
        status = wanted.replay ? simulate_replay(wanted.replay) : simulate(&wanted);
    for (size_t i = 0; i < wanted.setting_count; i++)
        free(wanted.settings[i]);
    free(wanted.settings);
    free(wanted.compare);
    return status;
}
