/* Energy by job: properties under all comings and goings, and the model's distance from the virtual node's truth. */

#include "../unit/unit.h"

#include "contention/contention.h"
#include "core/share/slowdown.h"
#include "daemon/node/energy.h"
#include "random.h"
#include "vnode/physics.h"

#define START_NS (1700000000 * NS_PER_SEC)

static int64_t sum_of_accounts(const struct energy_meter *meter)
{
    int64_t sum = 0;

    for (size_t i = 0; i < meter->count; i++)
        sum += meter->accounts[i].mj;
    return sum;
}

static int64_t of(struct energy_meter *meter, uint64_t party)
{
    return energy_meter_account(meter, party)->mj;
}

static struct energy_resident resident(uint64_t party, uint32_t residents, int32_t activity)
{
    return (struct energy_resident){
        .party = party, .target_permille = 1000, .residents = residents, .activity_permille = activity};
}

/* To within a rounding of each of the two parts, the idle one and the rest. */
static void assert_mj(int64_t mj, int64_t wanted)
{
    assert_in_range(mj - wanted + 2, 0, 4);
}

/* 50 W idle, learned in the first second with nobody there. */
static struct energy_meter begun(void)
{
    struct energy_meter meter;

    energy_meter_init(&meter);
    energy_meter_read(&meter, START_NS, 1000, 50000);
    energy_meter_read(&meter, START_NS + NS_PER_SEC, 51000, 50000);
    assert_int_equal(meter.idle_mw, 50000);
    assert_int_equal(of(&meter, ENERGY_IDLE), 50000);
    return meter;
}

static int64_t second(int64_t n)
{
    return START_NS + n * NS_PER_SEC;
}

/* ---- By hand ---- */

TEST(idle_by_presence_the_rest_by_activity)
{
    struct energy_resident both[] = {resident(1, 2, 300), resident(2, 2, 600)};
    CLEANUP(energy_meter_release) struct energy_meter meter = begun();

    energy_meter_set_residents(&meter, second(1), both, 2);
    assert_int_equal(energy_meter_read(&meter, second(2), 51000 + 200000, 200000), 200000);
    assert_int_equal(of(&meter, 1), 25000 + 50000);
    assert_int_equal(of(&meter, 2), 25000 + 100000);
    assert_int_equal(of(&meter, ENERGY_IDLE), 50000);
}

/* A party that comes in the middle of an interval is there for its second half. */
TEST(presence_is_weighed_moment_by_moment)
{
    struct energy_resident first = resident(1, 1, 500), both[] = {resident(1, 2, 500), resident(2, 2, 500)};
    CLEANUP(energy_meter_release) struct energy_meter meter = begun();

    energy_meter_set_residents(&meter, second(1) + NS_PER_SEC / 4, &first, 1);
    energy_meter_set_residents(&meter, second(1) + NS_PER_SEC / 2, both, 2);
    energy_meter_read(&meter, second(2), 51000 + 150000, 150000);
    assert_mj(of(&meter, ENERGY_IDLE), 50000 + 12500); /* a quarter of 50 J */
    assert_mj(of(&meter, 1), 12500 + 12500 + 60000);   /* 100 J, 3 parts of 5 */
    assert_mj(of(&meter, 2), 12500 + 40000);
}

TEST(nothing_known_or_active_is_shared_by_presence)
{
    struct energy_resident both[] = {resident(1, 2, 0), resident(ENERGY_UNMANAGED, 2, 0)};
    CLEANUP(energy_meter_release) struct energy_meter meter;

    energy_meter_init(&meter);
    energy_meter_set_residents(&meter, second(0), both, 2); /* from the start: idle power is never seen */
    energy_meter_read(&meter, second(0), 77, 90000);
    energy_meter_read(&meter, second(1), 90077, 90000);
    assert_int_equal(meter.idle_mw, -1);
    assert_int_equal(of(&meter, 1), 45000);
    assert_int_equal(of(&meter, ENERGY_UNMANAGED), 45000);
    assert_int_equal(of(&meter, ENERGY_IDLE), 0);
}

/* A third of the GPU, two jobs on it; a sixth, one; the rest is not partitioned. */
TEST(mig_by_instance)
{
    struct energy_resident all[] = {{1, 300, 2, 400}, {2, 300, 2, 400}, {3, 200, 1, 400}};
    CLEANUP(energy_meter_release) struct energy_meter meter = begun();

    energy_meter_set_residents(&meter, second(1), all, 3);
    energy_meter_read(&meter, second(2), 51000 + 50000 + 80000, 130000);
    assert_mj(of(&meter, 1), 7500 + 30000);
    assert_mj(of(&meter, 2), 7500 + 30000);
    assert_mj(of(&meter, 3), 10000 + 20000);
    assert_mj(of(&meter, ENERGY_IDLE), 50000 + 25000);
}

