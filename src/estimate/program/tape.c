#include "estimate/program/tape.h"

#include "base/memory.h"

#define HALF_BYTES 2
#define FULL_BYTES 4

struct tape_edge {
    int32_t node; /* that gets the gradient, or TAPE_NONE */
    bool own;     /* TAPE_VIEW: the gradient is a new tensor all the same */
    int64_t bytes;
};

/* Its lists are slices of the tape's edges and numbers; the numbers stand as saved, parameters, scratch. */
struct tape_node {
    uint8_t kind; /* enum tape_kind */
    bool parameters_first;
    uint32_t label;
    bool part;        /* its gradient is a part of that tensor: not dense, so that nothing is added to it in place */
    int32_t gradient; /* of its result: a tensor, or TAPE_NONE */
    int64_t bytes;    /* of its result */
    int64_t late_scratch;
    uint32_t first_edge, edge_count;
    uint32_t first_number, saved_count, parameter_count, scratch_count;
    int32_t conv; /* TAPE_CONV: which of the program's convs its forward pass was; TAPE_SEGMENT: which segment */
    struct tape_value input; /* TAPE_SEGMENT */
};

void tape_init(struct tape *tape, struct program *program)
{
    *tape = (struct tape){.program = program, .recording = true};
}

void tape_release(struct tape *tape)
{
    free(tape->references);
    free(tape->parameters);
    free(tape->nodes);
    free(tape->edges);
    free(tape->numbers);
    *tape = (struct tape){0};
}

uint32_t tape_alloc(struct tape *tape, int64_t bytes, enum memory_category category)
{
    struct program_event event = tape->at;
    uint32_t tensor;

    event.category = (uint8_t)category;
    event.bytes = bytes;
    tensor = program_alloc(tape->program, event);
    array_reserve(tape->references, tape->reference_capacity, (size_t)tensor + 1);
    tape->references[tensor] = 1;
    return tensor;
}

void tape_hold(struct tape *tape, uint32_t tensor)
{
    tape->references[tensor]++;
}

void tape_drop(struct tape *tape, uint32_t tensor)
{
    if (--tape->references[tensor] == 0)
        program_free(tape->program, tensor, tape->at);
}

int32_t tape_add_parameter(struct tape *tape, struct tape_parameter parameter)
{
    parameter.label = tape->at.label;
    parameter.gradient = parameter.half = parameter.cast = TAPE_NONE;
    parameter.tensor = tape_alloc(
        tape, parameter.elements * parameter.element_bytes / tape_shards(tape->parameter_shards), MEMORY_PARAMETER);
    array_reserve(tape->parameters, tape->parameter_capacity, tape->parameter_count + 1);
    tape->parameters[tape->parameter_count] = parameter;
    return (int32_t)tape->parameter_count++;
}

bool tape_needs_gradient(const struct tape *tape, const struct tape_op *op)
{
    if (!tape->recording)
        return false;
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i].node != TAPE_NONE)
            return true;
    for (uint32_t i = 0; i < op->parameter_count; i++)
        if (!tape->parameters[op->parameters[i]].frozen)
            return true;
    return false;
}

static void take_cublas(struct tape *tape, bool backward)
{
    if (!tape->cublas_taken[backward] && tape->cublas_bytes > 0)
        tape_alloc(tape, tape->cublas_bytes, MEMORY_WORKSPACE);
    tape->cublas_taken[backward] = true;
}

void tape_take_cublas(struct tape *tape)
{
    take_cublas(tape, false);
}

static void push_number(struct tape *tape, int64_t number)
{
    array_reserve(tape->numbers, tape->number_capacity, tape->number_count + 1);
    tape->numbers[tape->number_count++] = number;
}

/* Whether the one's gradient can be the other's: else it is summed up (broadcasting) or converted. */
static bool same_kind(const struct tape_value *input, const struct tape_value *result)
{
    return input->elements == result->elements && input->element_bytes == result->element_bytes;
}

