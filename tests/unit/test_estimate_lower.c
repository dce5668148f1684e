/* From a layer list to a program: each layer's saved tensors, and when they come and go. */
#include "unit.h"

#include "estimate_fixture.h"

#define WIDTH 1000
#define BATCH 100
#define BYTES (INT64_C(4) * WIDTH * BATCH) /* of an activation */

static struct model model;
static const struct program *const program = &model.program;

AROUND(release)
{
    model_release(&model);
}

#define MODEL_TEST(name) TEST_BETWEEN(name, NULL, release)

static void begin(int64_t width, int64_t batch_size)
{
    model_release(&model);
    model_init(&model, width, batch_size);
}

static void lower(void)
{
    assert_int_equal(model_lower(&model), 0);
}

static struct layer *add(enum layer_kind kind, int64_t width, int64_t parameters, int32_t from)
{
    return model_add(&model, kind, width, parameters, from);
}

/* Two linear layers with the layer in question between them, so that it has a gradient to pass on. */
static struct layer *between(enum layer_kind kind, int64_t parameters)
{
    begin(WIDTH, BATCH);
    add(LAYER_LINEAR, WIDTH, WIDTH * WIDTH + WIDTH, -1);
    struct layer *layer = add(kind, WIDTH, parameters, BEFORE);
    snprintf(layer->name, sizeof layer->name, "it");
    return layer;
}

static void finish(void)
{
    add(LAYER_LINEAR, 10, 10 * WIDTH + 10, BEFORE);
    lower();
}

/* Of a step's allocations for the layer: those freed while it runs, after it in forward, or in backward only. */
static int64_t saved_bytes(void)
{
    CLEANUP(free_ptr) int64_t *bytes = xcalloc(program->tensor_count, sizeof *bytes);
    int64_t saved = 0;

    for (size_t i = 0; i < program->event_count; i++) {
        const struct program_event *event = &program->events[i];
        if (event->step != 1 || event->op == PROGRAM_CONV)
            continue;
        if (event->op == PROGRAM_ALLOC && event->phase == PHASE_FORWARD)
            bytes[event->tensor] = event->category == MEMORY_ACTIVATION ? event->bytes : 0;
        if (event->op == PROGRAM_FREE && event->phase == PHASE_BACKWARD)
            saved += bytes[event->tensor];
    }
    return saved;
}

/* Bytes kept from forward to backward, beyond those that the linear layers keep anyway. These are the input of the
 * first, the layer's result (input of the second), the loss's logarithms and the sum of its weights. */
static void layer_saves(enum layer_kind kind, enum activation activation, bool in_place, int64_t parameters,
                        int64_t more)
{
    int64_t without = BYTES + 4 * 10 * BATCH + 4;
    struct layer *layer = between(kind, parameters);

    layer->activation = (uint8_t)activation;
    layer->in_place = in_place;
    finish();
    assert_int_equal(saved_bytes() - without, more);
}

