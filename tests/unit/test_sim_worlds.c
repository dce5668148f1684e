/* Random worlds: the simulation breaks no rule of a node, and its records replayed decide the same again. */
#include "sim_fixture.h"

#include "core/job.h"
#include "sim/random.h"
#include "sim/replay.h"

struct world {
    struct sim_use uses[8];
    struct sim_job jobs[60];
    struct sim_node node;
    struct sim_options options;
};

static uint64_t below(uint64_t *state, uint64_t limit)
{
    return random_next(state) % limit;
}

static void draw_world(struct world *world, uint64_t seed)
{
    static const char *const names[] = {"exclusive", "round-robin", "magm",     "lug",
                                        "mug",       "first-fit",   "best-fit", "carma"};
    static const char *const workloads[] = {"a", "b", "c", "d", "e", "f", "", ""};
    uint64_t state = seed;
    int64_t arrival_ns = 0;

    world->node = (struct sim_node){
        .gpu_count = 1 + (uint32_t)below(&state, 6), .total_bytes = 40 * GIB, .idle_w = 50, .full_w = 250};
    for (size_t i = 0; i < array_size(world->uses); i++) {
        int64_t resident = (int64_t)below(&state, 30) * GIB;
        world->uses[i] = (struct sim_use){.activity = (double)below(&state, 101) / 100,
                                          .resident_bytes = resident,
                                          .need_bytes = resident + (int64_t)below(&state, 11) * GIB};
    }
    for (size_t i = 0; i < array_size(world->jobs); i++) {
        const struct sim_use *use = &world->uses[below(&state, array_size(world->uses))];
        arrival_ns += (int64_t)below(&state, 300) * NS_PER_SEC;
        world->jobs[i] = job_of(use, 0, 1 + (double)below(&state, 2000));
        world->jobs[i].arrival_ns = arrival_ns;
        world->jobs[i].gpus = 1 + (uint32_t)below(&state, world->node.gpu_count);
        world->jobs[i].exclusive = below(&state, 10) == 0;
        world->jobs[i].workload = workloads[use - world->uses];
        if (below(&state, 2))
            world->jobs[i].request_bytes = use->need_bytes;
    }
    sim_options_default(&world->options);
    strcpy(world->options.core.policy, names[below(&state, array_size(names))]);
    world->options.core.memory_view = (uint32_t)below(&state, 2);
    world->options.core.oom_retry = (uint32_t)below(&state, 3);
    world->options.core.statistic = (uint32_t)below(&state, 5);
    world->options.core.backfill = below(&state, 2) ? 16 : 0;
    world->options.core.learn = below(&state, 2);
    world->options.core.paced = below(&state, 4) == 0;
    if (world->options.core.paced)
        world->options.core.decide_period_ns = 30 * NS_PER_SEC;
    world->options.core.shrink_after_ns = below(&state, 2) ? 60 * NS_PER_SEC : 0;
    world->options.core.max_slowdown_permille = below(&state, 2) ? 2500 : 0;
    world->options.share = below(&state, 2) ? SHARE_MPS : SHARE_TIME_SLICE;
    world->options.jitter = below(&state, 2) ? 0.03 : 0;
    world->options.seed = seed;
    world->options.contention.crowding = below(&state, 3) == 0 ? 2 : 1;
}

struct ledger {
    const struct world *world;
    size_t ended[60];
    uint32_t held[60]; /* GPUs that a job has */
    uint64_t hash;
    struct record_list records;
};

static void keep_ledger(void *user, const struct record *record)
{
    struct ledger *ledger = user;
    size_t job = (size_t)record->job - 1;

    ledger->hash = (ledger->hash ^ (uint64_t)record->at_ns ^ record->type << 8 ^ record->job) * UINT64_C(0x100000001b3);
    record_list_add(&ledger->records, record);
    switch (record->type) {
    case RECORD_PLACED:
        assert_int_equal(ledger->held[job], 0);
        assert_int_equal(ledger->ended[job], 0);
        ledger->held[job] = record->placed.count;
        break;
    case RECORD_EXITED:
        assert_int_equal(ledger->held[job], ledger->world->jobs[job].gpus);
        ledger->held[job] = 0;
        ledger->ended[job] += record->exited.cause == EXIT_COMPLETED;
        break;
    case RECORD_GAVE_UP:
    case RECORD_REFUSED:
        ledger->ended[job]++;
        break;
    default:
        break;
    }
}

/* Memory that is in use on a GPU never exceeds the GPU's. */
static void never_too_much(void *user, int64_t at_ns, const struct sim_gpu_view *view)
{
    const struct ledger *ledger = user;

    assert_in_range(view->used_bytes, 0, ledger->world->node.total_bytes);
    assert_true(view->activity >= 0 && view->activity <= 1);
    assert_true(view->power_w >= 50 && view->power_w <= 250.0001);
}

