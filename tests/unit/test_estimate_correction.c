/* Features of a program, the trained correction of its replay, and SM activity, on networks with known figures. */
#include "question_fixture.h"

#include "estimate/learned/correction.h"
#include "estimate/utilisation.h"

static int64_t add_conv(int64_t from, int64_t channels, int64_t side)
{
    add(LAYER_CONV, channels, side, from * channels * 9 + channels);
    add_activation(ACTIVATION_RELU, channels, side, true);
    return channels;
}

/* As many 3x3 convolutions of one width. */
static void build_plain(int count, int64_t width, int64_t side)
{
    int64_t channels = 3;

    begin_list(channels, side);
    for (int i = 0; i < count; i++)
        channels = add_conv(channels, width, side);
    add(LAYER_AVG_POOL, channels, 1, 0);
    add(LAYER_LINEAR, 100, 0, (channels + 1) * 100);
    layers_complete(&list);
}

static void build_mlp(int64_t width)
{
    begin_list(width, 0);
    for (int i = 0; i < 4; i++) {
        add(LAYER_LINEAR, width, 0, (width + 1) * width);
        add_activation(ACTIVATION_RELU, width, 0, true);
    }
    layers_complete(&list);
}

static struct estimate answer(void)
{
    struct estimate given;

    fail_if(estimate(&estimator_replay, &question, &given, &err), err);
    return given;
}

static void lower(struct program *program, int64_t batch_size)
{
    ask_about(batch_size);
    assert_int_equal(program_lower(program, &list, &question.training, &err), 0);
}

QUESTION_TEST(features_are_those_of_the_network)
{
    const struct machine_profile *profile = machine_profile_find("a100-40g-thesis");
    CLEANUP(program_release) struct program program;
    struct features features;
    const float *value = features.values;
    double base, output, sum = 0;

    complete_vgg16(true);
    lower(&program, 32);
    features_compute(&features, &program, profile);
    base = features.base_bytes;
    output = 4.0 * 32 * 64 * 224 * 224;
    assert_near(base, (double)features.replays[features.base].peak_reserved_bytes + (double)(1690 * MIB), 1);
    assert_near(value[FEATURE_BASE], log(base / MIB), 1e-6);
    assert_near(value[FEATURE_CONVOLUTIONS], 13, 0);
    assert_near(value[FEATURE_BATCH], 32, 0);
    assert_near(value[FEATURE_PARAMETERS], 4.0 * 138357544 / base, 1e-6); /* torchvision's count */
    assert_near(value[FEATURE_OUTPUT_MAX], output / base, 1e-6);
    /* 15.3 GFLOP a sample as multiply-adds (Simonyan and Zisserman's network without its linear layers) */
    assert_near(exp(value[FEATURE_FLOPS]) / (2 * 32 * 15.3466e9), 1, 1e-3);
    assert_near(value[FEATURE_LARGEST_IN], 3, 0);
    assert_near(value[FEATURE_LARGEST_OUT], 64, 0);
    assert_near(value[FEATURE_LARGEST_HEIGHT], 224, 0);
    assert_near(value[FEATURE_PIXELS_MAX], log(32 * 224.0 * 224), 1e-5);
    assert_near(value[FEATURE_WINOGRAD_IN], 64, 0);
    assert_near(value[FEATURE_WINOGRAD_MAX], 4.0 * 36 * (32 * 56 * 56 * 128 + 64 * 64) / base, 1e-6);
    assert_near(value[FEATURE_WINOGRAD_LAST], 4.0 * 36 * (32 * 4 * 4 * 1024 + 512 * 512) / base, 1e-6);
    assert_near(value[FEATURE_GROWTH_MAX], 2, 0); /* the first convolution does not count */
    assert_near(value[FEATURE_SUM_MAX], 1024, 0);
    assert_near(value[FEATURE_SUM_MIN], 128, 0);
    assert_near(value[FEATURE_ALIGNED_IN], 12 / 13.0, 1e-6);
    assert_near(value[FEATURE_ALIGNED_OUT], 1, 0);
    assert_near(value[FEATURE_OUT], 0, 0);
    for (int i = 0; i < WORKSPACE_CLASSES; i++)
        sum += value[FEATURE_CLASS0 + i];
    assert_near(sum, 1, 1e-5);
    /* by class: the first convolution has 67 channels, the second 128, those of 512 more than 700 */
    assert_near(value[FEATURE_CLASS3] * value[FEATURE_OUTPUT_SUM], output / base, 1e-5);
    assert_near(value[FEATURE_CLASS4] * value[FEATURE_OUTPUT_SUM], output / base, 1e-5);
    for (int i = 0; i < FEATURE_COUNT; i++)
        assert_true(isfinite(value[i]));
}

