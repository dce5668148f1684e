/* The two-level scheme: Slurm's count, and the nodes below it. */
#include "unit.h"

#include "base/units.h"
#include "core/job.h"
#include "core/record.h"
#include "sim/random.h"
#include "sim/sim.h"
#include "sim/slurm.h"

#define SECONDS(n) ((n)*NS_PER_SEC)
#define NODES      3
#define JOBS       200

static const int64_t whole[SLURM_GRES_COUNT] = {[SLURM_GPUMEM] = 160, [SLURM_GPUBIG] = 4, [SLURM_GPUSM] = 4000};

static struct slurm_ask memory(int64_t bytes, int64_t limit_s)
{
    return (struct slurm_ask){.counts = {bytes}, .limit_ns = SECONDS(limit_s)};
}

static void submit(struct slurm *slurm, size_t job, struct slurm_ask ask, int64_t now_s)
{
    assert_true(slurm_submit(slurm, job, &ask, SECONDS(now_s), SECONDS(now_s)));
}

static void starts(struct slurm *slurm, int64_t now_s, size_t wanted_job, uint32_t wanted_node)
{
    uint32_t node = NODES;
    size_t job = JOBS;

    assert_true(slurm_start(slurm, SECONDS(now_s), &job, &node));
    assert_int_equal(job, wanted_job);
    assert_int_equal(node, wanted_node);
}

static void none_starts(struct slurm *slurm, int64_t now_s)
{
    uint32_t node;
    size_t job;

    assert_false(slurm_start(slurm, SECONDS(now_s), &job, &node));
}

TEST(jobs_take_the_first_node_with_the_counts)
{
    struct slurm *slurm = slurm_new(NODES, whole, JOBS);
    struct slurm_ask large = memory(161, 10);

    submit(slurm, 0, memory(100, 10), 0);
    submit(slurm, 1, memory(100, 10), 0);
    submit(slurm, 2, memory(60, 10), 0);
    assert_false(slurm_submit(slurm, 3, &large, 0, 0));
    starts(slurm, 0, 0, 0);
    starts(slurm, 0, 1, 1);
    starts(slurm, 0, 2, 0);
    none_starts(slurm, 0);
    assert_int_equal(slurm_free_count(slurm, 0, SLURM_GPUMEM), 0);
    slurm_ended(slurm, 0);
    assert_int_equal(slurm_free_count(slurm, 0, SLURM_GPUMEM), 100);
    slurm_free(slurm);
}

/* The head keeps the node that is free soonest by the limits: node 1, in 100 s. */
TEST(backfill_does_not_delay_the_head)
{
    struct slurm *slurm = slurm_new(2, whole, JOBS);

    submit(slurm, 0, memory(100, 200), 0);
    submit(slurm, 1, memory(100, 100), 0);
    starts(slurm, 0, 0, 0);
    starts(slurm, 0, 1, 1);
    none_starts(slurm, 0);
    submit(slurm, 2, memory(120, 100), 1);
    submit(slurm, 3, memory(50, 100), 1);
    submit(slurm, 4, memory(50, 60), 1);
    submit(slurm, 5, memory(50, 100), 1);
    starts(slurm, 1, 3, 0); /* the first backfill pass */
    starts(slurm, 1, 4, 1); /* gone before the head needs the node */
    none_starts(slurm, 1);  /* 5 fits beside nobody */
    assert_int_equal(slurm_next_ns(slurm, SECONDS(1)), SECONDS(31));
    slurm_ended(slurm, 4);
    none_starts(slurm, 30);
    none_starts(slurm, 31); /* 5 would be there when the head needs it */
    slurm_ended(slurm, 1);
    starts(slurm, 50, 2, 1);
    none_starts(slurm, 50);
    slurm_free(slurm);
}

TEST(a_refused_job_waits_longer_each_time)
{
    static const int64_t delays_s[] = {5, 10, 20, 40, 80, 160, 300, 300};
    struct slurm *slurm = slurm_new(2, whole, JOBS);
    int64_t now_s = 0;

    submit(slurm, 0, memory(100, 10), 0);
    for (size_t i = 0; i < sizeof delays_s / sizeof *delays_s; i++) {
        /* Three refusals exclude a node; when both are, neither is. */
        starts(slurm, now_s, 0, i / 3 % 2);
        slurm_refused(slurm, 0, SECONDS(now_s));
        none_starts(slurm, now_s + 4);
        assert_int_equal(slurm_free_count(slurm, i / 3 % 2, SLURM_GPUMEM), 60); /* it is completing */
        assert_int_equal(slurm_next_ns(slurm, SECONDS(now_s)), SECONDS(now_s + 5));
        now_s += 5;
        none_starts(slurm, now_s);
        assert_int_equal(slurm_free_count(slurm, i / 3 % 2, SLURM_GPUMEM), 160);
        assert_int_equal(slurm_next_ns(slurm, SECONDS(now_s)), SECONDS(now_s + delays_s[i]));
        none_starts(slurm, now_s + delays_s[i] - 1);
        now_s += delays_s[i];
    }
    submit(slurm, 1, memory(100, 10), now_s);
    starts(slurm, now_s, 0, 0); /* it has kept its place */
    starts(slurm, now_s, 1, 1);
    slurm_free(slurm);
}

