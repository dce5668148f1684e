#include "unit.h"

#include <math.h>

#include "activation_name.h"
#include "base/units.h"
#include "estimate/estimate.h"
#include "estimate/learned/gpumemnet.h"
#include "estimate/learned/neural.h"

#define TOLERANCE 1e-4

static struct layer *add(struct layer_list *list, enum layer_kind kind, int64_t elements, int64_t parameters)
{
    struct layer *layer = layer_list_add(list, kind);

    layer->shape_known = true;
    layer->rank = 1;
    layer->shape[0] = elements;
    layer->parameters = parameters;
    return layer;
}

static void add_activation(struct layer_list *list, enum activation activation, int64_t elements)
{
    add(list, LAYER_ACTIVATION, elements, 0)->activation = (uint8_t)activation;
}

/* An MLP like those of the training data. */
static void fill_mlp(struct layer_list *list)
{
    layer_list_init(list);
    for (int i = 0; i < 4; i++) {
        add(list, LAYER_LINEAR, 2000, 2001 * 2000);
        add_activation(list, ACTIVATION_RELU, 2000);
    }
    add(list, LAYER_LINEAR, 10, 20010);
    add(list, LAYER_SOFTMAX, 10, 0);
}

static void fill_cnn(struct layer_list *list, int convolutions, int64_t elements)
{
    layer_list_init(list);
    for (int i = 0; i < convolutions; i++) {
        add(list, LAYER_CONV, elements, 36928);
        add_activation(list, ACTIVATION_RELU, elements);
    }
    add(list, LAYER_LINEAR, 10, 650);
}

/* Embedding, and blocks of attention and two linear layers, each with its layer norm, like the training data's. */
static void fill_transformer(struct layer_list *list, int blocks)
{
    layer_list_release(list);
    layer_list_init(list);
    add(list, LAYER_EMBEDDING, 65536, 100000 * 512);
    for (int i = 0; i < blocks; i++) {
        add(list, LAYER_ATTENTION, 65536, 4 * 512 * 513);
        add(list, LAYER_DROPOUT, 65536, 0);
        add(list, LAYER_LAYER_NORM, 65536, 1024);
        add(list, LAYER_LINEAR, 196608, 1536 * 513);
        add_activation(list, ACTIVATION_GELU, 196608);
        add(list, LAYER_CONV1D_LINEAR, 65536, 512 * 1537);
        add(list, LAYER_LAYER_NORM, 65536, 1024);
    }
    add(list, LAYER_LINEAR, 10, 5130);
}

static struct estimate_question question_of(const struct layer_list *layers, int64_t batch_size)
{
    struct estimate_question question = {
        .layers = layers,
        .profile = machine_profile_find("a100-40g-thesis"),
        .declared_bytes = -1,
        .quantile_permille = 950,
        .fold = -1,
        .training = {.batch_size = batch_size, .optimizer = OPTIMIZER_ADAM, .precision = PRECISION_FP32},
    };

    return question;
}

/* "activation:relu", "conv", ... */
static void add_named(struct layer_list *list, const char *name, int64_t elements, int64_t parameters)
{
    const char *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    int kind = 0, activation = 0;

    while (kind < LAYER_KIND_COUNT &&
           (strlen(layer_kind_name(kind)) != length || strncmp(layer_kind_name(kind), name, length) != 0))
        kind++;
    assert_in_range(kind, 0, LAYER_KIND_COUNT - 1);
    while (colon && strcmp(activation_name(activation), colon + 1) != 0)
        assert_in_range(++activation, 0, ACTIVATION_COUNT - 1);
    add(list, kind, elements, parameters)->activation = (uint8_t)activation;
}

static int compare_logits(const struct layer_list *list, int64_t batch_size, const char *line)
{
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    struct gpumemnet_classes classes;
    float wanted[GPUMEMNET_MAX_CLASSES];
    char kind[16];
    int fold, used;
    uint32_t count = 0, best = 0;
    struct error err;

    assert_int_equal(sscanf(line, "logits %15s %d%n", kind, &fold, &used), 2);
    for (int step; sscanf(line + used, "%f%n", &wanted[count], &step) == 1; used += step) {
        if (wanted[count] > wanted[best])
            best = count;
        assert_in_range(++count, 1, GPUMEMNET_MAX_CLASSES - 1);
    }
    assert_int_equal(gpumemnet_input_read(&input, list, batch_size, &err), 0);
    assert_int_equal(gpumemnet_classify(&input, strcmp(kind, "encoder") == 0, fold, &classes, &err), 0);
    assert_int_equal(classes.count, count);
    for (uint32_t c = 0; c < count; c++)
        if (fabsf(classes.logits[c] - wanted[c]) > TOLERANCE * fmaxf(1, fabsf(wanted[c])))
            fail_msg("class %u of '%.40s': %f", c, line, (double)classes.logits[c]);
    assert_int_equal(classes.best, best);
    return 1;
}

