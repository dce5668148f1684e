/* Fair turns: who is first (src/core/use.h, waiting/order.h), and for whom GPUs are kept (waiting/reserve.h). */

#include "core/use.h"
#include "core/waiting/order.h"
#include "core/waiting/reserve.h"
#include "core/waiting/turn.h"
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

static uint64_t place(const struct fixture *f, uint64_t job)
{
    const struct job *waiting = core_find_job(f->core, job);

    return order_rank(f->core, waiting, f->now_ns) ? waiting->rank : 0;
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
    take_fair_turns(f);
    uint64_t job = submit_by(f, ADA, true);
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
    int64_t at_once = use(f, ADA);
    near(at_once, 3600 * 1000 * INT64_C(998) / 1000);
    near(use(f, BOB), at_once);
    f->now_ns -= HOUR_NS;
    assert_in_range(use(f, BOB), 0, at_once * 2);
}

/* First who has nothing running, then who has had less, then who came first. */
CORE_TEST(test_whose_turn_it_is)
{
    take_fair_turns(f);
    uint64_t cid = submit_by(f, CID, true);
    decide(f);
    f->now_ns += 10 * HOUR_NS;
    exits(f, cid, EXIT_COMPLETED, -1);
    for (int i = 0; i < GPUS; i++)
        submit_by(f, i ? BOB : ADA, true);
    decide(f);
    uint64_t ada = submit_by(f, ADA, true);
    uint64_t bob = submit_by(f, BOB, true);
    assert_int_equal(head(f), ada); /* has one GPU, where Bob has the others */
    cid = submit_by(f, CID, true);
    assert_int_equal(head(f), cid);
    assert_int_equal(place(f, cid), 1);
    assert_int_equal(place(f, ada), 2);
    assert_int_equal(place(f, bob), 3);
    change(f, order, ORDER_FIFO);
    assert_int_equal(head(f), ada);
    assert_int_equal(place(f, cid), 3);
}

/* Two have had as much, then one three times the other's: who has had less for his share goes first. */
CORE_TEST(test_use_counts_by_share)
{
    static const struct {
        int gpus; /* of Ada's, for an hour; Bob had one */
        uint32_t share, of_bob;
        uint32_t first;
    } rows[] = {{1, 1, 1, ADA}, {1, 1, 2, BOB}, {3, 2, 1, BOB}, {3, 4, 1, ADA}, {3, 7, 2, ADA}};
    struct record given = {.type = RECORD_SHARE_GIVEN};

    take_fair_turns(f);
    for (size_t i = 0; i < array_size(rows); i++) {
        uint64_t jobs[GPUS];
        int count = rows[i].gpus + 1;
        for (int k = 0; k < count; k++)
            jobs[k] = submit_by(f, k < rows[i].gpus ? ADA : BOB, true);
        decide(f);
        f->now_ns += HOUR_NS;
        for (int k = 0; k < count; k++)
            exits(f, jobs[k], EXIT_COMPLETED, -1);
        given.share_given = (struct record_share_given){ADA, rows[i].share};
        apply(f, given);
        given.share_given = (struct record_share_given){BOB, rows[i].of_bob};
        apply(f, given);
        jobs[0] = submit_by(f, ADA, true);
        jobs[1] = submit_by(f, BOB, true);
        assert_int_equal(order_head(f->core, f->now_ns)->wants->uid, rows[i].first);
        assert_int_equal(core_turn(f->core, jobs[rows[i].first == ADA], f->now_ns).why,
                         i == 0 ? TURN_EARLIER : TURN_USE);
        job_event(f, RECORD_CANCELLED, jobs[0]);
        job_event(f, RECORD_CANCELLED, jobs[1]);
        f->now_ns += 400 * 24 * HOUR_NS; /* and all is forgotten */
    }
    given.share_given.share = USER_MOST_SHARE + 1;
    assert_int_equal(core_apply(f->core, &given, &trouble), -EINVAL);
}

/* Ada had two GPUs for an hour, Cid one, Bob none: with her in a group, he is behind Cid unless it has a larger share.
 */
CORE_TEST(test_a_groups_users_count_together)
{
    static const struct {
        uint32_t share, first; /* of the group; 0: there is none */
    } rows[] = {{0, BOB}, {1, CID}, {0, BOB}, {3, BOB}};
    uint64_t jobs[3], bob, cid;

    take_fair_turns(f);
    for (int k = 0; k < 3; k++)
        jobs[k] = submit_by(f, k < 2 ? ADA : CID, true);
    decide(f);
    f->now_ns += HOUR_NS;
    for (int k = 0; k < 3; k++)
        exits(f, jobs[k], EXIT_COMPLETED, -1);
    bob = submit_by(f, BOB, true);
    cid = submit_by(f, CID, true);
    for (size_t i = 0; i < array_size(rows); i++) {
        for (uint32_t uid = ADA; uid <= BOB; uid++)
            apply(f, (struct record){.type = RECORD_SHARE_GIVEN,
                                     .share_given = {uid, 1, {rows[i].share ? 'g' : '\0'}, rows[i].share}});
        assert_int_equal(order_head(f->core, f->now_ns)->wants->uid, rows[i].first);
        struct turn turn = core_turn(f->core, rows[i].first == BOB ? cid : bob, f->now_ns);
        assert_int_equal(turn.place, 2);
        assert_int_equal(turn.why, TURN_USE);
        assert_int_equal(turn.group || turn.before_group, rows[i].share > 0);
        assert_true(turn.before_use * turn.share < turn.use * turn.before_share);
    }
    submit_by(f, ADA, true); /* within the group she is behind him */
    assert_int_equal(order_head(f->core, f->now_ns)->wants->uid, BOB);
}

