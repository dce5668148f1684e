/* A transformer on its way to a program. Private to this folder. */
#ifndef CARMA_ESTIMATE_TRANSFORMER_MODEL_H
#define CARMA_ESTIMATE_TRANSFORMER_MODEL_H

#include "estimate/program/lowering.h"
#include "estimate/transformer/transformer.h"

struct linear {
    int32_t first; /* weight, and the bias where count is 2; of the tape */
    uint32_t count, label;
    int64_t in, out;
    bool packed;     /* the weight is stored in 4 bits */
    int32_t adapter; /* LoRA's two matrices, or TAPE_NONE */
};

struct norm {
    int32_t first;
    uint32_t count, label; /* 0: there is none */
    int64_t width;
};

struct attention_module {
    struct linear query, key, value, out; /* fused: the query's projection is all three's */
    struct norm query_norm, key_norm;
};

struct block {
    bool decoder; /* the second half of an encoder-decoder */
    struct attention_module own, cross;
    struct norm norms[4], cross_norm; /* before attention and MLP (or behind the additions), behind both */
    struct linear gate, up, down;
};

struct model {
    struct lowering lowering;
    const struct transformer *transformer;
    const struct method *method;
    bool half;            /* computes in bf16 without autocast */
    uint8_t plain_bytes;  /* an element of a parameter that is not a block's matrix */
    bool frozen;          /* adapters alone are trained */
    struct block *blocks; /* owned; the encoder's first */
    size_t block_count;
    int32_t first_inner, end_inner;                      /* the blocks' parameters */
    int32_t words, places, types, relative[2], specials; /* parameters of embeddings */
    struct linear embed_in, embed_out, patches, dense, head;
    struct norm embed_norm, final_norms[2], head_norm;
    struct tape_value memory; /* the encoder's result, for the decoder */
    struct tape_value bias;   /* relative positions' part of the scores, of the stack in progress */
    int64_t length, tokens;   /* of a sample, of the batch */
    uint32_t *held;           /* tensors that the training loop has; those of the batch before come first */
    size_t held_count, held_before, held_capacity;
};

/* Of an element of an adapter and of its input. */
static inline uint8_t adapter_bytes(const struct model *model)
{
    return model->method->adapter_bf16 ? HALF_BYTES : FULL_BYTES;
}

/* Parameters in the order in which the modules are made (modules.c). */
void model_add_modules(struct model *model);

/* Operators (operators.c). They take over the references of their inputs and give one with the result. */
struct tape_value model_keep(struct model *model, const struct tape_value *value); /* one more reference */
void model_hold(struct model *model, const struct tape_value *value);              /* in the loop's hands */
struct tape_value model_linear(struct model *model, struct tape_value input, const struct linear *linear);
struct tape_value model_normalise(struct model *model, struct tape_value input, const struct norm *norm);
struct tape_value model_activate(struct model *model, struct tape_value input);
struct tape_value model_dropout(struct model *model, struct tape_value input, bool wanted);
struct tape_value model_add(struct model *model, struct tape_value a, struct tape_value b);
struct tape_value model_cast(struct model *model, struct tape_value value, uint8_t element_bytes);
enum { KEEPS_INPUT = 1, KEEPS_OUTPUT = 2 };
struct tape_value model_unary(struct model *model, struct tape_value input, int keeps, int64_t elements);
struct tape_value model_multiply(struct model *model, struct tape_value a, struct tape_value b);

/* attention.c; `of`: the source of keys and values. */
struct tape_value model_attend(struct model *model, struct tape_value input, struct tape_value of,
                               const struct attention_module *attention, bool causal);

/* Tokens of each sample of the number-th batch, padding included (lengths.c); of at most two batches for each of the
 * steps that are lowered where lengths differ. More of them do not need more. */
#define MODEL_VARIED_STEPS   24
#define MODEL_VARIED_BATCHES (2 * MODEL_VARIED_STEPS)
int64_t model_length_of_batch(const struct method *method, int64_t batch, int number);

/* One block of a stack (block.c). */
struct tape_value model_block(struct model *model, struct tape_value input, const struct block *block);

#endif