int32_t tape_record(struct tape *tape, const struct tape_op *op, const struct tape_value *result)
{
    struct tape_node node = {.kind = (uint8_t)op->kind,
                             .parameters_first = op->parameters_first,
                             .label = tape->at.label,
                             .gradient = TAPE_NONE,
                             .bytes = tape_bytes(result),
                             .first_edge = (uint32_t)tape->edge_count,
                             .edge_count = op->input_count,
                             .first_number = (uint32_t)tape->number_count,
                             .saved_count = op->saved_count,
                             .scratch_count = op->scratch_count,
                             .late_scratch = op->late_scratch,
                             .conv = TAPE_NONE};

    if (op->kind != TAPE_SEGMENT && !tape_needs_gradient(tape, op))
        return TAPE_NONE;
    array_reserve(tape->edges, tape->edge_capacity, tape->edge_count + op->input_count);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct tape_value *input = &op->inputs[i];
        tape->edges[tape->edge_count++] =
            (struct tape_edge){input->node, op->kind == TAPE_VIEW && !same_kind(input, result), tape_bytes(input)};
    }
    for (uint32_t i = 0; i < op->saved_count; i++) {
        tape_hold(tape, op->saved[i]);
        push_number(tape, op->saved[i]);
    }
    for (uint32_t i = 0; i < op->parameter_count; i++) {
        if (tape->parameters[op->parameters[i]].frozen)
            continue;
        push_number(tape, op->parameters[i]);
        node.parameter_count++;
    }
    for (uint32_t i = 0; i < op->scratch_count; i++)
        push_number(tape, op->scratch[i]);
    if (op->kind == TAPE_CONV)
        node.conv = (int32_t)tape->program->conv_count - 1;
    array_reserve(tape->nodes, tape->node_capacity, tape->node_count + 1);
    tape->nodes[tape->node_count] = node;
    return (int32_t)tape->node_count++;
}

static void convolve(struct tape *tape, const struct tape_node *node, enum conv_pass pass)
{
    struct program_conv conv;

    if (node->conv == TAPE_NONE)
        return;
    conv = tape->program->convs[node->conv];
    conv.pass = (uint8_t)pass;
    program_conv(tape->program, &conv, tape->at);
}

static bool passes(const struct tape_node *node)
{
    return node->kind == TAPE_VIEW || node->kind == TAPE_JOIN;
}

/* Gradients of the operator's inputs; TAPE_NONE where none is wanted. */
static void make_input_gradients(struct tape *tape, const struct tape_node *node, size_t first)
{
    for (uint32_t i = 0; i < node->edge_count; i++) {
        const struct tape_edge *edge = &tape->edges[node->first_edge + i];
        int32_t gradient = TAPE_NONE;
        if (edge->node != TAPE_NONE && passes(node) && !edge->own) {
            gradient = node->gradient;
            tape_hold(tape, (uint32_t)gradient);
        } else if (edge->node != TAPE_NONE) {
            gradient = (int32_t)tape_alloc(tape, edge->bytes, MEMORY_TEMPORARY);
            if (node->kind == TAPE_CONV)
                convolve(tape, node, CONV_BACKWARD_DATA);
            if (node->kind == TAPE_PRODUCT)
                take_cublas(tape, true);
        }
        tape->numbers[first + i] = gradient;
    }
}

static void accumulate(struct tape *tape, int32_t *gradient, uint32_t tensor)
{
    if (*gradient == TAPE_NONE)
        *gradient = (int32_t)tensor;
    else
        tape_drop(tape, tensor);
}

static struct tape_parameter *parameter_of(const struct tape *tape, const struct tape_node *node, uint32_t i)
{
    return &tape->parameters[tape->numbers[node->first_number + node->saved_count + i]];
}

