/* A transformer by its sizes, as the config.json of Hugging Face's Transformers gives them, and the way in which it is
 * trained. It is lowered to the program of a few training steps, operator by operator, as that library's PyTorch models
 * run.
 */
#ifndef CARMA_ESTIMATE_TRANSFORMER_H
#define CARMA_ESTIMATE_TRANSFORMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "estimate/layers.h"
#include "estimate/program/capture.h"
#include "estimate/program/lower.h"
#include "estimate/transformer/lengths.h"

enum transformer_kind {
    TRANSFORMER_DECODER,         /* GPT-2, Llama */
    TRANSFORMER_ENCODER,         /* BERT */
    TRANSFORMER_ENCODER_DECODER, /* T5 */
    TRANSFORMER_VISION           /* ViT: an encoder of patches */
};

enum transformer_head {
    HEAD_NONE,
    HEAD_LANGUAGE, /* a word for every token */
    HEAD_CLASSES,  /* one class for the sequence */
    HEAD_TOKENS    /* one for every token */
};

enum transformer_trait {
    TRAIT_ROTARY = 1 << 0, /* rotary positions */
    TRAIT_RMS = 1 << 1,    /* normalises by the root mean square: no bias, computed in full precision */
    TRAIT_GATED = 1 << 2,  /* down(act(gate(x)) * up(x)) */
    TRAIT_TIED = 1 << 3,   /* the head's weight is the embedding's */
    TRAIT_QKV_BIAS = 1 << 4,
    TRAIT_OUT_BIAS = 1 << 5, /* of the attention's output */
    TRAIT_MLP_BIAS = 1 << 6,
    TRAIT_FUSED_QKV = 1 << 7,   /* one projection to queries, keys and values */
    TRAIT_POST_NORM = 1 << 8,   /* normalises behind the addition, not before the layer */
    TRAIT_PARALLEL = 1 << 9,    /* attention and MLP of the same input */
    TRAIT_ONE_NORM = 1 << 10,   /* and behind the same normalisation */
    TRAIT_QK_NORM = 1 << 11,    /* of every head's queries and keys */
    TRAIT_FOUR_NORMS = 1 << 12, /* also behind attention and MLP, before the addition */
    TRAIT_EMBED_NORM = 1 << 13,
    TRAIT_FINAL_NORM = 1 << 14,
    TRAIT_HEAD_BIAS = 1 << 15,
    TRAIT_HEAD_DENSE = 1 << 16, /* dense layers before the heads, as BERT's; a pooler where there is no head */
    TRAIT_POOLER = 1 << 17,
    TRAIT_RMS_FULL = 1 << 19, /* Gemma: the weight is added to one and multiplied in full precision */
    TRAIT_INNER_DROPOUT = 1 << 20,
    TRAIT_MASKS = 1 << 21,   /* each layer has a mask of all pairs of positions, a byte each */
    TRAIT_RELATIVE = 1 << 18 /* T5's positions: a bias on the scores; no scaling */
};

/* Composed in Python, not a kernel of PyTorch: keeps three more tensors (gelu_new). */
#define TRANSFORMER_GELU_NEW ACTIVATION_COUNT

struct transformer {
    const char *family;             /* borrowed: a constant */
    uint8_t kind, head, activation; /* enum activation, or TRANSFORMER_GELU_NEW */
    uint32_t traits;
    bool dropout, attention_dropout;
    int64_t vocabulary, positions, types; /* rows of embeddings; 0 = none */
    int64_t width, embedding_width;
    int64_t layers, decoder_layers; /* the latter of an encoder-decoder */
    int64_t heads, kv_heads, head_width, inner, labels;
    int64_t buckets;                          /* of relative positions */
    int64_t image, patch, channels, specials; /* of TRANSFORMER_VISION; tokens beside the patches */
};

enum tuning { TUNING_FULL, TUNING_LORA, TUNING_QLORA };
enum tuning_targets { TARGETS_QV, TARGETS_ATTENTION, TARGETS_ALL };
enum sharding { SHARDING_NONE, SHARDING_ZERO1, SHARDING_ZERO2, SHARDING_ZERO3, SHARDING_FSDP };

/* How it is trained, beyond `struct training`. Of several GPUs: the memory of one. */
struct method {
    uint8_t tuning, targets, sharding;
    bool checkpointing;  /* of each layer's activations */
    bool eager;          /* attention with a matrix of scores */
    bool repeated_heads; /* the model copies keys and values for each head of a group before a fused kernel */
    bool contiguous;     /* the model copies queries, keys and values before a fused kernel */
    bool adapter_dropout;
    bool adapter_bf16; /* the adapters' own precision; else full, as PEFT makes it */
    bool chunked_loss; /* cross entropy by parts of the batch */
    bool drop_longer;  /* samples longer than `sequence` are left out, not cut */
    bool half_loss;    /* of logits as the model gives them: it does not cast them to full precision */
    bool held_logits;  /* in full precision, by the training loop until the step ends */
    bool kept_output;  /* the model's result, by the training loop until the next one is there */
    int64_t rank;
    int64_t accumulation; /* batches for each step of the optimizer */
    int64_t sequence;     /* tokens; not of TRANSFORMER_VISION */
    int64_t mean_length; /* of the samples, before they are cut at `sequence` or left out; 0: all are as long as that */
    const struct lengths *lengths; /* borrowed, of the samples, in place of a mean; NULL: no list of them is there */
    int64_t world;                 /* GPUs; 0: as many as the job has */
};

static inline bool method_varies(const struct method *method)
{
    return method->mean_length || method->lengths;
}

#define METHOD_TEXT                                                                                                    \
    "full, lora, qlora, rank=N, targets=qv|attention|all, adapter_dropout, adapter_bf16, checkpointing, eager, "       \
    "repeated_heads, contiguous, "                                                                                     \
    "chunked_loss, half_loss, held_logits, kept_output, mean_length=N, drop_longer, accumulate=N, zero1, zero2, "      \
    "zero3, fsdp, "                                                                                                    \
    "world=N"

#define SEQUENCE_DEFAULT 512 /* tokens */
#define RANK_DEFAULT     8   /* of PEFT's LoraConfig */

void method_default(struct method *method);
/* Words with commas between them ("qlora,rank=64,targets=all,checkpointing"), over what *method holds; -EINVAL. */
int method_parse(const char *text, struct method *method, struct error *err);

/* Sizes of which every product that is computed here holds in 63 bits. -EINVAL names what is too large. */
int transformer_check(const struct transformer *transformer, const struct training *training,
                      const struct method *method, struct error *err);

/* Checked ones. The first inits *program. Its events are known before it is made: blocks are alike, so models of one
 * and two tell those of any number. The caller compares them with PROGRAM_MAX_EVENTS. */
void transformer_lower(struct program *program, const struct transformer *transformer, const struct training *training,
                       const struct method *method);
int64_t transformer_events(const struct transformer *transformer, const struct training *training,
                           const struct method *method);
/* Not of TRANSFORMER_VISION: by it a training on longer sequences, in larger batches or of a higher rank never needs
 * less (reserve.c). It lowers RESERVE_PROGRAMS more programs of as many events. [1]: with expandable segments. */
#define RESERVE_PROGRAMS 7
void transformer_reserve(struct reserve reserves[2], const struct transformer *transformer,
                         const struct training *training, const struct method *method);
int64_t transformer_parameters(const struct transformer *transformer); /* elements, of the model without adapters */

#endif
