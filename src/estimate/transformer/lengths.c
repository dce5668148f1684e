/* Lengths of batches where samples differ. They are taken as log-normal about their mean, cut at the longest that the
 * training takes. A batch is as long as its longest sample. Nothing is drawn: the n-th sample has the quantile that the
 * golden ratio gives, so that any few in a row are spread over all of them. */
#include <math.h>

#include "estimate/transformer/model.h"

#define SIGMA  0.7 /* of a length's logarithm: a standard deviation of 0.8 means, as in ms-swift's benchmark */
#define FIRST  0.1 /* a run begins with a short one, so that later ones find no block that fits */
#define GOLDEN 0.6180339887498949

/* Of the normal distribution, nearly, by the logistic one: 1.29 for 1.28 at 0.9, 2.7 for 2.3 at 0.99. */
static double normal_at(double quantile)
{
    return log(quantile / (1 - quantile)) / 1.702;
}

int64_t model_length_of_batch(const struct method *method, int64_t batch, int number)
{
    double longest = 1;

    for (int64_t i = 0; i < batch; i++) {
        double at = FIRST + ((double)number * (double)batch + (double)i) * GOLDEN, quantile = at - floor(at);
        double length = (double)method->mean_length * exp(SIGMA * normal_at(quantile) - SIGMA * SIGMA / 2);
        longest = fmax(longest, length);
    }
    return longest < (double)method->sequence ? (int64_t)longest : method->sequence;
}