/* The gradients of autocast's copies are in half precision and are converted: they go to the copies' nodes. */
static void make_parameter_gradients(struct tape *tape, const struct tape_node *node, size_t first)
{
    for (uint32_t i = 0; i < node->parameter_count; i++) {
        struct tape_parameter *parameter = parameter_of(tape, node, i);
        bool half = parameter->cast != TAPE_NONE && node->kind != TAPE_CAST;
        int64_t bytes = half ? parameter->elements * HALF_BYTES
                             : parameter->elements * parameter->element_bytes / tape_shards(tape->gradient_shards);
        uint32_t gradient = tape_alloc(tape, bytes, half ? MEMORY_TEMPORARY : MEMORY_GRADIENT);
        if (i == 0 && node->kind == TAPE_CONV)
            convolve(tape, node, CONV_BACKWARD_WEIGHT);
        if (node->kind == TAPE_PRODUCT)
            take_cublas(tape, true);
        if (half)
            tape->numbers[first++] = gradient;
        else
            accumulate(tape, &parameter->gradient, gradient);
    }
}

/* A gradient arrives where another may be. It is added to it in place if nobody else has that and it is a tensor of its
 * own, else into a new one. */
static void deliver(struct tape *tape, const struct tape_edge *edge, uint32_t gradient, bool part)
{
    struct tape_node *source = &tape->nodes[edge->node];
    uint32_t sum;

    if (source->gradient == TAPE_NONE) {
        source->gradient = (int32_t)gradient;
        source->part = part;
    } else if (tape->references[source->gradient] == 1 && !source->part) {
        tape_drop(tape, gradient);
    } else {
        sum = tape_alloc(tape, edge->bytes, MEMORY_TEMPORARY);
        tape_drop(tape, (uint32_t)source->gradient);
        tape_drop(tape, gradient);
        source->gradient = (int32_t)sum;
        source->part = false;
    }
}

static void deliver_parameter_gradients(struct tape *tape, const struct tape_node *node, size_t first)
{
    if (node->kind == TAPE_CAST)
        return;
    for (uint32_t i = 0; i < node->parameter_count; i++) {
        const struct tape_parameter *parameter = parameter_of(tape, node, i);
        struct tape_edge edge = {.node = parameter->cast, .bytes = parameter->elements * HALF_BYTES};
        if (parameter->cast != TAPE_NONE)
            deliver(tape, &edge, (uint32_t)tape->numbers[first++], false);
    }
}

static void drop_saved(struct tape *tape, const struct tape_node *node)
{
    for (uint32_t i = 0; i < node->saved_count; i++)
        tape_drop(tape, (uint32_t)tape->numbers[node->first_number + i]);
}

/* The numbers of its live tensors stand in TAPE_OP_SCRATCH numbers from `first`. */
static void make_scratch(struct tape *tape, const struct tape_node *node, size_t first)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < node->scratch_count; i++) {
        int64_t bytes = tape->numbers[node->first_number + node->saved_count + node->parameter_count + i];
        if (bytes >= 0) {
            tape->numbers[first + count++] = tape_alloc(tape, bytes, MEMORY_TEMPORARY);
        } else {
            int64_t *entry = &tape->numbers[first + (size_t)(-bytes - 1)];
            tape_drop(tape, (uint32_t)*entry);
            *entry = TAPE_NONE;
        }
    }
}

static void run_node(struct tape *tape, struct tape_node *node)
{
    size_t scratch = tape->number_count, inputs = scratch + TAPE_OP_SCRATCH, halves = inputs + node->edge_count;

    tape->at.label = node->label;
    while (tape->number_count < halves + node->parameter_count)
        push_number(tape, TAPE_NONE);
    make_scratch(tape, node, scratch);
    if (node->kind == TAPE_CONV && node->part) /* cuDNN wants it dense */
        tape->numbers[inputs - 1] = tape_alloc(tape, node->bytes, MEMORY_TEMPORARY);
    if (node->parameters_first)
        make_parameter_gradients(tape, node, halves);
    make_input_gradients(tape, node, inputs);
    if (!node->parameters_first)
        make_parameter_gradients(tape, node, halves);
    if (node->late_scratch > 0)
        tape->numbers[inputs - 1] = tape_alloc(tape, node->late_scratch, MEMORY_TEMPORARY);
    for (size_t i = scratch; i < inputs; i++)
        if (tape->numbers[i] != TAPE_NONE)
            tape_drop(tape, (uint32_t)tape->numbers[i]);
    drop_saved(tape, node);
    tape_drop(tape, (uint32_t)node->gradient);
    for (uint32_t i = 0; i < node->edge_count; i++) {
        const struct tape_edge *edge = &tape->edges[node->first_edge + i];
        if (tape->numbers[inputs + i] != TAPE_NONE)
            deliver(tape, edge, (uint32_t)tape->numbers[inputs + i],
                    node->kind == TAPE_JOIN || (node->part && passes(node) && !edge->own));
    }
    deliver_parameter_gradients(tape, node, halves);
    tape->number_count = scratch;
}

