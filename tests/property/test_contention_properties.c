/* Properties of the sharing model for all residents: random ones, every variant of the parameters. */

#include "../unit/unit.h"

#include "contention/contention.h"
#include "random.h"

#define ROUNDS 20000
#define MOST   12
#define EPS    1e-9

static const struct contention_params variants[] = {
    {1.0, 1.0, 1.0, 0.6, 1, 0.65, 0.1}, {1.25, 1.0, 1.0, 0.6, 2, 0.65, 0.1}, {1.0, 0.8, 1.0, 0.0, 0, 0.65, 0.1},
    {1.0, 1.2, 1.0, 0.6, 3, 0.65, 0.1}, {1.0, 1.0, 0.5, 0.6, 4, 0.65, 0.1},  {1.0, 1.0, 1.5, 0.6, 5, 0.65, 0.1},
};

static const uint64_t one_server[MOST] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};

static size_t draw(struct random *random, int64_t least, double *a)
{
    size_t count = (size_t)random_range(random, least, MOST);

    for (size_t i = 0; i < count; i++)
        a[i] = (double)random_range(random, 0, 1000) / 1000;
    return count;
}

/* Few servers, so that they have clients; 0: a process by itself. */
static void draw_servers(struct random *random, uint64_t *servers)
{
    int64_t most = random_range(random, 0, 4);

    for (size_t i = 0; i < MOST; i++)
        servers[i] = (uint64_t)random_range(random, 0, most);
}

TEST(rates_are_shares)
{
    struct random random = {1};
    double a[MOST], rates[MOST];

    for (int round = 0; round < ROUNDS; round++) {
        const struct contention_params *params = &variants[round % (sizeof variants / sizeof *variants)];
        size_t count = draw(&random, 2, a);
        double delivered = 0, wanted = 0, idle = 1, most;

        contention_rates(params, count, a, one_server, NULL, rates);
        for (size_t i = 0; i < count; i++) {
            assert_true(rates[i] > 0 && rates[i] <= 1);
            delivered += a[i] * rates[i];
            wanted += a[i];
            idle *= 1 - a[i];
        }
        most = params->capacity * (1 - pow(idle, params->union_exponent));
        assert_true(delivered <= most + EPS);
        assert_true(delivered >= fmin(most, wanted) - EPS); /* and nothing is left over that somebody wants */
    }
}

/* Servers and processes mixed have no more turns than there is time, and processes get no more done than under MPS. */
TEST(turns_are_shares)
{
    struct random random = {3};
    double a[MOST], rates[MOST], by_mps[MOST];
    uint64_t servers[MOST];

    for (int round = 0; round < ROUNDS; round++) {
        const struct contention_params *params = &variants[round % (sizeof variants / sizeof *variants)];
        size_t count = draw(&random, 2, a);
        double in_turns = 0, activity = 0;

        draw_servers(&random, servers);
        contention_rates(params, count, a, servers, NULL, rates);
        for (size_t i = 0; i < count; i++) {
            assert_true(rates[i] > 0 && rates[i] <= 1);
            activity += a[i] * rates[i];
            if (servers[i] == 0)
                in_turns += fmin(1, a[i] / params->turn_width) * rates[i];
        }
        assert_true(activity <= params->capacity + EPS);
        assert_true(in_turns <= 1 + EPS);
        contention_rates(&contention_default, count, a, one_server, NULL, by_mps);
        contention_rates(&contention_default, count, a, (const uint64_t[MOST]){0}, NULL, rates);
        activity = 0;
        for (size_t i = 0; i < count; i++)
            activity += a[i] * (by_mps[i] - rates[i]);
        assert_true(activity >= -EPS);
    }
}

/* The same residents in another order have the same rates. */
TEST(order_does_not_matter)
{
    struct random random = {4};
    double a[MOST], rates[MOST], turned_a[MOST], turned_rates[MOST];
    uint64_t servers[MOST], turned[MOST];

    for (int round = 0; round < ROUNDS; round++) {
        const struct contention_params *params = &variants[round % (sizeof variants / sizeof *variants)];
        size_t count = draw(&random, 2, a), by = (size_t)random_range(&random, 1, (int64_t)count - 1);

        draw_servers(&random, servers);
        for (size_t i = 0; i < count; i++) {
            turned_a[(i + by) % count] = a[i];
            turned[(i + by) % count] = servers[i];
        }
        contention_rates(params, count, a, servers, NULL, rates);
        contention_rates(params, count, turned_a, turned, NULL, turned_rates);
        for (size_t i = 0; i < count; i++)
            assert_true(fabs(rates[i] - turned_rates[(i + by) % count]) <= EPS);
    }
}

/* More slices, more memory, or less to do: never slower. */
TEST(mig_rates_are_ordered)
{
    for (int i = 0; i <= 1000; i++)
        for (uint32_t slices = 1; slices <= 7; slices++)
            for (int eighths = 1; eighths <= 8; eighths++) {
                double a = i / 1000.0, memory = eighths / 8.0,
                       rate = contention_mig_rate(&contention_default, a, slices, memory);

                assert_true(rate > 0 && rate <= 1);
                assert_true(contention_mig_rate(&contention_default, fmin(1, a + 0.05), slices, memory) <= rate);
                assert_true(contention_mig_rate(&contention_default, a, slices + 1, memory) >= rate);
                assert_true(contention_mig_rate(&contention_default, a, slices, memory + 0.125) >= rate);
            }
}

TEST(power_grows_with_activity)
{
    for (int i = 0; i < 1000; i++) {
        double less = contention_power_w(i / 1000.0, 60, 300), more = contention_power_w((i + 1) / 1000.0, 60, 300);

        assert_true(less >= 60 && more <= 300 + EPS && less < more);
    }
}