QUESTION_TEST(base_is_no_more_than_fits_the_gpu)
{
    struct machine_profile small = *machine_profile_find("a100-40g-thesis");
    CLEANUP(program_release) struct program program;
    struct features features;

    small.memory_bytes = 6000 * MIB;
    complete_vgg16(true);
    lower(&program, 32);
    features_compute(&features, &program, &small);
    assert_true(features.out_of_memory);
    assert_near(features.base_bytes,
                (double)(small.memory_bytes - features_context_bytes(&program, &small) + FEATURES_CONTEXT_BYTES), 1);
    assert_near(features.values[FEATURE_OUT], 1, 0);
    assert_true(features.values[FEATURE_FILLING] > 0.2);
}

/* A forward one of single precision, on squares. */
static struct program_conv conv_of(int64_t in, int64_t out, int32_t kernel, int32_t stride, int64_t batch, int32_t side)
{
    return (struct program_conv){.pass = CONV_FORWARD,
                                 .element_bytes = 4,
                                 .rank = 2,
                                 .batch = batch,
                                 .in_channels = in,
                                 .out_channels = out,
                                 .groups = 1,
                                 .in = {side, side},
                                 .out = {side, side},
                                 .kernel = {kernel, kernel},
                                 .stride = {stride, stride}};
}

TEST(workspace_that_does_not_fit_is_done_without)
{
    const struct program_conv conv = conv_of(64, 64, 3, 1, 8, 64);
    struct workspace_rule rule = workspace_rule_by_pass(WORKSPACE_WINOGRAD, WORKSPACE_NONE, WORKSPACE_NONE);
    int64_t workspace = conv_workspace_bytes(&conv, WORKSPACE_WINOGRAD);
    CLEANUP(program_release) struct program program;
    struct replay_result replayed;

    program_init(&program);
    program_alloc(&program, (struct program_event){.bytes = 100 * MIB, .category = MEMORY_ACTIVATION});
    program_conv(&program, &conv, (struct program_event){0});
    program_replay(&program, &(struct replay_options){.rule = rule}, &replayed);
    assert_true(replayed.peak_reserved_bytes >= 100 * MIB + workspace);
    program_replay(&program, &(struct replay_options){.rule = rule, .limit_bytes = 110 * MIB}, &replayed);
    assert_int_equal(replayed.peak_reserved_bytes, 100 * MIB);
    assert_false(replayed.out_of_memory);
    program_alloc(&program, (struct program_event){.bytes = 20 * MIB, .category = MEMORY_ACTIVATION});
    program_replay(&program, &(struct replay_options){.rule = rule, .limit_bytes = 110 * MIB}, &replayed);
    assert_true(replayed.out_of_memory);
}

static uint32_t class_of(int64_t in, int64_t out, int32_t kernel, int32_t stride, int64_t batch, int32_t side)
{
    const struct program_conv conv = conv_of(in, out, kernel, stride, batch, side);

    return conv_workspace_class(&conv);
}

