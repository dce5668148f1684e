/* Step times and activities by a roofline, against sums by hand. */
#include "program_fixture.h"

#include "estimate/step_time.h"

#define OPERATORS 10

static const struct training training = {.optimizer = OPTIMIZER_SGD, .precision = PRECISION_FP32};

static struct step_time step;

static void add_results(int64_t bytes)
{
    for (int i = 0; i < OPERATORS; i++)
        program_alloc(&program, (struct program_event){
                                    .category = MEMORY_ACTIVATION, .phase = PHASE_FORWARD, .step = 1, .bytes = bytes});
}

/* 1024 channels of 1024 positions, 32 samples: 1x1 convolutions of 2^36 operations, 256 MiB moved without turning. */
static void add_convolutions(int64_t groups, uint8_t element_bytes)
{
    const struct program_event event = {
        .category = MEMORY_ACTIVATION, .phase = PHASE_FORWARD, .step = 1, .bytes = 128 << 20};
    const struct program_conv conv = {.pass = CONV_FORWARD,
                                      .element_bytes = element_bytes,
                                      .rank = 1,
                                      .step = 1,
                                      .batch = 32,
                                      .in_channels = 1024,
                                      .out_channels = 1024,
                                      .groups = groups,
                                      .in = {1024},
                                      .out = {1024},
                                      .kernel = {1},
                                      .stride = {1},
                                      .dilation = {1}};

    for (int i = 0; i < OPERATORS; i++) {
        program_alloc(&program, event);
        program_conv(&program, &conv, event);
    }
}

/* Within a thousandth, in microseconds before the factor of the median. */
static void assert_step(const char *gpu, double us)
{
    double expected = us * 1330;

    step = step_time_of(&program, &training, machine_profile_find(gpu));
    assert_true(step.known);
    assert_in_range(step.step_ns.median, (int64_t)(expected * 0.999), (int64_t)(expected * 1.001));
    assert_true(step.step_ns.low < step.step_ns.median && step.step_ns.median < step.step_ns.high);
}

PROGRAM_TEST(test_results_are_moved_three_times)
{
    add_results(INT64_C(1) << 30);
    assert_step("a100-40g-thesis",
                OPERATORS * 3 * 1073741824.0 / (0.75 * 1555e9) * 1e6 + 8); /* and a kernel of the optimizer */
    assert_in_range(step.dram_permille.median, 433, 435);                  /* 0.58 of 0.75 */
    assert_in_range(step.smact_permille.median, 819, 820);
    assert_int_equal(step.smact_permille.high, 1000);
    assert_step("l4", OPERATORS * 3 * 1073741824.0 / (0.75 * 300e9) * 1e6 + 8);
}

PROGRAM_TEST(test_small_operators_wait_for_the_host)
{
    add_results(256 * 4);
    assert_step("a100-40g-thesis", (OPERATORS + 1) * 50);
    assert_in_range(step.smact_permille.median, 10, 15); /* one block of ten, and all of the optimizer's */
}

static void assert_convolutions(const char *gpu, int64_t groups, uint8_t element_bytes, double us_each)
{
    program_release(&program);
    program_init(&program);
    add_convolutions(groups, element_bytes);
    assert_step(gpu, OPERATORS * us_each + 8);
}

PROGRAM_TEST(test_convolutions)
{
    double moved = 2 * 134217728.0 + 4 * 1048576, depthwise = 2 * 134217728.0 + 4 * 1024;

    /* TF32 on an A100: 68.7 GFLOP take 1101 us of the tensor cores, and turning the tensors around 701. */
    assert_convolutions("a100-40g-thesis", 1, 4, 68719476736.0 / (0.4 * 156e12) * 1e6);
    /* In half precision moving takes longer than computing. */
    assert_convolutions("h100-pcie", 1, 2, 3 * moved / 2 / (0.75 * 2039e9) * 1e6);
    /* A V100 has no TF32: nothing is turned, and the CUDA cores compute. */
    assert_convolutions("v100-16g", 1, 4, 68719476736.0 / (0.6 * 15.7e12) * 1e6);
    /* Depthwise: memory alone, and not turned. */
    assert_convolutions("a100-40g-thesis", 1024, 4, depthwise / (0.75 * 1555e9) * 1e6);
}

PROGRAM_TEST(test_matrix_products_have_a_backward_pass)
{
    add_results(4);
    program.flops = UINT64_C(1) << 40;
    assert_step("a100-40g-thesis", 3 * 1099511627776.0 / (0.7 * 19.5e12) * 1e6 + (OPERATORS + 1) * 8);
}

PROGRAM_TEST(test_nothing_is_said_without_peaks_or_steps)
{
    struct machine_profile profile = *machine_profile_find("a100-40g-thesis");

    assert_false(step_time_of(&program, &training, &profile).known);
    add_results(4);
    assert_true(step_time_of(&program, &training, &profile).known);
    profile.gpu[0] = 'X';
    assert_false(step_time_of(&program, &training, &profile).known);
    program_release(&program);
    for (size_t i = 0; machine_profile_builtin(i); i++) {
        program_init(&program);
        add_results(4);
        assert_true(step_time_of(&program, &training, machine_profile_builtin(i)).known);
        program_release(&program);
    }
}
