/* Properties of the sharing model for all residents: random ones, every variant of the parameters. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "contention/contention.h"
#include "random.h"

#define ROUNDS 20000
#define MOST   12
#define EPS    1e-9

static const struct contention_params variants[] = {
    {1.0, 1.0, 1.0, 0.4, 0.85}, {1.25, 1.0, 1.0, 0.4, 0.85}, {1.0, 0.8, 1.0, 0.4, 0.85},
    {1.0, 1.2, 1.0, 0.4, 0.85}, {1.0, 1.0, 1.5, 0.4, 0.85},  {1.0, 1.0, 2.0, 0.4, 0.85},
};

static size_t draw(struct random *random, double *a)
{
    size_t count = (size_t)random_range(random, 2, MOST);

    for (size_t i = 0; i < count; i++)
        a[i] = (double)random_range(random, 0, 1000) / 1000;
    return count;
}

static void rates_are_shares(void **state)
{
    struct random random = {1};
    double a[MOST], rates[MOST];

    for (int round = 0; round < ROUNDS; round++) {
        const struct contention_params *params = &variants[round % (sizeof variants / sizeof *variants)];
        size_t count = draw(&random, a);
        double delivered = 0, wanted = 0, idle = 1, most;

        contention_rates(params, SHARE_MPS, count, a, rates);
        for (size_t i = 0; i < count; i++) {
            assert_true(rates[i] > 0 && rates[i] <= 1);
            delivered += a[i] * rates[i];
            wanted += a[i];
            idle *= 1 - a[i];
        }
        most = params->capacity * (1 - pow(idle, params->union_exponent));
        assert_true(delivered <= most + EPS);
        assert_true(delivered >= fmin(most, wanted) - EPS); /* and nothing is left over that somebody wants */

        contention_rates(params, SHARE_TIME_SLICE, count, a, rates);
        delivered = 0;
        for (size_t i = 0; i < count; i++) {
            assert_true(rates[i] > 0 && rates[i] <= 1);
            delivered += pow(a[i], params->time_slice_exponent) * rates[i];
        }
        assert_true(delivered <= params->capacity * params->time_slice_factor + EPS);
    }
}

/* Equal slowdown, one saturated GPU: nobody gains from another one's coming, or from another one's wanting more. */
static void company_never_helps(void **state)
{
    struct random random = {2};
    double a[MOST], rates[MOST], more[MOST];

    for (int round = 0; round < ROUNDS; round++) {
        enum share_mode mode = round % 2 ? SHARE_MPS : SHARE_TIME_SLICE;
        size_t count = draw(&random, a), other;

        contention_rates(&contention_default, mode, count, a, more);
        contention_rates(&contention_default, mode, count - 1, a, rates);
        for (size_t i = 0; i + 1 < count; i++)
            if (a[i] > 0)
                assert_true(more[i] <= rates[i] + EPS);
        other = (size_t)random_range(&random, 0, (int64_t)count - 1);
        a[other] = fmin(1, a[other] + 0.1);
        contention_rates(&contention_default, mode, count, a, rates);
        for (size_t i = 0; i < count; i++)
            if (i != other && a[i] > 0)
                assert_true(rates[i] <= more[i] + EPS);
    }
}

static void power_grows_with_activity(void **state)
{
    for (int i = 0; i < 1000; i++) {
        double less = contention_power_w(i / 1000.0, 60, 300), more = contention_power_w((i + 1) / 1000.0, 60, 300);

        assert_true(less >= 60 && more <= 300 + EPS && less < more);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_shares),
        cmocka_unit_test(company_never_helps),
        cmocka_unit_test(power_grows_with_activity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