TEST(convolutions_have_classes)
{
    assert_int_equal(class_of(64, 256, 1, 1, 8, 56), WORKSPACE_POINTWISE);
    assert_int_equal(class_of(64, 256, 1, 2, 8, 56), WORKSPACE_OTHER);
    assert_int_equal(class_of(64, 256, 3, 2, 8, 56), WORKSPACE_OTHER);
    assert_int_equal(class_of(64, 256, 5, 1, 8, 56), WORKSPACE_OTHER);
    assert_int_equal(class_of(128, 32, 3, 1, 8, 56), WORKSPACE_NARROWING);
    assert_int_equal(class_of(127, 32, 3, 1, 8, 56), WORKSPACE_BY_CHANNELS + 2);
    assert_int_equal(class_of(42, 42, 3, 1, 8, 56), WORKSPACE_BY_CHANNELS);
    assert_int_equal(class_of(43, 42, 3, 1, 8, 56), WORKSPACE_BY_CHANNELS + 1);
    assert_int_equal(class_of(350, 350, 3, 1, 64, 56), WORKSPACE_BY_CHANNELS + 4);
    assert_int_equal(class_of(351, 350, 3, 1, 40, 56), WORKSPACE_BY_CHANNELS + 5);
    assert_int_equal(class_of(351, 350, 3, 1, 41, 56), WORKSPACE_LARGE_BATCH);
    assert_int_equal(class_of(351, 350, 3, 1, 41, 16), WORKSPACE_SMALL);
    assert_int_equal(class_of(210, 210, 3, 1, 41, 16), WORKSPACE_BY_CHANNELS + 3);
}

/* 8 samples, 10 channels into 8, 12 x 12 pixels. */
TEST(copies_are_of_what_is_not_written_in_place)
{
    struct program_conv conv = conv_of(10, 8, 3, 1, 8, 12);
    int64_t in = INT64_C(4) * 8 * 12 * 144, out = INT64_C(4) * 8 * 8 * 144, weights = 4 * 12 * 8 * 9;

    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_COPY), in + out + weights);
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_COPY_READ), in + weights);
    conv.pass = CONV_BACKWARD_DATA; /* writes 10 channels, no multiple of 4 */
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_COPY_READ), in + out + weights);
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_COPY_INPUT), in + weights);
    conv.in_channels = 1; /* lies the same in both layouts */
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_COPY_INPUT), 4 * 4 * 8 * 9);
    conv.in_channels = 12;
    conv.element_bytes = 2; /* 16 bytes are 8 channels */
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_COPY_INPUT), 2 * 8 * 16 * 144 + 2 * 16 * 8 * 9);
}

TEST(correction_fades_outside_its_training)
{
    struct program program = {.conv_count = 1};
    struct features features = {.base_bytes = (double)GIB};
    struct correction correction;

    for (int i = 0; i < FEATURE_COUNT; i++)
        features.values[i] = 1e9f;
    correction_compute(&correction, &program, &features, -1);
    assert_true(correction.trained);
    assert_int_equal(correction.outside, FEATURE_COUNT);
    assert_true(fabs(correction.ln_ratio) < 0.025);
    assert_true(correction.ln_ratio != 0);
    assert_true(correction.spread > 0.01 && correction.spread < 0.1);
}

TEST(programs_have_families)
{
    CLEANUP(program_release) struct program program = {.conv_count = 1, .attentions = 1};

    assert_int_equal(correction_family_of(&program), CORRECTION_CNN);
    program = (struct program){.attentions = 1, .linears = 3};
    assert_int_equal(correction_family_of(&program), CORRECTION_TRANSFORMER);
    program = (struct program){.norms = 2, .linears = 3};
    assert_int_equal(correction_family_of(&program), CORRECTION_TRANSFORMER);
    program = (struct program){.linears = 3};
    assert_int_equal(correction_family_of(&program), CORRECTION_MLP);
    program = (struct program){0};
    assert_int_equal(correction_family_of(&program), CORRECTION_OTHER);
    program_init(&program);
    program.norms = program.linears = 1;
    program_alloc(&program, (struct program_event){.bytes = 8, .category = MEMORY_BUFFER}); /* running statistics */
    assert_int_equal(correction_family_of(&program), CORRECTION_MLP);
}

