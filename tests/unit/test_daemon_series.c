/* Means of steps, gaps, forgetting, steps that double, and how many jobs are remembered. */
#include "unit.h"

#include "daemon/node/series.h"

#define SEC   NS_PER_SEC
#define BEGIN (INT64_C(1000000) * SERIES_COARSE_NS) /* a multiple of both steps */

static struct series *series;

AROUND(setup)
{
    series = series_new(SEC, 10 * SEC);
}

AROUND(teardown)
{
    series_free(series);
}

static void add_gpu(uint32_t gpu, int64_t at_ns, int64_t used, int64_t permille)
{
    const int64_t values[SERIES_GPU_VALUES] = {used, 2 * GIB, 0, permille, 300000};

    series_add_gpu(series, gpu, at_ns, values);
}

static void add_job(uint64_t job, int64_t at_ns, int64_t used, int64_t permille)
{
    const int64_t values[SERIES_JOB_VALUES] = {4 * GIB, used, 8 * GIB, permille};

    series_add_job(series, job, at_ns, values);
}

static int64_t fine(uint32_t gpu, int64_t at_ns, enum series_gpu_value value)
{
    return series_gpu_mean(series, gpu, SERIES_FINE_NS, at_ns, value);
}

/* A reading stands for the time since the one before it. */
TEST_BETWEEN(test_means_are_by_time, setup, teardown)
{
    add_gpu(0, BEGIN, 0, 0);
    add_gpu(0, BEGIN + 2 * SEC, 6 * GIB, 900);
    add_gpu(0, BEGIN + 6 * SEC, 3 * GIB, 0);
    assert_int_equal(fine(0, BEGIN, SERIES_USED_BYTES), 4 * GIB);
    assert_int_equal(fine(0, BEGIN, SERIES_SM_PERMILLE), 300);
    assert_int_equal(fine(0, BEGIN, SERIES_RESERVED_BYTES), 2 * GIB);
    assert_int_equal(fine(0, BEGIN, SERIES_UNMANAGED_BYTES), 0);
    assert_int_equal(fine(0, BEGIN, SERIES_POWER_MW), 300000);
    add_gpu(0, BEGIN + 7 * SEC, GIB, 100);
    assert_int_equal(fine(0, BEGIN, SERIES_USED_BYTES), 4 * GIB);
    assert_int_equal(fine(0, BEGIN + SERIES_FINE_NS, SERIES_USED_BYTES), GIB); /* as far as it goes */
    assert_int_equal(series_gpu_mean(series, 0, SERIES_COARSE_NS, BEGIN, SERIES_SM_PERMILLE),
                     (2 * 900 + 4 * 0 + 100 + 3) / 7);
    assert_int_equal(fine(0, BEGIN - SERIES_FINE_NS, SERIES_USED_BYTES), 0); /* the second before the first */
    assert_int_equal(fine(1, BEGIN, SERIES_USED_BYTES), -1);
}

/* One that comes after several steps stands for all of them. */
TEST_BETWEEN(test_slow_readings_leave_no_gaps, setup, teardown)
{
    struct series *slow = series_new(20 * SEC, 80 * SEC);

    for (int i = 0; i <= 6; i++)
        series_add_gpu(slow, 0, BEGIN + i * 20 * SEC, (const int64_t[SERIES_GPU_VALUES]){i * GIB, 0, 0, 0, 0});
    for (int64_t at_ns = BEGIN; at_ns < BEGIN + 120 * SEC; at_ns += SERIES_FINE_NS)
        assert_true(series_gpu_mean(slow, 0, SERIES_FINE_NS, at_ns, SERIES_USED_BYTES) > 0);
    series_free(slow);
}

TEST_BETWEEN(test_what_was_not_read_is_not_known, setup, teardown)
{
    add_gpu(0, BEGIN, GIB, 10);
    add_gpu(0, BEGIN + 60 * SEC, GIB, -1); /* further apart than readings are */
    assert_int_equal(fine(0, BEGIN - 6 * SEC, SERIES_USED_BYTES), GIB);
    for (int step = 0; step < 9; step++)
        assert_int_equal(fine(0, BEGIN + step * SERIES_FINE_NS, SERIES_USED_BYTES), -1);
    assert_int_equal(fine(0, BEGIN + 54 * SEC, SERIES_USED_BYTES), GIB);
    assert_int_equal(fine(0, BEGIN + 54 * SEC, SERIES_SM_PERMILLE), -1);
    assert_int_equal(fine(0, BEGIN + 60 * SEC, SERIES_USED_BYTES), -1); /* to come */
}

TEST_BETWEEN(test_rings_forget_the_oldest, setup, teardown)
{
    int64_t hour = SERIES_POINTS * SERIES_FINE_NS, end_ns = BEGIN + hour + SERIES_FINE_NS;

    for (int64_t at_ns = BEGIN; at_ns <= end_ns; at_ns += SEC)
        add_gpu(0, at_ns, at_ns - BEGIN < 6 * SEC ? 7 * GIB : GIB, 1);
    assert_int_equal(fine(0, BEGIN, SERIES_USED_BYTES), -1);
    assert_int_equal(fine(0, BEGIN + SERIES_FINE_NS, SERIES_USED_BYTES), GIB);
    assert_int_equal(fine(0, end_ns - SERIES_FINE_NS, SERIES_USED_BYTES), GIB);
    assert_true(series_gpu_mean(series, 0, SERIES_COARSE_NS, BEGIN, SERIES_USED_BYTES) > GIB); /* for a day */
    /* After a long silence nothing of before is shown as of now. */
    add_gpu(0, end_ns + 2 * hour, 3 * GIB, 1);
    for (int step = 2; step <= SERIES_POINTS; step++)
        assert_int_equal(fine(0, end_ns + 2 * hour - step * SERIES_FINE_NS, SERIES_USED_BYTES), -1);
}