int32_t tape_record_segment(struct tape *tape, size_t segment, const struct tape_value *input,
                            const struct tape_value *result)
{
    struct tape_op op = {.kind = TAPE_SEGMENT, .inputs = input, .input_count = 1, .saved_count = 1};
    int32_t number;

    op.saved[0] = input->tensor;
    number = tape_record(tape, &op, result);
    tape->nodes[number].conv = (int32_t)segment;
    tape->nodes[number].input = *input;
    return number;
}

/* The last node's operators take its place, with its gradient; its input is held until they have run. */
static void unfold(struct tape *tape)
{
    struct tape_node node = tape->nodes[--tape->node_count];
    struct tape_value result = tape->run_segment(tape->segment_context, (size_t)node.conv, &node.input);

    if (result.node != TAPE_NONE)
        tape->nodes[result.node].gradient = node.gradient;
    else
        tape_drop(tape, (uint32_t)node.gradient);
    tape_drop(tape, result.tensor);
    drop_saved(tape, &node);
}

static void empty(struct tape *tape)
{
    for (size_t i = 0; i < tape->parameter_count; i++)
        tape->parameters[i].cast = TAPE_NONE;
    tape->node_count = tape->edge_count = tape->number_count = 0;
}

void tape_backward(struct tape *tape, int32_t node, int64_t gradient_bytes)
{
    if (node != TAPE_NONE)
        tape->nodes[node].gradient = (int32_t)tape_alloc(tape, gradient_bytes, MEMORY_TEMPORARY);
    for (size_t i = tape->node_count; i-- > 0;) {
        tape->node_count = i + 1;
        if (tape->nodes[i].gradient == TAPE_NONE) {
            drop_saved(tape, &tape->nodes[i]); /* nothing of the loss comes from there */
        } else if (tape->nodes[i].kind == TAPE_SEGMENT) {
            unfold(tape);
            i = tape->node_count;
        } else {
            run_node(tape, &tape->nodes[i]);
        }
    }
    empty(tape);
}

void tape_forget(struct tape *tape)
{
    for (size_t i = 0; i < tape->node_count; i++)
        drop_saved(tape, &tape->nodes[i]);
    empty(tape);
}

void tape_zero_gradients(struct tape *tape)
{
    for (size_t i = 0; i < tape->parameter_count; i++) {
        struct tape_parameter *parameter = &tape->parameters[i];
        if (parameter->gradient == TAPE_NONE)
            continue;
        tape_drop(tape, (uint32_t)parameter->gradient);
        parameter->gradient = TAPE_NONE;
    }
}

uint32_t tape_cast_parameter(struct tape *tape, int32_t number)
{
    struct tape_parameter *parameter = &tape->parameters[number];
    struct tape_op op = {.kind = TAPE_CAST, .parameters = {number}, .parameter_count = 1};
    struct tape_value result = {.elements = parameter->elements, .element_bytes = HALF_BYTES};

    if (parameter->half == TAPE_NONE) {
        parameter->half = (int32_t)tape_alloc(tape, tape_bytes(&result), MEMORY_TEMPORARY);
        parameter->cast = tape_record(tape, &op, &result);
    }
    return (uint32_t)parameter->half;
}

void tape_end_autocast(struct tape *tape)
{
    for (size_t i = 0; i < tape->parameter_count; i++) {
        struct tape_parameter *parameter = &tape->parameters[i];
        if (parameter->half == TAPE_NONE)
            continue;
        tape_drop(tape, (uint32_t)parameter->half);
        parameter->half = TAPE_NONE;
    }
}