/* Thesis, Table 6.2: none of these runs is in the trees' training data. */
QUESTION_TEST(published_runs_are_met)
{
    static const struct {
        int64_t batch_size;
        double measured_mib;
    } runs[] = {{64, 13642}, {128, 24408}};

    complete_vgg16(true);
    for (size_t i = 0; i < array_size(runs); i++) {
        double measured = runs[i].measured_mib * MIB;

        ask_about(runs[i].batch_size);
        result = answer();
        assert_near((double)result.median_bytes / measured, 1, 0.06);
        assert_true((double)result.bytes >= measured);
        assert_true((double)result.bytes <= 1.3 * measured);
        assert_true((double)result.low_bytes < measured);
        assert_true(result.confidence_permille >= 800);
        assert_false(result.exceeds_gpu);
    }
}

QUESTION_TEST(parts_sum_to_the_best_guess)
{
    struct machine_profile other = *question.profile;

    complete_vgg16(true);
    other.context_bytes -= 100 * MIB;
    question.profile = &other;
    int64_t less = answer().median_bytes;
    other.context_bytes += 100 * MIB;
    result = answer();
    assert_near(result.median_bytes - less, 100 * MIB, MIB);
    assert_true(result.has_parts);
    int64_t sum = result.fragmentation_bytes + result.context_bytes + result.correction_bytes;
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++)
        sum += result.parts[i];
    assert_int_equal(sum, result.median_bytes);
    assert_int_equal(result.context_bytes, question.profile->context_bytes + question.profile->cudnn_bytes);
    assert_true(result.parts[MEMORY_PARAMETER] == 4 * INT64_C(138357544));
    assert_true(result.fragmentation_bytes >= 0);
}

QUESTION_TEST(quantiles_rise_around_the_best_guess)
{
    int64_t last = 0;

    build_plain(6, 64, 64);
    for (int32_t quantile = 1; quantile < 1000; quantile += 7) {
        question.quantile_permille = quantile;
        result = answer();
        assert_true(result.bytes >= last);
        last = result.bytes;
        if (quantile < 500)
            assert_true(result.bytes <= result.median_bytes);
        else
            assert_true(result.bytes + 1 >= result.median_bytes);
    }
}

QUESTION_TEST(margin_does_not_drive_off_what_fits)
{
    struct machine_profile small = *machine_profile_find("a100-40g-thesis");

    complete_vgg16(true);
    ask_about(128);
    result = answer();
    small.memory_bytes = result.median_bytes + 600 * MIB;
    question.profile = &small;
    result = answer();
    assert_false(result.exceeds_gpu);
    assert_true(result.bytes <= small.memory_bytes);
    small.memory_bytes = 12000 * MIB;
    result = answer();
    assert_true(result.exceeds_gpu);
    assert_true(result.median_bytes > small.memory_bytes);
}

QUESTION_TEST(folds_have_models_of_their_own)
{
    int64_t all, folds[5];

    build_plain(12, 96, 128);
    all = answer().median_bytes;
    for (int32_t i = 0; i < 5; i++) {
        question.fold = i;
        folds[i] = answer().median_bytes;
        assert_true(folds[i] != all);
        assert_near((double)folds[i] / (double)all, 1, 0.15);
        for (int32_t k = 0; k < i; k++)
            assert_true(folds[i] != folds[k]);
    }
}

/* The trees jump where they learned to, but a larger job does not look much smaller. */
QUESTION_TEST(more_of_anything_does_not_need_much_less)
{
    static const int64_t sides[] = {32, 96, 160}, widths[] = {24, 64, 150, 320};

    for (size_t s = 0; s < array_size(sides); s++)
        for (size_t w = 0; w < array_size(widths); w++)
            for (int count = 2; count <= 12; count += 5) {
                int64_t last = 0;
                build_plain(count, widths[w], sides[s]);
                for (int64_t batch = 4; batch <= 64; batch *= 2) {
                    ask_about(batch);
                    int64_t bytes = answer().median_bytes;
                    assert_true((double)bytes > 0.93 * (double)last);
                    last = bytes;
                }
            }
    for (size_t s = 0; s < array_size(sides); s++) {
        int64_t last = 0;
        for (int count = 2; count <= 20; count += 3) {
            build_plain(count, 64, sides[s]);
            ask_about(16);
            int64_t bytes = answer().median_bytes;
            assert_true((double)bytes > 0.93 * (double)last);
            last = bytes;
        }
    }
}

