/* Values computed apart from the code, from the formulas of docs/contention.md. */
#include "unit.h"

#include "contention/contention.h"

/* What all jobs of an activity have in common. */
static struct contention_params common;

AROUND(without_spread)
{
    common = contention_default;
    common.spread = 0;
}

static const uint64_t processes[8] = {0}, one_server[8] = {5, 5, 5, 5, 5, 5, 5, 5};

static void rates_are(const struct contention_params *params, const uint64_t *servers, size_t count, const double *a,
                      const double *expected)
{
    double rates[8];

    contention_rates(params, count, a, servers, NULL, rates);
    for (size_t i = 0; i < count; i++)
        assert_near(rates[i], expected[i], 1e-9);
}

#define RATES(params, servers, a, ...)                                                                                 \
    rates_are(params, servers, sizeof(a) / sizeof *(a), a, (const double[]){__VA_ARGS__})

static double slowdown_together(const uint64_t *servers, size_t count, double a)
{
    double all[8], rates[8];

    for (size_t i = 0; i < count; i++)
        all[i] = a;
    contention_rates(&contention_default, count, all, servers, NULL, rates);
    for (size_t i = 1; i < count; i++)
        assert_near(rates[i], rates[0], 1e-12);
    return 1 / rates[0];
}

TEST(alone_runs_at_full_speed)
{
    for (double a = 0; a <= 1; a += 0.125) {
        rates_are(&contention_default, one_server, 1, &a, (const double[]){1});
        rates_are(&contention_default, processes, 1, &a, (const double[]){1});
    }
    contention_rates(&contention_default, 0, NULL, NULL, NULL, NULL);
}

/* The third of three equal clients has a limit of 70%: alone it runs at 1 / sqrt(1 - 0.8^2 + (0.8 / 0.7)^2) and keeps
 * 0.620 busy, which leaves (1 - 0.620 / 0.7)^0.7 to others, and crowds less. */
TEST(a_limit_of_threads_slows_its_client_and_crowds_less)
{
    const double a[] = {0.8, 0.8, 0.8}, threads[] = {1, 1, 0.7}, free[] = {1, 1, 1};
    double rates[3], as_before[3];

    assert_near(contention_limited_rate(0.8, 0.7), 0.774724, 1e-6);
    contention_rates(&common, 1, a, one_server, threads + 2, rates);
    assert_near(rates[0], 0.774724, 1e-6);
    contention_rates(&common, 3, a, one_server, threads, rates);
    assert_near(rates[0], 0.490507, 1e-6);
    assert_near(rates[2], 0.258011, 1e-6);
    contention_rates(&contention_default, 3, a, one_server, free, rates);
    contention_rates(&contention_default, 3, a, one_server, NULL, as_before);
    assert_memory_equal(rates, as_before, sizeof rates);
}

/* Thesis, Table 4.2: a recommender (SM activity 0.05) beside a ResNet152 (0.82). */
TEST(table_4_2)
{
    static const double a[] = {0.05, 0.82};
    double rates[2];

    contention_rates(&common, 2, a, one_server, NULL, rates);
    assert_near(1 / rates[0], 1.039, 0.04);
    assert_near(1 / rates[1], 1.048, 0.02);
    assert_near(rates[1], 0.95, 1e-9);
    contention_rates(&contention_default, 2, a, processes, NULL, rates);
    assert_near(1 / rates[0], 1.0852713178, 1e-9);
    assert_near(1 / rates[0], 1.136, 0.06);
    assert_near(1 / rates[1], 1.057, 0.06);
    /* Two instances with 3 slices each shared all of the memory. */
    assert_near(1 / contention_mig_rate(&contention_default, 0.82, 3, 1), 1.333, 0.005);
    assert_near(1 / contention_mig_rate(&contention_default, 0.05, 3, 1), 1.045, 0.05);
}

