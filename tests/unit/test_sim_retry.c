/* How long a job that ran out of GPU memory waits for its next run: on the thesis's traces, recorded and bounded. */
#include "unit.h"

#include "cli/simulate/simulate.h"

/* One stay of a job on its GPUs. */
struct stay {
    uint64_t job;
    int64_t from_ns, to_ns;
    bool crashed;
};

struct watch {
    struct stay *stays; /* owned, in the order of their beginnings */
    size_t count, capacity;
};

static void on_record(void *user, const struct record *record)
{
    struct watch *watch = user;

    if (record->type == RECORD_PLACED) {
        array_reserve(watch->stays, watch->capacity, watch->count + 1);
        watch->stays[watch->count++] = (struct stay){.job = record->job, .from_ns = record->at_ns, .to_ns = INT64_MAX};
    }
    if (record->type != RECORD_EXITED)
        return;
    for (size_t i = watch->count; i-- > 0;)
        if (watch->stays[i].job == record->job) {
            watch->stays[i].to_ns = record->at_ns;
            watch->stays[i].crashed = record->exited.cause == EXIT_GPU_OOM;
            return;
        }
}

/* The stay that begins next after the crash; NULL: it was given up. */
static const struct stay *relaunch_of(const struct watch *watch, const struct stay *crashed)
{
    for (const struct stay *stay = crashed + 1; stay < watch->stays + watch->count; stay++)
        if (stay->job == crashed->job)
            return stay;
    return NULL;
}

/* How many that crashed before wait at that moment: they go first. */
static int64_t retrying_before(const struct watch *watch, const struct stay *crashed)
{
    int64_t ahead = 0;

    for (size_t i = 0; i < watch->count; i++) {
        const struct stay *other = &watch->stays[i], *next;

        if (!other->crashed || other->to_ns > crashed->to_ns || other->job == crashed->job)
            continue;
        next = relaunch_of(watch, other);
        ahead += next && next->from_ns > crashed->to_ns;
    }
    return ahead;
}

/* When the last of those that are on some GPU at at_ns has gone. */
static int64_t all_gone_ns(const struct watch *watch, int64_t at_ns)
{
    int64_t gone_ns = at_ns;

    for (size_t i = 0; i < watch->count; i++)
        if (watch->stays[i].from_ns <= at_ns && watch->stays[i].to_ns > gone_ns)
            gone_ns = watch->stays[i].to_ns;
    return gone_ns;
}

/* A crashed job is ahead of the main queue. Others may be backfilled before it until its starvation timeout. Then GPUs
 * are kept for it, and it starts at the latest when the jobs that run by then have gone. Where several have crashed,
 * this goes one after the other. And one look of the loop later, where that is paced; and while a GPU settles. */
static int64_t latest_relaunch_ns(const struct watch *watch, const struct core_config *config,
                                  const struct stay *crashed)
{
    int64_t at_ns = crashed->to_ns;

    for (int64_t turns = retrying_before(watch, crashed) + 1; turns > 0; turns--)
        at_ns = all_gone_ns(watch, at_ns + (config->backfill ? config->starvation_timeout_ns : 0));
    return at_ns + config->settle_ns + 2 * (config->decide_period_ns + config->collocate_extra_ns);
}

/* Requests of `reserved_permille` of the jobs' needs; 0: none. How many crashes there were. */
static size_t check_trace(const char *trace, const char *policy, const char *const *settings, int reserved_permille)
{
    CLEANUP(simulate_jobs_release) struct simulate_jobs jobs = {0};
    struct simulate_source source = {.trace = trace, .workloads = CARMA_DATA "/workloads.csv"};
    struct simulate_estimator ignored = simulate_estimator_none;
    struct sim_node node = {.gpu_count = 4, .total_bytes = 40536 * MIB, .idle_w = 53.8, .full_w = 275.5};
    struct watch watch = {0};
    struct sim_observer observer = {.user = &watch, .on_record = on_record};
    struct sim_options options;
    CLEANUP(sim_result_release) struct sim_result result;
    CLEANUP(config_release) struct config config;
    size_t crashes = 0;
    int64_t sum_ns = 0, most_ns = 0;

    sim_options_default(&options);
    config_init_default(&config);
    assert_int_equal(simulate_set_policy(policy, &config, &ignored, &trouble), 0);
    for (; *settings; settings++)
        assert_int_equal(config_set_pair(&config, *settings, &trouble), 0);
    options.core = config.core;
    fail_if(simulate_jobs_load(&jobs, &source, options.share, &options.contention, &trouble), trouble);
    for (size_t i = 0; i < jobs.count && reserved_permille; i++) {
        jobs.items[i].request_bytes = jobs.items[i].uses[0].need_bytes / 1000 * reserved_permille;
        jobs.items[i].request_source = SOURCE_DECLARED;
    }
    fail_if(sim_run(jobs.items, jobs.count, &node, &options, &observer, &result, &trouble), trouble);
    for (size_t i = 0; i < watch.count; i++) {
        const struct stay *crashed = &watch.stays[i], *next;

        if (!crashed->crashed)
            continue;
        crashes++;
        next = relaunch_of(&watch, crashed);
        if (!next)
            fail_msg("%s, %s: job %" PRIu64 " was not started again", trace, policy, crashed->job);
        int64_t waited_ns = next->from_ns - crashed->to_ns;
        sum_ns += waited_ns;
        most_ns = waited_ns > most_ns ? waited_ns : most_ns;
        if (next->from_ns > latest_relaunch_ns(&watch, &config.core, crashed))
            fail_msg("%s, %s: job %" PRIu64 " waited %" PRId64 " s after its crash", trace, policy, crashed->job,
                     waited_ns / NS_PER_SEC);
    }
    assert_int_equal(result.completed, result.jobs);
    assert_int_equal(result.oom, crashes);
    print_message("%s, %s, reservations of %d permille: %zu crashes, started again after %" PRId64
                  " s in the mean, %" PRId64 " s at most (simulated)\n",
                  strrchr(trace, '/') + 1, policy, reserved_permille, crashes,
                  crashes ? sum_ns / (int64_t)crashes / NS_PER_SEC : 0, most_ns / NS_PER_SEC);
    free(watch.stays);
    return crashes;
}

TEST(test_relaunch_is_bounded)
{
    static const char *const traces[] = {CARMA_DATA "/traces/thesis_60.csv", CARMA_DATA "/traces/thesis_90.csv"};
    static const char *const as_it_is[] = {NULL}, *const open[] = {"sm_activity_cap=100%", "memory_floor=0B", NULL};
    size_t crashes = 0;

    for (size_t i = 0; i < array_size(traces); i++) {
        crashes += check_trace(traces[i], "round-robin", as_it_is, 0);
        crashes += check_trace(traces[i], "thesis", open, 0);
        crashes += check_trace(traces[i], "carma", as_it_is, 600);
        crashes += check_trace(traces[i], "carma", as_it_is, 850);
    }
    assert_true(crashes > 20); /* else the bound was hardly tried */
}
