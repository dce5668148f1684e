/* How fast clients of one MPS server run (src/core/share/rates.h), against values worked out by hand. */
#include "core/share/rates.h"

#include "unit.h"

static void expect_rates(size_t count, const int32_t *activities, const int32_t *expected)
{
    int32_t rates[8];

    rates_of_clients(count, activities, rates);
    for (size_t i = 0; i < count; i++)
        if (rates[i] < expected[i] - 100 || rates[i] > expected[i] + 100)
            fail_msg("client %zu: %d instead of %d", i, rates[i], expected[i]);
}

TEST(test_equal_clients_pay_alike)
{
    expect_rates(1, (int32_t[]){900}, (int32_t[]){1000000});
    expect_rates(2, (int32_t[]){500, 500}, (int32_t[]){750000, 750000});
    expect_rates(3, (int32_t[]){500, 500, 500}, (int32_t[]){583333, 583333, 583333});
    expect_rates(2, (int32_t[]){1000, 1000}, (int32_t[]){500000, 500000});
}

/* U = 0.95; 0.95 x 2 / 12 / 0.5, and 0.95 x 10 / 12 / 0.9. */
TEST(test_the_job_that_leaves_less_idle_gets_more)
{
    expect_rates(2, (int32_t[]){500, 900}, (int32_t[]){316667, 879630});
}

/* U = 0.6, of which 0.23 would be the second's part: it can use 0.2. */
TEST(test_what_one_cannot_use_goes_to_the_others)
{
    expect_rates(2, (int32_t[]){500, 200}, (int32_t[]){800000, 1000000});
    expect_rates(2, (int32_t[]){500, 0}, (int32_t[]){1000000, 1000000});
    expect_rates(3, (int32_t[]){500, 200, 0}, (int32_t[]){800000, 1000000, 1000000});
}

/* Beyond 0.95 nothing is known: the same weight, and nobody stands still. */
TEST(test_full_clients_have_one_weight)
{
    expect_rates(2, (int32_t[]){1000, 950}, (int32_t[]){500000, 526316});
}

TEST(test_more_is_promised_than_predicted)
{
    assert_int_equal(rates_admitted_permille(2100), 1800);
    assert_int_equal(rates_admitted_permille(1150), 1110);
    assert_int_equal(rates_admitted_permille(0), 0); /* any */
}

TEST(test_threads_are_limited_from_the_third_client_on)
{
    static const int32_t percent[] = {100, 100, 50, 50, 50, 14, 14};

    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(rates_thread_percent(i + 1), percent[i]);
    assert_int_equal(rates_thread_gain_permille(2), 1000);
    assert_int_equal(rates_thread_gain_permille(4), 1190);
    assert_int_equal(rates_thread_gain_permille(6), 1260);
}

RUN_TESTS(NULL, NULL)
