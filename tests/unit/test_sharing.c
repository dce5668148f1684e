/* The sharing modes a GPU, rule by rule (src/core/share/sharing.h). Properties of every world: tests/property. */
#include "core_fixture.h"

/* GPU i is shared in ways[i]. */
static void share(struct fixture *f, const uint32_t ways[GPUS])
{
    for (uint32_t i = 0; i < GPUS; i++) {
        struct record record = {.type = RECORD_GPU_BACK};
        record.gpu = (struct record_gpu){.gpu = i, .total_bytes = TOTAL, .share = ways[i]};
        snprintf(record.gpu.uuid, sizeof record.gpu.uuid, "GPU-%u", i);
        apply(f, record);
        sample(f, i, 0, 0, 0);
    }
}

static void all_by_mps(struct fixture *f)
{
    share(f, (uint32_t[]){SHARE_MPS, SHARE_MPS, SHARE_MPS, SHARE_MPS});
}

/* All except GPU 0 are away: the question is about it. */
static void one_gpu(struct fixture *f, uint32_t way)
{
    share(f, (uint32_t[]){way, way, way, way});
    keep_gpus(f, 1);
}

static uint64_t ask(struct fixture *f, uint32_t gpus, uint32_t uid, uint32_t way)
{
    struct record record = wants(gpus, GIB);

    record.submitted.uid = uid;
    record.submitted.smact_permille = 50; /* so that turns pay */
    record.submitted.exclusive = way == SHARE_EXCLUSIVE;
    record.submitted.share = way == SHARE_EXCLUSIVE ? SHARE_ANY : way;
    return submit_record(f, record);
}

/* The way in which the last decisions placed the job; SHARE_ANY: they did not. */
static uint32_t mode_of(const struct fixture *f, uint64_t job)
{
    for (size_t i = 0; i < f->decisions.count; i++)
        if (f->decisions.items[i].type == RECORD_PLACED && f->decisions.items[i].job == job)
            return f->decisions.items[i].placed.share;
    return SHARE_ANY;
}

#define assert_shares(f, job, way)                                                                                     \
    do {                                                                                                               \
        decide(f);                                                                                                     \
        assert_int_equal(mode_of(f, job), way);                                                                        \
    } while (0)

static void assert_gpu_reason(const struct fixture *f, uint64_t job, uint32_t gpu, const char *expected)
{
    struct reason reason = core_gpu_reason(f->core, job, gpu, f->now_ns);
    char text[REASON_TEXT];

    assert_string_equal(reason_format(&reason, f->now_ns, text), expected);
}

static const struct {
    uint32_t configured, used;
} ways[] = {{SHARE_ANY, SHARE_TIME_SLICE},
            {SHARE_TIME_SLICE, SHARE_TIME_SLICE},
            {SHARE_MPS, SHARE_MPS},
            {SHARE_EXCLUSIVE, SHARE_EXCLUSIVE}};

CORE_EACH_ROW(test_jobs_run_as_the_gpu_is_configured, ways)
{
    one_gpu(f, row->configured);
    uint64_t first = ask(f, 1, 1, SHARE_ANY);
    uint64_t second = ask(f, 1, 1, SHARE_ANY);
    decide(f);
    assert_int_equal(mode_of(f, first), row->used);
    assert_int_equal(mode_of(f, second), row->configured == SHARE_EXCLUSIVE ? SHARE_ANY : row->used);
    if (row->configured == SHARE_EXCLUSIVE)
        assert_reason(f, second, "GPU 0 runs job 1, which is exclusive");
    job_event(f, RECORD_CANCELLED, first);
    exits(f, first, EXIT_FAILED, -1);
    job_event(f, RECORD_CANCELLED, second);
    if (core_find_job(f->core, second))
        exits(f, second, EXIT_FAILED, -1);
    uint64_t alone = ask(f, 1, 1, SHARE_EXCLUSIVE);
    assert_shares(f, alone, SHARE_EXCLUSIVE);
}

