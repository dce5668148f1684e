#include "estimate/program/lowering.h"

void lowering_save(struct tape_op *op, uint32_t tensor)
{
    op->saved[op->saved_count++] = tensor;
}

struct tape_value lowering_alias(struct lowering *lowering, const struct tape_value *value)
{
    tape_hold(&lowering->tape, value->tensor);
    return *value;
}

struct tape_value lowering_value(uint32_t tensor, int64_t elements, uint8_t element_bytes)
{
    return (struct tape_value){.tensor = tensor,
                               .node = TAPE_NONE,
                               .parameter = TAPE_NONE,
                               .elements = elements,
                               .element_bytes = element_bytes};
}

struct tape_value lowering_run(struct lowering *lowering, struct tape_op *op, int64_t elements, uint8_t element_bytes)
{
    struct tape_value result = lowering_value(tape_alloc(&lowering->tape, elements * element_bytes, MEMORY_ACTIVATION),
                                              elements, element_bytes);

    result.node = tape_record(&lowering->tape, op, &result);
    return result;
}

struct tape_value lowering_run_saving(struct lowering *lowering, struct tape_op *op, int64_t elements,
                                      uint8_t element_bytes, bool save_result, const int64_t *more_bytes, uint32_t more)
{
    struct tape *tape = &lowering->tape;
    struct tape_value result =
        lowering_value(tape_alloc(tape, elements * element_bytes, MEMORY_ACTIVATION), elements, element_bytes);
    uint32_t first = op->saved_count;

    if (!tape_needs_gradient(tape, op))
        return result;
    for (uint32_t i = 0; i < more; i++)
        lowering_save(op, tape_alloc(tape, more_bytes[i], MEMORY_ACTIVATION));
    if (save_result)
        lowering_save(op, result.tensor);
    result.node = tape_record(tape, op, &result);
    for (uint32_t i = 0; i < more; i++)
        tape_drop(tape, op->saved[first + i]); /* the tape's alone from now on */
    return result;
}

static struct tape_value cast(struct lowering *lowering, const struct tape_value *value, uint8_t element_bytes)
{
    struct tape_op op = {.inputs = value, .input_count = 1};

    if (value->element_bytes == element_bytes || value->element_bytes == INDEX_BYTES)
        return lowering_alias(lowering, value);
    return lowering_run(lowering, &op, value->elements, element_bytes);
}

struct tape_value lowering_to_half(struct lowering *lowering, const struct tape_value *value)
{
    return cast(lowering, value, lowering->autocast ? HALF_BYTES : value->element_bytes);
}

struct tape_value lowering_to_full(struct lowering *lowering, const struct tape_value *value)
{
    return cast(lowering, value, FULL_BYTES);
}

void lowering_take_parameters(struct tape_op *op, const struct lowered *lowered)
{
    for (uint32_t i = 0; i < lowered->parameter_count && i < TAPE_OP_OWN; i++)
        op->parameters[op->parameter_count++] = lowered->first_parameter + (int32_t)i;
}

void lowering_cast_parameters(struct lowering *lowering, struct tape_op *op)
{
    if (!lowering->autocast)
        return;
    for (uint32_t i = op->parameter_count; i-- > 0;) {
        uint32_t half;
        if (lowering->tape.parameters[op->parameters[i]].element_bytes != FULL_BYTES)
            continue;
        half = tape_cast_parameter(&lowering->tape, op->parameters[i]);
        if (i == 0 && op->inputs->node != TAPE_NONE)
            lowering_save(op, half);
    }
}

/* A product with a bias goes to cuBLASLt (ATen/native/cuda/Blas.cpp), where both sides of the matrix are more than one;
 * it takes a workspace for itself. */
static void take_cublaslt(struct lowering *lowering, int32_t first, uint32_t count)
{
    const struct tape_parameter *weight = &lowering->tape.parameters[first];

    if (count == 2 && weight->last > 1 && weight->second_last > 1)
        tape_drop(&lowering->tape, tape_alloc(&lowering->tape, CUBLASLT_WORKSPACE_BYTES, MEMORY_WORKSPACE));
}

struct tape_value lowering_matmul(struct lowering *lowering, const struct tape_value *input, int32_t first,
                                  uint32_t count, int64_t elements, bool apart)
{
    struct tape_op op = {.kind = TAPE_PRODUCT, .inputs = input, .input_count = 1, .parameter_count = count};
    struct tape_value from, result;

    for (uint32_t i = 0; i < count; i++)
        op.parameters[i] = first + (int32_t)i;
    lowering_cast_parameters(lowering, &op);
    op.parameters_first = apart;
    for (uint32_t i = 0; i < count && apart; i++)
        op.parameters[i] = first + (int32_t)(count - 1 - i);
    from = lowering_to_half(lowering, input);
    op.inputs = &from;
    if (!count || !lowering->tape.parameters[first].frozen)
        lowering_save(&op, from.tensor);
    result = lowering_run(lowering, &op, elements, from.element_bytes);
    tape_take_cublas(&lowering->tape);
    if (!apart)
        take_cublaslt(lowering, first, count);
    tape_drop(&lowering->tape, from.tensor);
    return result;
}
