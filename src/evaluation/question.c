#include "evaluation/question.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json_read.h"
#include "base/memory.h"

#define MAX_BATCH (INT64_C(1) << 24)

int question_parse(const char *line, size_t length, json_t **json, struct error *err)
{
    static const struct json_bounds bounds = {
        .values = (size_t)40 * LAYER_LIST_MAX, .depth = 5, .bytes = QUESTION_MAX_BYTES};

    return json_read(line, length, 0, &bounds, json, err);
}

static int refuse(const struct question *question, const char *member, struct error *err)
{
    return error_set(err, EINVAL, "%.90s: '%s' of a question is not what it should be", question->name, member);
}

/* Into *value, which stays as it is where the member is missing. False: it is there, and no number in the range. */
static bool take(const json_t *object, const char *member, int64_t low, int64_t high, int64_t *value)
{
    const json_t *found = json_object_get(object, member);

    if (found)
        *value = json_integer_value(found);
    return !found || (json_is_integer(found) && *value >= low && *value <= high);
}

/* A list of at most `room` numbers; -1: none. */
static int numbers(const json_t *list, int64_t low, int64_t high, int64_t *values, size_t room)
{
    size_t count = json_array_size(list);

    for (size_t i = 0; i < count && count <= room; i++) {
        values[i] = json_integer_value(json_array_get(list, i));
        if (!json_is_integer(json_array_get(list, i)) || values[i] < low || values[i] > high)
            return -1;
    }
    return json_is_array(list) && count <= room ? (int)count : -1;
}

static bool read_inputs(struct layer *layer, const json_t *inputs, size_t before)
{
    json_t *input;
    size_t i;

    json_array_foreach (inputs, i, input) {
        if (!json_is_integer(input) || json_integer_value(input) < -1 ||
            json_integer_value(input) >= (json_int_t)before)
            return false;
        layer_add_input(layer, (int32_t)json_integer_value(input));
    }
    return true;
}

/* "like" is the type whose meaning the layer has, where its own name says nothing. */
static bool read_layer(struct layer_list *list, const json_t *json, bool connected)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    const char *like = json_string_value(json_object_get(json, "like"));
    size_t before = list->count;
    int64_t kernel = 0, stride = 0, heads = 0;
    enum activation activation;
    struct layer *layer;
    int rank;

    if (!type)
        return false;
    layer = layer_list_add(list, layer_kind_of_type(like ? like : type, &activation));
    layer->activation = (uint8_t)activation;
    snprintf(layer->type, sizeof layer->type, "%s", type);
    snprintf(layer->name, sizeof layer->name, "%.40s-%zu", type, list->count);
    rank = numbers(json_object_get(json, "shape"), 0, LAYER_MAX_DIMENSION, layer->shape, LAYER_MAX_RANK);
    if (rank < 0 || !take(json, "parameters", 0, LAYER_MAX_PARAMETERS, &layer->parameters) ||
        !take(json, "in", 0, LAYER_MAX_DIMENSION, &layer->in_channels) ||
        !take(json, "groups", 0, LAYER_MAX_DIMENSION, &layer->groups) || !take(json, "kernel", 0, 1 << 20, &kernel) ||
        !take(json, "stride", 0, 1 << 20, &stride) || !take(json, "heads", 0, 1 << 20, &heads))
        return false;
    layer->rank = (uint8_t)rank;
    layer->shape_known = true;
    layer->bias_known = json_object_get(json, "bias");
    layer->bias = json_is_true(json_object_get(json, "bias"));
    /* as torchsummary shows a module that is made of others */
    layer->container = !connected && layer->kind == LAYER_UNKNOWN && layer->parameters == 0;
    layer->heads = (int32_t)heads;
    for (int i = 0; i < 2; i++) {
        layer->kernel[i] = (int32_t)kernel;
        layer->stride[i] = (int32_t)stride;
    }
    return read_inputs(layer, json_object_get(json, "inputs"), before);
}

