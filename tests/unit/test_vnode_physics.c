/* Time passing on a node without any clock: states built by hand, closed forms beside them. */
#include "unit.h"

#include "contention/contention.h"
#include "vnode/physics.h"
#include "vnode_fixture.h"

#define SEC 1e9

static struct node_file file;
static struct node_bank bank;

AROUND(setup)
{
    memset(&file, 0, sizeof file);
    memset(&bank, 0, sizeof bank);
    file.gpu_count = 2;
    file.spread_seed = 1;
    for (int g = 0; g < 2; g++) {
        file.gpus[g].idle_w = 50;
        file.gpus[g].full_w = 300;
    }
    bank.updated_ns = 1000;
}

static struct node_slot *job(uint32_t gpu, double activity, int64_t from_s, double work_s, bool mps)
{
    struct node_slot *slot = &bank.slots[bank.slot_high++];

    *slot = (struct node_slot){.phase = NODE_SLOT_LOADING,
                               .pid = 1,
                               .mps = mps,
                               .use_count = 1,
                               .train_from_ns = 1000 + from_s * NS_PER_SEC,
                               .work_ns = work_s * SEC};
    slot->uses[0] = (struct node_use){.gpu = gpu, .activity = activity, .bytes = GIB};
    return slot;
}

static int64_t at(double s)
{
    return 1000 + (int64_t)(s * SEC);
}

TEST_BETWEEN(alone, setup, NULL)
{
    struct node_slot *slot = job(0, 0.5, 12, 100, true);

    physics_advance(&file, &bank, at(10));
    assert_int_equal(slot->phase, NODE_SLOT_LOADING);
    assert_near(bank.gpus[0].energy_mj, 50 * 10 * 1000, 1e-3);
    physics_advance(&file, &bank, at(62));
    assert_int_equal(slot->phase, NODE_SLOT_TRAINING);
    assert_near(slot->done_ns, 50 * SEC, 10);
    physics_advance(&file, &bank, at(200));
    assert_int_equal(slot->phase, NODE_SLOT_FINISHED);
    assert_near(slot->finished_ns, at(112), 10);
    assert_near(bank.gpus[0].sm_activity_ns, 0.5 * 100 * SEC, 1e3);
    assert_near(bank.gpus[0].energy_mj, 1000 * (50 * 100 + 100 * contention_power_w(0.5, 50, 300)), 1);
    assert_near(bank.gpus[1].energy_mj, 1000 * 50 * 200, 1e-3);
    assert_near(bank.gpus[1].sm_activity_ns, 0, 0);
}

/* Two on MPS, one after the other: by hand, with r = U/A = (1 - 0.4 * 0.4) / 1.2 while both train. */
TEST_BETWEEN(two_in_turn, setup, NULL)
{
    struct node_slot *first = job(0, 0.6, 0, 100, true), *second = job(0, 0.6, 40, 100, true);
    double r = 0.84 / 1.2, first_ends = 40 + 60 / r, second_ends = first_ends + (100 - 60);

    physics_advance(&file, &bank, at(50));
    assert_near(first->rate, r, 1e-12);
    assert_near(second->rate, r, 1e-12);
    assert_near(bank.gpus[0].sm_activity, 0.84, 1e-12);
    physics_advance(&file, &bank, at(1000));
    assert_near(first->finished_ns, at(first_ends), 100);
    assert_near(second->finished_ns, at(second_ends), 100);
    assert_near(bank.gpus[0].sm_activity_ns, (0.6 * 100 + 0.6 * 100) * SEC, 1e4);
}

/* One look at the end gives the same as looks at every moment. */
TEST_BETWEEN(looks_do_not_matter, setup, NULL)
{
    static struct node_bank once, often;

    job(0, 0.6, 3, 40, true);
    job(0, 0.5, 7, 90, false);
    job(1, 0.9, 11, 30, true)->uses[1] = (struct node_use){.gpu = 0, .activity = 0.2};
    bank.slots[2].use_count = 2;
    once = bank;
    physics_advance(&file, &once, at(300));
    often = bank;
    for (int i = 1; i <= 30000; i++)
        physics_advance(&file, &often, at(i / 100.0));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(once.slots[i].phase, NODE_SLOT_FINISHED);
        assert_near(once.slots[i].finished_ns, often.slots[i].finished_ns, 1e4);
    }
    for (int g = 0; g < 2; g++) {
        assert_near(once.gpus[g].energy_mj, often.gpus[g].energy_mj, 1);
        assert_near(once.gpus[g].sm_activity_ns, often.gpus[g].sm_activity_ns, 1e5);
        assert_near(once.gpus[g].busy_ns, often.gpus[g].busy_ns, 1e5);
    }
}

TEST_BETWEEN(several_gpus_run_at_the_slowest, setup, NULL)
{
    struct node_slot *wide = job(0, 0.5, 0, 100, true);
    double r = (1 - 0.5 * 0.5) / 1;

    wide->uses[1] = (struct node_use){.gpu = 1, .activity = 0.5};
    wide->use_count = 2;
    job(1, 0.5, 0, 100, true);
    physics_advance(&file, &bank, at(1));
    assert_near(wide->rate, r, 1e-12);
    assert_near(bank.gpus[0].sm_activity, 0.5 * r, 1e-12);
    assert_near(bank.gpus[1].sm_activity, 0.75, 1e-12);
}

