/* A trace's demand, against figures worked out by hand. */
#include "unit.h"

#include "trace/demand.h"

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9 * fmax(1, fabs(expected)))
        fail_msg("%.12g is not %.12g", value, expected);
}

static struct trace parse(const char *text)
{
    struct trace trace;

    fail_if(trace_load_text(&trace, "t.csv", text, strlen(text), NULL, &trouble), trouble);
    return trace;
}

/* Half of a GPU from 0 to 100 s, two from 10 to 30 s, one from 30 to 40 s. Where one ends another begins. */
#define THREE_JOBS                                                                                                     \
    "submit_s,gpus,gpu_milli,duration_s\n"                                                                             \
    "0,1,500,100\n"                                                                                                    \
    "10,2,1000,20\n"                                                                                                   \
    "30,1,1000,10\n"

TEST(test_by_hand)
{
    CLEANUP(trace_release) struct trace trace = parse(THREE_JOBS);
    CLEANUP(trace_demand_release) struct trace_demand demand;

    assert_int_equal(trace_demand(&demand, &trace, 20 * NS_PER_SEC, NULL), 0);
    assert_int_equal(demand.jobs, 3);
    assert_true(demand.first_ns == 0 && demand.last_ns == 30 * NS_PER_SEC);
    assert_int_equal(demand.bin_count, 2);
    assert_int_equal(demand.bins[0].arrivals, 2);
    assert_int_equal(demand.bins[1].arrivals, 1);
    assert_near(demand.bins[0].gpus_wanted, 0.5 + 2 * 10 / 20.0);
    assert_near(demand.bins[1].gpus_wanted, 2.5); /* until the last arrival */
    assert_near(demand.gpus_wanted_max, 2.5);
    assert_near(demand.gpus_wanted_mean, 0.5 + 2 * 20 / 30.0);
    assert_near(demand.gpu_seconds, 50 + 40 + 10);
    assert_near(demand.run_mean_s, 130 / 3.0);
    assert_near(demand.run_s[0], 10);
    assert_near(demand.run_s[2], 20);
    assert_near(demand.run_s[DEMAND_QUANTILES - 1], 100);
    assert_int_equal(demand.width_count, 2);
    assert_true(demand.widths[0].gpus == 1 && demand.widths[0].jobs == 2);
    assert_true(demand.widths[1].gpus == 2 && demand.widths[1].jobs == 1);
    for (size_t c = 0; c < WORKLOAD_CLASS_COUNT; c++)
        assert_int_equal(demand.class_jobs[c], 0);
}

/* The last arrival is the first moment of its bin: the bin is the demand then. */
TEST(test_last_moment)
{
    CLEANUP(trace_release) struct trace trace = parse(THREE_JOBS);
    CLEANUP(trace_demand_release) struct trace_demand demand;

    assert_int_equal(trace_demand(&demand, &trace, 15 * NS_PER_SEC, NULL), 0);
    assert_int_equal(demand.bin_count, 3);
    assert_near(demand.bins[1].gpus_wanted, 2.5);
    assert_near(demand.bins[2].gpus_wanted, 1.5);
}

TEST(test_bins_by_themselves)
{
    static const struct {
        const char *last;
        int64_t bin_s;
        size_t bins;
    } cases[] = {{"0", 1, 1},         {"23", 1, 24},       {"24", 2, 13},
                 {"86399", 3600, 24}, {"86400", 7200, 13}, {"1e9", 315360000, 4}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        CLEANUP(trace_release) struct trace trace;
        CLEANUP(trace_demand_release) struct trace_demand demand;

        snprintf(text, sizeof text, "submit_s,gpus,gpu_milli,duration_s\n0,1,1000,5\n%s,1,1000,5\n", cases[i].last);
        trace = parse(text);
        assert_int_equal(trace_demand(&demand, &trace, 0, NULL), 0);
        assert_true(demand.bin_ns == cases[i].bin_s * NS_PER_SEC);
        assert_int_equal(demand.bin_count, cases[i].bins);
    }
}

TEST(test_too_many_bins)
{
    CLEANUP(trace_release)
    struct trace trace = parse("submit_s,gpus,gpu_milli,duration_s\n0,1,1000,5\n10000,1,1000,5\n");
    struct trace_demand demand;

    assert_true(trace_demand(&demand, &trace, NS_PER_SEC, &trouble) < 0);
    assert_string_equal(trouble.text, "arrivals over 10000 s make more than 10000 bins of 1 s: take longer ones");
}

/* One job: no time between arrivals, and no division by it. */
TEST(test_one_job)
{
    CLEANUP(trace_release) struct trace trace = parse("submit_s,gpus,gpu_milli,duration_s\n7,3,1000,0.5\n");
    CLEANUP(trace_demand_release) struct trace_demand demand;

    assert_int_equal(trace_demand(&demand, &trace, 0, NULL), 0);
    assert_int_equal(demand.bin_count, 1);
    assert_near(demand.bins[0].gpus_wanted, 3);
    assert_near(demand.gpus_wanted_mean, 0);
    assert_near(demand.gpus_wanted_max, 3);
}