/* PyTorch's results on the same tables (python/carma_train/gpumemnet_golden.py). */
TEST(logits_are_those_of_pytorch)
{
    CLEANUP(layer_list_release) struct layer_list list = {0};
    FILE *file = fopen(CARMA_GOLDEN "/estimate-gpumemnet.txt", "r");
    int networks = 0, compared = 0;
    char line[512], name[64];
    long long batch_size = 0, elements, parameters;

    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "network %63s %lld", name, &batch_size) == 2) {
            layer_list_release(&list);
            networks++;
        } else if (sscanf(line, "layer %63s %lld %lld", name, &elements, &parameters) == 3)
            add_named(&list, name, elements, parameters);
        else if (line[0] == 'l')
            compared += compare_logits(&list, batch_size, line);
    }
    fclose(file);
    assert_int_equal(networks, 54);
    assert_int_equal(compared, 4 * networks);
}

TEST(halves_are_single_precision_numbers)
{
    static const uint16_t halves[] = {0x0000, 0x3c00, 0xc000, 0x3555, 0x7bff, 0x0001, 0x83ff, 0x0400};
    static const float values[] = {0, 1, -2, 0x1.554p-2f, 65504, 0x1p-24f, -0x3ffp-24f, 0x1p-14f};
    float found[array_size(halves)];

    neural_from_halves(halves, array_size(halves), found);
    for (size_t i = 0; i < array_size(halves); i++)
        assert_true(found[i] == values[i]);
}

TEST(dense_layers_multiply_and_add)
{
    static const float weights[] = {1, 2, 3, 10, 20, 30, 100, 200, 300}; /* [2][3], then the bias */
    static const float x[] = {1, 1, 0, -1};
    static const float wanted[] = {111, 222, 333, 90, 180, 270};
    const float *at = weights;
    float y[6];

    neural_dense(&at, 2, 2, 3, x, y);
    assert_ptr_equal(at, weights + neural_dense_weights(2, 3));
    assert_memory_equal(y, wanted, sizeof y);
    neural_relu(4, (float *)memcpy(y, x, sizeof x));
    assert_true(y[2] == 0 && y[3] == 0 && y[0] == 1);
}

TEST(softmax_stands_large_numbers)
{
    float x[] = {1000, 1000, -1000};

    neural_softmax(3, x);
    assert_true(x[0] == 0.5f && x[1] == 0.5f && x[2] == 0);
}

/* Pools, additions, containers and the like are not tuples; a PReLU's parameter is not counted, as in the data. */
TEST(inputs_are_tuples_of_some_layers)
{
    CLEANUP(layer_list_release) struct layer_list list;
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    struct error err;

    layer_list_init(&list);
    add(&list, LAYER_CONV, 1000, 50);
    add_activation(&list, ACTIVATION_PRELU, 1000);
    list.items[1].parameters = 1;
    add(&list, LAYER_BATCH_NORM, 1000, 20);
    add(&list, LAYER_MAX_POOL, 250, 0);
    add(&list, LAYER_AVG_POOL, 10, 0);
    add(&list, LAYER_ADD, 1000, 0);
    add(&list, LAYER_CONCAT, 1000, 0);
    add(&list, LAYER_RESHAPE, 1000, 0);
    add(&list, LAYER_UNKNOWN, 5000, 900)->container = true;
    add(&list, LAYER_LINEAR, 10, 30);
    assert_int_equal(gpumemnet_input_read(&input, &list, 8, &err), 0);
    assert_int_equal(input.family, GPUMEMNET_CNN);
    assert_int_equal(input.count, 4);
    assert_int_equal(input.unmanaged, 0);
    assert_true(input.features[GPUMEMNET_DEPTH] == 4);
    assert_true(input.features[GPUMEMNET_LINEAR] == 1 && input.features[GPUMEMNET_CONV] == 1);
    assert_true(input.features[GPUMEMNET_NORM] == 1 && input.features[GPUMEMNET_DROPOUT] == 0);
    assert_true(input.features[GPUMEMNET_BATCH] == log(8.0));
    assert_true(input.features[GPUMEMNET_PARAMETERS] == log(100.0));
    assert_true(input.features[GPUMEMNET_ACTIVATIONS] == log(3010.0));
    assert_true(input.features[GPUMEMNET_ACTIVATIONS_BATCH] == log(8 * 3010.0));
    /* PReLU is the fourth of eleven on the circle, identity the first. */
    assert_true(fabs(input.features[GPUMEMNET_COS] - cos(2 * M_PI * 3 / 11)) < 1e-6);
    assert_true(fabs(input.features[GPUMEMNET_SIN] - sin(2 * M_PI * 3 / 11)) < 1e-6);
}