QUESTION_TEST(what_was_never_measured_is_less_sure)
{
    build_plain(6, 64, 64);
    int32_t plain = answer().confidence_permille;
    question.training.precision = PRECISION_AMP;
    assert_int_equal(answer().confidence_permille, plain - 200);
    question.training.precision = PRECISION_TF32;
    question.training.optimizer = OPTIMIZER_ADAFACTOR;
    assert_int_equal(answer().confidence_permille, plain - 50);
    question.training.optimizer = OPTIMIZER_ADAMW;
    assert_int_equal(answer().confidence_permille, plain);
    list.unknown = (uint32_t)list.count;
    assert_int_equal(answer().confidence_permille, plain - 400);
    assert_true(strlen(answer().warning) > 0);
}

QUESTION_TEST(summary_without_shapes_gives_the_states_alone)
{
    build_mlp(2000);
    for (size_t i = 0; i < list.count; i++)
        list.items[i].shape_known = false;
    result = answer();
    /* parameters, gradients, two states and a temporary */
    assert_int_equal(result.bytes, question.profile->context_bytes + INT64_C(5) * 4 * 4 * 2001 * 2000);
    assert_true(result.confidence_permille <= 200);
    assert_true(strstr(result.warning, "no shapes") != NULL);
    assert_true(result.lower_bound);
    assert_int_equal(estimate(&estimator_auto, &question, &result, &err), 0);
    assert_int_equal(result.bytes, result.median_bytes); /* no margin makes it enough */
    question.layers = NULL;
    assert_int_equal(estimate(&estimator_replay, &question, &result, &err), -ENOTSUP);
}

QUESTION_TEST(activity_grows_with_the_work_and_falls_on_faster_gpus)
{
    const struct machine_profile *h200 = machine_profile_find("h200");
    struct machine_profile slow = *machine_profile_find("a100-40g-thesis");

    slow.sm_count /= 4;
    slow.bandwidth_gbps /= 4;
    build_plain(6, 64, 64);
    ask_about(2);
    struct estimate small = answer();
    question.training.batch_size = 64;
    struct estimate large = answer();
    assert_true(small.smact_permille >= 0 && large.smact_permille <= 1000);
    assert_true(large.smact_permille > small.smact_permille + 200);
    assert_true(large.smocc_permille > small.smocc_permille && large.smocc_permille < large.smact_permille);
    question.profile = h200;
    struct estimate fast = answer();
    assert_in_range(fast.smact_permille, 1, large.smact_permille - 1);
    question.profile = &slow;
    /* four times the time: a / (a + (1 - a) / 4) */
    assert_near(answer().smact_permille,
                1000 * large.smact_permille / (large.smact_permille + (1000 - large.smact_permille) / 4.0), 2);
    build_mlp(512);
    ask_about(64);
    assert_in_range(answer().smact_permille, 1, 999);
}

QUESTION_TEST(activity_features_count_a_steady_step)
{
    float first[UTILISATION_COUNT], second[UTILISATION_COUNT];
    struct program program;

    build_plain(6, 64, 64);
    lower(&program, 8);
    utilisation_features_compute(first, &program);
    assert_near(first[UTILISATION_U_CHANNELS], 64, 1e-3);
    assert_true(first[UTILISATION_U_CHANNELS_IN] > 60 && first[UTILISATION_U_CHANNELS_IN] < 64);
    assert_near(first[UTILISATION_U_PIXELS], log(8 * 64.0 * 64), 1e-4);
    assert_near(first[UTILISATION_U_BATCH], log(8), 1e-6);
    assert_near(exp(first[UTILISATION_U_INPUT]), 4 * 8 * 3 * 64 * 64, 1);
    program_release(&program);
    lower(&program, 16);
    utilisation_features_compute(second, &program);
    assert_near(second[UTILISATION_U_KERNELS], first[UTILISATION_U_KERNELS], 0);
    assert_near(second[UTILISATION_U_FLOPS] - first[UTILISATION_U_FLOPS], log(2), 1e-3);
    program_release(&program);
}
