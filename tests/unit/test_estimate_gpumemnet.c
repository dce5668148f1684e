#include "question_fixture.h"

#include "activation_name.h"
#include "estimate/learned/gpumemnet.h"
#include "estimate/learned/neural.h"

#define TOLERANCE 1e-4

static struct gpumemnet_input input;
static struct gpumemnet_classes classes;

static int begin(void **state)
{
    input = (struct gpumemnet_input){0};
    return begin_question(state);
}

static int end(void **state)
{
    gpumemnet_input_release(&input);
    return end_question(state);
}

#define GPUMEMNET_TEST(name) TEST_BETWEEN(name, begin, end)

static void fill_cnn(int convolutions, int64_t elements)
{
    begin_list(0, 0);
    for (int i = 0; i < convolutions; i++) {
        add(LAYER_CONV, elements, 0, 36928);
        add_activation(ACTIVATION_RELU, elements, 0, false);
    }
    add(LAYER_LINEAR, 10, 0, 650);
}

/* Embedding, and blocks of attention and two linear layers, each with its layer norm, like the training data's. */
static void fill_transformer(int blocks)
{
    begin_list(0, 0);
    add(LAYER_EMBEDDING, 65536, 0, 100000 * 512);
    for (int i = 0; i < blocks; i++) {
        add(LAYER_ATTENTION, 65536, 0, 4 * 512 * 513);
        add(LAYER_DROPOUT, 65536, 0, 0);
        add(LAYER_LAYER_NORM, 65536, 0, 1024);
        add(LAYER_LINEAR, 196608, 0, 1536 * 513);
        add_activation(ACTIVATION_GELU, 196608, 0, false);
        add(LAYER_CONV1D_LINEAR, 65536, 0, 512 * 1537);
        add(LAYER_LAYER_NORM, 65536, 0, 1024);
    }
    add(LAYER_LINEAR, 10, 0, 5130);
}

/* "activation:relu", "conv", ... */
static void add_named(const char *name, int64_t elements, int64_t parameters)
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
    add(kind, elements, 0, parameters)->activation = (uint8_t)activation;
}

static int compare_logits(int64_t batch_size, const char *line)
{
    float wanted[GPUMEMNET_MAX_CLASSES];
    char kind[16];
    int fold, used;
    uint32_t count = 0, best = 0;

    assert_int_equal(sscanf(line, "logits %15s %d%n", kind, &fold, &used), 2);
    for (int step; sscanf(line + used, "%f%n", &wanted[count], &step) == 1; used += step) {
        if (wanted[count] > wanted[best])
            best = count;
        assert_in_range(++count, 1, GPUMEMNET_MAX_CLASSES - 1);
    }
    assert_int_equal(gpumemnet_input_read(&input, &list, batch_size, &err), 0);
    assert_int_equal(gpumemnet_classify(&input, strcmp(kind, "encoder") == 0, fold, &classes, &err), 0);
    assert_int_equal(classes.count, count);
    for (uint32_t c = 0; c < count; c++)
        if (fabsf(classes.logits[c] - wanted[c]) > TOLERANCE * fmaxf(1, fabsf(wanted[c])))
            fail_msg("class %u of '%.40s': %f", c, line, (double)classes.logits[c]);
    assert_int_equal(classes.best, best);
    gpumemnet_input_release(&input);
    return 1;
}