MODEL_TEST(layers_save_what_their_derivatives_need)
{
    layer_saves(LAYER_IDENTITY, ACTIVATION_NONE, false, 0, 0);
    layer_saves(LAYER_RESHAPE, ACTIVATION_NONE, false, 0, 0);
    layer_saves(LAYER_ACTIVATION, ACTIVATION_RELU, false, 0, 0); /* its result is saved already */
    layer_saves(LAYER_ACTIVATION, ACTIVATION_TANH, false, 0, 0);
    layer_saves(LAYER_ACTIVATION, ACTIVATION_SIGMOID, false, 0, 0);
    layer_saves(LAYER_ACTIVATION, ACTIVATION_RELU, true, 0, 0);
    layer_saves(LAYER_ACTIVATION, ACTIVATION_GELU, false, 0, BYTES); /* its input */
    layer_saves(LAYER_ACTIVATION, ACTIVATION_SILU, false, 0, BYTES);
    layer_saves(LAYER_ACTIVATION, ACTIVATION_SILU, true, 0, BYTES); /* in place needs a copy */
    layer_saves(LAYER_ACTIVATION, ACTIVATION_ELU, false, 0, BYTES);
    layer_saves(LAYER_ACTIVATION, ACTIVATION_LEAKY_RELU, false, 0, BYTES);
    layer_saves(LAYER_ACTIVATION, ACTIVATION_LEAKY_RELU, true, 0, 0);
    layer_saves(LAYER_ACTIVATION, ACTIVATION_PRELU, false, 1, BYTES);
    layer_saves(LAYER_SOFTMAX, ACTIVATION_NONE, false, 0, 0);
    layer_saves(LAYER_DROPOUT, ACTIVATION_NONE, false, 0, BYTES / 4);          /* a mask of bytes */
    layer_saves(LAYER_MAX_POOL, ACTIVATION_NONE, false, 0, BYTES + 2 * BYTES); /* its input, places as int64 */
    layer_saves(LAYER_AVG_POOL, ACTIVATION_NONE, false, 0, 0);                 /* a mean */
    layer_saves(LAYER_BATCH_NORM, ACTIVATION_NONE, false, 2 * WIDTH, BYTES + 2 * 4 * WIDTH);
    layer_saves(LAYER_LAYER_NORM, ACTIVATION_NONE, false, 2 * WIDTH, BYTES + 2 * 4 * BATCH);
    layer_saves(LAYER_LINEAR, ACTIVATION_NONE, false, WIDTH * WIDTH, BYTES);
    layer_saves(LAYER_CONV1D_LINEAR, ACTIVATION_NONE, false, WIDTH * WIDTH + WIDTH, BYTES);
    layer_saves(LAYER_UNKNOWN, ACTIVATION_NONE, false, 0, 0);
}

MODEL_TEST(in_place_takes_nothing)
{
    between(LAYER_ACTIVATION, 0)->activation = ACTIVATION_RELU;
    finish();
    assert_int_equal(taken(&model, 1, "it", PHASE_FORWARD, MEMORY_ACTIVATION), BYTES);
    model.list.items[1].in_place = true;
    lower();
    assert_int_equal(taken(&model, 1, "it", PHASE_FORWARD, MEMORY_ACTIVATION), 0);
    assert_int_equal(taken(&model, 1, "it", PHASE_BACKWARD, MEMORY_TEMPORARY),
                     BYTES); /* the gradient is new all the same */
}

/* A shortcut over a linear layer: an addition hands its gradient to both; where they meet it is summed up in place. */
MODEL_TEST(addition_passes_its_gradient_on)
{
    begin(WIDTH, BATCH);
    add(LAYER_LINEAR, WIDTH, WIDTH * WIDTH, -1);
    add(LAYER_LINEAR, WIDTH, WIDTH * WIDTH, 0);
    layer_add_input(add(LAYER_ADD, WIDTH, 0, 1), 0);
    finish();
    assert_int_equal(taken(&model, 1, "add-2", PHASE_FORWARD, MEMORY_ACTIVATION), BYTES);
    assert_int_equal(taken(&model, 1, "add-2", PHASE_BACKWARD, MEMORY_TEMPORARY), 0);
    assert_int_equal(taken(&model, 1, "linear-1", PHASE_BACKWARD, MEMORY_TEMPORARY), BYTES);
    assert_int_equal(taken(&model, 1, "linear-0", PHASE_BACKWARD, MEMORY_TEMPORARY), 0); /* the input needs none */
    model.list.items[2].in_place = true;
    lower();
    assert_int_equal(taken(&model, 1, "add-2", PHASE_FORWARD, MEMORY_ACTIVATION), 0);
}

/* Both branches' gradients are needed when they meet: a third tensor. */
MODEL_TEST(meeting_gradients_that_are_shared_take_a_new_tensor)
{
    begin(WIDTH, BATCH);
    add(LAYER_LINEAR, WIDTH, WIDTH * WIDTH, -1);
    layer_add_input(add(LAYER_ADD, WIDTH, 0, 0), 0); /* x + x */
    finish();
    assert_int_equal(taken(&model, 1, "add-1", PHASE_BACKWARD, MEMORY_TEMPORARY), BYTES);
}

