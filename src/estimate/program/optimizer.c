#include <errno.h>
#include <string.h>

#include "base/text/nearest.h"
#include "estimate/program/lowering.h"

#define EIGHT_BIT_LEAST 4096 /* elements */
#define EIGHT_BIT_BLOCK 256

static const char *const optimizers[OPTIMIZER_COUNT] = {
    [OPTIMIZER_SGD] = "sgd",
    [OPTIMIZER_MOMENTUM] = "momentum",
    [OPTIMIZER_ADAM] = "adam",
    [OPTIMIZER_ADAMW] = "adamw",
    [OPTIMIZER_ADAFACTOR] = "adafactor",
    [OPTIMIZER_ADAMW_FUSED] = "adamw_fused",
    [OPTIMIZER_ADAMW_8BIT] = "adamw_8bit",
};

static const char *const precisions[PRECISION_COUNT] = {
    [PRECISION_FP32] = "fp32", [PRECISION_TF32] = "tf32", [PRECISION_AMP] = "amp", [PRECISION_BF16] = "bf16"};

const char *optimizer_name(enum optimizer optimizer)
{
    return optimizers[optimizer];
}

const char *precision_name(enum precision precision)
{
    return precisions[precision];
}

int optimizer_parse(const char *text, enum optimizer *optimizer, struct error *err)
{
    for (int i = 0; i < OPTIMIZER_COUNT; i++) {
        if (strcmp(text, optimizers[i]) == 0) {
            *optimizer = (enum optimizer)i;
            return 0;
        }
    }
    return nearest_refuse(err, "optimizer", text, "sgd, momentum, adam, adamw, adafactor, adamw_fused or adamw_8bit");
}

int precision_parse(const char *text, enum precision *precision, struct error *err)
{
    for (int i = 0; i < PRECISION_COUNT; i++) {
        if (strcmp(text, precisions[i]) == 0) {
            *precision = (enum precision)i;
            return 0;
        }
    }
    return nearest_refuse(err, "precision", text, "fp32, tf32, amp or bf16");
}

static int64_t state_bytes(const struct tape *tape, const struct tape_parameter *parameter, int64_t elements)
{
    return elements * (tape->state_bytes ? tape->state_bytes : parameter->element_bytes) /
           tape_shards(tape->state_shards);
}

static void take_state(struct tape *tape, const struct tape_parameter *parameter, int64_t elements)
{
    tape_alloc(tape, state_bytes(tape, parameter, elements), MEMORY_OPTIMIZER);
}

/* bitsandbytes: two states of a byte for each element, each with a scale for every 256 of them. States of small tensors
 * stay in full precision. */
static void eight_bit_state(struct tape *tape, const struct tape_parameter *parameter)
{
    int64_t elements = parameter->elements / tape_shards(tape->state_shards);
    bool small = parameter->elements < EIGHT_BIT_LEAST;

    for (int i = 0; i < 2; i++) {
        tape_alloc(tape, small ? elements * FULL_BYTES : elements, MEMORY_OPTIMIZER);
        if (!small)
            tape_alloc(tape, (elements + EIGHT_BIT_BLOCK - 1) / EIGHT_BIT_BLOCK * FULL_BYTES, MEMORY_OPTIMIZER);
    }
}

/* torch/optim/_adafactor.py: of a matrix, the row and column sums of the squares; else all of them. */
static void adafactor_state(struct tape *tape, const struct tape_parameter *parameter)
{
    if (parameter->last > 0 && parameter->second_last > 0) {
        take_state(tape, parameter, parameter->elements / parameter->last);
        take_state(tape, parameter, parameter->elements / parameter->second_last);
    } else {
        take_state(tape, parameter, parameter->elements);
    }
}

/* The states that the optimizers of torch.optim keep for a parameter, in the order in which they make them. These are
 * sgd.py's momentum_buffer, and adam.py's and adamw.py's exp_avg and exp_avg_sq (their `step` lies in the host's
 * memory). */