static void check_world(const struct world *world, const struct sim_result *result)
{
    double work_s = 0, least_s = 0;

    for (size_t i = 0; i < array_size(world->jobs); i++) {
        const struct sim_row *row = &result->rows[i];
        double alone_s = (double)row->work_ns / 1e9 + 12;
        if (row->state != JOB_COMPLETED)
            continue;
        assert_true(row->first_launch_ns >= world->jobs[i].arrival_ns);
        assert_true((double)(row->ended_ns - row->last_launch_ns) / 1e9 >= alone_s - 1e-6);
        work_s += (double)row->work_ns / 1e9 * world->jobs[i].uses->activity * world->jobs[i].gpus;
        least_s = fmax(least_s, (double)(world->jobs[i].arrival_ns - world->jobs[0].arrival_ns) / 1e9 + alone_s);
    }
    /* No GPU does more than itself, and no job is quicker than alone. */
    assert_true(result->makespan_s >= least_s - 1e-6);
    assert_true(result->makespan_s * world->node.gpu_count >= work_s * (1 - 1e-9));
    assert_true(result->activity_mean * result->makespan_s * world->node.gpu_count >= work_s * (1 - 1e-9));
}

/* Feeds the simulation's records to a fresh core: returns whether that decides the same. */
static bool same_again(const struct record_list *records)
{
    struct replay *replay = replay_new();
    uint64_t decisions = 0;

    for (size_t i = 0; i < records->count; i++) {
        decisions += record_is_decision(records->items[i].type);
        if (replay_record(replay, i + 1, &records->items[i], &trouble) != 0) {
            replay_free(replay);
            return false;
        }
    }
    replay_finish(replay);
    bool same = !replay_difference(replay);
    if (same) {
        assert_int_equal(replay_records(replay), records->count);
        assert_int_equal(replay_decisions(replay), decisions);
    }
    replay_free(replay);
    return same;
}

/* A decision less, one more, or another one. */
static void check_replay(struct record_list *records, uint64_t seed)
{
    uint64_t state = seed;
    size_t at = (size_t)below(&state, records->count);

    assert_true(same_again(records));
    if (seed > 5)
        return;
    while (records->items[at].type != RECORD_PLACED)
        at = (at + 1) % records->count;
    struct record original = records->items[at];
    records->items[at].placed.slowdown_permille++;
    assert_false(same_again(records));
    records->items[at] = (struct record){.type = RECORD_TIMER, .at_ns = original.at_ns};
    assert_false(same_again(records));
    records->items[at] = original;
    records->items[records->count - 1] = original; /* nobody would decide that at the end */
    assert_false(same_again(records));
}

static void collect(void *user, const struct record *record)
{
    record_list_add(user, record);
}

/* An earlier carma did not say how jobs share their GPUs. */
TEST(a_store_without_modes)
{
    struct sim_job jobs[] = {job_of(&half, 0, 1000), job_of(&half, 5, 1000), job_of(&half, 10, 1000)};
    struct sim_options options = eager("magm");
    CLEANUP(record_list_release) struct record_list records = {0};
    struct sim_observer observer = {.user = &records, .on_record = collect};
    CLEANUP(sim_result_release) struct sim_result result;

    options.share = SHARE_ANY;
    jobs[2].exclusive = true;
    assert_int_equal(sim_run(jobs, 3, &one_gpu, &options, &observer, &result, NULL), 0);
    for (size_t i = 0; i < records.count; i++)
        if (records.items[i].type == RECORD_PLACED)
            records.items[i].placed.share = SHARE_ANY;
    assert_true(same_again(&records));
}

/* A store that ends in the midst of a turn: the rest of it would have been decided too. */
TEST(a_turn_that_was_cut_off)
{
    struct sim_job jobs[] = {job_of(&half, 0, 1000), job_of(&half, 0, 1000)};
    struct sim_options options = eager("exclusive");
    CLEANUP(record_list_release) struct record_list records = {0};
    struct sim_observer observer = {.user = &records, .on_record = collect};
    CLEANUP(sim_result_release) struct sim_result result;
    size_t first = 0;

    assert_int_equal(sim_run(jobs, 2, &two_gpus, &options, &observer, &result, NULL), 0);
    while (records.items[first].type != RECORD_PLACED)
        first++;
    assert_int_equal(records.items[first + 1].type, RECORD_PLACED);
    assert_true(same_again(&records));
    records.count = first + 2;
    assert_true(same_again(&records));
    records.count = first + 1;
    assert_false(same_again(&records));
    records.count = first; /* the inputs' consequences were not decided yet */
    assert_true(same_again(&records));
}

TEST(random_worlds)
{
    static struct world world;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct ledger ledger = {.world = &world}, again = {.world = &world};
        struct sim_observer observer = {.user = &ledger, .on_record = keep_ledger, .on_gpu = never_too_much};
        struct sim_result result, second;
        struct error err;
        draw_world(&world, seed);
        if (sim_run(world.jobs, array_size(world.jobs), &world.node, &world.options, &observer, &result, &err) != 0)
            fail_msg("seed %d: %s", (int)seed, err.text);
        for (size_t i = 0; i < array_size(world.jobs); i++)
            assert_int_equal(ledger.ended[i], 1);
        check_world(&world, &result);
        observer.user = &again;
        assert_int_equal(
            sim_run(world.jobs, array_size(world.jobs), &world.node, &world.options, &observer, &second, &err), 0);
        assert_true(ledger.hash == again.hash);
        check_replay(&ledger.records, seed);
        record_list_release(&ledger.records);
        record_list_release(&again.records);
        assert_memory_equal(result.rows, second.rows, array_size(world.jobs) * sizeof *result.rows);
        sim_result_release(&result);
        sim_result_release(&second);
    }
}