MODEL_TEST(parameters_and_buffers_come_first)
{
    between(LAYER_BATCH_NORM, 2 * WIDTH);
    finish();
    assert_int_equal(taken(&model, 0, "it", PHASE_SETUP, MEMORY_PARAMETER), 4 * 2 * WIDTH);
    assert_int_equal(taken(&model, 0, "it", PHASE_SETUP, MEMORY_BUFFER), 4 * 2 * WIDTH + 8);
    assert_int_equal(model.program.parameter_bytes, 4 * (WIDTH * WIDTH + WIDTH + 2 * WIDTH + 10 * WIDTH + 10));
    assert_int_equal(taken(&model, -1, NULL, PHASE_SETUP, MEMORY_PARAMETER), model.program.parameter_bytes);
    assert_int_equal(taken(&model, 1, NULL, PHASE_BACKWARD, MEMORY_GRADIENT), model.program.parameter_bytes);
    assert_int_equal(taken(&model, 2, NULL, PHASE_BACKWARD, MEMORY_GRADIENT), model.program.parameter_bytes);
}

MODEL_TEST(frozen_layers_have_neither_gradients_nor_state)
{
    between(LAYER_LINEAR, WIDTH * WIDTH);
    model.training.optimizer = OPTIMIZER_ADAM;
    model.list.items[0].frozen = true;
    model.list.items[1].frozen = true;
    finish();
    assert_int_equal(taken(&model, -1, "linear-0", PHASE_BACKWARD, MEMORY_GRADIENT), 0);
    assert_int_equal(taken(&model, -1, "it", PHASE_BACKWARD, MEMORY_TEMPORARY), 0);
    assert_int_equal(taken(&model, 1, NULL, PHASE_OPTIMIZER, MEMORY_OPTIMIZER), 2 * 4 * (10 * WIDTH + 10));
    assert_int_equal(saved_bytes(), BYTES + 4 * 10 * BATCH + 4); /* the last layer's input alone */
    model.list.items[0].frozen = false;                          /* the frozen one passes a gradient on */
    lower();
    assert_int_equal(taken(&model, 1, "it", PHASE_BACKWARD, MEMORY_TEMPORARY), BYTES);
    assert_int_equal(taken(&model, 1, "it", PHASE_BACKWARD, MEMORY_GRADIENT), 0);
}

static const struct {
    enum optimizer optimizer;
    int64_t state, scratch; /* elements of one linear layer of 300 x 200 with bias */
} optimizers_keep_what_they_keep_rows[] = {
    {OPTIMIZER_SGD, 0, 0},
    {OPTIMIZER_MOMENTUM, 60200, 0},
    {OPTIMIZER_ADAM, 2 * 60200, 60200},
    {OPTIMIZER_ADAMW, 2 * 60200, 60200},
    {OPTIMIZER_ADAFACTOR, 300 + 200 + 200, 60200},
};

EACH_ROW(MODEL_TEST, optimizers_keep_what_they_keep, optimizers_keep_what_they_keep_rows)
{
    enum optimizer optimizer;
    begin(300, 7);
    add(LAYER_LINEAR, 200, 60200, -1);
    model.training.optimizer = row->optimizer;
    lower();
    assert_int_equal(taken(&model, 1, NULL, PHASE_OPTIMIZER, MEMORY_OPTIMIZER), 4 * row->state);
    assert_int_equal(taken(&model, 2, NULL, PHASE_OPTIMIZER, MEMORY_OPTIMIZER), 0);
    assert_int_equal(taken(&model, 2, NULL, PHASE_OPTIMIZER, MEMORY_TEMPORARY), 4 * row->scratch);
    assert_int_equal(optimizer_parse(optimizer_name(row->optimizer), &optimizer, NULL), 0);
    assert_int_equal(optimizer, row->optimizer);
}

