#include <errno.h>

#include "base/memory.h"
#include "estimate/program/lowering.h"

#define LOSS_BYTES 4

struct scope { /* of a container that is running */
    uint8_t depth;
    uint32_t tensor;
};

void training_default(struct training *training)
{
    *training = (struct training){.batch_size = 32,
                                  .optimizer = OPTIMIZER_ADAM,
                                  .precision = PRECISION_FP32,
                                  .cublas_workspace_bytes = CUBLAS_WORKSPACE_BYTES};
}

static bool is_leaf(const struct layer_list *list, size_t number)
{
    return !list->items[number].container;
}

/* The index of a layer's input: its own, or where it has none, or none that can be, the layer before; -1 = the
 * model's. */
static int32_t input_of(const struct layer_list *list, size_t number, uint32_t i)
{
    const struct layer *layer = &list->items[number];

    if (i < layer->input_count) {
        int32_t from = layer->inputs[i];
        if (from == -1 || (from >= 0 && (size_t)from < number && is_leaf(list, (size_t)from)))
            return from;
    }
    for (size_t before = number; before-- > 0;)
        if (is_leaf(list, before))
            return (int32_t)before;
    return -1;
}

static uint32_t input_count(const struct layer *layer)
{
    return layer->input_count ? layer->input_count : 1;
}

struct lowering_shape lowering_input_shape(const struct lowering *lowering, size_t number)
{
    int32_t from = input_of(lowering->list, number, 0);

    if (from < 0)
        return (struct lowering_shape){lowering->list->input, lowering->list->input_rank};
    if (!lowering->list->items[from].shape_known)
        return (struct lowering_shape){0};
    return (struct lowering_shape){lowering->list->items[from].shape, lowering->list->items[from].rank};
}

static int64_t input_elements(const struct layer_list *list)
{
    int64_t product = 1;

    for (uint8_t i = 0; i < list->input_rank; i++)
        if (__builtin_mul_overflow(product, list->input[i], &product) || product > PROGRAM_MAX_BYTES)
            return PROGRAM_MAX_BYTES;
    return list->input_rank ? product : 0;
}

static void take_input(struct lowering *lowering)
{
    const struct layer_list *list = lowering->list;
    uint8_t element_bytes = list->input_is_index ? INDEX_BYTES : FULL_BYTES;
    int64_t elements;

    if (__builtin_mul_overflow(input_elements(list), lowering->batch, &elements) || elements > PROGRAM_MAX_BYTES)
        elements = PROGRAM_MAX_BYTES;
    lowering->tape.at.label = 0;
    lowering->input = (struct tape_value){.tensor = tape_alloc(&lowering->tape, elements * element_bytes, MEMORY_INPUT),
                                          .node = TAPE_NONE,
                                          .parameter = TAPE_NONE,
                                          .element_bytes = element_bytes,
                                          .elements = elements};
}

static const struct tape_value *value_of(const struct lowering *lowering, int32_t number)
{
    return number < 0 ? &lowering->input : &lowering->layers[number].value;
}

static void drop_value(struct lowering *lowering, size_t number)
{
    struct lowered *lowered = &lowering->layers[number];

    if (lowered->alive)
        tape_drop(&lowering->tape, lowered->value.tensor);
    lowered->alive = false;
}

static void run_layer(struct lowering *lowering, size_t number, bool last)
{
    const struct layer_list *list = lowering->list;
    uint32_t count = input_count(&list->items[number]);
    struct lowered *lowered = &lowering->layers[number];
    struct tape_value few[8], *inputs = count > array_size(few) ? xcalloc(count, sizeof *inputs) : few;

    lowering->tape.at.label = lowered->label;
    for (uint32_t i = 0; i < count; i++)
        inputs[i] = *value_of(lowering, input_of(list, number, i));
    lowered->value = lowering_layer(lowering, number, inputs, count);
    lowered->alive = true;
    for (uint32_t i = 0; i < count; i++) {
        int32_t from = input_of(list, number, i);
        if (from >= 0 && --lowering->layers[from].uses_left == 0)
            drop_value(lowering, (size_t)from);
    }
    if (!lowered->uses && !last)
        drop_value(lowering, number);
    if (inputs != few)
        free(inputs);
}