/* Where the layers do not say what they read, that is worked out. */
static int read_layers(struct question *question, const json_t *json, struct error *err)
{
    struct layer_list *list = &question->layers;
    const json_t *layers = json_object_get(json, "layers");
    int rank = numbers(json_object_get(json, "input"), 0, LAYER_MAX_DIMENSION, list->input, LAYER_MAX_RANK);
    json_t *layer;
    size_t i;

    if (rank < 0)
        return refuse(question, "input", err);
    list->input_rank = (uint8_t)rank;
    list->input_is_index = json_is_true(json_object_get(json, "index"));
    list->connected = json_is_true(json_object_get(json, "connected"));
    if (!json_is_array(layers) || json_array_size(layers) > LAYER_LIST_MAX)
        return refuse(question, "layers", err);
    json_array_foreach (layers, i, layer)
        if (!read_layer(list, layer, list->connected))
            return refuse(question, "layers", err);
    if (!list->connected)
        layers_complete(list);
    question->has_layers = true;
    return 1;
}

static int read_training(struct question *question, const json_t *json, struct error *err)
{
    const char *optimizer = json_string_value(json_object_get(json, "optimizer"));
    const char *precision = json_string_value(json_object_get(json, "precision"));
    struct training *training = &question->training;

    training_default(training);
    if (!take(json, "batch_size", 1, MAX_BATCH, &training->batch_size))
        return refuse(question, "batch_size", err);
    if (!take(json, "samples", 0, INT64_MAX, &training->samples))
        return refuse(question, "samples", err);
    if (!take(json, "summary_batch", 0, MAX_BATCH, &training->summary_batch))
        return refuse(question, "summary_batch", err);
    training->summary_pass = training->summary_gradients = training->summary_batch > 0;
    training->weight_decay = json_is_true(json_object_get(json, "weight_decay"));
    if (optimizer && optimizer_parse(optimizer, &training->optimizer, err))
        return -EINVAL;
    return precision ? precision_parse(precision, &training->precision, err) : 0;
}

/* 1; 0: it was recorded for another batch size alone. */
static int read_at(struct capture *capture, const char *path, const char *text, size_t length, int64_t batch_size,
                   struct error *err)
{
    int rc = capture_read(capture, path, text, length, 0, err);
    bool scales;

    if (rc || capture->batch_size == batch_size)
        return rc ? rc : 1;
    scales = capture->scales;
    capture_release(capture);
    if (!scales)
        return 0;
    rc = capture_read(capture, path, text, length, batch_size, err);
    return rc ? rc : 1;
}

/* With the optimizer of the question, cuDNN's trials, and images that are brought to the GPU ahead. */
static int read_capture(struct question *question, const char *path, struct error *err)
{
    const struct capture_changes changes = {question->training.optimizer, question->training.weight_decay, true, true};
    CLEANUP(free_ptr) char *text = NULL;
    CLEANUP(free_ptr) struct capture *capture = xcalloc(1, sizeof *capture);
    struct error why;
    size_t length;
    int rc;

    if (access(path, F_OK) != 0)
        return 0;
    rc = file_read(path, CAPTURE_MAX_BYTES, &text, &length, err);
    if (rc == 0)
        rc = read_at(capture, path, text, length, question->training.batch_size, err);
    if (rc <= 0)
        return rc;
    question->training.precision = capture->precision;
    rc = capture_change(capture, &changes, &why);
    question->capture = steal_ptr(&capture);
    return rc ? error_set(err, EINVAL, "%s: %s", path, why.text) : 1;
}

int question_read(struct question *question, const json_t *json, struct error *err)
{
    const char *key = json_string_value(json_object_get(json, "key"));
    const char *capture = json_string_value(json_object_get(json, "capture"));
    int rc;

    *question = (struct question){.name = json_string_value(json_object_get(json, "name")),
                                  .kind = json_string_value(json_object_get(json, "kind"))};
    layer_list_init(&question->layers);
    if (!question->name || !question->kind || !key || sscanf(key, "%16" SCNx64, &question->key) != 1)
        return error_set(err, EINVAL, "a question lacks its 'name', 'kind' or 'key'");
    rc = read_training(question, json, err);
    if (rc)
        return rc;
    if (capture)
        return read_capture(question, capture, err);
    return json_object_get(json, "layers") ? read_layers(question, json, err) : 1;
}

void question_release(struct question *question)
{
    layer_list_release(&question->layers);
    if (question->capture)
        capture_release(question->capture);
    free(question->capture);
    *question = (struct question){0};
}