MODEL_TEST(adafactor_factors_convolutions_by_their_kernels)
{
    begin(3, 4);
    model.list.input[1] = model.list.input[2] = 8;
    model.list.input_rank = 3;
    model.training.optimizer = OPTIMIZER_ADAFACTOR;
    struct layer *layer = add(LAYER_CONV, 16, 16 * 3 * 15, -1);
    layer->shape[1] = layer->shape[2] = 8;
    layer->rank = 3;
    layer->kernel[0] = 3;
    layer->kernel[1] = 5;
    layer->in_channels = 3;
    lower();
    assert_int_equal(taken(&model, 1, NULL, PHASE_OPTIMIZER, MEMORY_OPTIMIZER), 4 * (16 * 3 * 3 + 16 * 3 * 5));
    assert_int_equal(model.program.convs[0].kernel[1], 5);
    assert_int_equal(model.program.convs[0].padding[0], 1);
    assert_int_equal(model.program.convs[0].padding[1], 2);
    assert_int_equal(model.program.flops, 2 * 4 * 16 * 3 * 15 * 64);
}

MODEL_TEST(steps_are_those_of_an_epoch)
{
    static const struct {
        int64_t samples;
        int64_t batches[5];
    } cases[] = {
        {0, {32, 32}},      {-1, {32, 32}},     {100, {32, 32, 4, 32}},
        {96, {32, 32, 32}}, {31, {31, 31, 31}}, {32, {32, 32, 32}},
    };

    begin(50, 32);
    add(LAYER_LINEAR, 20, 1000, -1);
    for (size_t i = 0; i < array_size(cases); i++) {
        model.training.samples = cases[i].samples;
        lower();
        for (int step = 0; step < 5; step++)
            assert_int_equal(taken(&model, step + 1, NULL, PHASE_FORWARD, MEMORY_INPUT),
                             (4 * 50 + 8) * cases[i].batches[step]); /* with its targets */
    }
}

MODEL_TEST(summary_runs_before_the_training)
{
    between(LAYER_DROPOUT, 0);
    finish();
    assert_int_equal(taken(&model, 0, NULL, PHASE_SETUP, MEMORY_INPUT), 0);
    model.training.summary_pass = true;
    model.training.summary_gradients = true;
    model.training.summary_batch = 2;
    lower();
    assert_int_equal(taken(&model, 0, NULL, PHASE_SETUP, MEMORY_INPUT), 4 * 2 * WIDTH);
    assert_int_equal(taken(&model, 0, "it", PHASE_SETUP, MEMORY_ACTIVATION), (4 + 1) * 2 * WIDTH);
    model.training.summary_gradients = false; /* evaluation mode: dropout does nothing */
    lower();
    assert_int_equal(taken(&model, 0, "it", PHASE_SETUP, MEMORY_ACTIVATION), 0);
    assert_int_equal(taken(&model, -1, NULL, PHASE_SETUP, MEMORY_GRADIENT), 0);
}

/* Autograd's thread has a handle of its own; a product with a bias takes and gives back another workspace. */
MODEL_TEST(cublas_takes_a_workspace_in_each_thread)
{
    between(LAYER_LINEAR, WIDTH * WIDTH);
    finish();
    assert_int_equal(taken(&model, 1, "linear-0", PHASE_FORWARD, MEMORY_WORKSPACE),
                     CUBLAS_WORKSPACE_BYTES + CUBLASLT_WORKSPACE_BYTES);
    assert_int_equal(taken(&model, 1, "it", PHASE_FORWARD, MEMORY_WORKSPACE), 0); /* it has no bias */
    assert_int_equal(taken(&model, 1, "linear-2", PHASE_BACKWARD, MEMORY_WORKSPACE), CUBLAS_WORKSPACE_BYTES);
    assert_int_equal(taken(&model, 1, NULL, PHASE_BACKWARD, MEMORY_WORKSPACE), CUBLAS_WORKSPACE_BYTES);
    assert_int_equal(taken(&model, 2, "linear-0", PHASE_FORWARD, MEMORY_WORKSPACE), CUBLASLT_WORKSPACE_BYTES);
    assert_int_equal(taken(&model, 2, NULL, PHASE_BACKWARD, MEMORY_WORKSPACE), 0);
    model.training.cublas_workspace_bytes = 0;
    lower();
    assert_int_equal(taken(&model, -1, NULL, PHASE_BACKWARD, MEMORY_WORKSPACE), 0);
}