TEST_BETWEEN(test_a_clock_that_was_set_back, setup, teardown)
{
    add_gpu(0, BEGIN, GIB, 1);
    add_gpu(0, BEGIN - 5 * SEC, 2 * GIB, 1); /* a little: the known figure stands */
    assert_int_equal(fine(0, BEGIN - 6 * SEC, SERIES_USED_BYTES), GIB);
    add_gpu(0, BEGIN - 600 * SEC, 2 * GIB, 1);
    assert_int_equal(fine(0, BEGIN - 606 * SEC, SERIES_USED_BYTES), 2 * GIB);
    assert_int_equal(fine(0, BEGIN - 6 * SEC, SERIES_USED_BYTES), -1);
    add_job(1, BEGIN, GIB, 1);
    add_job(1, BEGIN - 600 * SEC, 3 * GIB, 1);
    assert_int_equal(series_job_at(series, 1, 0, SERIES_JOB_USED_BYTES), 3 * GIB);
}

TEST_BETWEEN(test_job_by_second, setup, teardown)
{
    struct series_job found;

    assert_false(series_find_job(series, 1, &found));
    for (int i = 1; i <= 100; i++)
        add_job(1, BEGIN + i * SEC, i * MIB, 10 * i);
    assert_true(series_find_job(series, 1, &found));
    assert_int_equal(found.from_ns, BEGIN);
    assert_int_equal(found.step_ns, SEC);
    assert_int_equal(found.count, 100);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(series_job_at(series, 1, i, SERIES_JOB_RESERVED_BYTES), 4 * GIB);
        assert_int_equal(series_job_at(series, 1, i, SERIES_JOB_USED_BYTES), (i + 1) * MIB);
        assert_int_equal(series_job_at(series, 1, i, SERIES_JOB_GPU_USED_BYTES), 8 * GIB);
        assert_int_equal(series_job_at(series, 1, i, SERIES_JOB_SM_PERMILLE), 10 * (i + 1));
    }
    assert_int_equal(series_job_at(series, 1, 100, SERIES_JOB_USED_BYTES), -1);
}

/* The largest and the mean, of steps as long as need be; a peak of one second is not lost in a day. */
TEST_BETWEEN(test_job_steps_double, setup, teardown)
{
    struct series_job found;
    int64_t most = 0, sum = 0;

    for (int i = 1; i <= 86400; i++)
        add_job(1, BEGIN + i * SEC, i == 5000 ? 30 * GIB : GIB, i % 2 ? 0 : 1000);
    assert_true(series_find_job(series, 1, &found));
    assert_int_equal(found.step_ns, 512 * SEC);
    assert_int_equal(found.count, 169); /* 86400 / 512, rounded up */
    assert_int_equal(found.from_ns, BEGIN);
    for (uint32_t i = 0; i < found.count; i++) {
        int64_t used = series_job_at(series, 1, i, SERIES_JOB_USED_BYTES);

        most = used > most ? used : most;
        sum += used;
        assert_in_range(series_job_at(series, 1, i, SERIES_JOB_SM_PERMILLE), 490, 510);
    }
    assert_int_equal(most, 30 * GIB);
    assert_int_equal(sum, 30 * GIB + 168 * GIB);
    assert_int_equal(series_job_at(series, 1, 4999 / 512, SERIES_JOB_USED_BYTES), 30 * GIB);
}

TEST_BETWEEN(test_job_that_waits_for_another_try, setup, teardown)
{
    struct series_job found;

    add_job(1, BEGIN + SEC, GIB, 5);
    add_job(1, BEGIN + 100 * SEC, 2 * GIB, 5);
    assert_true(series_find_job(series, 1, &found));
    assert_int_equal(found.count, 100);
    assert_int_equal(series_job_at(series, 1, 0, SERIES_JOB_USED_BYTES), GIB);
    for (uint32_t i = 1; i < 99; i++) {
        assert_int_equal(series_job_at(series, 1, i, SERIES_JOB_USED_BYTES), -1);
        assert_int_equal(series_job_at(series, 1, i, SERIES_JOB_SM_PERMILLE), -1);
    }
    assert_int_equal(series_job_at(series, 1, 99, SERIES_JOB_USED_BYTES), 2 * GIB);
}

/* Those that run, and of the others the latest. */
TEST_BETWEEN(test_jobs_are_forgotten, setup, teardown)
{
    struct series_job found;
    int64_t at_ns = BEGIN;

    for (uint64_t id = 1; id <= SERIES_JOBS_OVER + 10; id++) {
        at_ns += SEC;
        add_job(1000000, at_ns, GIB, 1); /* runs all the time */
        add_job(id, at_ns, GIB, 1);
    }
    /* The last two run, 500 of the others are left. */
    for (uint64_t id = 1; id <= SERIES_JOBS_OVER + 10; id++)
        assert_int_equal(series_find_job(series, id, &found), id >= 10);
    assert_true(series_find_job(series, 1000000, &found));
}
