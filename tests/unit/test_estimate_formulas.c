/* The estimators that are formulas, and the choice among all. */
#include "unit.h"

#include <math.h>

#include "base/units.h"
#include "estimate/deepspeed.h"
#include "estimate/estimate.h"

static struct estimate_question question_of(const struct layer_list *layers, int64_t batch_size)
{
    return (struct estimate_question){.layers = layers,
                                      .training = {.batch_size = batch_size, .optimizer = OPTIMIZER_ADAM},
                                      .profile = machine_profile_builtin(0),
                                      .declared_bytes = -1,
                                      .quantile_permille = ESTIMATE_QUANTILE_PERMILLE,
                                      .fold = -1};
}

static struct layer *add_layer(struct layer_list *list, enum layer_kind kind, int64_t c, int64_t h, int64_t w,
                               int64_t parameters)
{
    struct layer *layer = layer_list_add(list, kind);

    layer->shape_known = true;
    layer->rank = h ? 3 : 1;
    layer->shape[0] = c;
    layer->shape[1] = h;
    layer->shape[2] = w;
    layer->parameters = parameters;
    return layer;
}

/* VGG-16 as its authors have it (Simonyan and Zisserman, 2015, configuration D), as torchsummary would list it. */
static void build_vgg16(struct layer_list *list)
{
    static const int plan[] = {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
    static const int dense[][2] = {{512 * 7 * 7, 4096}, {4096, 4096}, {4096, 1000}};
    int64_t channels = 3, side = 224;

    layer_list_init(list);
    list->input_rank = 3;
    list->input[0] = channels;
    list->input[1] = list->input[2] = side;
    for (size_t i = 0; i < array_size(plan); i++) {
        if (!plan[i]) {
            side /= 2;
            add_layer(list, LAYER_MAX_POOL, channels, side, side, 0);
            continue;
        }
        add_layer(list, LAYER_CONV, plan[i], side, side, channels * plan[i] * 9 + plan[i]);
        channels = plan[i];
        add_layer(list, LAYER_ACTIVATION, channels, side, side, 0)->activation = ACTIVATION_RELU;
    }
    add_layer(list, LAYER_AVG_POOL, channels, 7, 7, 0);
    for (size_t i = 0; i < array_size(dense); i++) {
        add_layer(list, LAYER_LINEAR, dense[i][1], 0, 0, (int64_t)dense[i][0] * dense[i][1] + dense[i][1]);
        if (i == 2)
            break;
        add_layer(list, LAYER_ACTIVATION, dense[i][1], 0, 0, 0)->activation = ACTIVATION_RELU;
        add_layer(list, LAYER_DROPOUT, dense[i][1], 0, 0, 0);
    }
}

static struct estimate ask(const struct estimator *estimator, const struct estimate_question *question)
{
    struct estimate result;
    struct error err = {{0}};

    if (estimate(estimator, question, &result, &err))
        fail_msg("%s: %s", estimator->name, err.text);
    return result;
}

/* `horus_mb` and `faketensor_mb` of real_models.csv for vgg16 on ImageNet. For fake tensors ReLUs are in place, and the
 * largest gradient is copied once. */
TEST(formulas_give_what_was_published)
{
    static const struct {
        const char *estimator;
        int64_t batch_size;
        double published_mib, tolerance;
        bool exceeds_gpu;
    } cases[] = {
        {"horus", 32, 21525.8, 0.001, false},  {"horus", 64, 41700.0, 0.001, true},
        {"horus", 128, 82120.0, 0.001, true},  {"faketensor", 32, 3121, 0.02, false},
        {"faketensor", 64, 5379, 0.02, false}, {"faketensor", 128, 9894, 0.02, false},
    };

    for (size_t i = 0; i < array_size(cases); i++) {
        bool is_faketensor = strcmp(cases[i].estimator, "faketensor") == 0;
        CLEANUP(layer_list_release) struct layer_list list;
        struct estimate_question question;
        struct estimate result;

        build_vgg16(&list);
        for (size_t k = 0; k < list.count; k++)
            list.items[k].in_place = is_faketensor && list.items[k].kind == LAYER_ACTIVATION;
        if (is_faketensor)
            layers_complete(&list);
        question = question_of(&list, cases[i].batch_size);
        result = ask(estimator_find(cases[i].estimator), &question);
        if (fabs((double)result.bytes / MIB / cases[i].published_mib - 1) >= cases[i].tolerance)
            fail_msg("%s, batch size %d: %.1f MiB", cases[i].estimator, (int)cases[i].batch_size,
                     (double)result.bytes / MIB);
        assert_int_equal(result.median_bytes, result.bytes);
        assert_string_equal(result.source, cases[i].estimator);
        assert_int_equal(result.exceeds_gpu, cases[i].exceeds_gpu);
    }
}

TEST(containers_are_not_counted_twice)
{
    CLEANUP(layer_list_release) struct layer_list list;
    struct estimate before, after;
    struct estimate_question question;

    build_vgg16(&list);
    question = question_of(&list, 32);
    before = ask(&estimator_horus, &question);
    add_layer(&list, LAYER_CONV, 512, 7, 7, 1000000)->container = true;
    add_layer(&list, LAYER_IDENTITY, 512, 7, 7, 0);
    after = ask(&estimator_horus, &question);
    assert_int_equal(after.bytes, before.bytes);
}

/* Transformers' documentation prints DeepSpeed's own answer for bigscience/T0_3B on one GPU without offloading: 2783M
 * parameters, 65M in the largest layer, 46.91 GB (of 2^30). The ZeRO paper: 120 GB for 7.5G parameters. */
TEST(deepspeed_gives_what_was_published)
{
    CLEANUP(layer_list_release) struct layer_list list;
    int64_t bytes[DEEPSPEED_STAGE_COUNT];
    struct estimate_question question;
    struct error err;

    layer_list_init(&list);
    add_layer(&list, LAYER_LINEAR, 1, 0, 0, 65000000);
    for (int i = 0; i < 100; i++)
        add_layer(&list, LAYER_LINEAR, 1, 0, 0, (2783000000 - 65000000) / 100);
    question = question_of(&list, 1);
    assert_int_equal(deepspeed_stages(&question, bytes, &err), 0);
    assert_true(fabs((double)bytes[3] / (double)GIB - 46.91) < 0.02);
    add_layer(&list, LAYER_LINEAR, 1, 0, 0, 7500000000 - 2783000000);
    assert_int_equal(deepspeed_stages(&question, bytes, &err), 0);
    assert_int_equal(bytes[0], INT64_C(120000000000));
    assert_int_equal(bytes[1], bytes[0]);
    assert_int_equal(bytes[2], INT64_C(150000000000));
}

/* Two layers of 4 Mi weights with outputs of 16 MiB, so that every tensor has 16 MiB, and a segment of its own: most
 * are there in the second step's backward pass, two weights, two of their gradients, the input, two outputs and theirs.
 */
TEST(dnnmem_replays_static_sizes)
{
    struct layer_list list;
    struct estimate_question question;
    struct estimate result;
    struct error err;

    layer_list_init(&list);
    list.input_rank = 1;
    list.input[0] = 1024;
    for (int i = 0; i < 2; i++) {
        layer_add_input(add_layer(&list, LAYER_LINEAR, 1024, 0, 0, 4 << 20), i - 1);
        add_layer(&list, LAYER_RESHAPE, 1024, 0, 0, 0)->container = i == 0; /* neither has memory */
    }
    list.items[2].inputs[0] = 0;
    question = question_of(&list, 4096);
    question.training.optimizer = OPTIMIZER_SGD;
    result = ask(estimator_find("dnnmem"), &question);
    assert_int_equal(result.bytes - question.profile->context_bytes, 9 * 16 * MIB);
    question.training.optimizer = OPTIMIZER_ADAM; /* two states of each weight */
    result = ask(&estimator_dnnmem, &question);
    assert_int_equal(result.bytes - question.profile->context_bytes, 13 * 16 * MIB);
    layer_list_release(&list);
    question.layers = NULL;
    assert_int_equal(estimate(&estimator_dnnmem, &question, &result, &err), -ENOTSUP);
}

/* Blocks of 12 Mi weights over a tied embedding of 1 Mi: 25 Mi, and 8192 of normalisations. In MiB of 2048 tokens:
 * outputs of 2 * 4 and of 4 + 8 + 12 + 16 for each block, and 3 * 4 of logits. */
TEST(llmem_adds_up_its_terms)
{
    struct transformer transformer = {.kind = TRANSFORMER_DECODER,
                                      .head = HEAD_LANGUAGE,
                                      .traits = TRAIT_TIED,
                                      .vocabulary = 1024,
                                      .width = 1024,
                                      .embedding_width = 1024,
                                      .layers = 2,
                                      .heads = 16,
                                      .kv_heads = 16,
                                      .head_width = 64,
                                      .inner = 4096};
    struct estimate_question question = question_of(NULL, 2);
    struct method method;
    struct estimate result;
    struct error err;

    method_default(&method);
    method.sequence = 1024;
    method.world = 1;
    assert_int_equal(estimate(&estimator_llmem, &question, &result, &err), -ENOTSUP);
    question.transformer = &transformer;
    question.method = &method;
    result = ask(estimator_find("llmem"), &question);
    assert_int_equal(result.bytes - question.profile->context_bytes, (352 + 88 + 12) * MIB);
    method.world = 2; /* 7 bytes of each parameter, and the other's half of 2 */
    result = ask(&estimator_llmem, &question);
    assert_int_equal(result.bytes - question.profile->context_bytes, (202 + 88 + 12) * MIB);
    transformer.kind = TRANSFORMER_ENCODER;
    transformer.family = "bert";
    assert_int_equal(estimate(&estimator_llmem, &question, &result, &err), -ENOTSUP);
    assert_string_equal(err.text, "llmem is for decoders that predict words: this bert is none");
}

/* A table that knows one GPU: another's context is the only difference. */
TEST(schedtune_moves_with_the_context)
{
    struct layer_list list;
    struct machine_profile other = *machine_profile_builtin(0);
    struct estimate_question question;
    struct estimate here, there;
    struct error err;

    layer_list_init(&list);
    list.input_rank = 1;
    list.input[0] = 1024;
    layer_add_input(add_layer(&list, LAYER_LINEAR, 1024, 0, 0, 1 << 20), -1);
    question = question_of(&list, 64);
    here = ask(estimator_find("schedtune"), &question);
    question.fold = 0; /* by models that have seen other rows */
    there = ask(&estimator_schedtune, &question);
    assert_int_not_equal(there.bytes, here.bytes);
    question.fold = -1;
    other.context_bytes += 100 * MIB;
    question.profile = &other;
    there = ask(&estimator_schedtune, &question);
    assert_int_equal(there.bytes - here.bytes, 100 * MIB);
    assert_true(here.bytes > question.profile->context_bytes / 2 && here.bytes < 4096 * MIB);
    layer_list_release(&list);
    question.layers = NULL;
    assert_int_equal(estimate(&estimator_schedtune, &question, &there, &err), -ENOTSUP);
}

TEST(deepspeed_counts_parameters_alone)
{
    struct layer_list list;
    struct estimate_question question;
    struct estimate result;
    struct error err;

    build_vgg16(&list);
    question = question_of(&list, 1000000);
    result = ask(estimator_find("deepspeed"), &question);
    assert_int_equal(result.bytes, INT64_C(20) * 138357544);
    layer_list_release(&list);
    question.layers = NULL;
    assert_int_equal(estimate(&estimator_deepspeed, &question, &result, &err), -ENOTSUP);
    assert_int_equal(estimate(&estimator_horus, &question, &result, &err), -ENOTSUP);
}

TEST(absurd_models_are_refused)
{
    CLEANUP(layer_list_release) struct layer_list list;
    struct estimate_question question;
    struct estimate result;
    struct error err;

    layer_list_init(&list);
    add_layer(&list, LAYER_CONV, LAYER_MAX_DIMENSION, LAYER_MAX_DIMENSION, LAYER_MAX_DIMENSION, 0);
    question = question_of(&list, INT32_MAX);
    assert_int_equal(estimate(&estimator_horus, &question, &result, &err), -EINVAL);
    assert_non_null(strstr(err.text, "too large"));
}

TEST(a_declared_size_is_taken_at_its_word)
{
    struct estimate_question question = question_of(NULL, 1);
    struct estimate result;
    struct error err;

    assert_int_equal(estimate(&estimator_declared, &question, &result, &err), -ENOTSUP);
    assert_int_equal(estimate(&estimator_auto, &question, &result, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "nothing to estimate from"));
    question.declared_bytes = 5 * GIB;
    result = ask(&estimator_auto, &question);
    assert_int_equal(result.bytes, 5 * GIB);
    assert_int_equal(result.median_bytes, 5 * GIB);
    assert_string_equal(result.source, "declared");
    assert_int_equal(result.smact_permille, -1);
    assert_false(result.exceeds_gpu);
    question.declared_bytes = question.profile->memory_bytes + 1;
    result = ask(&estimator_auto, &question);
    assert_true(result.exceeds_gpu);
    question.declared_bytes--;
    result = ask(&estimator_auto, &question);
    assert_false(result.exceeds_gpu);
}

TEST(a_quantile_is_between_0_and_1)
{
    static const int32_t wrong[] = {-1, 0, 1000, 1001};
    struct estimate_question question = question_of(NULL, 1);
    struct estimate result;
    struct error err;

    question.declared_bytes = GIB;
    for (size_t i = 0; i < array_size(wrong); i++) {
        question.quantile_permille = wrong[i];
        assert_int_equal(estimate(&estimator_declared, &question, &result, &err), -EINVAL);
    }
}

TEST(auto_prefers_what_was_measured_to_what_is_computed)
{
    static const int64_t peaks[] = {9 * GIB, 9 * GIB, 9 * GIB, 9 * GIB, 9 * GIB, 9 * GIB};
    int64_t many[100];
    struct estimate_question question;
    CLEANUP(layer_list_release) struct layer_list list;

    build_vgg16(&list);
    layers_complete(&list);
    question = question_of(&list, 32);
    question.declared_bytes = GIB;
    assert_string_equal(ask(&estimator_auto, &question).source, "replay");
    question.history = (struct estimate_history){.peak_bytes = peaks, .count = array_size(peaks)};
    assert_string_equal(ask(&estimator_auto, &question).source, "history");
    for (size_t i = 0; i < array_size(many); i++)
        many[i] = i ? GIB : 9 * GIB;
    question.history = (struct estimate_history){.peak_bytes = many, .count = array_size(many)};
    assert_int_equal(ask(&estimator_history, &question).bytes, GIB);
    assert_int_equal(ask(&estimator_auto, &question).bytes, 9 * GIB); /* never below what was observed */
    question.layers = NULL;
    question.history.count = 0;
    assert_string_equal(ask(&estimator_auto, &question).source, "declared");
}

/* Half a permille for each that is missing of 800. */
TEST(auto_adds_a_margin_where_little_is_understood)
{
    struct estimate_question question;
    struct estimate bare, with;
    CLEANUP(layer_list_release) struct layer_list list;

    build_vgg16(&list);
    layers_complete(&list);
    question = question_of(&list, 32);
    bare = ask(&estimator_replay, &question);
    with = ask(&estimator_auto, &question);
    assert_true(bare.confidence_permille >= 800);
    assert_int_equal(with.bytes, bare.bytes);
    for (int i = 0; i < 100; i++)
        add_layer(&list, LAYER_UNKNOWN, 8, 8, 8, 0);
    list.unknown = 100;
    bare = ask(&estimator_replay, &question);
    with = ask(&estimator_auto, &question);
    assert_true(bare.confidence_permille < 700);
    assert_int_equal(with.confidence_permille, bare.confidence_permille);
    assert_int_equal(with.bytes, bare.bytes + bare.bytes * (800 - bare.confidence_permille) / 2000);
    assert_int_equal(with.median_bytes, bare.median_bytes);
    question.quantile_permille = 500;
    assert_int_equal(ask(&estimator_auto, &question).bytes, ask(&estimator_replay, &question).bytes);
}

TEST(the_machine_adds_its_own)
{
    struct machine_profile profile = *machine_profile_builtin(0);
    struct estimate_question question;
    CLEANUP(layer_list_release) struct layer_list list;
    int64_t before, more;

    layer_list_init(&list);
    add_layer(&list, LAYER_LINEAR, 512, 0, 0, 512 * 512 + 512);
    add_layer(&list, LAYER_LINEAR, 512, 0, 0, 512 * 512 + 512);
    list.input[0] = 512;
    list.input_rank = 1;
    layers_complete(&list);
    question = question_of(&list, 32);
    question.profile = &profile;
    question.quantile_permille = 500;
    before = ask(&estimator_replay, &question).bytes;
    profile.context_bytes += 100 * MIB;
    more = ask(&estimator_replay, &question).bytes;
    assert_int_equal(more - before, 100 * MIB);
    profile.cublas_workspace_bytes += 200 * MIB;
    assert_true(ask(&estimator_replay, &question).bytes - more >= 199 * MIB);
}

/* Parameters without shapes: the replay knows a part of the need only, and says so. */
TEST(a_guess_gives_way_to_what_is_declared)
{
    struct estimate_question question;
    CLEANUP(layer_list_release) struct layer_list list;
    struct estimate guess;

    layer_list_init(&list);
    layer_list_add(&list, LAYER_LINEAR)->parameters = 1000000;
    list.shapeless = 1;
    question = question_of(&list, 32);
    guess = ask(&estimator_auto, &question);
    assert_string_equal(guess.source, "replay");
    assert_true(guess.confidence_permille < 250);
    assert_true(*guess.warning);
    question.declared_bytes = 7 * GIB;
    guess = ask(&estimator_auto, &question);
    assert_string_equal(guess.source, "declared");
    assert_int_equal(guess.bytes, 7 * GIB);
    assert_false(guess.has_parts);
    assert_string_equal(guess.warning, "");
}

/* SM activity follows from the model, for every estimator; and without one it is unknown. */
TEST(the_activity_is_the_models)
{
    struct estimate_question question;
    CLEANUP(layer_list_release) struct layer_list list;

    build_vgg16(&list);
    layers_complete(&list);
    question = question_of(&list, 32);
    assert_int_equal(ask(&estimator_horus, &question).smact_permille, ask(&estimator_replay, &question).smact_permille);
    assert_true(ask(&estimator_horus, &question).smact_permille > 0);
}

TEST(every_estimator_has_its_name)
{
    size_t count = 0;

    for (const struct estimator *const *e = estimators; *e; e++, count++) {
        assert_ptr_equal(estimator_find((*e)->name), *e);
        assert_true(strlen((*e)->text) > 10);
    }
    assert_int_equal(count, 11);
    assert_ptr_equal(estimators[0], &estimator_auto);
    assert_null(estimator_find("oracle"));
    assert_null(estimator_find(""));
}

RUN_TESTS(NULL, NULL)