/* Attention is its two linear layers, or its parts in the summary; all activations count as the data's. */
TEST(transformers_are_taken_as_their_linear_layers)
{
    CLEANUP(layer_list_release) struct layer_list list = {0};
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0}, more = {0};
    struct gpumemnet_classes classes;
    struct error err;

    fill_transformer(&list, 6);
    assert_int_equal(gpumemnet_input_read(&input, &list, 4, &err), 0);
    assert_int_equal(input.family, GPUMEMNET_TRANSFORMER);
    assert_int_equal(input.count, 1 + 6 * 8 + 1);
    assert_int_equal(input.unmanaged, 0);
    assert_true(input.features[GPUMEMNET_LINEAR] == 25 && input.features[GPUMEMNET_NORM] == 12);
    assert_true(input.tuples[1].activations == 3 * 65536.0 && input.tuples[1].parameters == 3 * 512 * 513.0);
    assert_true(input.tuples[2].activations == 65536 && input.tuples[2].parameters == 512 * 513.0);
    assert_true(input.features[GPUMEMNET_ACTIVATIONS] == log(65536.0 * (1 + 6 * 14) + 10));
    assert_int_equal(gpumemnet_classify(&input, GPUMEMNET_ENCODER, -1, &classes, &err), 0);
    assert_false(classes.outside);

    add(&list, LAYER_ATTENTION, 65536, 0); /* its projections are layers of their own */
    add(&list, LAYER_SOFTMAX, 65536, 0);
    add(&list, LAYER_CONV, 65536, 99);
    add(&list, LAYER_BATCH_NORM, 65536, 99);
    assert_int_equal(gpumemnet_input_read(&more, &list, 4, &err), 0);
    assert_int_equal(more.count, input.count + 2);
    assert_int_equal(more.unmanaged, 2);
}

TEST(layers_outside_the_data_are_counted)
{
    CLEANUP(layer_list_release) struct layer_list list;
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    struct error err;

    fill_cnn(&list, 3, 1000);
    add(&list, LAYER_UNKNOWN, 1000, 7);
    add(&list, LAYER_CONV, 1000, 70)->groups = 10;
    add(&list, LAYER_CONV_TRANSPOSE, 1000, 70);
    add(&list, LAYER_GROUP_NORM, 1000, 70);
    add(&list, LAYER_LINEAR, 10, 30)->shape_known = false;
    assert_int_equal(gpumemnet_input_read(&input, &list, 8, &err), 0);
    assert_int_equal(input.unmanaged, 5);
    assert_int_equal(input.count, 12);
}

/* The encoder sees a set: the answer does not depend on the order of branches in a summary. */
TEST(order_of_layers_does_not_matter)
{
    CLEANUP(layer_list_release) struct layer_list list;
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    struct gpumemnet_classes forward, backward;
    struct error err;

    fill_cnn(&list, 9, 500000);
    list.items[4].shape[0] = 2000000;
    assert_int_equal(gpumemnet_input_read(&input, &list, 16, &err), 0);
    assert_int_equal(gpumemnet_classify(&input, GPUMEMNET_ENCODER, -1, &forward, &err), 0);
    for (size_t i = 0, j = input.count - 1; i < j; i++, j--) {
        struct gpumemnet_tuple kept = input.tuples[i];
        input.tuples[i] = input.tuples[j];
        input.tuples[j] = kept;
    }
    assert_int_equal(gpumemnet_classify(&input, GPUMEMNET_ENCODER, -1, &backward, &err), 0);
    for (uint32_t c = 0; c < forward.count; c++)
        assert_true(fabsf(forward.logits[c] - backward.logits[c]) < 1e-3f);
}