/* PyTorch's results on the same tables (python/carma_train/gpumemnet_golden.py). */
GPUMEMNET_TEST(logits_are_those_of_pytorch)
{
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
            add_named(name, elements, parameters);
        else if (line[0] == 'l')
            compared += compare_logits(batch_size, line);
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

/* Pools, additions, containers and the like are not tuples; a PReLU's parameter is not counted, as in the data. */
GPUMEMNET_TEST(inputs_are_tuples_of_some_layers)
{
    add(LAYER_CONV, 1000, 0, 50);
    add_activation(ACTIVATION_PRELU, 1000, 0, false);
    list.items[1].parameters = 1;
    add(LAYER_BATCH_NORM, 1000, 0, 20);
    add(LAYER_MAX_POOL, 250, 0, 0);
    add(LAYER_AVG_POOL, 10, 0, 0);
    add(LAYER_ADD, 1000, 0, 0);
    add(LAYER_CONCAT, 1000, 0, 0);
    add(LAYER_RESHAPE, 1000, 0, 0);
    add(LAYER_UNKNOWN, 5000, 0, 900)->container = true;
    add(LAYER_LINEAR, 10, 0, 30);
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
GPUMEMNET_TEST(transformers_are_taken_as_their_linear_layers)
{
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input more = {0};

    fill_transformer(6);
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

    add(LAYER_ATTENTION, 65536, 0, 0); /* its projections are layers of their own */
    add(LAYER_SOFTMAX, 65536, 0, 0);
    add(LAYER_CONV, 65536, 0, 99);
    add(LAYER_BATCH_NORM, 65536, 0, 99);
    assert_int_equal(gpumemnet_input_read(&more, &list, 4, &err), 0);
    assert_int_equal(more.count, input.count + 2);
    assert_int_equal(more.unmanaged, 2);
}

GPUMEMNET_TEST(layers_outside_the_data_are_counted)
{
    fill_cnn(3, 1000);
    add(LAYER_UNKNOWN, 1000, 0, 7);
    add(LAYER_CONV, 1000, 0, 70)->groups = 10;
    add(LAYER_CONV_TRANSPOSE, 1000, 0, 70);
    add(LAYER_GROUP_NORM, 1000, 0, 70);
    add(LAYER_LINEAR, 10, 0, 30)->shape_known = false;
    assert_int_equal(gpumemnet_input_read(&input, &list, 8, &err), 0);
    assert_int_equal(input.unmanaged, 5);
    assert_int_equal(input.count, 12);
}

/* Trained on labels of which 2% are spread over all classes. */
GPUMEMNET_TEST(smoothing_is_taken_off_probabilities)
{
    double votes[GPUMEMNET_MAX_CLASSES], sum = 0, left = 0;

    fill_cnn(12, 2000000);
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

GPUMEMNET_TEST(answers_are_edges_of_classes)
{
    fill_cnn(12, 2000000);
    ask_about(24);
    assert_int_equal(gpumemnet_input_read(&input, &list, 24, &err), 0);
    assert_int_equal(gpumemnet_classify(&input, gpumemnet_answering_kind(GPUMEMNET_CNN), -1, &classes, &err), 0);
    int64_t low_bytes = gpumemnet_class_centre_bytes(&classes, classes.best);
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

GPUMEMNET_TEST(what_the_data_do_not_have_halves_confidence)
{
    struct estimate sure, doubtful;

    /* An MLP like those of the training data. */
    begin_list(0, 0);
    for (int i = 0; i < 4; i++) {
        add(LAYER_LINEAR, 2000, 0, 2001 * 2000);
        add_activation(ACTIVATION_RELU, 2000, 0, false);
    }
    add(LAYER_LINEAR, 10, 0, 20010);
    add(LAYER_SOFTMAX, 10, 0, 0);
    ask_about(64);
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
    ask_about(100000);
    assert_int_equal(estimate(&estimator_gpumemnet, &question, &doubtful, &err), 0);
    assert_non_null(strstr(doubtful.warning, "larger or smaller"));
}

GPUMEMNET_TEST(what_no_gpu_of_the_data_held_exceeds_it)
{
    fill_cnn(25, 20000000);
    ask_about(60);
    assert_int_equal(estimate(&estimator_gpumemnet, &question, &result, &err), 0);
    assert_int_equal(result.median_bytes, 48000 * MIB);
    assert_true(result.exceeds_gpu);
    assert_non_null(strstr(result.warning, "more than the 40 GB"));
    /* The encoder's time grows with the square of the list. */
    fill_cnn(GPUMEMNET_MAX_TUPLES, 1000);
    ask_about(4);
    assert_int_equal(estimate(&estimator_gpumemnet, &question, &result, &err), 0);
    assert_int_equal(gpumemnet_input_read(&input, &list, 4, &err), 0);
    assert_int_equal(gpumemnet_classify(&input, GPUMEMNET_ENCODER, -1, &classes, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "1025"));
}

static void refuse(int code, const char *text)
{
    err = (struct error){""};
    assert_int_equal(estimate(&estimator_gpumemnet, &question, &result, &err), code);
    assert_has(err.text, text);
}

GPUMEMNET_TEST(refusals_say_why)
{
    static const enum layer_kind others[] = {LAYER_ATTENTION, LAYER_EMBEDDING, LAYER_LAYER_NORM, LAYER_CONV1D_LINEAR,
                                             LAYER_RECURRENT};

    ask_about(8);
    question.layers = NULL;
    refuse(-ENOTSUP, "give --summary");
    question.layers = &list;
    refuse(-ENOTSUP, "neither a linear layer nor a convolution");
    add(LAYER_LINEAR, 10, 0, 110);
    question.training.batch_size = 0;
    refuse(-EINVAL, "batch size 0");
    question.training.batch_size = 8;
    question.fold = 5;
    refuse(-EINVAL, "fold 5");
    question.fold = -1;
    add(LAYER_EMBEDDING, 10, 0, 110);
    for (size_t i = 0; i < array_size(others); i++) {
        list.items[1].kind = (uint8_t)others[i];
        refuse(-ENOTSUP, layer_kind_name(others[i]));
    }
    list.items[1].container = true;
    refuse(0, "");
    fill_transformer(4);
    refuse(0, "");
    add(LAYER_RECURRENT, 10, 0, 110);
    refuse(-ENOTSUP, "recurrent");
}

/* The largest numbers that a summary may hold. */
GPUMEMNET_TEST(extremes_are_answered)
{
    for (int i = 0; i < 40; i++) {
        struct layer *layer = add(LAYER_CONV, LAYER_MAX_DIMENSION, 0, LAYER_MAX_PARAMETERS);
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
