#include "estimate/combine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/normal.h"

/* Median errors that were measured (docs/estimation.md), divided by 0.6745: that makes them standard deviations. Runs
 * of one job differ by 1.6%, as earlier_runs.c assumes. Captures: 2.0% on timm's models. Configurations: 4.0% on
 * published figures. A summary says no more than these do about how the model is trained. gpumemnet: 17.6%, of
 * transformers. For the others, which answer alone, it only matters that it is always the same. */
#define ERROR_OF_RUNS          16
#define ERROR_OF_CAPTURE       30
#define ERROR_OF_CONFIGURATION 60
#define ERROR_OF_GPUMEMNET     260
#define ERROR_OF_OTHERS        200

/* Below this confidence, a quarter of the missing confidence is added. auto's margin there is half of it, at twice the
 * standard deviation. */
#define SURE_PERMILLE 800

static int32_t usual_error_permille(const struct estimator *estimator, const struct estimate_question *question)
{
    double runs = (double)question->history.count;

    if (estimator == &estimator_history)
        return (int32_t)(ERROR_OF_RUNS * sqrt(1 + 1 / runs));
    if (estimator == &estimator_gpumemnet)
        return ERROR_OF_GPUMEMNET;
    if (estimator != &estimator_replay && estimator != &estimator_auto)
        return ERROR_OF_OTHERS;
    return question->capture && !question->transformer ? ERROR_OF_CAPTURE : ERROR_OF_CONFIGURATION;
}

int32_t combine_error_permille(const struct estimator *estimator, const struct estimate_question *question,
                               int32_t confidence_permille)
{
    int32_t missing = SURE_PERMILLE - confidence_permille;

    return usual_error_permille(estimator, question) + (missing > 0 ? missing / 4 : 0);
}

/* One part of the mixture, in logarithms of bytes. */
struct part {
    double median, below, above; /* standard deviations */
    double weight;
};

struct mixture {
    struct part *parts; /* owned */
    size_t count;
};

/* An estimate without a range has that of its error. */
static double deviation(double distance, double points, double otherwise)
{
    return points > 0 && distance > 0 ? distance / points : otherwise;
}

static struct part part_of(const struct estimate *estimate, int32_t quantile_permille)
{
    double error = estimate->error_permille / 1000.0, points = fabs(normal_quantile(quantile_permille / 1000.0));
    double median = log((double)(estimate->median_bytes > 1 ? estimate->median_bytes : 1));
    double one = estimate->bytes > 1 ? log((double)estimate->bytes) : median;
    double other = estimate->low_bytes > 1 ? log((double)estimate->low_bytes) : 2 * median - one;
    double high = fmax(one, other), low = fmin(one, other);

    return (struct part){.median = median,
                         .below = deviation(median - low, points, error),
                         .above = deviation(high - median, points, error),
                         .weight = 1 / (error * error)};
}

static double part_quantile(const struct part *part, double points)
{
    return part->median + points * (points < 0 ? part->below : part->above);
}

static double share_below(const struct mixture *mixture, double at)
{
    double share = 0, sum = 0;

    for (size_t i = 0; i < mixture->count; i++) {
        const struct part *part = &mixture->parts[i];
        double distance = at - part->median;
        share += part->weight * normal_share(distance / (distance < 0 ? part->below : part->above));
        sum += part->weight;
    }
    return share / sum;
}

static int64_t mixture_bytes(const struct mixture *mixture, int32_t quantile_permille)
{
    double share = quantile_permille / 1000.0, points = normal_quantile(share);
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < mixture->count; i++) {
        low = fmin(low, part_quantile(&mixture->parts[i], points));
        high = fmax(high, part_quantile(&mixture->parts[i], points));
    }
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (share_below(mixture, middle) < share)
            low = middle;
        else
            high = middle;
    }
    return (int64_t)fmin(exp(high), (double)(INT64_C(1) << 60));
}

static size_t most_precise(const struct estimate *estimates, size_t count)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++) {
        bool bound = estimates[i].lower_bound;
        if (bound == estimates[best].lower_bound ? estimates[i].error_permille < estimates[best].error_permille
                                                 : !bound)
            best = i;
    }
    return best;
}

static void name_source(struct estimate *result, const char *source)
{
    size_t length = strlen(result->source);

    if (!strstr(result->source, source))
        snprintf(result->source + length, sizeof result->source - length, "+%s", source);
}

static void take_mixture(const struct mixture *mixture, int32_t quantile_permille, struct estimate *result)
{
    int64_t median_bytes = mixture_bytes(mixture, 500);

    result->correction_bytes += median_bytes - result->median_bytes; /* the parts of a replay go on adding up */
    result->median_bytes = median_bytes;
    result->bytes = mixture_bytes(mixture, quantile_permille);
    result->low_bytes = mixture_bytes(mixture, 1000 - quantile_permille);
}

bool combine_may_count(const struct estimator *estimator, const struct estimate_question *question,
                       const struct estimate *estimates, size_t count)
{
    const struct estimate *best = &estimates[most_precise(estimates, count)];

    return !best->lower_bound && usual_error_permille(estimator, question) <= COMBINE_MOST * best->error_permille;
}

void combine(const struct estimate *estimates, size_t count, int32_t quantile_permille, struct estimate *result,
             bool *counted)
{
    CLEANUP(free_ptr) struct part *parts = xcalloc(count, sizeof *parts);
    size_t best = most_precise(estimates, count);
    struct mixture mixture = {.parts = parts};

    *result = estimates[best];
    for (size_t i = 0; i < count; i++) {
        bool counts = i == best || (!estimates[i].lower_bound && !result->lower_bound &&
                                    estimates[i].error_permille <= COMBINE_MOST * result->error_permille);
        if (counted)
            counted[i] = counts;
        if (!counts)
            continue;
        parts[mixture.count++] = part_of(&estimates[i], quantile_permille);
        name_source(result, estimates[i].source);
        if (result->smact_permille < 0)
            result->smact_permille = estimates[i].smact_permille;
        if (!result->family) {
            result->family = estimates[i].family;
            result->parameter_bytes = estimates[i].parameter_bytes;
        }
    }
    if (mixture.count > 1)
        take_mixture(&mixture, quantile_permille, result);
}