CORE_TEST(test_an_empty_mps_gpu_takes_time_slices_and_then_only_such)
{
    one_gpu(f, SHARE_MPS);
    uint64_t sliced = ask(f, 1, 1, SHARE_TIME_SLICE);
    uint64_t mps = ask(f, 1, 1, SHARE_MPS);
    assert_shares(f, sliced, SHARE_TIME_SLICE);
    assert_int_equal(mode_of(f, mps), SHARE_ANY);
    assert_reason(f, mps, "job 1 uses GPU 0 by time-slicing: all jobs of a GPU share it in one mode");
    job_event(f, RECORD_HELD, mps);
    uint64_t any = ask(f, 1, 2, SHARE_ANY);
    assert_shares(f, any, SHARE_TIME_SLICE);
    exits(f, sliced, EXIT_COMPLETED, -1);
    job_event(f, RECORD_RELEASED, mps);
    assert_waits(f, mps);
    exits(f, any, EXIT_COMPLETED, -1);
    assert_shares(f, mps, SHARE_MPS);
    sliced = ask(f, 1, 1, SHARE_TIME_SLICE);
    assert_waits(f, sliced);
    assert_reason(f, sliced, "job 2 uses GPU 0 by MPS: all jobs of a GPU share it in one mode");
}

CORE_TEST(test_mps_is_refused_at_once_where_there_is_none)
{
    struct record_submitted submitted = {.gpus = 2, .request_bytes = GIB, .share = SHARE_MPS};

    share(f, (uint32_t[]){SHARE_TIME_SLICE, SHARE_MPS, SHARE_EXCLUSIVE, SHARE_ANY});
    assert_never(f, &submitted,
                 "2 GPUs with MPS needed, 1 is configured for it: leave --share mps out, "
                 "or set share = mps for carmad");
    submitted.gpus = 1;
    assert_never(f, &submitted, NULL);
    ask(f, 1, 1, SHARE_MPS);
    assert_goes_to(f, 1, "1");
    ask(f, 1, 2, SHARE_MPS);
    assert_gpu_reason(f, 2, 0, "not shared by MPS, which the job asks for");
    assert_gpu_reason(f, 2, 1, "user 1 uses GPU 1 by MPS, whose server is for one user at a time");
}

CORE_TEST(test_an_mps_server_is_one_users)
{
    one_gpu(f, SHARE_MPS);
    ask(f, 1, 1001, SHARE_ANY);
    ask(f, 1, 1001, SHARE_MPS);
    uint64_t other = ask(f, 1, 1002, SHARE_ANY);
    decide(f);
    assert_int_equal(core_gpu(f->core, 0)->resident_count, 2);
    assert_reason(f, other, "user 1001 uses GPU 0 by MPS, whose server is for one user at a time");
    change(f, mps_multiuser, true);
    assert_shares(f, other, SHARE_MPS);
    change(f, mps_multiuser, false); /* the resident stays; nobody joins two users */
    ask(f, 1, 1002, SHARE_ANY);
    assert_nothing_decided(f);
}

CORE_TEST(test_an_mps_server_has_so_many_clients)
{
    one_gpu(f, SHARE_MPS);
    change(f, mps_max_clients, 2);
    ask(f, 1, 1, SHARE_ANY);
    ask(f, 1, 1, SHARE_ANY);
    uint64_t last = ask(f, 1, 1, SHARE_ANY);
    decide(f);
    assert_int_equal(core_gpu(f->core, 0)->resident_count, 2);
    assert_reason(f, last, "GPU 0's MPS server has 2 clients, the limit");
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_shares(f, last, SHARE_MPS);
}

CORE_TEST(test_a_job_of_several_gpus_begins_its_own_server)
{
    uint64_t joins;

    change(f, mps_domain, MPS_DOMAIN_GPU);
    all_by_mps(f);
    for (uint32_t i = 0; i < 3; i++)
        ask(f, 1, 1, SHARE_ANY);
    uint64_t pair = ask(f, 2, 1, SHARE_ANY);
    assert_waits(f, pair);
    assert_reason(f, pair, "job 1 uses the MPS server of GPU 0, and a job of several GPUs starts its own");
    exits(f, 2, EXIT_COMPLETED, -1);
    assert_goes_to(f, pair, "1,3");
    assert_int_equal(mode_of(f, pair), SHARE_MPS);
    exits(f, 1, EXIT_COMPLETED, -1);
    exits(f, 3, EXIT_COMPLETED, -1);
    for (uint32_t i = 0; i < 4; i++)
        joins = ask(f, 1, 1, SHARE_ANY);
    assert_goes_to(f, joins, "1"); /* of one GPU, it may */
}