/* Autocast: halves of inputs, weights and results of a product; norms, softmax and loss in full; gradients in full. */
MODEL_TEST(amp_halves_matrix_products)
{
    between(LAYER_LAYER_NORM, 2 * WIDTH);
    model.training.precision = PRECISION_AMP;
    finish();
    assert_int_equal(taken(&model, 1, "linear-0", PHASE_FORWARD, MEMORY_ACTIVATION), BYTES / 2 + BYTES / 2);
    assert_int_equal(taken(&model, 1, "linear-0", PHASE_FORWARD, MEMORY_TEMPORARY), 2 * (WIDTH * WIDTH + WIDTH));
    assert_int_equal(taken(&model, 1, "it", PHASE_FORWARD, MEMORY_ACTIVATION), BYTES + BYTES + 2 * 4 * BATCH);
    assert_int_equal(taken(&model, 1, "linear-2", PHASE_FORWARD, MEMORY_ACTIVATION), BYTES / 2 + 2 * 10 * BATCH);
    assert_int_equal(taken(&model, 1, NULL, PHASE_BACKWARD, MEMORY_GRADIENT), model.program.parameter_bytes);
    assert_int_equal(model.program.parameter_bytes, 4 * (WIDTH * WIDTH + WIDTH + 2 * WIDTH + 10 * WIDTH + 10));
    model.training.summary_pass = model.training.summary_gradients = true; /* which knows no autocast */
    model.training.summary_batch = 1;
    lower();
    assert_int_equal(taken(&model, 0, "linear-0", PHASE_SETUP, MEMORY_ACTIVATION), 4 * WIDTH);
    assert_int_equal(taken(&model, 0, "linear-0", PHASE_SETUP, MEMORY_TEMPORARY), 0);
    model.training.precision = PRECISION_TF32;
    lower();
    assert_int_equal(taken(&model, 1, "linear-0", PHASE_FORWARD, MEMORY_ACTIVATION), BYTES);
    assert_int_equal(taken(&model, 1, "linear-0", PHASE_FORWARD, MEMORY_TEMPORARY), 0);
}

/* A sum of half and full precision is in full; the half's gradient is converted. */
MODEL_TEST(amp_converts_where_widths_meet)
{
    begin(WIDTH, BATCH);
    model.training.precision = PRECISION_AMP;
    add(LAYER_LINEAR, WIDTH, WIDTH * WIDTH, -1);
    layer_add_input(add(LAYER_ADD, WIDTH, 0, 0), -1);
    finish();
    assert_int_equal(taken(&model, 1, "add-1", PHASE_FORWARD, MEMORY_ACTIVATION), BYTES);
    assert_int_equal(taken(&model, 1, "add-1", PHASE_BACKWARD, MEMORY_TEMPORARY), BYTES / 2);
}

/* Backward of many tokens needs room to sort them and to sum up. */
MODEL_TEST(embedding_sorts_many_tokens)
{
    const int64_t words = 500, width = 40, length = 80;

    for (int64_t batch = 38; batch <= 39; batch++) { /* 3,040 and 3,120 tokens */
        int64_t tokens = batch * length, room = 2 * 8 * tokens + 4 * width * (tokens / 10 + words);
        struct layer *layer;
        begin(length, batch);
        model.list.input_is_index = true;
        layer = add(LAYER_EMBEDDING, length, words * width, -1);
        layer->rank = 2;
        layer->shape[1] = width;
        lower();
        assert_int_equal(taken(&model, 1, "embedding-0", PHASE_BACKWARD, MEMORY_TEMPORARY), tokens > 3072 ? room : 0);
        assert_int_equal(taken(&model, 1, "embedding-0", PHASE_BACKWARD, MEMORY_GRADIENT), 4 * words * width);
    }
}

