/* Several estimates made one: rules that hold for any of them, and figures of some. */
#include "unit.h"

#include "estimate/combine.h"

/* The margin holds at the 98th percentile, either way. */
static struct estimate said(const char *source, double median_gib, double margin, int32_t error_permille)
{
    struct estimate estimate = {.median_bytes = (int64_t)(median_gib * (double)GIB),
                                .bytes = (int64_t)(median_gib * margin * (double)GIB),
                                .low_bytes = (int64_t)(median_gib / margin * (double)GIB),
                                .smact_permille = -1,
                                .error_permille = error_permille};

    estimate_name_source(&estimate, source);
    return estimate;
}

static struct estimate both(struct estimate a, struct estimate b)
{
    struct estimate result;

    combine((struct estimate[]){a, b}, 2, 980, &result, NULL);
    return result;
}

TEST(one_is_the_answer)
{
    struct estimate one = said("replay", 8, 1.13, 30), result;
    bool counted;

    combine(&one, 1, 980, &result, &counted);
    assert_true(counted);
    assert_memory_equal(&result, &one, sizeof one);
}

TEST(a_vague_one_does_not_count)
{
    struct estimate precise = said("history", 8, 1.06, 23), vague = said("gpumemnet", 16, 1.5, 47), result;
    bool counted[2];

    combine((struct estimate[]){vague, precise}, 2, 980, &result, counted);
    assert_true(!counted[0] && counted[1]);
    assert_memory_equal(&result, &precise, sizeof precise);
    vague.error_permille = 46;
    combine((struct estimate[]){vague, precise}, 2, 980, &result, counted);
    assert_true(counted[0] && counted[1]);
    assert_string_equal(result.source, "history+gpumemnet");
}

TEST(agreement_changes_little)
{
    struct estimate result = both(said("history", 8, 1.1, 30), said("replay", 8, 1.1, 40));

    assert_true(llabs(result.median_bytes - 8 * GIB) < MIB);
    assert_true(llabs(result.bytes - (int64_t)(8.8 * (double)GIB)) < MIB);
    assert_true(llabs(result.low_bytes - (int64_t)(8 / 1.1 * (double)GIB)) < MIB);
}

/* The weights are 4 to 1: at the quantile 0.98 the vague one is at its own 0.9. */
TEST(disagreement_widens)
{
    struct estimate result = both(said("history", 8, 1.1, 30), said("replay", 16, 1.1, 60));
    double enough = 16 * exp(log(1.1) * 1.2816 / 2.0537), low = 8 / exp(log(1.1) * 1.96 / 2.0537);

    assert_true(result.median_bytes > 8 * GIB && result.median_bytes < 8.8 * (double)GIB);
    assert_true(fabs((double)result.bytes / (double)GIB - enough) < 0.01);
    assert_true(fabs((double)result.low_bytes / (double)GIB - low) < 0.01);
}

TEST(a_lower_bound_counts_alone)
{
    struct estimate bound = said("replay", 2, 1, 30), guess = said("gpumemnet", 9, 1.5, 300), result;

    bound.lower_bound = true;
    result = both(bound, guess);
    assert_false(result.lower_bound);
    assert_memory_equal(&result, &guess, sizeof guess);
    result = both(bound, bound);
    assert_true(result.lower_bound);
    assert_int_equal(result.bytes, bound.bytes);
}

/* No quantile lies beyond those of the parts; they are in order; the order of the parts does not matter. */
TEST(rules_hold_for_any)
{
    uint32_t seed = 1;

    for (int i = 0; i < 2000; i++) {
        double numbers[6];
        for (size_t k = 0; k < array_size(numbers); k++) {
            seed = seed * 1664525 + 1013904223;
            numbers[k] = (seed >> 8) / (double)(1 << 24);
        }
        struct estimate a = said("replay", exp(6 * numbers[0] - 1), 1 + numbers[1], 10 + (int32_t)(300 * numbers[2]));
        struct estimate b = said("history", exp(6 * numbers[3] - 1), 1 + numbers[4], 10 + (int32_t)(300 * numbers[5]));
        struct estimate result = both(a, b);
        struct estimate other = both(b, a);
        assert_true(result.low_bytes <= result.median_bytes + 1 && result.median_bytes <= result.bytes + 1);
        assert_true(result.bytes <= (a.bytes > b.bytes ? a.bytes : b.bytes) + 1024);
        assert_true(result.low_bytes + 1024 >= (a.low_bytes < b.low_bytes ? a.low_bytes : b.low_bytes));
        if (a.error_permille != b.error_permille)
            assert_true(result.bytes == other.bytes && strcmp(result.source, other.source) == 0);
    }
}

TEST(the_median_is_that_of_errors)
{
    struct estimate a = said("history", 8, 1, 30), b = said("replay", 8, 1, 30), result;

    combine((struct estimate[]){a, b}, 2, 500, &result, NULL);
    assert_true(llabs(result.bytes - 8 * GIB) < MIB);
    assert_int_equal(result.bytes, result.median_bytes);
}

TEST(the_parts_go_on_adding_up)
{
    struct estimate a = said("replay", 8, 1.1, 30), result;

    a.correction_bytes = -5;
    a.has_parts = true;
    result = both(a, said("history", 9, 1.1, 31));
    assert_int_equal(result.correction_bytes + 5, result.median_bytes - a.median_bytes);
}

TEST(doubt_is_an_error)
{
    struct estimate_question question = {.history.count = 1};
    struct capture capture;
    struct transformer transformer;

    assert_int_equal(combine_error_permille(&estimator_replay, &question, 950), 60);
    assert_int_equal(combine_error_permille(&estimator_replay, &question, 400), 160);
    assert_int_equal(combine_error_permille(&estimator_history, &question, 900), 22);
    assert_int_equal(combine_error_permille(&estimator_gpumemnet, &question, 800), 260);
    question.capture = &capture;
    assert_int_equal(combine_error_permille(&estimator_replay, &question, 950), 30);
    question.transformer = &transformer;
    assert_int_equal(combine_error_permille(&estimator_replay, &question, 950), 60);
}
