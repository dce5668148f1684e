/* Peaks of lowered and replayed layer lists, compared with those of another model of them. */
#include "unit.h"

#include "activation_name.h"
#include "estimate_fixture.h"

static void read_numbers(const char *text, int64_t *numbers, size_t *count)
{
    for (*count = 0; *text && *count < 8; text += *text == ',') {
        char *end;
        numbers[(*count)++] = strtoll(text, &end, 10);
        assert_true(end != text);
        text = end;
    }
}

static enum layer_kind kind_named(const char *name)
{
    for (int kind = 0; kind < LAYER_KIND_COUNT; kind++)
        if (strcmp(layer_kind_name((enum layer_kind)kind), name) == 0)
            return (enum layer_kind)kind;
    fail_msg("no layer '%s'", name);
    return LAYER_UNKNOWN;
}

static enum activation activation_named(const char *name)
{
    for (int activation = 0; activation < ACTIVATION_COUNT; activation++)
        if (strcmp(activation_name((enum activation)activation), name) == 0)
            return (enum activation)activation;
    fail_msg("no activation '%s'", name);
    return ACTIVATION_NONE;
}

static void read_layer(struct model *model, const char *line)
{
    char kind[32], activation[32], shape[64], inputs[128], type[64];
    int depth, kernel, stride, heads = 0;
    long long parameters, in_channels;
    int64_t numbers[8];
    size_t count;

    assert_true(sscanf(line, "layer %31s %31s %d %lld %d %d %lld %63s %127s %63s heads %d", kind, activation, &depth,
                       &parameters, &kernel, &stride, &in_channels, shape, inputs, type, &heads) >= 10);
    struct layer *layer = layer_list_add(&model->list, kind_named(kind));
    layer->activation = (uint8_t)activation_named(activation);
    layer->depth = (uint8_t)depth;
    layer->parameters = parameters;
    layer->kernel[0] = layer->kernel[1] = kernel;
    layer->stride[0] = layer->stride[1] = stride;
    layer->in_channels = in_channels;
    layer->heads = heads;
    snprintf(layer->type, sizeof layer->type, "%s", type);
    read_numbers(shape, numbers, &count);
    memcpy(layer->shape, numbers, count * sizeof *numbers);
    layer->rank = (uint8_t)count;
    layer->shape_known = true;
    read_numbers(inputs, numbers, &count);
    for (size_t i = 0; i < count; i++)
        layer_add_input(layer, (int32_t)numbers[i]);
}

static void begin_model(struct model *model, const char *line, char name[64])
{
    char shape[64], mode[16];
    long long batch, samples, summary;
    const char *rest = strstr(line, " batch ");
    size_t rank;

    assert_int_equal(sscanf(line, "program %63s input %63s", name, shape), 2);
    assert_non_null(rest);
    assert_int_equal(sscanf(rest, " batch %lld samples %lld summary %lld %15s", &batch, &samples, &summary, mode), 4);
    model_init(model, 0, batch);
    read_numbers(shape, model->list.input, &rank);
    model->list.input_rank = (uint8_t)rank;
    model->list.input_is_index = strstr(line, " words ") != NULL;
    model->training.optimizer = OPTIMIZER_ADAM;
    model->training.samples = samples;
    model->training.summary_pass = true;
    model->training.summary_batch = summary;
    model->training.summary_gradients = strcmp(mode, "train") == 0;
}

static uint8_t algorithm_named(char letter)
{
    return letter == 'W' ? WORKSPACE_WINOGRAD : letter == 'V' ? WORKSPACE_WINOGRAD_SMALL : WORKSPACE_NONE;
}

static int compare_peaks(const struct model *model, char *line, const char *name)
{
    long long parameters, allocated, wanted, limit;
    int used, compared = 0;

    assert_int_equal(sscanf(line, "peak parameters %lld allocated %lld reserved%n", &parameters, &allocated, &used), 2);
    assert_int_equal(model->program.parameter_bytes, parameters);
    for (char *word = strtok(line + used, " \n"); word; word = strtok(NULL, " \n")) {
        limit = word[3] == '/' ? strtoll(word + 4, NULL, 10) : 0;
        wanted = strtoll(strchr(word, '=') + 1, NULL, 10);
        struct replay_result result = replay_with(
            &model->program, rule_of(algorithm_named(word[0]), algorithm_named(word[1]), algorithm_named(word[2])),
            limit * MIB);
        if (result.peak_reserved_bytes != wanted)
            print_error("%s, %s: %lld\n", name, word, (long long)result.peak_reserved_bytes);
        assert_int_equal(result.peak_reserved_bytes, wanted);
        if (strncmp(word, "000=", 4) == 0)
            assert_int_equal(result.peak_allocated_bytes, allocated);
        compared++;
    }
    return compared;
}

TEST(peaks_are_those_of_another_model)
{
    FILE *file = fopen(CARMA_GOLDEN "/estimate-replay.txt", "r");
    char line[512], name[64] = "";
    struct model model;
    int depth, programs = 0, compared = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        if (strncmp(line, "program ", 8) == 0) {
            begin_model(&model, line, name);
        } else if (sscanf(line, "container %d", &depth) == 1) {
            struct layer *layer = layer_list_add(&model.list, LAYER_UNKNOWN);
            layer->container = true;
            layer->depth = (uint8_t)depth;
        } else if (strncmp(line, "layer ", 6) == 0) {
            read_layer(&model, line);
        } else {
            assert_int_equal(model_lower(&model), 0);
            compared += compare_peaks(&model, line, name);
            model_release(&model);
            programs++;
        }
    }
    fclose(file);
    assert_int_equal(programs, 38);
    assert_true(compared > 150);
}