/* Thesis, 4.3.2: two large jobs take turns as if one came after the other, and MIG is a little better than that. */
TEST(two_large_ones)
{
    double turns = slowdown_together(processes, 2, 0.9),
           mig = 1 / contention_mig_rate(&contention_default, 0.9, 3, 0.5);

    assert_near(turns, 2, 0.25);
    assert_true(mig < 2 && mig > 1.9);
    assert_true(slowdown_together(one_server, 2, 0.9) < mig);
}

/* Thesis, 4.3.2: seven small jobs are best under MPS, then MIG, then turns; MPS and MIG slow them by 2 to 2.5. */
TEST(seven_small_ones)
{
    for (double a = 0.08; a <= 0.5; a += 0.01) {
        double mps = slowdown_together(one_server, 7, a), turns = slowdown_together(processes, 7, a),
               mig = 1 / contention_mig_rate(&contention_default, a, 1, 0.125);

        assert_true(mps < mig && mig < turns);
    }
    assert_near(slowdown_together(one_server, 7, 0.25), 2.0195, 1e-3);
    assert_near(1 / contention_mig_rate(&contention_default, 0.25, 1, 0.125), 2.4688, 1e-3);
    assert_near(slowdown_together(processes, 7, 0.25), 3.0437, 1e-3);
    assert_near(slowdown_together(one_server, 7, 0.08), 1.2665, 1e-3);
}

TEST(processes_take_turns)
{
    static const double pair[] = {0.3, 0.5}, full[] = {0.65, 0.9}, three[] = {0.3, 0.5, 0.9}, idle[] = {0, 0.5, 0.5};

    RATES(&contention_default, processes, pair, 0.682692307692, 0.682692307692);
    RATES(&contention_default, processes, full, 0.45, 0.45);
    RATES(&contention_default, processes, three, 0.409018567639, 0.409018567639, 0.409018567639);
    RATES(&contention_default, processes, idle, 1, 0.576923076923, 0.576923076923);
}

/* A server takes its turns as one process that wants the GPU as its clients do together. */
TEST(servers_take_turns)
{
    static const double a[] = {0.3, 0.5, 0.5}, four[] = {0.2, 0.9, 0.2, 0.2}, lone[] = {0.3, 0.5};
    double turns = 0.521739130435, together[2], rates[4];

    RATES(&common, ((const uint64_t[]){9, 9, 0}), a, turns * 0.902777777778, turns * 0.758333333333, turns);
    contention_rates(&contention_default, 2, (const double[]){1 - 0.8 * 0.8, 1 - 0.1 * 0.8}, processes, NULL, together);
    contention_rates(&common, 4, four, (const uint64_t[]){3, 4, 3, 4}, NULL, rates);
    assert_near(rates[0], together[0] * 0.36 / 0.4, 1e-12);
    assert_near(rates[1], together[1] * 0.908641975309, 1e-9);
    assert_near(rates[2], rates[0], 0);
    assert_near(rates[3], together[1] * 0.511111111111, 1e-9);
    /* One client more or less: as a process by itself. */
    RATES(&contention_default, ((const uint64_t[]){1, 2}), lone, 0.682692307692, 0.682692307692);
}

TEST(variants)
{
    static const double a[] = {0.6, 0.7}, uneven[] = {0.2, 0.5, 0.9}, light[] = {0.2, 0.5}, mixed[] = {0.2, 0.5, 0.9};
    struct contention_params params = common;

    params.capacity = 1.25;
    RATES(&params, one_server, a, 0.785714285714, 0.897959183673);
    RATES(&params, one_server, light, 1, 1);
    params = common;
    params.union_exponent = 0.8;
    RATES(&params, one_server, a, 0.583302102644, 0.666630974451);
    params.union_exponent = 1.2;
    RATES(&params, one_server, a, 0.658195195148, 0.752223080169);
    params = common;
    RATES(&params, one_server, uneven, 0.452830188679, 0.289811320755, 0.805031446541);
    params.crowding = 0.5;
    RATES(&params, one_server, uneven, 0.942407478565, 0.476824658599, 0.592340194431);
    params.crowding = 2;
    /* the heavy one reaches full speed; the others share the 0.06 that it leaves */
    RATES(&params, one_server, uneven, 0.084269662921, 0.086292134831, 1);
    /* and so within its server's turns: 0.6 of 0.65 beside one that always wants the GPU */
    RATES(&params, ((const uint64_t[]){1, 1, 2}), mixed, 0.842696629213 * 0.472, 0.862921348315 * 0.472, 0.472);
}

