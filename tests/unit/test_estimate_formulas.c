/* The estimators that are formulas, and the choice among all. */
#include "question_fixture.h"

static struct estimate ask(const struct estimator *estimator)
{
    if (estimate(estimator, &question, &result, &err))
        fail_msg("%s: %s", estimator->name, err.text);
    return result;
}

/* Of real_models.csv for vgg16 on ImageNet. For fake tensors ReLUs are in place; the largest gradient is copied. */
static const struct {
    const char *estimator;
    int64_t batch_size;
    double published_mib, tolerance;
    bool exceeds_gpu;
} formulas_give_what_was_published_rows[] = {
    {"horus", 32, 21525.8, 0.001, false},  {"horus", 64, 41700.0, 0.001, true},
    {"horus", 128, 82120.0, 0.001, true},  {"faketensor", 32, 3121, 0.02, false},
    {"faketensor", 64, 5379, 0.02, false}, {"faketensor", 128, 9894, 0.02, false},
};

EACH_ROW(QUESTION_TEST, formulas_give_what_was_published, formulas_give_what_was_published_rows)
{
    bool is_faketensor = strcmp(row->estimator, "faketensor") == 0;

    build_vgg16(is_faketensor);
    if (is_faketensor)
        layers_complete(&list);
    question.training.batch_size = row->batch_size;
    result = ask(estimator_find(row->estimator));
    if (fabs((double)result.bytes / MIB / row->published_mib - 1) >= row->tolerance)
        fail_msg("%s, batch size %d: %.1f MiB", row->estimator, (int)row->batch_size, (double)result.bytes / MIB);
    assert_int_equal(result.median_bytes, result.bytes);
    assert_string_equal(result.source, row->estimator);
    assert_int_equal(result.exceeds_gpu, row->exceeds_gpu);
}

QUESTION_TEST(containers_are_not_counted_twice)
{
    build_vgg16(false);
    struct estimate before = ask(&estimator_horus);
    add(LAYER_CONV, 512, 7, 1000000)->container = true;
    add(LAYER_IDENTITY, 512, 7, 0);
    assert_int_equal(ask(&estimator_horus).bytes, before.bytes);
    add(LAYER_CONV, LAYER_MAX_DIMENSION, LAYER_MAX_DIMENSION, 0); /* and absurd models are refused */
    question.training.batch_size = INT32_MAX;
    assert_int_equal(estimate(&estimator_horus, &question, &result, &err), -EINVAL);
    assert_non_null(strstr(err.text, "too large"));
    question.layers = NULL;
    assert_int_equal(estimate(&estimator_horus, &question, &result, &err), -ENOTSUP);
}

/* At any quantile between 0 and 1. */
QUESTION_TEST(a_declared_size_is_taken_at_its_word)
{
    static const int32_t wrong[] = {-1, 0, 1000, 1001};

    question.layers = NULL;
    assert_int_equal(estimate(&estimator_declared, &question, &result, &err), -ENOTSUP);
    assert_int_equal(estimate(&estimator_auto, &question, &result, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "nothing to estimate from"));
    question.declared_bytes = 5 * GIB;
    result = ask(&estimator_auto);
    assert_int_equal(result.bytes, 5 * GIB);
    assert_int_equal(result.median_bytes, 5 * GIB);
    assert_string_equal(result.source, "declared");
    assert_int_equal(result.smact_permille, -1);
    assert_false(result.exceeds_gpu);
    question.declared_bytes = question.profile->memory_bytes + 1;
    assert_true(ask(&estimator_auto).exceeds_gpu);
    question.declared_bytes--;
    assert_false(ask(&estimator_auto).exceeds_gpu);
    for (size_t i = 0; i < array_size(wrong); i++) {
        question.quantile_permille = wrong[i];
        assert_int_equal(estimate(&estimator_declared, &question, &result, &err), -EINVAL);
    }
}