/* In the order that people are told users take turns, and the ground is the first that differs. */
CORE_TEST(test_the_place_in_the_order_and_why)
{
    const struct {
        uint32_t uid;
        uint64_t place, own_place, own_of, before;
        uint32_t why;
    } turns[] = {
        /* in the order of submission, but for the first */
        {BOB, 1, 1, 1, 0, TURN_NOBODY},  {ADA, 2, 1, 3, 9, TURN_RUNNING}, {ADA, 4, 2, 3, 9, TURN_RUNNING},
        {CID, 3, 1, 1, 9, TURN_RUNNING}, {ADA, 5, 3, 3, 9, TURN_RUNNING},
    };
    uint64_t jobs[array_size(turns)];

    take_fair_turns(f);
    for (int i = 0; i < GPUS; i++)
        submit_by(f, i % 2 ? CID : ADA, true);
    decide(f);
    f->now_ns += NS_PER_SEC;
    for (size_t i = 1; i < array_size(turns); i++)
        jobs[i] = submit_by(f, turns[i].uid, true);
    struct turn turn = core_turn(f->core, jobs[3], f->now_ns);
    assert_int_equal(turn.before->id, jobs[1]);
    assert_int_equal(turn.why, TURN_EARLIER); /* both have had as much */
    jobs[0] = submit_by(f, turns[0].uid, true);
    for (size_t i = 0; i < array_size(turns); i++) {
        turn = core_turn(f->core, jobs[i], f->now_ns);
        assert_int_equal(turn.place, turns[i].place);
        assert_int_equal(turn.of, array_size(turns));
        assert_int_equal(turn.own_place, turns[i].own_place);
        assert_int_equal(turn.own_of, turns[i].own_of);
        assert_int_equal(turn.why, turns[i].why);
        assert_int_equal(turn.before ? turn.before->id : 0, turns[i].before);
    }
    job_event(f, RECORD_HELD, jobs[0]);
    assert_int_equal(core_turn(f->core, jobs[0], f->now_ns).place, 0);
    turn = core_turn(f->core, jobs[4], f->now_ns);
    assert_int_equal(turn.why, TURN_TURNS);
    assert_int_equal(turn.before->id, jobs[3]);
    change(f, order, ORDER_FIFO);
    turn = core_turn(f->core, jobs[2], f->now_ns);
    assert_int_equal(turn.place, 2);
    assert_int_equal(turn.why, TURN_OWN);
}

