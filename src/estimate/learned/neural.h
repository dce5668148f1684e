/* The parts of small neural networks, in float32, for gpumemnet.c. Matrices are rows of numbers; functions that take
 * weights move *weights past those they used. Pure, and without checks: the caller has counted the weights. Formulas:
 * PyTorch's torch.nn.Linear, LayerNorm (eps 1e-5), MultiheadAttention, TransformerEncoderLayer (post-norm, ReLU, no
 * dropout), which these match to rounding. */
#ifndef CARMA_ESTIMATE_NEURAL_H
#define CARMA_ESTIMATE_NEURAL_H

#include <stddef.h>
#include <stdint.h>

/* IEEE half precision to single. */
void neural_from_halves(const uint16_t *halves, size_t count, float *values);

/* y[row][output] = x[row][input] * matrix[input][output] + bias[output]; takes the matrix, then the bias. */
void neural_dense(const float **weights, size_t rows, size_t inputs, size_t outputs, const float *x, float *y);
size_t neural_dense_weights(size_t inputs, size_t outputs);

void neural_relu(size_t count, float *x);
void neural_softmax(size_t count, float *x); /* count >= 1 */

struct neural_encoder {
    size_t width, heads, forward; /* heads divides width */
};

/* One encoder layer over `rows` tokens, in place: attention, residual, norm, two dense layers, residual, norm.
 * `scratch` has room for neural_encoder_scratch() floats. */
void neural_encoder_layer(const struct neural_encoder *encoder, const float **weights, size_t rows, float *x,
                          float *scratch);
size_t neural_encoder_weights(const struct neural_encoder *encoder);
size_t neural_encoder_scratch(const struct neural_encoder *encoder, size_t rows);

#endif