CORE_TEST(test_a_server_serves_all_its_gpus_to_the_end)
{
    change(f, mps_domain, MPS_DOMAIN_GPU);
    all_by_mps(f);
    keep_gpus(f, 2);
    uint64_t pair = ask(f, 2, 1, SHARE_ANY);
    decide(f);
    uint64_t joins = ask(f, 1, 1, SHARE_ANY);
    assert_goes_to(f, joins, "0");
    exits(f, pair, EXIT_COMPLETED, -1); /* GPU 1 is empty now, and its server still that of job 2 on GPU 0 */
    uint64_t other = ask(f, 1, 2, SHARE_ANY);
    uint64_t pair_after = ask(f, 2, 1, SHARE_ANY);
    assert_nothing_decided(f);
    assert_gpu_reason(f, other, 1, "user 1 uses GPU 1 by MPS, whose server is for one user at a time");
    assert_gpu_reason(f, pair_after, 1, "job 2 uses the MPS server of GPU 1, and a job of several GPUs starts its own");
    ask(f, 1, 3, SHARE_TIME_SLICE); /* beside it others may take turns */
    change(f, backfill, 8);
    assert_shares(f, other, SHARE_TIME_SLICE);
    assert_string_equal(placed_on(f, other), "1");
}

CORE_TEST(test_a_users_jobs_are_clients_of_one_server)
{
    all_by_mps(f);
    for (uint32_t i = 0; i < 3; i++)
        ask(f, 1, 1, SHARE_ANY);
    uint64_t other = ask(f, 1, 2, SHARE_ANY);
    assert_goes_to(f, other, "3");
    uint64_t pair = ask(f, 2, 1, SHARE_ANY);
    uint64_t joins = ask(f, 1, 1, SHARE_ANY);
    assert_goes_to(f, pair, "0,1");
    assert_int_equal(mode_of(f, pair), SHARE_MPS);
    assert_int_equal(mode_of(f, joins), SHARE_MPS);
    exits(f, 1, EXIT_COMPLETED, -1);
    exits(f, 2, EXIT_COMPLETED, -1);
    other = ask(f, 4, 2, SHARE_ANY);
    assert_nothing_decided(f);
    assert_gpu_reason(f, other, 0, "user 1 uses GPU 0 by MPS, whose server is for one user at a time");
    exits(f, pair, EXIT_COMPLETED, -1); /* nothing of it stays where the last client has gone */
    exits(f, joins, EXIT_COMPLETED, -1);
    exits(f, 3, EXIT_COMPLETED, -1);
    assert_shares(f, other, SHARE_MPS);
    assert_int_equal(core_gpu(f->core, 0)->server, 0);
}

CORE_TEST(test_nobody_joins_jobs_that_mixed_before)
{
    uint64_t sliced, mps, asks[2];

    one_gpu(f, SHARE_AUTO);
    sliced = ask(f, 1, 1, SHARE_TIME_SLICE);
    mps = ask(f, 1, 1, SHARE_MPS);
    assert_shares(f, sliced, SHARE_TIME_SLICE);
    assert_int_equal(mode_of(f, mps), SHARE_MPS);
    change(f, mps_domain, MPS_DOMAIN_GPU);
    asks[0] = ask(f, 1, 1, SHARE_TIME_SLICE);
    asks[1] = ask(f, 1, 1, SHARE_MPS);
    ask(f, 1, 1, SHARE_ANY);
    assert_nothing_decided(f);
    assert_gpu_reason(f, asks[0], 0, "job 2 uses GPU 0 by MPS: all jobs of a GPU share it in one mode");
    assert_gpu_reason(f, asks[1], 0, "job 1 uses GPU 0 by time-slicing: all jobs of a GPU share it in one mode");
    exits(f, mps, EXIT_COMPLETED, -1);
    assert_shares(f, asks[0], SHARE_TIME_SLICE);
    assert_int_equal(mode_of(f, asks[1]), SHARE_ANY);
}

/* Beside MPS clients it must not come by time-slicing, as a GPU that is shared so would have it do. */
CORE_TEST(test_several_gpus_join_where_time_slices_cannot)
{
    share(f, (uint32_t[]){SHARE_MPS, SHARE_MPS, SHARE_TIME_SLICE, SHARE_TIME_SLICE});
    ask(f, 1, 1, SHARE_MPS);
    ask(f, 1, 1, SHARE_MPS);
    ask(f, 1, 1, SHARE_ANY);
    assert_goes_to(f, 3, "2");
    uint64_t any = ask(f, 3, 1, SHARE_ANY);
    uint64_t mps = ask(f, 2, 1, SHARE_MPS);
    assert_gpu_reason(f, any, 0, "job 1 uses GPU 0 by MPS: all jobs of a GPU share it in one mode");
    job_event(f, RECORD_HELD, any);
    assert_goes_to(f, mps, "0,1");
    assert_int_equal(mode_of(f, mps), SHARE_MPS);
}