/* What a job keeps from others counts, however little memory it says that it needs. */
CORE_TEST(test_what_others_cannot_have_counts)
{
    struct record record = wants(1, 4 * GIB);
    uint64_t jobs[2], tiny;

    take_fair_turns(f);
    for (uint32_t i = 0; i < 2; i++) { /* no slowdown, and at most 2 */
        record.submitted.uid = i ? BOB : ADA;
        record.submitted.smact_permille = 100;
        record.submitted.max_slowdown_permille = i ? 2000 : 1000;
        jobs[i] = submit_record(f, record);
    }
    decide(f);
    assert_int_equal(core_find_job(f->core, jobs[0])->run->held_permille, 1000);
    assert_int_equal(core_find_job(f->core, jobs[1])->run->held_permille, 500);
    record = wants(1, MIB); /* a place among those that the GPU has */
    record.submitted.smact_permille = 10;
    tiny = submit_record(f, record);
    decide(f);
    assert_int_equal(core_find_job(f->core, tiny)->run->held_permille, 1000 / 16);
    f->now_ns += HOUR_NS;
    memory_observed(f, jobs[1], core_find_job(f->core, jobs[1])->placements[0].gpu, 3 * TOTAL / 4);
    assert_in_range(core_find_job(f->core, jobs[1])->run->held_permille, 740, 750);
    assert_int_equal(user_find(f->core, BOB)->held_permille, core_find_job(f->core, jobs[1])->run->held_permille);
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

/* A GPU is kept for one who has nothing, after two others have passed his job; for the starvation timeout. */
CORE_TEST(test_nobody_is_passed_for_ever)
{
    struct record large = wants(1, TOTAL - GIB);
    struct reason why;
    char text[REASON_TEXT];
    uint64_t one;

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
    uint64_t bob = submit_record(f, large);
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
    large.submitted.uid = ADA;
    one = submit_record(f, large);
    why = core_gpu_reason(f->core, one, core_kept(f->core).gpus[0], f->now_ns);
    assert_non_null(strstr(reason_format(&why, f->now_ns, text), "which others have passed"));
    f->now_ns += HOUR_NS / 2;
    decide(f);
    assert_int_equal(f->core->reserved_job, 0);
}

/* Ada's small job is on a GPU that her large one wants: kept only if nobody else waits or others are in its way. */
static const struct {
    int64_t small, grown, unmanaged; /* bytes on GPU 0: her small job's (0: there is none), later; of nobody's */
    bool exclusive, alone;           /* the large job; nobody else waits */
    int32_t bound;                   /* of the small job's slowdown, in permille */
    bool kept, stays;
} in_the_way[] = {
    {.small = MIB, .exclusive = true},
    {.small = MIB, .exclusive = true, .alone = true, .kept = true, .stays = true},
    {.small = 5 * GIB},
    {.small = MIB, .bound = 1000},
    {.small = MIB, .kept = true, .stays = true},
    {.small = MIB, .grown = 5 * GIB, .kept = true},
    {.exclusive = true, .kept = true, .stays = true},
    {.exclusive = true, .unmanaged = GIB},
    {.unmanaged = 5 * GIB},
    {.unmanaged = GIB, .kept = true, .stays = true},
};

CORE_EACH_ROW(test_no_gpu_is_kept_free_in_vain, in_the_way)
{
    struct record record = wants(1, row->small);
    uint64_t small = 0, large;

    take_fair_turns(f);
    record.submitted.uid = ADA;
    record.submitted.smact_permille = 100;
    record.submitted.max_slowdown_permille = row->bound;
    if (row->small)
        small = submit_record(f, record);
    decide(f);
    record.submitted.max_slowdown_permille = 0;
    record.submitted.uid = BOB;
    record.submitted.request_bytes = 33 * GIB;
    for (int i = 0; i < GPUS; i++)
        submit_record(f, record);
    decide(f);
    record = wants(GPUS, row->exclusive ? -1 : 35 * GIB);
    record.submitted.uid = ADA;
    record.submitted.exclusive = row->exclusive;
    record.submitted.smact_permille = 100;
    large = submit_record(f, record);
    if (!row->alone)
        submit_by(f, BOB, true);
    sample(f, 0, row->unmanaged, row->unmanaged, 0);
    f->now_ns += core_configuration(f->core)->starvation_timeout_ns;
    decide(f);
    assert_int_equal(f->core->reserved_job == large, row->kept);
    if (row->grown)
        memory_observed(f, small, core_find_job(f->core, small)->placements[0].gpu, row->grown);
    decide(f);
    assert_int_equal(f->core->reserved_job == large, row->stays);
}

/* Ada's jobs want all GPUs: these are kept for one of hers in that time, however it ends. */
CORE_TEST(test_gpus_are_kept_for_a_user_once_in_that_time)
{
    static const uint32_t ends[] = {RECORD_HELD, RECORD_CANCELLED, RECORD_RESERVED};
    struct record whole = wants(GPUS, -1);
    uint64_t ada[array_size(ends)];

    take_fair_turns(f);
    int64_t timeout_ns = core_configuration(f->core)->starvation_timeout_ns;
    for (int i = 0; i < GPUS; i++)
        submit_by(f, CID, true);
    decide(f);
    whole.submitted.exclusive = true;
    whole.submitted.uid = ADA;
    for (size_t i = 0; i < array_size(ada); i++)
        ada[i] = submit_record(f, whole);
    submit_by(f, CID, true);
    for (size_t i = 0; i < array_size(ends); i++) {
        f->now_ns += timeout_ns;
        decide(f);
        assert_int_equal(f->core->reserved_job, ada[i]);
        f->now_ns += ends[i] == RECORD_RESERVED ? timeout_ns : NS_PER_SEC;
        if (ends[i] != RECORD_RESERVED) /* else it gives way */
            job_event(f, ends[i], ada[i]);
        decide(f);
        assert_true(f->core->reserved_job == 0 || core_find_job(f->core, f->core->reserved_job)->wants->uid != ADA);
    }
}

/* It goes before who has nothing running, also in a core made from a snapshot. */
CORE_TEST(test_a_higher_priority_goes_first)
{
    struct record record = wants(1, GIB);
    CLEANUP(record_list_release) struct record_list taken = {0};

    take_fair_turns(f);
    for (int i = 0; i < GPUS; i++)
        submit_by(f, ADA, true);
    decide(f);
    submit_by(f, ADA, true);
    uint64_t bob = submit_by(f, BOB, true);
    assert_int_equal(head(f), bob);
    record.submitted.uid = ADA;
    record.submitted.exclusive = true;
    record.submitted.priority = -1;
    submit_record(f, record);
    submit_record(f, record);
    record.submitted.priority = 1;
    uint64_t high = submit_record(f, record);
    assert_int_equal(head(f), high);
    CLEANUP(drop_core) struct core *again = restored(f, &taken);
    assert_int_equal(order_head(again, f->now_ns)->id, high);
}
