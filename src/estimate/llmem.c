/* LLMem (Kim et al., "LLMem: Estimating GPU Memory Usage for Fine-Tuning Pre-Trained LLMs", IJCAI 2024). It is for a
 * decoder that is fine-tuned whole in mixed precision, by one GPU or by n GPUs. These share as ZeRO 3 does; the paper
 * trains by Colossal-AI's chunks. The peak is a sum, read off the paper and its authors' program (taehokim20/LLMem,
 * size_estimator.py):
 *
 *     base all that is loaded with the model: CUDA context, fp16 parameters (shared with their gradients) and an fp32
 *             copy, P of them over n GPUs: context + (2 + 4) P / n
 *     states  two fp32 numbers for each parameter of embeddings and linear layers: 8 P / n; of n > 1 GPUs the fp16
 *             parameters that are gathered from the others: 2 P (n - 1) / n
 *     out     fp16 outputs of the embeddings (words and positions), of every linear layer, and of every block
 *     head    the logits in fp16, and two more of these that the loss makes of them
 *
 * Each tensor is rounded up to 2 MiB. There base is measured with the model loaded; here it is computed. LLMem leaves
 * out attention's scores and the tensors that normalisations and activations keep. It knows neither checkpointing, LoRA
 * nor other optimizers.
 */
#include <errno.h>
#include <math.h>

#include "base/units.h"
#include "estimate/counts.h"
#include "estimate/transformer/transformer.h"

#define HALF  2.0
#define CHUNK (2.0 * MIB)

static double rounded(double bytes)
{
    return ceil(bytes / CHUNK) * CHUNK;
}

static double outputs_of(const struct transformer *t, double tokens)
{
    double wide = rounded(HALF * tokens * (double)t->width);
    double heads = rounded(HALF * tokens * (double)(t->heads * t->head_width));
    double pairs = rounded(HALF * tokens * (double)(t->kv_heads * t->head_width));
    double inner = rounded(HALF * tokens * (double)t->inner);
    double block = heads + 2 * pairs + 3 * wide + inner * (t->traits & TRAIT_GATED ? 2 : 1); /* 3: out, down, its own */

    return 2 * wide + block * (double)t->layers;
}

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    const struct transformer *t = question->transformer;
    double parameters, gpus, tokens, logits;

    if (!t)
        return error_set(err, ENOTSUP, "llmem needs a language model's configuration: give --hf-config");
    if (t->kind != TRANSFORMER_DECODER || t->head != HEAD_LANGUAGE)
        return error_set(err, ENOTSUP, "llmem is for decoders that predict words: this %s is none", t->family);
    parameters = (double)transformer_parameters(t);
    gpus = (double)question->method->world;
    tokens = (double)question->training.batch_size * (double)question->method->sequence;
    logits = rounded(HALF * tokens * (double)t->vocabulary);
    return estimate_from_formula("llmem",
                                 (double)question->profile->context_bytes +
                                     rounded(((6 + 8) + 2 * (gpus - 1)) * parameters / gpus) + outputs_of(t, tokens) +
                                     3 * logits,
                                 estimate, err);
}

const struct estimator estimator_llmem = {
    "llmem", "the sum of LLMem for fine-tuning a decoder whole in fp16 (Kim et al., 2024)", answer};