CORE_TEST(test_a_server_of_a_gpu_is_forgotten_where_there_are_none)
{
    change(f, mps_domain, MPS_DOMAIN_GPU);
    all_by_mps(f);
    for (uint32_t i = 0; i < GPUS; i++)
        ask(f, 1, 1, SHARE_ANY);
    decide(f);
    uint64_t pair = ask(f, 2, 1, SHARE_ANY);
    assert_waits(f, pair);
    change(f, mps_domain, MPS_DOMAIN_USER);
    assert_shares(f, pair, SHARE_MPS);
    assert_int_equal(core_gpu(f->core, 0)->server, 0);
    change(f, mps_domain, MPS_DOMAIN_NODE);
    pair = ask(f, 2, 9, SHARE_ANY); /* everybody's jobs are clients of one */
    assert_shares(f, pair, SHARE_MPS);
}

/* A client of its user's server on several GPUs is not a client of the server that a later job has on one of them. */
CORE_TEST(test_a_server_of_a_gpu_ends_beside_a_client_of_the_users)
{
    all_by_mps(f);
    keep_gpus(f, 2);
    uint64_t pair = ask(f, 2, 1, SHARE_ANY);
    assert_shares(f, pair, SHARE_MPS);
    change(f, mps_domain, MPS_DOMAIN_GPU);
    uint64_t alone = ask(f, 1, 1, SHARE_ANY);
    assert_goes_to(f, alone, "0");
    assert_int_equal(core_gpu(f->core, 0)->server, alone);
    assert_int_equal(core_gpu(f->core, 1)->server, 0);
    exits(f, alone, EXIT_COMPLETED, -1);
    assert_int_equal(core_gpu(f->core, 0)->server, 0);
}

CORE_TEST(test_a_users_failed_server_keeps_nobody_else_waiting)
{
    struct record fault = {.type = RECORD_SHARE_FAULT, .share_fault = {.faulted = true, .of_user = true, .uid = 1}};
    uint32_t uid;

    all_by_mps(f);
    assert_false(core_share_faulted_user(f->core, &uid));
    apply(f, fault);
    assert_true(core_share_faulted_user(f->core, &uid));
    assert_int_equal(uid, 1);
    uint64_t his = ask(f, 1, 1, SHARE_ANY);
    assert_nothing_decided(f);
    assert_gpu_reason(f, his, 3, "GPU 3's MPS server has failed: it takes no job until it serves again");
    apply(f, (struct record){.type = RECORD_GPU_BACK,
                             .gpu = {GPUS, "MIG-0", .total_bytes = TOTAL, .share = SHARE_MPS, .instance = true}});
    sample(f, GPUS, 0, 0, 0);
    assert_shares(f, his, SHARE_MPS); /* an instance has a server of its own */
    exits(f, his, EXIT_COMPLETED, -1);
    apply(f, (struct record){.type = RECORD_GPU_LOST, .gpu.gpu = GPUS});
    his = ask(f, 1, 1, SHARE_ANY);
    job_event(f, RECORD_HELD, his);
    uint64_t another = ask(f, 3, 2, SHARE_ANY);
    uint64_t in_slices = ask(f, 1, 1, SHARE_TIME_SLICE);
    assert_shares(f, in_slices, SHARE_TIME_SLICE);
    assert_string_equal(placed_on(f, in_slices), "3"); /* not on GPU 0: a user's fault names none */
    assert_int_equal(mode_of(f, another), SHARE_MPS);
    exits(f, in_slices, EXIT_COMPLETED, -1);
    job_event(f, RECORD_RELEASED, his);
    assert_nothing_decided(f);
    fault.share_fault.faulted = false;
    apply(f, fault);
    assert_false(core_share_faulted_user(f->core, &uid));
    assert_shares(f, his, SHARE_MPS);
}

CORE_TEST(test_several_gpus_run_by_mps_only_where_all_can)
{
    share(f, (uint32_t[]){SHARE_MPS, SHARE_TIME_SLICE, SHARE_EXCLUSIVE, SHARE_MPS});
    uint64_t all = ask(f, 4, 1, SHARE_ANY);
    assert_shares(f, all, SHARE_TIME_SLICE);
    ask(f, 1, 1, SHARE_ANY);
    assert_gpu_reason(f, 2, 2, "GPU 2 runs job 1, which is exclusive");
    assert_gpu_reason(f, 2, 0, "does not wait");
    exits(f, all, EXIT_COMPLETED, -1);
    job_event(f, RECORD_CANCELLED, 2);
    all = ask(f, 2, 1, SHARE_MPS);
    assert_goes_to(f, all, "0,3");
    assert_int_equal(mode_of(f, all), SHARE_MPS);
}

