/* How fast clients of one MPS server run (src/core/share/rates.h), against values worked out by hand. */
#include "core/share/rates.h"

#include "unit.h"

static void expect_rates(size_t count, const int32_t *activities, const int32_t *expected)
{
    struct rates_client clients[8];
    int32_t rates[8];

    for (size_t i = 0; i < count; i++)
        clients[i] = (struct rates_client){activities[i], RATES_ALL_THREADS};
    rates_of_clients(count, clients, rates);
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
    static const int32_t percent[] = {100, 100, 70, 70, 70, 14, 14};
    struct rates_client clients[] = {{800, RATES_ALL_THREADS}, {800, RATES_ALL_THREADS}, {0, 70}};
    int32_t rates[3];

    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(rates_thread_percent(i + 1), percent[i]);
    assert_int_equal(rates_thread_gain_permille(2, 100), 1000);
    assert_int_equal(rates_thread_gain_permille(4, 50), 1190);
    assert_int_equal(rates_thread_gain_permille(6, 14), 1260);

    /* Alone it is slowed by sqrt(1 - 0.8^2 + (0.8 / 0.7)^2) and keeps 0.620 busy; of all SMs the others leave 0.04, and
     * it (1 - 0.620 / 0.7)^0.7. The parts of 0.992 are as 5 to 5 to 2.63. */
    clients[2].activity_permille = (int32_t)(800 * 1000 / rates_slowed_by_part(800, 700));
    assert_int_equal(clients[2].activity_permille, 620);
    assert_in_range(rates_left_by(clients[2]), 218000, 221000);
    rates_of_clients(3, clients, rates);
    assert_in_range(rates[0], 485000, 492000);
    assert_in_range(rates[2], 330000, 335000);
}

RUN_TESTS(NULL, NULL)