/* Trained on labels of which 2% are spread over all classes. */
TEST(smoothing_is_taken_off_probabilities)
{
    CLEANUP(layer_list_release) struct layer_list list;
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    struct gpumemnet_classes classes;
    double votes[GPUMEMNET_MAX_CLASSES], sum = 0, left = 0;
    struct error err;

    fill_cnn(&list, 12, 2000000);
    assert_int_equal(gpumemnet_input_read(&input, &list, 24, &err), 0);
    assert_int_equal(gpumemnet_classify(&input, GPUMEMNET_ENSEMBLE, -1, &classes, &err), 0);
    for (uint32_t c = 0; c < classes.count; c++)
        sum += votes[c] = exp((double)classes.logits[c]);
    assert_true(fabs(sum - 1) < 1e-5);
    for (uint32_t c = 0; c < classes.count; c++)
        left += votes[c] = fmax(votes[c] - 0.02 / classes.count, 0);
    assert_true(left < 0.99);
    for (uint32_t c = 0; c < classes.count; c++)
        assert_true(fabs((double)classes.probabilities[c] - votes[c] / left) < 1e-5);
}

TEST(answers_are_edges_of_classes)
{
    CLEANUP(layer_list_release) struct layer_list list;
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    struct estimate_question question;
    struct gpumemnet_classes classes;
    struct estimate result;
    struct error err;
    int64_t low_bytes;

    fill_cnn(&list, 12, 2000000);
    question = question_of(&list, 24);
    assert_int_equal(gpumemnet_input_read(&input, &list, 24, &err), 0);
    assert_int_equal(gpumemnet_classify(&input, gpumemnet_answering_kind(GPUMEMNET_CNN), -1, &classes, &err), 0);
    low_bytes = gpumemnet_class_centre_bytes(&classes, classes.best);
    for (int32_t quantile = 1; quantile < 1000; quantile += 7) {
        uint32_t enough = 0;
        double sum = (double)classes.probabilities[0];

        question.quantile_permille = quantile;
        assert_int_equal(estimate(&estimator_gpumemnet, &question, &result, &err), 0);
        while (enough + 1 < classes.count && (sum * 1000 < quantile || enough < classes.best))
            sum += (double)classes.probabilities[++enough];
        assert_int_equal(result.bytes, gpumemnet_class_upper_bytes(&classes, enough));
        assert_true(result.low_bytes > 0 && result.low_bytes <= low_bytes); /* the surer, the wider */
        low_bytes = result.low_bytes;
        assert_int_equal(result.median_bytes, gpumemnet_class_centre_bytes(&classes, classes.best));
        assert_true(result.bytes >= result.median_bytes);
    }
    assert_true(low_bytes < result.median_bytes);
    assert_int_equal(result.confidence_permille, (int)(1000 * classes.probabilities[classes.best]));
    assert_string_equal(result.warning, "");
    assert_string_equal(result.source, "gpumemnet");
}

TEST(classes_are_a_thousand_or_eight_thousand_mib)
{
    struct gpumemnet_classes mlp = {.first = 1, .count = 4, .width_bytes = 1000 * MIB};
    struct gpumemnet_classes cnn = {.count = 7, .width_bytes = 8000 * MIB, .out_of_memory_last = true};

    assert_int_equal(gpumemnet_class_upper_bytes(&mlp, 0), 2000 * MIB);
    assert_int_equal(gpumemnet_class_centre_bytes(&mlp, 0), 1500 * MIB);
    assert_int_equal(gpumemnet_class_upper_bytes(&cnn, 0), 8000 * MIB);
    assert_int_equal(gpumemnet_class_centre_bytes(&cnn, 2), 20000 * MIB);
    assert_int_equal(gpumemnet_class_upper_bytes(&cnn, 6), 48000 * MIB);
    assert_int_equal(gpumemnet_class_centre_bytes(&cnn, 6), 48000 * MIB);
}

TEST(what_the_data_do_not_have_halves_confidence)
{
    CLEANUP(layer_list_release) struct layer_list list;
    struct estimate_question question;
    struct estimate sure, doubtful;
    struct error err;

    fill_mlp(&list);
    question = question_of(&list, 64);
    assert_int_equal(estimate(&estimator_gpumemnet, &question, &sure, &err), 0);
    assert_string_equal(sure.warning, "");
    assert_true(sure.confidence_permille > 500);
    question.training.optimizer = OPTIMIZER_SGD;
    assert_int_equal(estimate(&estimator_gpumemnet, &question, &doubtful, &err), 0);
    assert_int_equal(doubtful.confidence_permille, sure.confidence_permille / 2);
    assert_non_null(strstr(doubtful.warning, "Adam"));
    question.training.optimizer = OPTIMIZER_ADAMW;
    question.training.precision = PRECISION_AMP;
    assert_int_equal(estimate(&estimator_gpumemnet, &question, &doubtful, &err), 0);
    assert_int_equal(doubtful.confidence_permille, sure.confidence_permille / 2);
    question = question_of(&list, 100000);
    assert_int_equal(estimate(&estimator_gpumemnet, &question, &doubtful, &err), 0);
    assert_non_null(strstr(doubtful.warning, "larger or smaller"));
}