/* Jobs of one activity are alike. Of others, the logarithm of the ratio of parts is spread by 0.6 times the root of 2.
 * It is the same whenever it is asked. */
TEST(workloads_differ)
{
    static const double pair[] = {0.5, 0.9};
    struct contention_params params = contention_default;
    double rates[2], again[2], sum = 0, squares = 0, usual = log(0.5 / 0.1);

    assert_near(slowdown_together(one_server, 2, 0.5), 1 / 0.75, 1e-12);
    for (params.seed = 1; params.seed <= 2000; params.seed++) {
        contention_rates(&params, 2, pair, one_server, NULL, rates);
        contention_rates(&params, 2, pair, one_server, NULL, again);
        assert_near(rates[0], again[0], 0);
        assert_near(0.5 * rates[0] + 0.9 * rates[1], 0.95, 1e-9);
        if (rates[1] == 1)
            rates[0] = 0.05 / 0.5; /* the least that its part can be seen to be */
        double moved = log(0.9 * rates[1] / (0.5 * rates[0])) - usual;
        sum += moved;
        squares += moved * moved;
    }
    assert_near(sum / 2000, 0, 0.06);
    assert_near(sqrt(squares / 2000), 0.6 * sqrt(2), 0.1);
}

TEST(one_that_uses_nothing)
{
    static const double a[] = {0, 0.5}, nothing[] = {0, 0, 0};

    RATES(&common, one_server, a, 1, 1);
    RATES(&contention_default, one_server, nothing, 1, 1, 1);
    RATES(&contention_default, processes, a, 1, 1);
    RATES(&contention_default, processes, nothing, 1, 1, 1);
}

TEST(mig)
{
    /* Kernels of a width of 0.65 run during 0.3 / 0.65 of the time, on (3/7)^0.57 * (4/8)^0.43 of a GPU. */
    double share = pow(3 / 7.0, 0.57) * pow(0.5, 0.43);

    assert_near(contention_mig_rate(&contention_default, 0.3, 3, 0.5), 1 / (1 - 0.3 / 0.65 + 0.3 / share), 1e-12);
    assert_near(contention_mig_rate(&contention_default, 0.9, 3, 0.5), share / 0.9, 1e-12);
    assert_near(contention_mig_rate(&contention_default, 0.82, 7, 1), 1, 0);
    assert_near(contention_mig_rate(&contention_default, 0.6, 6, 1), 1, 0);
    assert_near(contention_mig_rate(&contention_default, 0, 1, 0.125), 1, 0);
}

TEST(power)
{
    assert_near(contention_power_w(0, 53.8, 275.5), 53.8, 1e-9);
    assert_near(contention_power_w(0.25, 53.8, 275.5), 142.876311372, 1e-6);
    assert_near(contention_power_w(0.5, 53.8, 275.5), 204.204736061, 1e-6);
    assert_near(contention_power_w(1, 53.8, 275.5), 275.5, 1e-9);
    assert_near(contention_power_w(0.5, 100, 100 + 221.7), 204.204736061 + 46.2, 1e-6); /* another GPU: same curve */
    assert_near(contention_power_w(7, 53.8, 275.5), 275.5, 1e-9);
    assert_near(contention_power_w(NAN, 53.8, 275.5), 53.8, 1e-9);
}

RUN_TESTS(without_spread, NULL)