static void make_state(struct tape *tape, enum optimizer optimizer, const struct tape_parameter *parameter)
{
    switch (optimizer) {
    case OPTIMIZER_MOMENTUM:
        take_state(tape, parameter, parameter->elements);
        break;
    case OPTIMIZER_ADAM:
    case OPTIMIZER_ADAMW:
    case OPTIMIZER_ADAMW_FUSED:
        take_state(tape, parameter, parameter->elements);
        take_state(tape, parameter, parameter->elements);
        break;
    case OPTIMIZER_ADAMW_8BIT:
        eight_bit_state(tape, parameter);
        break;
    case OPTIMIZER_ADAFACTOR:
        adafactor_state(tape, parameter);
        break;
    case OPTIMIZER_SGD:
    case OPTIMIZER_COUNT:
        break;
    }
}

/* The foreach implementations, the default on a GPU, work on all parameters at once. Adam's and AdamW's need the square
 * roots of exp_avg_sq, a tensor per parameter, at the same time; those of SGD work in place. Adafactor's default is one
 * parameter after the other, with an update of the parameter's size. */
static void work(struct tape *tape, enum optimizer optimizer)
{
    uint32_t first = tape->program->tensor_count;

    for (size_t i = 0; i < tape->parameter_count; i++) {
        const struct tape_parameter *parameter = &tape->parameters[i];
        uint32_t scratch;
        if (parameter->gradient == TAPE_NONE)
            continue;
        if (optimizer != OPTIMIZER_ADAM && optimizer != OPTIMIZER_ADAMW && optimizer != OPTIMIZER_ADAFACTOR)
            continue;
        scratch = tape_alloc(tape, state_bytes(tape, parameter, parameter->elements), MEMORY_TEMPORARY);
        if (optimizer == OPTIMIZER_ADAFACTOR)
            tape_drop(tape, scratch);
    }
    if (optimizer == OPTIMIZER_ADAM || optimizer == OPTIMIZER_ADAMW)
        for (uint32_t tensor = first; tensor < tape->program->tensor_count; tensor++)
            tape_drop(tape, tensor);
}

/* Weight decay of SGD and Adam adds a share of the parameters to the gradients, in separate tensors that last until the
 * step is done. AdamW's and Adafactor's works on the parameters in place. */
static void decay(struct tape *tape, enum optimizer optimizer)
{
    if (optimizer != OPTIMIZER_SGD && optimizer != OPTIMIZER_MOMENTUM && optimizer != OPTIMIZER_ADAM)
        return;
    for (size_t i = 0; i < tape->parameter_count; i++) {
        const struct tape_parameter *parameter = &tape->parameters[i];
        if (parameter->gradient != TAPE_NONE)
            tape_alloc(tape, parameter->elements * parameter->element_bytes, MEMORY_TEMPORARY);
    }
}

static void make_states(struct tape *tape, enum optimizer optimizer)
{
    for (size_t i = 0; i < tape->parameter_count; i++) {
        tape->at.label = tape->parameters[i].label;
        if (tape->parameters[i].gradient != TAPE_NONE)
            make_state(tape, optimizer, &tape->parameters[i]);
    }
    tape->at.label = 0;
}

void optimizer_step(struct tape *tape, enum optimizer optimizer, bool weight_decay, bool first)
{
    bool copies = optimizer == OPTIMIZER_MOMENTUM; /* its first state is a copy of the (decayed) gradient */
    uint32_t decayed, end;

    tape->at.label = 0;
    tape->at.phase = PHASE_OPTIMIZER;
    if (first && !copies)
        make_states(tape, optimizer);
    decayed = tape->program->tensor_count;
    if (weight_decay)
        decay(tape, optimizer);
    end = tape->program->tensor_count;
    if (first && copies)
        make_states(tape, optimizer);
    work(tape, optimizer);
    for (; decayed < end; decayed++)
        tape_drop(tape, decayed);
}
