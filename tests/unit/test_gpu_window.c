/* The sliding window against a model that keeps every sample, and its statistics against those of the simulator. */
#include "unit.h"

#include "../property/random.h"
#include "gpu/window.h"
#include "sim/sim_internal.h"

#define MODEL_MAX 4096

struct model {
    size_t count;
    struct {
        int64_t at_ns;
        int32_t permille;
    } samples[MODEL_MAX];
};

static void model_push(struct model *model, int64_t at_ns, int32_t permille)
{
    if (permille < 0)
        return;
    assert_true(model->count < MODEL_MAX);
    model->samples[model->count].at_ns = at_ns;
    model->samples[model->count++].permille = permille;
}

/* Sum and number of the samples in (from_ns, to_ns]. */
static int64_t model_sum(const struct model *model, int64_t from_ns, int64_t to_ns, int64_t *count)
{
    int64_t sum = 0;

    *count = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (model->samples[i].at_ns > from_ns && model->samples[i].at_ns <= to_ns) {
            sum += model->samples[i].permille;
            ++*count;
        }
    }
    return sum;
}

TEST(test_empty_and_unmeasured)
{
    struct gpu_window window;
    int64_t count = 77;

    gpu_window_init(&window, NS_PER_SEC, NS_PER_SEC);
    assert_int_equal(gpu_window_mean(&window, 0, &count), -1);
    assert_int_equal(count, 0);
    gpu_window_push(&window, 10, -1);
    assert_int_equal(gpu_window_mean(&window, 10, &count), -1);
    gpu_window_push(&window, 20, 0); /* zero is a measurement */
    assert_int_equal(gpu_window_mean(&window, 20, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(gpu_window_mean(&window, 20, NULL), 0);
}

TEST(test_edges_and_rounding)
{
    struct gpu_window window;
    int64_t count;

    gpu_window_init(&window, 90 * NS_PER_SEC, NS_PER_SEC);
    gpu_window_push(&window, 100 * NS_PER_SEC, 100);
    gpu_window_push(&window, 101 * NS_PER_SEC, 201);
    assert_int_equal(gpu_window_mean(&window, 101 * NS_PER_SEC, &count), 151); /* 150.5 */
    assert_int_equal(count, 2);
    assert_int_equal(gpu_window_mean(&window, 190 * NS_PER_SEC - 1, &count), 151);
    assert_int_equal(gpu_window_mean(&window, 190 * NS_PER_SEC, &count), 201); /* the first has just left */
    assert_int_equal(gpu_window_mean(&window, 191 * NS_PER_SEC, &count), -1);
    assert_int_equal(gpu_window_mean(&window, 100 * NS_PER_SEC, &count), 100); /* the second is still to come */
}

/* Samples that are at least a slot's width apart are exactly the model, through unmeasured ones and for longer than the
 * ring. Of any density, a slot leaves as a whole. So the count is the samples of the window less at most those of one
 * slot's width at its old end. None is lost otherwise. */
static void compare_with_model(struct random random, bool sparse)
{
    struct model *model = xcalloc(1, sizeof *model);

    print_message("seed %llu\n", (unsigned long long)random.state);
    for (int round = 0; round < 20; round++) {
        struct gpu_window window;
        int64_t now_ns = 1000,
                length_ns = random_range(&random, sparse ? GPU_WINDOW_SLOTS : 10, sparse ? 1000000 : 100000);
        int64_t spacing_ns = (length_ns + GPU_WINDOW_SLOTS - 1) / GPU_WINDOW_SLOTS;
        model->count = 0;
        gpu_window_init(&window, length_ns, spacing_ns);
        for (int i = 0; i < 2000; i++) {
            int64_t all, fewest, count;
            int32_t permille = (int32_t)random_range(&random, sparse ? -100 : 0, 1000);
            now_ns += sparse ? random_range(&random, spacing_ns, 3 * spacing_ns)
                             : random_range(&random, 0, 1 + length_ns / 500);
            model_push(model, now_ns, permille);
            gpu_window_push(&window, now_ns, permille);
            int64_t sum = model_sum(model, now_ns - length_ns, now_ns, &all);
            int32_t mean = gpu_window_mean(&window, now_ns, &count);
            model_sum(model, now_ns - length_ns + spacing_ns, now_ns, &fewest);
            assert_in_range(count, sparse ? all : fewest, all);
            if (sparse)
                assert_int_equal(mean, all ? (sum + all / 2) / all : -1);
            else
                assert_in_range(mean, 0, 1000);
        }
    }
    free(model);
}

TEST(test_samples_at_random)
{
    compare_with_model((struct random){99}, true);
    compare_with_model((struct random){123456}, false);
}

TEST(test_a_clock_set_back)
{
    struct gpu_window window;
    int64_t count;

    gpu_window_init(&window, 90 * NS_PER_SEC, NS_PER_SEC);
    for (int i = 1; i <= 10; i++)
        gpu_window_push(&window, i * NS_PER_SEC, 100 * i);
    gpu_window_push(&window, 3 * NS_PER_SEC + 5, -1); /* it need not be measured to tell the time */
    assert_int_equal(gpu_window_mean(&window, 20 * NS_PER_SEC, &count), 200);
    assert_int_equal(count, 3);
    gpu_window_push(&window, 1, 70);
    assert_int_equal(gpu_window_mean(&window, 20 * NS_PER_SEC, &count), 70);
    assert_int_equal(count, 1);
}

/* Many samples at one time are all in the mean: none is dropped to fit. */
TEST(test_thinning_keeps_the_sum)
{
    struct gpu_window window;
    int64_t count;

    gpu_window_init(&window, 1000 * GPU_WINDOW_SLOTS, 1000);
    for (int i = 0; i < 1000; i++)
        gpu_window_push(&window, 5000, i < 750 ? 1000 : 0);
    assert_int_equal(gpu_window_mean(&window, 5000, &count), 750);
    assert_int_equal(count, 1000);
}

/* Nine samples, the statistics worked out by hand. */
TEST(test_statistics_by_hand)
{
    static const int32_t samples[] = {900, 100, 200, 300, 400, 500, 600, 700, 800};
    struct gpu_window window;
    double ema = 900;

    gpu_window_init(&window, 9 * NS_PER_SEC, NS_PER_SEC);
    for (int i = 0; i < 9; i++) {
        gpu_window_push(&window, i * NS_PER_SEC, samples[i]);
        if (i)
            ema += (samples[i] - ema) * 2 / 10;
    }
    assert_int_equal(gpu_window_statistic(&window, STATISTIC_MEAN, 8 * NS_PER_SEC), 500);
    assert_int_equal(gpu_window_statistic(&window, STATISTIC_MEDIAN, 8 * NS_PER_SEC), 500);
    assert_int_equal(gpu_window_statistic(&window, STATISTIC_P95, 8 * NS_PER_SEC), 900);
    assert_int_equal(gpu_window_statistic(&window, STATISTIC_EMA, 8 * NS_PER_SEC), (int)(ema + 0.5));
    assert_int_equal(gpu_window_statistic(&window, STATISTIC_RISK, 8 * NS_PER_SEC),
                     (int)(0.2 * 500 + 0.3 * 500 + 0.3 * 900 + 0.2 * ema + 0.5));
    assert_int_equal(gpu_window_statistic(&window, STATISTIC_P95, 100 * NS_PER_SEC), -1); /* all have left */
}

/* A signal that changes at whole seconds, seen by the simulator as changes and by the daemon as a sample each second.
 * Each statistic of a full window is the same, but for rounding. */
TEST(test_agrees_with_the_simulator)
{
    struct random random = {4711};
    struct sim_options options = {.sample_period_ns = NS_PER_SEC};
    struct sim sim = {.options = &options};

    print_message("seed %llu\n", (unsigned long long)random.state);
    for (int round = 0; round < 200; round++) {
        struct sim_gpu gpu = {0};
        struct gpu_window window;
        int64_t seconds = random_range(&random, 2, 120);
        int32_t permille = 0;
        options.core.window_ns = seconds * NS_PER_SEC;
        gpu_window_init(&window, options.core.window_ns, NS_PER_SEC);
        for (int64_t second = 0; second < 3 * seconds; second++) {
            sim.now_ns = second * NS_PER_SEC;
            if (second == 0 || random_range(&random, 0, 9) == 0) {
                permille = (int32_t)random_range(&random, 0, 1000);
                gpu.levels[SIGNAL_DRAM] = permille / 1000.0;
                window_note(&sim, &gpu);
            }
            gpu_window_push(&window, (second + 1) * NS_PER_SEC, permille); /* of the second that then has passed */
        }
        sim.now_ns = 3 * seconds * NS_PER_SEC;
        for (enum window_statistic statistic = STATISTIC_MEAN; statistic <= STATISTIC_RISK; statistic++) {
            options.core.statistic = statistic;
            double simulated = window_statistic(&sim, &gpu, SIGNAL_DRAM) * 1000;
            int32_t measured = gpu_window_statistic(&window, statistic, sim.now_ns);
            if (measured < simulated - 0.501 || measured > simulated + 0.501)
                fail_msg("round %d, statistic %d: %d, simulated %f", round, (int)statistic, measured, simulated);
        }
        free(gpu.changes);
    }
    free(sim.parts);
}

/* A sample each 10 ms of a minute: the part that 256 slots keep of them is near enough. */
TEST(test_statistics_of_thinned_samples)
{
    struct gpu_window window;
    double ema = 200;

    gpu_window_init(&window, 60 * NS_PER_SEC, 10 * NS_PER_MS);
    for (int i = 0; i < 6000; i++) {
        int32_t permille = i / 100 % 2 ? 800 : 200; /* seconds of 800 and of 200 */
        gpu_window_push(&window, i * 10 * NS_PER_MS, permille);
        ema += (permille - ema) * 2 / 6001;
    }
    assert_in_range(gpu_window_statistic(&window, STATISTIC_MEAN, 60 * NS_PER_SEC - 1), 499, 501);
    assert_in_range(gpu_window_statistic(&window, STATISTIC_P95, 60 * NS_PER_SEC - 1), 795, 800);
    assert_in_range(gpu_window_statistic(&window, STATISTIC_EMA, 60 * NS_PER_SEC - 1), (int)ema - 2, (int)ema + 2);
}
