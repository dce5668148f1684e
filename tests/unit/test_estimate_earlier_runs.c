/* The prediction of earlier runs for the next: exact where there are enough of them, honest where there are few. */
#include "unit.h"

#include "estimate/estimate.h"

static const struct machine_profile profile = {.name = "test", .memory_bytes = 40 * GIB};

static int ask(const int64_t *peaks, size_t count, int32_t quantile, struct estimate *result, struct error *err)
{
    const struct estimate_question question = {.profile = &profile,
                                               .declared_bytes = -1,
                                               .quantile_permille = quantile,
                                               .fold = -1,
                                               .history = {.peak_bytes = peaks, .count = count}};

    return estimate(&estimator_history, &question, result, err);
}

static int64_t answer(const int64_t *peaks, size_t count, int32_t quantile)
{
    struct estimate result;

    fail_if(ask(peaks, count, quantile, &result, &trouble), trouble);
    return result.bytes;
}

TEST(test_nothing_known)
{
    static const int64_t nonsense[] = {GIB, 0};
    struct estimate result;

    assert_error(ask(NULL, 0, 980, &result, &trouble), -ENOTSUP, "no earlier run");
    assert_int_equal(ask(nonsense, 2, 980, &result, &trouble), -EINVAL);
}

/* With n runs the k-th smallest is enough for the next with probability k / (n + 1): no assumption is needed. */
TEST(test_enough_runs)
{
    int64_t peaks[99];

    for (int64_t i = 0; i < 99; i++)
        peaks[i] = (1 + i * 37 % 99) * GIB; /* 1 to 99 GiB, in some order */
    assert_int_equal(answer(peaks, 99, 980), 98 * GIB);
    assert_int_equal(answer(peaks, 99, 900), 90 * GIB);
    assert_int_equal(answer(peaks, 99, 500), 50 * GIB);
    for (int64_t i = 0; i < 49; i++)
        peaks[i] = (i + 1) * GIB;
    assert_int_equal(answer(peaks, 49, 980), 49 * GIB); /* 49 of 50 */
    assert_true(answer(peaks, 48, 980) > 48 * GIB);     /* 48 of 49 are fewer than 98% */
}

/* A single run: a sixteenth more; alike ones need less and less; the observed figure is never too much. */
TEST(test_few_runs)
{
    int64_t peaks[48], before = INT64_MAX;

    for (size_t i = 0; i < 48; i++)
        peaks[i] = 16 * GIB;
    assert_true(llabs(answer(peaks, 1, 980) - 17 * GIB) < GIB / 10);
    assert_true(answer(peaks, 1, 999) > answer(peaks, 1, 980) && answer(peaks, 1, 980) > answer(peaks, 1, 900));
    for (size_t count = 1; count <= 48; count++) {
        int64_t bytes = answer(peaks, count, 980);
        assert_true(bytes <= before && bytes >= 16 * GIB);
        before = bytes;
    }
    peaks[1] = 8 * GIB;
    assert_true(answer(peaks, 2, 980) > 17 * GIB); /* they differ by factors */
    peaks[1] = 30 * GIB;
    assert_true(answer(peaks, 2, 500) >= 30 * GIB); /* one was seen */
}

static double uniform(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*random >> 11) / 9007199254740992.0;
}

static double normal(uint64_t *random)
{
    return sqrt(-2 * log(1 - uniform(random))) * cos(6.283185307179586 * uniform(random));
}

/* The share of next runs with a sufficient answer, of jobs with log-normal peaks of that spread. */
static double coverage(double spread, size_t count, int32_t quantile)
{
    uint64_t random = 12345;
    size_t enough = 0;

    for (size_t trial = 0; trial < 4000; trial++) {
        int64_t peaks[64], next;
        for (size_t i = 0; i < count; i++)
            peaks[i] = (int64_t)(8e9 * exp(spread * normal(&random)));
        next = (int64_t)(8e9 * exp(spread * normal(&random)));
        enough += next <= answer(peaks, count, quantile);
    }
    return (double)enough / 4000;
}

TEST(test_coverage)
{
    assert_true(coverage(0.016, 1, 980) > 0.975 && coverage(0.016, 1, 980) < 0.998);
    assert_true(coverage(0.016, 5, 980) > 0.975 && coverage(0.016, 5, 980) < 0.998);
    assert_true(coverage(0.016, 20, 980) > 0.975 && coverage(0.016, 20, 980) < 0.998);
    assert_true(coverage(0.005, 10, 980) > 0.975);
    /* For every spread, once the runs decide alone. */
    assert_true(coverage(0.3, 60, 980) > 0.97 && coverage(0.3, 60, 980) < 0.995);
    assert_true(coverage(0.3, 60, 900) > 0.88 && coverage(0.3, 60, 900) < 0.93);
}

TEST(test_what_else_it_says)
{
    static const int64_t peaks[] = {3 * GIB, GIB, 2 * GIB};
    static const int32_t activities[] = {300, -1, 500};
    const struct estimate_question question = {
        .profile = &profile,
        .declared_bytes = -1,
        .quantile_permille = 980,
        .fold = -1,
        .history = {.peak_bytes = peaks, .smact_permille = activities, .count = 3}};
    struct estimate result;

    assert_int_equal(estimate(&estimator_history, &question, &result, NULL), 0);
    assert_int_equal(result.median_bytes, 2 * GIB);
    assert_int_equal(result.smact_permille, 400);
    assert_true(result.confidence_permille >= 900 && result.confidence_permille <= 1000);
    assert_string_equal(result.source, "history");
    assert_ptr_equal(estimator_find("history"), &estimator_history);
}
