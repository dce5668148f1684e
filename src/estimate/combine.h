/* Several estimates of one need, made one.
 *
 * Each is a distribution of the need: lognormal on either side of its median, with the quantile that it gave. The
 * answer is a quantile of their weighted mixture, the linear opinion pool (M. Stone, "The opinion pool", 1961). So a
 * disagreement widens it, and no quantile of it lies beyond those of its parts. A weight is the inverse square of the
 * source's error (combine_error_permille): a precise source dominates a vague one. An error of more than COMBINE_MOST
 * times the smallest does not count: even with little weight, a wide distribution would decide the far quantiles.
 *
 * A lower bound counts only where there is nothing else. */
#ifndef CARMA_ESTIMATE_COMBINE_H
#define CARMA_ESTIMATE_COMBINE_H

#include "estimate/estimate.h"

#define COMBINE_MOST 2

/* The usual error of an estimator's answer to the question, as the standard deviation of the need's logarithm. */
int32_t combine_error_permille(const struct estimator *estimator, const struct estimate_question *question,
                               int32_t confidence_permille);

/* Whether its answer could count beside these, however sure it is. It cannot beside a lower bound: parts that the bound
 * leaves out are missing for all. */
bool combine_may_count(const struct estimator *estimator, const struct estimate_question *question,
                       const struct estimate *estimates, size_t count);

/* At least one, each with its error. Where one counts, that is the answer. *result may not be one of them; its source
 * is the names of all that counted, the most precise first. counted may be NULL; else it says which did. */
void combine(const struct estimate *estimates, size_t count, int32_t quantile_permille, struct estimate *result,
             bool *counted);

#endif
