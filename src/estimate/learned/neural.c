#include "estimate/learned/neural.h"

#include <math.h>
#include <string.h>

#define NORM_EPSILON 1e-5f

static float from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff, bits;
    float value;

    if (exponent == 0) { /* zero, or a denormal: fraction * 2^-24 */
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    bits = sign | (exponent == 0x1f ? 0xff : exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void neural_from_halves(const uint16_t *halves, size_t count, float *values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = from_half(halves[i]);
}

size_t neural_dense_weights(size_t inputs, size_t outputs)
{
    return (inputs + 1) * outputs;
}

void neural_dense(const float **weights, size_t rows, size_t inputs, size_t outputs, const float *x, float *y)
{
    const float *matrix = *weights, *bias = matrix + inputs * outputs;

    for (size_t row = 0; row < rows; row++, x += inputs, y += outputs) {
        memcpy(y, bias, outputs * sizeof *y);
        for (size_t i = 0; i < inputs; i++)
            for (size_t o = 0; o < outputs; o++)
                y[o] += x[i] * matrix[i * outputs + o];
    }
    *weights = bias + outputs;
}

void neural_relu(size_t count, float *x)
{
    for (size_t i = 0; i < count; i++)
        if (x[i] < 0)
            x[i] = 0;
}

void neural_softmax(size_t count, float *x)
{
    float most = x[0], sum = 0;

    for (size_t i = 1; i < count; i++)
        if (x[i] > most)
            most = x[i];
    for (size_t i = 0; i < count; i++)
        sum += x[i] = expf(x[i] - most);
    for (size_t i = 0; i < count; i++)
        x[i] /= sum;
}

/* x = norm(x + added), row by row; takes gain and offset. */
static void add_and_norm(const float **weights, size_t rows, size_t width, const float *added, float *x)
{
    const float *gain = *weights, *offset = gain + width;

    for (size_t row = 0; row < rows; row++, x += width, added += width) {
        float mean = 0, variance = 0, scale;

        for (size_t i = 0; i < width; i++)
            mean += x[i] += added[i];
        mean /= (float)width;
        for (size_t i = 0; i < width; i++)
            variance += (x[i] - mean) * (x[i] - mean);
        scale = 1 / (float)sqrt(variance / (float)width + NORM_EPSILON);
        for (size_t i = 0; i < width; i++)
            x[i] = (x[i] - mean) * scale * gain[i] + offset[i];
    }
    *weights = offset + width;
}

/* qkv[row]: query, key and value, each of `width`, the heads side by side in each. `scores` has room for a row. */
static void attend(const struct neural_encoder *encoder, size_t rows, const float *qkv, float *scores, float *y)
{
    size_t width = encoder->width, head = width / encoder->heads, stride = 3 * width;
    float scale = 1 / (float)sqrt((double)head);

    for (size_t row = 0; row < rows; row++)
        for (size_t at = 0; at < width; at += head) {
            const float *query = qkv + row * stride + at, *key = qkv + width + at, *value = key + width;
            float *out = y + row * width + at;

            for (size_t j = 0; j < rows; j++, key += stride) {
                scores[j] = 0;
                for (size_t i = 0; i < head; i++)
                    scores[j] += query[i] * key[i];
                scores[j] *= scale;
            }
            neural_softmax(rows, scores);
            memset(out, 0, head * sizeof *out);
            for (size_t j = 0; j < rows; j++, value += stride)
                for (size_t i = 0; i < head; i++)
                    out[i] += scores[j] * value[i];
        }
}

size_t neural_encoder_weights(const struct neural_encoder *encoder)
{
    size_t width = encoder->width;

    return neural_dense_weights(width, 3 * width) + neural_dense_weights(width, width) +
           neural_dense_weights(width, encoder->forward) + neural_dense_weights(encoder->forward, width) + 4 * width;
}

size_t neural_encoder_scratch(const struct neural_encoder *encoder, size_t rows)
{
    return rows * (5 * encoder->width + encoder->forward + 1);
}

void neural_encoder_layer(const struct neural_encoder *encoder, const float **weights, size_t rows, float *x,
                          float *scratch)
{
    size_t width = encoder->width;
    float *qkv = scratch, *attended = qkv + rows * 3 * width, *added = attended + rows * width;
    float *forward = added + rows * width, *scores = forward + rows * encoder->forward;

    neural_dense(weights, rows, width, 3 * width, x, qkv);
    attend(encoder, rows, qkv, scores, attended);
    neural_dense(weights, rows, width, width, attended, added);
    add_and_norm(weights, rows, width, added, x);
    neural_dense(weights, rows, width, encoder->forward, x, forward);
    neural_relu(rows * encoder->forward, forward);
    neural_dense(weights, rows, encoder->forward, width, forward, added);
    add_and_norm(weights, rows, width, added, x);
}