struct world {
    struct slurm_ask asks[JOBS];
    uint32_t nodes[JOBS]; /* NODES: it does not run */
    int64_t ends_s[JOBS];
    bool done[JOBS];
    bool completing[JOBS]; /* refused, and not yet requeued */
    size_t done_count;
    uint64_t random;
};

static int64_t draw(struct world *world, int64_t below)
{
    return (int64_t)(random_next(&world->random) % (uint64_t)below);
}

static void check_counts(const struct world *world, const struct slurm *slurm)
{
    for (uint32_t node = 0; node < NODES; node++)
        for (enum slurm_gres g = 0; g < SLURM_GRES_COUNT; g++) {
            int64_t used = 0;
            for (size_t job = 0; job < JOBS; job++)
                used += world->nodes[job] == node ? world->asks[job].counts[g] : 0;
            assert_in_range(used, 0, whole[g]);
            assert_int_equal(slurm_free_count(slurm, node, g), whole[g] - used);
        }
}

static void end_jobs(struct world *world, struct slurm *slurm, int64_t now_s)
{
    for (size_t job = 0; job < JOBS; job++)
        if (world->nodes[job] < NODES && world->ends_s[job] <= now_s) {
            assert_false(world->done[job]);
            world->nodes[job] = NODES;
            if (world->completing[job]) {
                world->completing[job] = false;
                continue;
            }
            world->done[job] = true;
            world->done_count++;
            slurm_ended(slurm, job);
        }
}

TEST(counts_hold_and_each_job_runs_once)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world world = {.random = seed};
        struct slurm *slurm = slurm_new(NODES, whole, JOBS);
        size_t submitted = 0, job;
        uint32_t node;

        for (size_t i = 0; i < JOBS; i++) {
            world.nodes[i] = NODES;
            world.asks[i] = (struct slurm_ask){.counts = {1 + draw(&world, 100), draw(&world, 3), draw(&world, 2000)},
                                               .limit_ns = SECONDS(1 + draw(&world, 500))};
        }
        for (int64_t now_s = 0; world.done_count < JOBS; now_s++) {
            assert_true(now_s < 1000000);
            end_jobs(&world, slurm, now_s);
            if (submitted < JOBS && draw(&world, 4) == 0) {
                submit(slurm, submitted, world.asks[submitted], now_s);
                submitted++;
            }
            while (slurm_start(slurm, SECONDS(now_s), &job, &node)) {
                assert_true(job < submitted && !world.done[job] && world.nodes[job] == NODES && node < NODES);
                world.nodes[job] = node;
                world.ends_s[job] = now_s + 1 + draw(&world, 500);
                check_counts(&world, slurm);
                if (draw(&world, 4) == 0) {
                    world.completing[job] = true;
                    world.ends_s[job] = now_s + 5;
                    slurm_refused(slurm, job, SECONDS(now_s));
                }
            }
            check_counts(&world, slurm);
        }
        slurm_free(slurm);
    }
}

/* ---- With the nodes ---- */

#define LARGE_JOBS 6

static const struct sim_use large = {.activity = 0.3, .resident_bytes = 25 * GIB, .need_bytes = 25 * GIB};

static void run(enum sim_scheme scheme, const struct sim_job *jobs, size_t count, const struct sim_observer *observer,
                struct sim_result *result)
{
    static const struct sim_node node = {.gpu_count = 4, .total_bytes = 40 * GIB, .idle_w = 50, .full_w = 250};
    struct sim_options options;
    struct error err;

    sim_options_default(&options);
    options.scheme = scheme;
    options.nodes = 2;
    fail_if(sim_run(jobs, count, &node, &options, observer, result, &err) != 0, err);
}

static struct sim_job job_of(int64_t arrival_s, const struct sim_use *use, int64_t request_bytes)
{
    return (struct sim_job){.arrival_ns = SECONDS(arrival_s),
                            .work_ns = SECONDS(1000),
                            .gpus = 1,
                            .use_count = 1,
                            .uses = use,
                            .workload = "",
                            .request_bytes = request_bytes,
                            .request_source = SOURCE_DECLARED,
                            .expected_permille = 300};
}

static struct sim_result simulate(enum sim_scheme scheme, const struct sim_use *use, int64_t request_bytes)
{
    struct sim_job jobs[LARGE_JOBS];
    struct sim_result result;