/* The scopes that end before a layer of this depth. */
static size_t leave(struct lowering *lowering, struct scope *scopes, size_t count, int depth)
{
    while (count && scopes[count - 1].depth >= depth)
        tape_drop(&lowering->tape, scopes[--count].tensor);
    return count;
}

/* A container that stands before its children holds the first one's input. */
static bool enter(struct lowering *lowering, size_t number, struct scope *scope)
{
    const struct layer_list *list = lowering->list;
    uint8_t depth = list->items[number].depth;

    for (size_t i = number + 1; i < list->count && list->items[i].depth > depth; i++) {
        if (!is_leaf(list, i))
            continue;
        *scope = (struct scope){depth, value_of(lowering, input_of(list, i, 0))->tensor};
        tape_hold(&lowering->tape, scope->tensor);
        return true;
    }
    return false;
}

static size_t last_leaf(const struct layer_list *list)
{
    size_t last = list->count - 1;

    while (!is_leaf(list, last))
        last--;
    return last;
}

/* The model's output; it has a reference of its own. */
static struct tape_value forward(struct lowering *lowering)
{
    const struct layer_list *list = lowering->list;
    size_t last = last_leaf(list), scope_count = 0;
    struct scope scopes[UINT8_MAX + 1]; /* each deeper than the one before */

    for (size_t i = 0; i < list->count; i++)
        lowering->layers[i].uses_left = lowering->layers[i].uses;
    for (size_t i = 0; i <= last; i++) {
        scope_count = leave(lowering, scopes, scope_count, list->items[i].depth);
        if (is_leaf(list, i))
            run_layer(lowering, i, i == last);
        else
            scope_count += enter(lowering, i, &scopes[scope_count]);
    }
    leave(lowering, scopes, scope_count, 0);
    return lowering->layers[last].value;
}

/* Forward alone, before the training. */
static void summarise(struct lowering *lowering)
{
    struct tape *tape = &lowering->tape;
    struct tape_value output;

    lowering->batch = lowering->training->summary_batch > 0 ? lowering->training->summary_batch : 1;
    tape->recording = lowering->training->summary_gradients;
    take_input(lowering);
    output = forward(lowering);
    tape->at.label = 0;
    tape_drop(tape, lowering->input.tensor);
    tape_drop(tape, output.tensor);
    tape_forget(tape);
    tape_end_autocast(tape);
    tape->recording = true;
}

/* One class for each row of the output. */
static void take_targets(struct lowering *lowering)
{
    const struct layer *layer = &lowering->list->items[last_leaf(lowering->list)];
    int64_t classes = layer->rank ? layer->shape[layer->rank - 1] : 1, rows;

    if (__builtin_mul_overflow(layer_elements(layer) / (classes > 0 ? classes : 1), lowering->batch, &rows) ||
        rows > PROGRAM_MAX_BYTES / INDEX_BYTES)
        rows = PROGRAM_MAX_BYTES / INDEX_BYTES;
    lowering->targets = tape_alloc(&lowering->tape, rows * INDEX_BYTES, MEMORY_INPUT);
}

/* Cross entropy: log_softmax, which saves its result, and nll_loss, which saves it and the weights' sum. The loss stays
 * until the next. */
static void learn(struct lowering *lowering, const struct tape_value *output, bool first)
{
    struct tape *tape = &lowering->tape;
    struct tape_value logits = lowering_to_full(lowering, output), logarithms, loss;
    struct tape_op softmax = {.inputs = &logits, .input_count = 1};
    struct tape_op likelihood = {.inputs = &logarithms, .input_count = 1};

    logarithms = lowering_run_saving(lowering, &softmax, logits.elements, FULL_BYTES, true, NULL, 0);
    lowering_save(&likelihood, logarithms.tensor);
    loss = lowering_run_saving(lowering, &likelihood, 1, LOSS_BYTES, false, (int64_t[]){LOSS_BYTES}, 1);
    tape_drop(tape, logits.tensor);
    tape_drop(tape, logarithms.tensor);
    tape_end_autocast(tape);
    if (!first)
        tape_drop(tape, lowering->loss);
    lowering->loss = loss.tensor;
    tape->at.phase = PHASE_BACKWARD;
    tape_backward(tape, loss.node, LOSS_BYTES);
    tape->at.label = 0;
}

