/* Lengths of batches where samples differ. They are taken as log-normal about their mean; those beyond the longest that
 * the training takes are cut there, or left out. A batch is as long as its longest sample. Nothing is drawn: the n-th
 * sample has the quantile that the golden ratio gives, so that any few in a row are spread over all of them. A larger
 * batch has the samples of a smaller one, and more. */
#include <math.h>

#include "estimate/transformer/model.h"

#define SIGMA  0.7 /* of a length's logarithm: a standard deviation of 0.8 means, as in ms-swift's benchmark */
#define FIRST  0.1 /* a run begins with a short one, so that later ones find no block that fits */
#define GOLDEN 0.6180339887498949
#define SLOPE  1.702 /* of the logistic distribution that is nearly the normal one: 1.29 for 1.28 at 0.9 */

/* Of the normal distribution, nearly. */
static double normal_at(double quantile)
{
    return log(quantile / (1 - quantile)) / SLOPE;
}

/* The share of samples that are no longer than the longest that is taken. */
static double share_within(const struct method *method)
{
    double number = (log((double)method->sequence / (double)method->mean_length) + SIGMA * SIGMA / 2) / SIGMA;

    return 1 / (1 + exp(-SLOPE * number));
}

int64_t model_length_of_batch(const struct method *method, int64_t batch, int number)
{
    double within = method->drop_longer ? share_within(method) : 1, longest = 1;

    for (int64_t i = 0; i < batch; i++) {
        double at = FIRST + ((double)number + (double)i * MODEL_VARIED_BATCHES) * GOLDEN;
        double quantile = within * (at - floor(at));
        double length = (double)method->mean_length * exp(SIGMA * normal_at(quantile) - SIGMA * SIGMA / 2);
        longest = fmax(longest, length);
    }
    return longest < (double)method->sequence ? (int64_t)longest : method->sequence;
}