TEST(counters_that_misbehave)
{
    struct energy_resident one = resident(1, 1, 500);
    int64_t counter_mj = INT64_C(4000000000000);
    CLEANUP(energy_meter_release) struct energy_meter meter = begun();

    energy_meter_set_residents(&meter, second(1), &one, 1);
    assert_int_equal(energy_meter_read(&meter, second(2), 7000, 100000), 7000); /* the driver was loaded anew */
    assert_int_equal(energy_meter_read(&meter, second(3), counter_mj, 100000),
                     100000); /* beyond the power of any GPU: by power */
    assert_int_equal(energy_meter_read(&meter, second(4), counter_mj + 200000, 100000), 200000);
    assert_int_equal(energy_meter_read(&meter, second(5), -1, 100000), 0); /* not to be had: waited for */
    assert_int_equal(energy_meter_read(&meter, second(9), counter_mj + 700000, 100000), 500000);
    assert_int_equal(of(&meter, 1), 7000 + 100000 + 200000 + 500000);
    assert_int_equal(sum_of_accounts(&meter), meter.counted_mj);
}

/* No counter: power, without losing parts of a millijoule. */
TEST(power_integrated)
{
    struct energy_resident one = resident(1, 1, 500);
    CLEANUP(energy_meter_release) struct energy_meter meter;

    energy_meter_init(&meter);
    energy_meter_set_residents(&meter, START_NS, &one, 1);
    for (int i = 0; i <= 3000; i++)
        energy_meter_read(&meter, START_NS + i * NS_PER_MS, -1, 333);
    assert_int_equal(of(&meter, 1), 999);
    energy_meter_read(&meter, START_NS + 3000 * NS_PER_MS + NS_PER_SEC, -1, 1333); /* the mean of both ends */
    assert_int_equal(of(&meter, 1), 999 + 833);
    energy_meter_read(&meter, START_NS + 86400 * NS_PER_SEC, -1, 1333); /* a day's sleep: ten minutes are believed */
    assert_int_equal(of(&meter, 1), 999 + 833 + 600 * 1333);
}

/* A daemon that was away: the jobs that were there all along have used the counter's rise. */
TEST(restored)
{
    struct energy_resident one = resident(4, 1, 500);
    CLEANUP(energy_meter_release) struct energy_meter meter;

    energy_meter_init(&meter);
    energy_meter_restore(&meter, second(0), 5000, 40000);
    energy_meter_restore_account(&meter, 4, 123);
    energy_meter_set_residents(&meter, second(0), &one, 1);
    energy_meter_set_residents(&meter, second(100), &one, 1);
    assert_int_equal(energy_meter_read(&meter, second(100), 5000 + 9000000, 90000), 9000000);
    assert_int_equal(of(&meter, 4), 123 + 9000000);
    energy_meter_release(&meter);
    energy_meter_init(&meter);
    energy_meter_restore(&meter, second(0), -1, 40000); /* without a counter nobody knows */
    assert_int_equal(energy_meter_read(&meter, second(100), -1, 90000), 0);
    assert_int_equal(meter.idle_mw, 40000);
}

/* Two parties, a daemon that was away for four months, and a GPU that drew a kilowatt all the while. */
TEST(long_absence)
{
    const int64_t days = 120, mj = days * 86400 * 1000000;
    struct energy_resident both[] = {resident(4, 2, 500), resident(5, 2, 500)};
    CLEANUP(energy_meter_release) struct energy_meter meter;

    energy_meter_init(&meter);
    energy_meter_restore(&meter, second(0), 0, 40000);
    energy_meter_set_residents(&meter, second(0), both, 2);
    assert_int_equal(energy_meter_read(&meter, second(days * 86400), mj, 90000), mj);
    assert_int_equal(of(&meter, 4), mj / 2);
    assert_int_equal(of(&meter, 5), mj / 2);
}

/* ---- Random input ---- */

#define PARTIES 6

/* The sum over jobs, idle and unmanaged is exactly the counter's rise (after a reset: its value). It is so for all
 * intervals, comings, goings and accounts closed in between; and no party's energy shrinks. */