/* Clients of two control daemons, and one without: each daemon's server has its own context, so they take turns. */
TEST_BETWEEN(two_daemons_take_turns, setup, NULL)
{
    double expected[4], a[] = {0.2, 0.5, 0.3, 0.4};

    job(0, a[0], 0, 100, true)->mps_domain = 0;
    job(0, a[1], 0, 100, true)->mps_domain = 2;
    job(0, a[2], 0, 100, true)->mps_domain = 0;
    job(0, a[3], 0, 100, false);
    physics_advance(&file, &bank, at(1));
    contention_rates(&contention_default, 4, a, (const uint64_t[]){1, 2, 1, 0}, NULL, expected);
    for (int i = 0; i < 4; i++)
        assert_near(bank.slots[i].rate, expected[i], 1e-12);
    assert_true(expected[0] < expected[1]); /* the first and the third share one turn */
}

/* Two under MPS on 2 of 7 slices, one on another instance: each as if alone on a GPU of that size. */
TEST_BETWEEN(an_instance_is_a_small_gpu, setup, NULL)
{
    double alone[] = {contention_mig_rate(&contention_default, 0.5, 2, 0.25),
                      contention_mig_rate(&contention_default, 0.1, 2, 0.25)},
           third = contention_mig_rate(&contention_default, 0.3, 3, 0.5),
           small[] = {0.5 * alone[0] * 7 / 2, 0.1 * alone[1] * 7 / 2}, shared[2];

    file.gpus[0].mig = 1;
    file.gpus[0].total_bytes = 40 * GIB;
    file.gpus[0].instances[0].total_bytes = 39 * GIB / 4; /* a little less than a quarter, as real ones */
    file.gpus[0].instances[1].total_bytes = 39 * GIB / 2;
    file.gpus[0].instance_count = 2;
    file.gpus[0].instances[0].slices = 2;
    file.gpus[0].instances[1].slices = 3;
    job(0, 0.5, 0, 1000, true)->uses[0].instance = 1;
    job(0, 0.1, 0, 1000, true)->uses[0].instance = 1;
    job(0, 0.3, 0, 1000, true)->uses[0].instance = 2;
    physics_advance(&file, &bank, at(10));
    contention_rates(&contention_default, 2, small, (const uint64_t[]){1, 1}, NULL, shared);
    assert_near(bank.slots[0].rate, alone[0] * shared[0], 1e-12);
    assert_near(bank.slots[1].rate, alone[1] * shared[1], 1e-12);
    assert_near(bank.slots[2].rate, third, 1e-12);
    assert_near(bank.gpus[0].instances[0].sm_activity, small[0] * shared[0] + small[1] * shared[1], 1e-12);
    assert_near(bank.gpus[0].instances[1].sm_activity_ns, 0.3 * third * 7 / 3 * 10 * SEC, 1e3);
    assert_near(bank.gpus[0].sm_activity, (0.5 * alone[0] * shared[0] + 0.1 * alone[1] * shared[1]) + 0.3 * third,
                1e-12);
    assert_int_equal(physics_instance_used_bytes(&bank, 0, 1), 2 * GIB);
    assert_int_equal(physics_used_bytes(&bank, 0), 3 * GIB);
}

/* Kernels that fill an instance's SMs better than they did the whole GPU's do not make it more than full. */
TEST_BETWEEN(an_instance_is_no_more_than_full, setup, NULL)
{
    file.gpus[0].mig = 1;
    file.gpus[0].total_bytes = 40 * GIB;
    file.gpus[0].instance_count = 1;
    file.gpus[0].instances[0] = (struct node_instance){.slices = 3, .total_bytes = 20 * GIB};
    job(0, 0.9, 0, 1000, false)->uses[0].instance = 1;
    physics_advance(&file, &bank, at(10));
    assert_true(0.9 * bank.slots[0].rate > 3.0 / 7);
    assert_near(bank.gpus[0].instances[0].sm_activity, 1, 1e-12);
    assert_near(bank.gpus[0].sm_activity, 3.0 / 7, 1e-12);
}

TEST_BETWEEN(clock_that_goes_back_adds_nothing, setup, NULL)
{
    struct node_slot *slot = job(0, 0.5, 0, 100, true);

    physics_advance(&file, &bank, at(10));
    physics_advance(&file, &bank, at(5));
    assert_near(slot->done_ns, 10 * SEC, 10);
    physics_advance(&file, &bank, at(6));
    assert_near(slot->done_ns, 11 * SEC, 10);
}

TEST_BETWEEN(damage_does_not_hang, setup, NULL)
{
    struct node_slot *slot = job(0, 0.5, 0, 100, true);

    job(0, NAN, 0, 100, true);
    slot->uses[0].gpu = 77;
    slot->use_count = 1000000;
    slot->work_ns = NAN;
    physics_advance(&file, &bank, at(1000));
    assert_int_equal(bank.updated_ns, at(1000));
    bank.slot_high = UINT32_MAX;
    physics_advance(&file, &bank, at(1001));
    assert_int_equal(physics_used_bytes(&bank, 5), 0);
}