/* A concatenation gives parts of its gradient: a convolution copies one, and it cannot be added to in place. */
MODEL_TEST(concatenation_gives_parts_of_its_gradient)
{
    begin(WIDTH, BATCH);
    add(LAYER_LINEAR, WIDTH, WIDTH * WIDTH, -1);
    add(LAYER_CONV, WIDTH, WIDTH, 0);
    add(LAYER_LINEAR, WIDTH, WIDTH * WIDTH, 1);
    layer_add_input(add(LAYER_CONCAT, 2 * WIDTH, 0, 1), 2);
    finish();
    assert_int_equal(taken(&model, 1, "concat-3", PHASE_BACKWARD, MEMORY_TEMPORARY), 0);
    assert_int_equal(taken(&model, 1, "linear-2", PHASE_BACKWARD, MEMORY_TEMPORARY),
                     2 * BYTES);                                                           /* its own, and the sum */
    assert_int_equal(taken(&model, 1, "conv-1", PHASE_BACKWARD, MEMORY_TEMPORARY), BYTES); /* the sum is dense */
    model.list.items[2].inputs[0] = 0; /* now the convolution gets a part alone */
    lower();
    assert_int_equal(taken(&model, 1, "conv-1", PHASE_BACKWARD, MEMORY_TEMPORARY), 2 * BYTES);
}

/* scaled_dot_product_attention of three tensors, and of one that holds all three. */
MODEL_TEST(attention_keeps_no_scores)
{
    const int64_t length = 50, width = 64, batch = 3, heads = 4, part = 4 * batch * length * width;
    const int64_t log_sums = 4 * batch * heads * 64; /* rows in multiples of 32 */

    for (int packed = 0; packed < 2; packed++) {
        begin(length, batch);
        model.list.input_is_index = true;
        for (int i = 0; i < (packed ? 1 : 3); i++)
            add(LAYER_EMBEDDING, (packed ? 3 : 1) * width, 1000, -1);
        struct layer *layer = add(LAYER_ATTENTION, width, 0, 0);
        for (int i = 1; i < 3 && !packed; i++)
            layer_add_input(layer, i);
        layer->heads = (int32_t)heads;
        add(LAYER_LINEAR, 10, 640, BEFORE);
        for (size_t i = 0; i < model.list.count; i++) {
            layer = &model.list.items[i];
            layer->rank = 2;
            layer->shape[1] = layer->shape[0];
            layer->shape[0] = length;
        }
        lower();
        assert_int_equal(saved_bytes(), 3 * part + part + log_sums + 4 * batch * length * 10 + 4);
        assert_int_equal(taken(&model, 1, packed ? "attention-1" : "attention-3", PHASE_BACKWARD, MEMORY_TEMPORARY),
                         (packed ? 7 : 4) * part + 4 * batch * heads * length);
        assert_int_equal(model.program.attentions, 1);
    }
}

MODEL_TEST(impossible_lists_are_refused_or_survived)
{
    begin(10, 0);
    assert_error(model_lower_or(&model, &trouble), -EINVAL, "shape");
    struct layer *layer = add(LAYER_LINEAR, 10, 110, -1);
    layer_add_input(layer, 0);  /* itself */
    layer_add_input(layer, 99); /* nobody */
    assert_error(model_lower_or(&model, &trouble), -EINVAL, "batch size of 0");
    model.training.batch_size = 3;
    lower();
    layer->shape[0] = LAYER_MAX_DIMENSION;
    layer->parameters = LAYER_MAX_PARAMETERS;
    model.training.batch_size = LAYER_MAX_DIMENSION;
    model.list.input[0] = model.list.input[1] = model.list.input[2] = LAYER_MAX_DIMENSION;
    model.list.input_rank = 3;
    layer->heads = layer->kernel[0] = layer->kernel[1] = layer->kernel[2] = INT32_MAX;
    layer->stride[0] = INT32_MAX;
    for (int kind = 0; kind < LAYER_KIND_COUNT; kind++) {
        layer->kind = (uint8_t)kind;
        layer->in_channels = layer->groups = kind % 2 ? LAYER_MAX_DIMENSION : 0;
        lower();
        assert_true(replay_with(&model.program, rule_of(1, 1, 1), 0).peak_reserved_bytes > 0);
        layer->rank = (uint8_t)(kind % (LAYER_MAX_RANK + 1));
    }
}