TEST(sums_are_exact)
{
    struct random random = {20240607};

    print_message("seed %llu\n", (unsigned long long)random.state);
    for (int world = 0; world < 300; world++) {
        CLEANUP(energy_meter_release) struct energy_meter meter;
        int64_t now_ns = START_NS, counter_mj = random_range(&random, 0, 1000000000), wanted = 0, closed = 0;
        int64_t before[PARTIES] = {0};
        energy_meter_init(&meter);
        energy_meter_read(&meter, now_ns, counter_mj, 60000);
        for (int step = 0; step < 400; step++) {
            now_ns += random_range(&random, 0, 3) ? random_range(&random, 0, 2 * NS_PER_SEC)
                                                  : random_range(&random, 0, 86400 * NS_PER_SEC);
            if (random_range(&random, 0, 2) == 0) {
                struct energy_resident residents[PARTIES];
                uint32_t count = 0;
                bool mig = random_range(&random, 0, 1);
                for (uint64_t party = 1; party < PARTIES; party++)
                    if (random_range(&random, 0, 1))
                        residents[count++] =
                            (struct energy_resident){.party = party == 5 ? ENERGY_UNMANAGED : party,
                                                     .target_permille = mig ? 143 : 1000,
                                                     .activity_permille = (int32_t)random_range(&random, 0, 1000)};
                for (uint32_t i = 0; i < count; i++)
                    residents[i].residents = mig ? 1 : count;
                energy_meter_set_residents(&meter, now_ns, residents, count);
                continue;
            }
            int64_t rise = random_range(&random, 0, 700000);
            if (random_range(&random, 0, 50) == 0)
                wanted += counter_mj = random_range(&random, 0, rise); /* a reset, unless it is not one */
            else
                wanted += rise, counter_mj += rise;
            if (counter_mj < meter.counter_mj || counter_mj == meter.counter_mj + rise)
                energy_meter_read(&meter, now_ns, counter_mj, random_range(&random, -1, 700000));
            else
                wanted -= counter_mj, counter_mj = meter.counter_mj;
            for (uint64_t party = 0; party < PARTIES; party++) {
                int64_t mj = of(&meter, party == 5 ? ENERGY_UNMANAGED : party);
                assert_true(mj >= before[party]);
                before[party] = mj;
            }
            assert_int_equal(sum_of_accounts(&meter), meter.counted_mj);
            assert_int_equal(meter.counted_mj + closed, wanted);
            if (random_range(&random, 0, 20) == 0 && !energy_meter_has(&meter, 3) && meter.advanced_ns == meter.at_ns) {
                closed += of(&meter, 3);
                energy_meter_close(&meter, 3);
                before[3] = 0;
            }
        }
    }
}

/* ---- Against the virtual node ---- */

/* The attribution of the virtual node's physics, at each moment. Of its GPU's power above idle, each process that
 * trains has its part of the GPU's SM activity, a_i r_i of sum(a r). Of the idle power, all present processes (loading
 * too) have equal parts. Integrated in steps of 100 ms. */
struct truth {
    struct node_file file;
    struct node_bank bank;
    double joules[NODE_MAX_SLOTS];
    double idle_joules;
};

static bool is_there(const struct node_slot *slot)
{
    return slot->phase == NODE_SLOT_LOADING || slot->phase == NODE_SLOT_TRAINING;
}

static void truth_step(struct truth *truth, int64_t until_ns)
{
    const struct node_gpu *gpu = &truth->file.gpus[0];
    double before_mj = truth->bank.gpus[0].energy_mj, dt = (double)(until_ns - truth->bank.updated_ns) / 1e9;
    double idle_j = gpu->idle_w * dt, rest_j, active = 0, parts[NODE_MAX_SLOTS];
    bool present[NODE_MAX_SLOTS];
    int there = 0;

    for (uint32_t i = 0; i < truth->bank.slot_high; i++) {
        const struct node_slot *slot = &truth->bank.slots[i];
        there += present[i] = is_there(slot);
        active += parts[i] = slot->rate * slot->uses[0].activity;
    }
    physics_advance(&truth->file, &truth->bank, until_ns);
    rest_j = (truth->bank.gpus[0].energy_mj - before_mj) / 1000 - idle_j;
    for (uint32_t i = 0; i < truth->bank.slot_high; i++)
        truth->joules[i] += (present[i] ? idle_j / there : 0) + (active > 0 ? rest_j * parts[i] / active : 0);
    if (there == 0)
        truth->idle_joules += idle_j + rest_j;
}

enum mode { BY_MPS, BY_TURNS, MIXED, MODES };

static const char *const mode_names[MODES] = {"one MPS server", "processes in turns", "servers and processes in turns"};

struct world {
    enum mode mode;
    int32_t error_permille; /* how far off learned activities may be, of their values; -1: nothing is learned */
    double worst, mean;     /* relative errors of jobs */
};

/* Of a mix: one of two users' servers, or a process by itself. */
static uint64_t draw_server(struct random *random, enum mode mode)
{
    return mode == BY_MPS ? 1 : mode == BY_TURNS ? 0 : (uint64_t)random_range(random, 0, 2);
}