TEST(what_no_gpu_of_the_data_held_exceeds_it)
{
    CLEANUP(layer_list_release) struct layer_list list;
    struct estimate_question question;
    struct estimate result;
    struct error err;

    fill_cnn(&list, 25, 20000000);
    question = question_of(&list, 60);
    assert_int_equal(estimate(&estimator_gpumemnet, &question, &result, &err), 0);
    assert_int_equal(result.median_bytes, 48000 * MIB);
    assert_true(result.exceeds_gpu);
    assert_non_null(strstr(result.warning, "more than the 40 GB"));
}

/* The encoder's time grows with the square of the list. */
TEST(long_lists_are_too_much_for_the_encoder)
{
    CLEANUP(layer_list_release) struct layer_list list;
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    struct estimate_question question;
    struct gpumemnet_classes classes;
    struct estimate result;
    struct error err;

    fill_cnn(&list, GPUMEMNET_MAX_TUPLES, 1000);
    question = question_of(&list, 4);
    assert_int_equal(estimate(&estimator_gpumemnet, &question, &result, &err), 0);
    assert_int_equal(gpumemnet_input_read(&input, &list, 4, &err), 0);
    assert_int_equal(gpumemnet_classify(&input, GPUMEMNET_ENCODER, -1, &classes, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "1025"));
}

static void refuse(const struct estimate_question *question, int code, const char *text)
{
    struct estimate result;
    struct error err = {""};

    assert_int_equal(estimate(&estimator_gpumemnet, question, &result, &err), code);
    if (!strstr(err.text, text))
        fail_msg("'%s' does not say '%s'", err.text, text);
}

TEST(refusals_say_why)
{
    static const enum layer_kind others[] = {LAYER_ATTENTION, LAYER_EMBEDDING, LAYER_LAYER_NORM, LAYER_CONV1D_LINEAR,
                                             LAYER_RECURRENT};
    CLEANUP(layer_list_release) struct layer_list list;
    struct estimate_question question = question_of(NULL, 8);

    refuse(&question, -ENOTSUP, "give --summary");
    layer_list_init(&list);
    question.layers = &list;
    refuse(&question, -ENOTSUP, "neither a linear layer nor a convolution");
    add(&list, LAYER_LINEAR, 10, 110);
    question.training.batch_size = 0;
    refuse(&question, -EINVAL, "batch size 0");
    question.training.batch_size = 8;
    question.fold = 5;
    refuse(&question, -EINVAL, "fold 5");
    question.fold = -1;
    add(&list, LAYER_EMBEDDING, 10, 110);
    for (size_t i = 0; i < array_size(others); i++) {
        list.items[1].kind = (uint8_t)others[i];
        refuse(&question, -ENOTSUP, layer_kind_name(others[i]));
    }
    list.items[1].container = true;
    refuse(&question, 0, "");
    fill_transformer(&list, 4);
    refuse(&question, 0, "");
    add(&list, LAYER_RECURRENT, 10, 110);
    refuse(&question, -ENOTSUP, "recurrent");
}

/* The largest numbers that a summary may hold. */
TEST(extremes_are_answered)
{
    CLEANUP(layer_list_release) struct layer_list list;
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    struct gpumemnet_classes classes;
    struct error err;

    layer_list_init(&list);
    for (int i = 0; i < 40; i++) {
        struct layer *layer = add(&list, LAYER_CONV, LAYER_MAX_DIMENSION, LAYER_MAX_PARAMETERS);
        layer->rank = LAYER_MAX_RANK;
        for (int j = 0; j < LAYER_MAX_RANK; j++)
            layer->shape[j] = LAYER_MAX_DIMENSION;
    }
    assert_int_equal(gpumemnet_input_read(&input, &list, INT64_MAX, &err), 0);
    for (int kind = 0; kind < GPUMEMNET_KIND_COUNT; kind++) {
        assert_int_equal(gpumemnet_classify(&input, kind, -1, &classes, &err), 0);
        assert_true(classes.outside);
        for (uint32_t c = 0; c < classes.count; c++)
            assert_true(isfinite(classes.logits[c]) && isfinite(classes.probabilities[c]));
    }
}

RUN_TESTS(NULL, NULL)