static size_t batches_of(const struct training *training, int64_t batches[4])
{
    int64_t whole = training->batch_size, samples = training->samples;
    size_t count = 0;

    if (samples > 0 && samples < whole) {
        batches[0] = batches[1] = batches[2] = samples;
        return 3;
    }
    batches[count++] = whole;
    batches[count++] = whole;
    if (samples > 0) {
        if (samples % whole)
            batches[count++] = samples % whole;
        batches[count++] = whole;
    }
    return count;
}

static int train(struct lowering *lowering, struct error *err)
{
    struct tape *tape = &lowering->tape;
    struct tape_value output = {0};
    int64_t batches[4];
    size_t count = batches_of(lowering->training, batches);

    for (size_t i = 0; i < count; i++) {
        struct tape_value before = output;
        tape->at = (struct program_event){.step = (uint8_t)(i + 1), .phase = PHASE_FORWARD};
        lowering->batch = batches[i];
        lowering->autocast = lowering->training->precision == PRECISION_AMP;
        if (i) {
            tape_drop(tape, lowering->input.tensor);
            tape_drop(tape, lowering->targets);
        }
        take_input(lowering);
        take_targets(lowering);
        tape_zero_gradients(tape);
        output = forward(lowering);
        if (i)
            tape_drop(tape, before.tensor);
        tape->at.label = 0;
        learn(lowering, &output, i == 0);
        optimizer_step(tape, lowering->training->optimizer, lowering->training->weight_decay, i == 0);
        if (tape->program->event_count > PROGRAM_MAX_EVENTS)
            return error_set(err, EINVAL, "the model's training step has more than %d events: too large a model",
                             PROGRAM_MAX_EVENTS);
    }
    return 0;
}

static void set_up(struct lowering *lowering)
{
    const struct layer_list *list = lowering->list;
    struct program *program = lowering->tape.program;

    for (size_t i = 0; i < list->count; i++) {
        const struct layer *layer = &list->items[i];
        if (!is_leaf(list, i))
            continue;
        lowering->layers[i].label = program_label(program, *layer->name ? layer->name : layer->type);
        lowering->tape.at.label = lowering->layers[i].label;
        lowering_add_parameters(lowering, i);
        for (uint32_t k = 0; k < input_count(layer); k++) {
            int32_t from = input_of(list, i, k);
            if (from >= 0)
                lowering->layers[from].uses++;
        }
    }
    if (lowering->training->precision == PRECISION_AMP) { /* GradScaler's scale and growth tracker */
        tape_alloc(&lowering->tape, LOSS_BYTES, MEMORY_BUFFER);
        tape_alloc(&lowering->tape, LOSS_BYTES, MEMORY_BUFFER);
    }
    for (size_t i = 0; i < lowering->tape.parameter_count; i++)
        program->parameter_bytes += lowering->tape.parameters[i].elements * FULL_BYTES;
}

static bool shape_is_known(const struct layer_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (is_leaf(list, i) && list->items[i].shape_known)
            return true;
    return false;
}

int program_lower(struct program *program, const struct layer_list *list, const struct training *training,
                  struct error *err)
{
    struct lowering lowering = {.list = list, .training = training};
    int rc;

    *program = (struct program){0};
    if (!shape_is_known(list))
        return error_set(err, EINVAL, "no layer of the model has a known shape: give a summary with output shapes");
    if (training->batch_size < 1 || training->batch_size > LAYER_MAX_DIMENSION)
        return error_set(err, EINVAL, "a batch size of %lld cannot be: give one of 1 or more",
                         (long long)training->batch_size);
    if (training->precision == PRECISION_BF16)
        return error_set(err, EINVAL, "precision bf16 is known of --hf-config alone: give a capture, or amp");
    program_init(program);
    lowering.layers = xcalloc(list->count, sizeof *lowering.layers);
    program->batch_size = training->batch_size;
    tape_init(&lowering.tape, program);
    lowering.tape.cublas_bytes = training->cublas_workspace_bytes;
    set_up(&lowering);
    lowering_count(&lowering);
    if (training->summary_pass)
        summarise(&lowering);
    rc = train(&lowering, err);
    if (rc)
        program_release(program);
    tape_release(&lowering.tape);
    free(lowering.layers);
    return rc;
}