/* As the daemon does it (node_energy.c). */
static void set_residents(struct energy_meter *meter, int64_t now_ns, const struct node_bank *bank,
                          const int64_t *learned)
{
    struct energy_resident residents[NODE_MAX_SLOTS];
    struct slowdown_party parties[NODE_MAX_SLOTS];
    int32_t busy[NODE_MAX_SLOTS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < bank->slot_high; i++)
        if (is_there(&bank->slots[i])) {
            parties[count] = (struct slowdown_party){.server = bank->slots[i].mps ? bank->slots[i].mps_domain + 1 : 0,
                                                     .activity_permille = (int32_t)learned[i]};
            residents[count++].party = i + 1;
        }
    slowdown_busy(parties, count, 1000, busy);
    for (uint32_t i = 0; i < count; i++)
        residents[i] = resident(residents[i].party, count, busy[i]);
    energy_meter_set_residents(meter, now_ns, residents, count);
}

/* Jobs come to one GPU, several at a time. The daemon reads once a second, and knows the residents. */
static void compare_with_truth(struct random *random, struct world *world)
{
    static struct truth truth;
    CLEANUP(energy_meter_release) struct energy_meter meter;
    int64_t now_ns = 1, activities[40], load_until[40], starts[40], learned[40];
    int jobs = 40, next = 0;
    double errors = 0;

    memset(&truth, 0, sizeof truth);
    truth.file.gpu_count = 1;
    truth.file.gpus[0].idle_w = 53.8;
    truth.file.gpus[0].full_w = 275.5;
    truth.bank.updated_ns = now_ns;
    for (int i = 0; i < jobs; i++) {
        activities[i] = random_range(random, 100, 950);
        learned[i] = world->error_permille < 0
                         ? 600
                         : activities[i] + activities[i] *
                                               random_range(random, -world->error_permille, world->error_permille) /
                                               1000;
        starts[i] = (i ? starts[i - 1] : 30) + random_range(random, 10, 400);
        load_until[i] = starts[i] + 12;
    }
    energy_meter_init(&meter);
    for (int64_t s = 0; s < 40 * 500; s++) {
        if (next < jobs && s >= starts[next]) {
            struct node_slot *slot = &truth.bank.slots[truth.bank.slot_high++];
            uint64_t server = draw_server(random, world->mode);
            *slot = (struct node_slot){.phase = NODE_SLOT_LOADING,
                                       .pid = 1,
                                       .use_count = 1,
                                       .mps = server != 0,
                                       .mps_domain = server,
                                       .train_from_ns = load_until[next] * NS_PER_SEC,
                                       .work_ns = (double)random_range(random, 60, 900) * 1e9};
            slot->uses[0] = (struct node_use){.gpu = 0, .activity = (double)activities[next] / 1000};
            next++;
        }
        set_residents(&meter, now_ns, &truth.bank, learned);
        energy_meter_read(&meter, now_ns, (int64_t)truth.bank.gpus[0].energy_mj,
                          (int64_t)(contention_power_w(truth.bank.gpus[0].sm_activity, 53.8, 275.5) * 1000));
        for (int step = 0; step < 10; step++)
            truth_step(&truth, now_ns += 100 * NS_PER_MS);
    }
    for (int i = 0; i < jobs; i++) {
        double modelled = (double)of(&meter, (uint64_t)i + 1) / 1000, error;
        error = modelled / truth.joules[i] - 1;
        error = error < 0 ? -error : error;
        errors += error;
        if (error > world->worst)
            world->worst = error;
    }
    world->mean = errors / jobs;
}

TEST(near_the_virtual_nodes_truth)
{
    struct random random = {31415};

    for (enum mode mode = 0; mode < MODES; mode++) {
        struct world exact = {mode, .error_permille = 0}, off = {mode, .error_permille = 200},
                     unknown = {mode, .error_permille = -1};
        compare_with_truth(&random, &exact);
        compare_with_truth(&random, &off);
        compare_with_truth(&random, &unknown);
        print_message("error of a job's joules, 40 jobs, up to several at a time on a GPU, %s:\n"
                      "  activities learned exactly:    mean %4.1f%%, worst %4.1f%%\n"
                      "  learned to within 20%%:         mean %4.1f%%, worst %4.1f%%\n"
                      "  nothing learned (equal parts): mean %4.1f%%, worst %4.1f%%\n",
                      mode_names[mode], 100 * exact.mean, 100 * exact.worst, 100 * off.mean, 100 * off.worst,
                      100 * unknown.mean, 100 * unknown.worst);
        /* Of turns, the model and the truth are one physics. The remaining difference is 12 s of loading, in runs of 60
         * s or more. Of clients of a server, nobody knows how workloads differ (docs/contention.md). */
        assert_true(exact.mean < (mode == BY_TURNS ? 0.02 : 0.40));
        assert_true(off.mean < (mode == BY_TURNS ? 0.10 : 0.40)); /* an activity is off by at most 20% */
        assert_true(exact.mean < unknown.mean);
    }
}