QUESTION_TEST(auto_prefers_what_was_measured_to_what_is_computed)
{
    static const int64_t peaks[] = {9 * GIB, 9 * GIB, 9 * GIB, 9 * GIB, 9 * GIB, 9 * GIB};
    int64_t many[100];

    complete_vgg16(false);
    question.declared_bytes = GIB;
    assert_string_equal(ask(&estimator_auto).source, "replay");
    /* SM activity follows from the model, for every estimator; and without one it is unknown. */
    assert_int_equal(ask(&estimator_horus).smact_permille, ask(&estimator_replay).smact_permille);
    assert_true(ask(&estimator_horus).smact_permille > 0);
    question.history = (struct estimate_history){.peak_bytes = peaks, .count = array_size(peaks)};
    assert_string_equal(ask(&estimator_auto).source, "history");
    for (size_t i = 0; i < array_size(many); i++)
        many[i] = i ? GIB : 9 * GIB;
    question.history = (struct estimate_history){.peak_bytes = many, .count = array_size(many)};
    assert_int_equal(ask(&estimator_history).bytes, GIB);
    assert_int_equal(ask(&estimator_auto).bytes, 9 * GIB); /* never below what was observed */
    question.layers = NULL;
    question.history.count = 0;
    assert_string_equal(ask(&estimator_auto).source, "declared");
}

/* Half a permille for each that is missing of 800. */
QUESTION_TEST(auto_adds_a_margin_where_little_is_understood)
{
    complete_vgg16(false);
    struct estimate bare = ask(&estimator_replay);
    struct estimate with = ask(&estimator_auto);
    assert_true(bare.confidence_permille >= 800);
    assert_int_equal(with.bytes, bare.bytes);
    for (int i = 0; i < 100; i++)
        add(LAYER_UNKNOWN, 8, 8, 0);
    list.unknown = 100;
    bare = ask(&estimator_replay);
    with = ask(&estimator_auto);
    assert_true(bare.confidence_permille < 700);
    assert_int_equal(with.confidence_permille, bare.confidence_permille);
    assert_int_equal(with.bytes, bare.bytes + bare.bytes * (800 - bare.confidence_permille) / 2000);
    assert_int_equal(with.median_bytes, bare.median_bytes);
    question.quantile_permille = 500;
    assert_int_equal(ask(&estimator_auto).bytes, ask(&estimator_replay).bytes);
}

QUESTION_TEST(the_machine_adds_its_own)
{
    struct machine_profile profile = *machine_profile_builtin(0);

    begin_list(512, 0);
    add(LAYER_LINEAR, 512, 0, 512 * 512 + 512);
    add(LAYER_LINEAR, 512, 0, 512 * 512 + 512);
    layers_complete(&list);
    question.profile = &profile;
    question.quantile_permille = 500;
    int64_t before = ask(&estimator_replay).bytes;
    profile.context_bytes += 100 * MIB;
    int64_t more = ask(&estimator_replay).bytes;
    assert_int_equal(more - before, 100 * MIB);
    profile.cublas_workspace_bytes += 200 * MIB;
    assert_true(ask(&estimator_replay).bytes - more >= 199 * MIB);
}

/* Parameters without shapes: the replay knows a part of the need only, and says so. */
QUESTION_TEST(a_guess_gives_way_to_what_is_declared)
{
    layer_list_add(&list, LAYER_LINEAR)->parameters = 1000000;
    list.shapeless = 1;
    struct estimate guess = ask(&estimator_auto);
    assert_string_equal(guess.source, "replay");
    assert_true(guess.confidence_permille < 250);
    assert_true(*guess.warning);
    question.declared_bytes = 7 * GIB;
    guess = ask(&estimator_auto);
    assert_string_equal(guess.source, "declared");
    assert_int_equal(guess.bytes, 7 * GIB);
    assert_false(guess.has_parts);
    assert_string_equal(guess.warning, "");
}