    for (size_t i = 0; i < LARGE_JOBS; i++)
        jobs[i] = job_of((int64_t)i, use, request_bytes);
    run(scheme, jobs, LARGE_JOBS, NULL, &result);
    for (size_t i = 0; i < LARGE_JOBS; i++)
        assert_int_equal(result.rows[i].state, JOB_COMPLETED);
    return result;
}

/* By hand: the sum of node 0 has 28 GiB left for the third job, its GPUs 14 each. While that job completes and waits,
 * the fourth takes half of the sum: so the second attempt is on node 1. */
TEST(one_refusal_costs_ten_seconds)
{
    static const struct sim_use small = {.activity = 0.1, .resident_bytes = 10 * GIB, .need_bytes = 10 * GIB};
    struct sim_job jobs[] = {job_of(0, &large, 25 * GIB), job_of(1, &large, 25 * GIB), job_of(2, &large, 25 * GIB),
                             job_of(8, &small, 10 * GIB)};
    struct sim_result sum, big;

    run(SIM_SLURM, jobs, 4, NULL, &sum);
    run(SIM_SLURM_GPUBIG, jobs, 4, NULL, &big);
    assert_int_equal(sum.refusals, 1);
    assert_int_equal(sum.rows[2].refusals, 1);
    assert_int_equal(sum.rows[2].last_launch_ns, SECONDS(12));
    assert_int_equal(big.refusals, 0);
    assert_int_equal(big.rows[2].last_launch_ns, SECONDS(2));
    sim_result_release(&sum);
    sim_result_release(&big);
}

static void count_ended(void *user, size_t ended, size_t count)
{
    size_t *times = user;

    assert_int_equal(ended, ++*times);
    assert_true(ended <= count);
}

/* Whatever is refused, and whoever asked for too little, each job ends once, and again so. */
TEST(each_job_ends_once_and_the_same_way)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        enum { RANDOM_JOBS = 60 };
        struct world world = {.random = seed};
        struct sim_use uses[RANDOM_JOBS];
        struct sim_job jobs[RANDOM_JOBS];
        for (size_t i = 0; i < RANDOM_JOBS; i++) {
            int64_t bytes = (1 + draw(&world, 38)) * GIB, less = draw(&world, 4) ? 0 : draw(&world, bytes);
            uses[i] = (struct sim_use){
                .activity = (double)(1 + draw(&world, 10)) / 10, .resident_bytes = bytes, .need_bytes = bytes};
            jobs[i] = job_of((int64_t)i * 60, &uses[i], draw(&world, 8) ? bytes - less : -1);
            jobs[i].gpus = 1 + (uint32_t)draw(&world, 2);
        }
        for (enum sim_scheme scheme = SIM_ONE_CORE; scheme <= SIM_SLURM_GPUSM; scheme++) {
            struct sim_result results[2];
            for (size_t again = 0; again < 2; again++) {
                size_t times = 0;
                run(scheme, jobs, RANDOM_JOBS, &(struct sim_observer){.user = &times, .on_ended = count_ended},
                    &results[again]);
                assert_int_equal(times, RANDOM_JOBS);
                assert_int_equal(results[again].completed, RANDOM_JOBS);
            }
            for (size_t i = 0; i < RANDOM_JOBS; i++) {
                assert_int_equal(results[0].rows[i].ended_ns, results[1].rows[i].ended_ns);
                assert_int_equal(results[0].rows[i].refusals, results[1].rows[i].refusals);
            }
            sim_result_release(&results[0]);
            sim_result_release(&results[1]);
        }
    }
}

/* Three of 25 GiB fit into two GPUs of 40 GiB by the sum alone. */
TEST(gpubig_counts_what_the_sum_cannot)
{
    struct sim_result sum = simulate(SIM_SLURM, &large, 25 * GIB), big = simulate(SIM_SLURM_GPUBIG, &large, 25 * GIB);

    assert_true(sum.refusals > 0);
    assert_int_equal(big.refusals, 0);
    assert_true(big.makespan_s < sum.makespan_s);
    sim_result_release(&sum);
    sim_result_release(&big);
}

TEST(one_scheduler_may_spread_nothing_of_one_gpu)
{
    CLEANUP(sim_result_release) struct sim_result result = simulate(SIM_ONE_CORE, &large, 25 * GIB);

    assert_int_equal(result.refusals + result.spread, 0);
}

/* It asks for 10 and needs 25 beside others that do the same. With what it asks for next it runs. */
TEST(out_of_memory_is_requeued_with_more)
{
    CLEANUP(sim_result_release) struct sim_result result = simulate(SIM_SLURM_GPUBIG, &large, 10 * GIB);

    assert_true(result.oom > 0);
    assert_int_equal(result.completed, LARGE_JOBS);
    for (size_t i = 0; i < LARGE_JOBS; i++)
        assert_true(result.rows[i].crashes <= 1);
}

RUN_TESTS(NULL, NULL)
