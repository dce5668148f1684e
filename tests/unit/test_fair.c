/* Fair turns: who is first, by what he has had of the GPUs (src/core/use.h, src/core/waiting/order.h), and for whom
 * GPUs are kept (src/core/waiting/reserve.h). */

#include "core/use.h"
#include "core/user.h"
#include "core/waiting/order.h"
#include "core/waiting/reserve.h"
#include "core_fixture.h"

static const uint32_t ADA = 7, BOB = 8, CID = 9;

#define HOUR_NS (3600 * NS_PER_SEC)

static void take_fair_turns(struct fixture *f)
{
    use_policy(f, "carma");
    change(f, order, ORDER_FAIR);
    change(f, backfill, 1);
}

static uint64_t submit_by(struct fixture *f, uint32_t uid, bool exclusive)
{
    struct record record = wants(1, GIB);

    record.submitted.uid = uid;
    record.submitted.exclusive = exclusive;
    record.submitted.smact_permille = 900;
    return submit_record(f, record);
}

static uint64_t head(const struct fixture *f)
{
    return order_head(f->core, f->now_ns)->id;
}

static int64_t use(const struct fixture *f, uint32_t uid)
{
    return use_until(user_find(f->core, uid), f->now_ns);
}

static void near(int64_t value, int64_t expected)
{
    if (value < expected - expected / 300 || value > expected + expected / 300)
        fail_msg("%" PRId64 " instead of %" PRId64, value, expected);
}

/* A GPU for an hour counts 3,600 GPU seconds, and half of that a week later; a week of it, what decays at this rate. */
CORE_TEST(test_half_of_the_use_counts_a_week_later)
{
    uint64_t job;

    take_fair_turns(f);
    job = submit_by(f, ADA, true);
    decide(f);
    f->now_ns += HOUR_NS;
    near(use(f, ADA), 3600 * 1000 * INT64_C(998) / 1000);
    f->now_ns += 7 * 24 * HOUR_NS - HOUR_NS;
    near(use(f, ADA), INT64_C(436278) * 1000); /* 604,800 s / ln 2 / 2 */
    exits(f, job, EXIT_COMPLETED, -1);
    f->now_ns += 7 * 24 * HOUR_NS;
    near(use(f, ADA), INT64_C(218139) * 1000);
    f->now_ns += 400 * 24 * HOUR_NS;
    assert_int_equal(use(f, ADA), 0);
}

/* The length of the steps in which time passes does not matter, nor does a clock that is set back. */
CORE_TEST(test_use_is_the_same_in_any_steps)
{
    int64_t at_once;

    take_fair_turns(f);
    submit_by(f, ADA, true);
    submit_by(f, BOB, true);
    decide(f);
    for (int i = 0; i < 3000; i++) {
        f->now_ns += HOUR_NS / 3000;
        uint64_t job = submit_by(f, i % 3 ? ADA : BOB, true); /* it counts nothing by itself */
        decide(f);
        exits(f, job, EXIT_COMPLETED, -1);
    }
    at_once = use(f, ADA);
    near(at_once, 3600 * 1000 * INT64_C(998) / 1000);
    near(use(f, BOB), at_once);
    f->now_ns -= HOUR_NS;
    assert_in_range(use(f, BOB), 0, at_once * 2);
}

/* First who has nothing running, then who has had less, then who came first. */
CORE_TEST(test_whose_turn_it_is)
{
    uint64_t ada, bob, cid;

    take_fair_turns(f);
    cid = submit_by(f, CID, true);
    decide(f);
    f->now_ns += 10 * HOUR_NS;
    exits(f, cid, EXIT_COMPLETED, -1);
    for (int i = 0; i < GPUS; i++)
        submit_by(f, i ? BOB : ADA, true);
    decide(f);
    ada = submit_by(f, ADA, true);
    bob = submit_by(f, BOB, true);
    assert_int_equal(head(f), ada); /* has one GPU, where Bob has the others */
    cid = submit_by(f, CID, true);
    assert_int_equal(head(f), cid);
    assert_int_equal(order_ahead(f->core, core_find_job(f->core, cid), f->now_ns), 0);
    assert_int_equal(order_ahead(f->core, core_find_job(f->core, ada), f->now_ns), 1);
    assert_int_equal(order_ahead(f->core, core_find_job(f->core, bob), f->now_ns), 2);
    change(f, order, ORDER_FIFO);
    assert_int_equal(head(f), ada);
    assert_int_equal(order_ahead(f->core, core_find_job(f->core, cid), f->now_ns), 2);
}

/* What a job keeps from others counts, however little memory it says that it needs. */
CORE_TEST(test_what_others_cannot_have_counts)
{
    struct record record = wants(1, 4 * GIB);
    uint64_t jobs[2];

    take_fair_turns(f);
    for (uint32_t i = 0; i < 2; i++) { /* no slowdown, and at most 2 */
        record.submitted.uid = i ? BOB : ADA;
        record.submitted.smact_permille = 100;
        record.submitted.max_slowdown_permille = i ? 2000 : 1000;
        jobs[i] = submit_record(f, record);
    }
    decide(f);
    assert_int_equal(core_find_job(f->core, jobs[0])->held_permille, 1000);
    assert_int_equal(core_find_job(f->core, jobs[1])->held_permille, 500);
    f->now_ns += HOUR_NS;
    memory_observed(f, jobs[1], core_find_job(f->core, jobs[1])->placements[0].gpu, 3 * TOTAL / 4);
    assert_in_range(core_find_job(f->core, jobs[1])->held_permille, 740, 750);
    assert_int_equal(user_find(f->core, BOB)->held_permille, core_find_job(f->core, jobs[1])->held_permille);
    near(use(f, BOB), 500 * 3600 * INT64_C(998) / 1000); /* until then, it was less */
    exits(f, jobs[1], EXIT_COMPLETED, -1);
    assert_int_equal(user_find(f->core, BOB)->held_permille, 0);
}

/* Of two who come at once with more than fits, each gets as much. */
CORE_TEST(test_who_comes_first_does_not_get_all)
{
    take_fair_turns(f);
    for (int i = 0; i < 2 * GPUS; i++)
        submit_by(f, i < GPUS ? ADA : BOB, true);
    decide(f);
    assert_int_equal(user_find(f->core, ADA)->running, GPUS / 2);
    assert_int_equal(user_find(f->core, BOB)->running, GPUS / 2);
}

/* A GPU is kept for one who has nothing, after two others have passed his job; for the starvation timeout.
 */
CORE_TEST(test_nobody_is_passed_for_ever)
{
    struct record large = wants(1, TOTAL - GIB);
    uint64_t bob, one;

    take_fair_turns(f);
    change(f, starvation_timeout_ns, HOUR_NS / 2);
    change(f, max_slowdown_permille, 0);
    for (int i = 0; i < GPUS; i++) {
        struct record record = wants(1, 2 * GIB);
        record.submitted.uid = ADA;
        record.submitted.smact_permille = 100;
        one = submit_record(f, record);
    }
    decide(f);
    large.submitted.uid = BOB;
    bob = submit_record(f, large);
    decide(f);
    f->now_ns += NS_PER_SEC;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f->core->reserved_job, 0);
        one = submit_by(f, ADA, false);
        decide(f);
        assert_true(core_find_job(f->core, one)->placement_count);
    }
    decide(f);
    assert_int_equal(f->core->reserved_job, bob);
    assert_int_equal(reserve_wake_ns(f->core, f->now_ns), f->now_ns + HOUR_NS / 2);
    f->now_ns += HOUR_NS / 2;
    decide(f);
    assert_int_equal(f->core->reserved_job, 0);
}
