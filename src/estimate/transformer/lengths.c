/* Lengths of batches where samples differ. They are those of a list, or are taken as log-normal about their mean; those
 * beyond the longest that the training takes are cut there, or left out. A batch is as long as its longest sample.
 * Nothing is drawn: the n-th sample has the quantile that the golden ratio gives, so that any few in a row are spread
 * over all of them. A larger batch has the samples of a smaller one, and more. Each pass through a list meets its
 * longest sample: so does one batch here, behind many others, which have left blocks that it does not fit. */
#include <math.h>

#include "base/memory.h"
#include "estimate/transformer/lengths.h"
#include "estimate/transformer/model.h"

#define SIGMA   0.7 /* of a length's logarithm: a standard deviation of 0.8 means, as in ms-swift's benchmark */
#define FIRST   0.1 /* a run begins with a short one, so that later ones find no block that fits */
#define GOLDEN  0.6180339887498949
#define SLOPE   1.702 /* of the logistic distribution that is nearly the normal one: 1.29 for 1.28 at 0.9 */
#define LONGEST (1 - 1e-12)

void lengths_release(struct lengths *lengths)
{
    free_ptr(&lengths->items);
    lengths->count = 0;
}

/* The first item with more tokens than `most`, or with more samples through it; the count of items: there is none. */
static size_t first_beyond(const struct lengths *lengths, bool by_tokens, int64_t most)
{
    size_t low = 0, high = lengths->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct sample_length *item = &lengths->items[middle];
        if ((by_tokens ? item->tokens : item->through) <= most)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t lengths_within(const struct lengths *lengths, int64_t tokens)
{
    size_t beyond = first_beyond(lengths, true, tokens);

    return beyond ? lengths->items[beyond - 1].through : 0;
}

static int64_t sample_count(const struct lengths *lengths)
{
    return lengths->items[lengths->count - 1].through;
}

/* Of the sample that as large a share of all is shorter than, or as long. */
static int64_t length_in(const struct lengths *lengths, double quantile)
{
    size_t at = first_beyond(lengths, false, (int64_t)(quantile * (double)sample_count(lengths)));

    return lengths->items[at < lengths->count ? at : lengths->count - 1].tokens;
}

/* Of the normal distribution, nearly. */
static double normal_at(double quantile)
{
    return log(quantile / (1 - quantile)) / SLOPE;
}

static double length_at(const struct method *method, double quantile)
{
    if (method->lengths)
        return (double)length_in(method->lengths, quantile);
    return (double)method->mean_length * exp(SIGMA * normal_at(quantile) - SIGMA * SIGMA / 2);
}

/* The share of samples that are no longer than the longest that is taken. */
static double share_within(const struct method *method)
{
    double number;

    if (method->lengths)
        return (double)lengths_within(method->lengths, method->sequence) / (double)sample_count(method->lengths);
    number = (log((double)method->sequence / (double)method->mean_length) + SIGMA * SIGMA / 2) / SIGMA;
    return 1 / (1 + exp(-SLOPE * number));
}

/* Of those that are taken, the part below the i-th sample of the number-th batch. */
static double quantile_of(const struct method *method, int number, int64_t i)
{
    double at = FIRST + ((double)number + (double)i * MODEL_VARIED_BATCHES) * GOLDEN;

    return method->lengths && number == MODEL_VARIED_STEPS - 1 && i == 0 ? LONGEST : at - floor(at);
}

int64_t model_length_of_batch(const struct method *method, int64_t batch, int number)
{
    double within = method->drop_longer ? share_within(method) : 1, longest = 1;

    for (int64_t i = 0; i < batch; i++)
        longest = fmax(longest, length_at(method, within * quantile_of(method, number, i)));
    return longest < (double)method->sequence ? (int64_t)longest : method->sequence;
}