CORE_TEST(test_nobody_becomes_a_client_of_a_failed_server)
{
    struct record fault = {.type = RECORD_SHARE_FAULT, .share_fault = {.faulted = true}};

    one_gpu(f, SHARE_MPS);
    apply(f, fault);
    uint64_t any = ask(f, 1, 1, SHARE_ANY);
    assert_waits(f, any);
    assert_gpu_reason(f, any, 0, "GPU 0's MPS server has failed: it takes no job until it serves again");
    job_event(f, RECORD_HELD, any);
    uint64_t sliced = ask(f, 1, 1, SHARE_TIME_SLICE);
    assert_shares(f, sliced, SHARE_TIME_SLICE);
    job_event(f, RECORD_RELEASED, any);
    assert_waits(f, any);
    exits(f, sliced, EXIT_COMPLETED, -1);
    fault.share_fault.faulted = false;
    apply(f, fault);
    assert_shares(f, any, SHARE_MPS);
    fault.share_fault.gpu = GPUS;
    assert_int_equal(core_apply(f->core, &fault, NULL), -ENOENT);
}

CORE_TEST(test_who_follows_the_head_shares_in_its_mode)
{
    use_policy(f, "carma");
    change(f, backfill, 8);
    change(f, starvation_timeout_ns, SECONDS(10));
    one_gpu(f, SHARE_MPS);
    ask(f, 1, 1, SHARE_ANY); /* of user 1: user 2's has to wait until it has gone */
    decide(f);
    uint64_t head = ask(f, 1, 2, SHARE_MPS);
    decide(f);
    f->now_ns += SECONDS(20);
    decide(f);
    assert_int_equal(f->decisions.items[0].type, RECORD_RESERVED);
    uint64_t other = ask(f, 1, 1, SHARE_ANY); /* would fit beside both by memory, but not by user */
    assert_waits(f, other);
    assert_gpu_reason(f, other, 0, "GPU 0 is reserved for job 2, which has waited over 0:10");
    exits(f, 1, EXIT_COMPLETED, -1);
    assert_goes_to(f, head, "0");
}

CORE_TEST(test_an_instance_is_no_part_of_several_gpus)
{
    struct record_submitted submitted = {.gpus = 2, .request_bytes = GIB};

    for (uint32_t i = 1; i < GPUS; i++) {
        struct record record = {.type = RECORD_GPU_BACK};
        record.gpu = (struct record_gpu){.gpu = i, .total_bytes = TOTAL, .instance = i < 3};
        snprintf(record.gpu.uuid, sizeof record.gpu.uuid, "MIG-%u", i);
        apply(f, record);
        sample(f, i, 0, 0, 0);
    }
    uint64_t pair = ask(f, 2, 1, SHARE_ANY);
    assert_goes_to(f, pair, "0,3");
    submitted.gpus = 3;
    assert_never(f, &submitted, "3 whole GPUs needed, 2 are whole: a process can use only one MIG instance");
    ask(f, 2, 1, SHARE_EXCLUSIVE);
    assert_gpu_reason(f, 2, 1, "a MIG instance, of which a process can use only one");
    assert_gpu_reason(f, 2, 0, "not idle, and the job needs GPUs to itself");
    ask(f, 1, 1, SHARE_ANY);
    job_event(f, RECORD_HELD, 2);
    assert_goes_to(f, 3, "1");
}

CORE_TEST(test_a_placement_says_its_mode)
{
    struct record placed = {.type = RECORD_PLACED, .job = 1, .at_ns = f->now_ns};

    submit(f, 1, GIB);
    placed.placed = (struct record_placed){.count = 1, .reserved_bytes = GIB, .slowdown_permille = 1000};
    placed.placed.share = SHARE_MODE_COUNT;
    assert_int_equal(core_apply(f->core, &placed, NULL), -EINVAL);
    placed.placed.share = SHARE_ANY; /* as a store without ways is read */
    assert_int_equal(core_apply(f->core, &placed, NULL), 0);
    assert_int_equal(core_find_job(f->core, 1)->share, SHARE_TIME_SLICE);
}
