/* The estimate of SM activity, moved towards what runs have shown.
 *
 * The estimator's error of a model m of the family f is taken as b_f + c_m + noise. Each part has mean 0 before
 * anything was observed. Empirical Bayes in the form of Buehlmann's credibility (H. Buehlmann, "Experience rating and
 * credibility", ASTIN Bulletin 4, 1967): the mean of n observations counts with weight n / (n + k). k is the variance
 * of one observation over the variance of the wanted part.
 *
 *   b_f = sum over the other observed models of the family of their mean error / (their number + k_f)
 *   c_m = n_m / (n_m + k_m) * (mean error of the runs of m - b_f)
 *   estimate' = estimate + b_f + c_m, within 10 and 990 permille
 *
 * k is from real CNNs (data/workloads.csv, `bench/activity`). Runs of a model spread by 38 permille around its mean
 * error. The models spread by 85 around the family's mean, which is 85 from 0. So k_m = 38^2 / 85^2 = 0.2 and k_f =
 * 85^2 / 85^2 = 1. k_m is taken as 0.5: jobs of a user run beside one another more alike than those 24 runs. Integers
 * only: permille. */
#ifndef CARMA_ESTIMATE_SHRINKAGE_H
#define CARMA_ESTIMATE_SHRINKAGE_H

#include <stdint.h>

/* Where the estimator says nothing of a family (transformers), its errors are taken against this. */
#define SHRINKAGE_PRIOR_PERMILLE 600

/* Answers are within these. */
#define SHRINKAGE_LEAST_PERMILLE 10
#define SHRINKAGE_MOST_PERMILLE  990

/* Errors of an estimator: observed - estimated. */
struct shrinkage_errors {
    int64_t count;
    int64_t sum_permille;
};

/* Rounded down in magnitude; 0 where nothing was counted. */
int32_t shrinkage_mean(const struct shrinkage_errors *errors);

/* `others`: the mean errors of the family's other models, one for each; `model`: of the runs of this model.
 * estimate_permille -1: the estimator says nothing; the answer is -1, too, where nothing was observed either. */
int32_t shrinkage_apply(int32_t estimate_permille, const struct shrinkage_errors *others,
                        const struct shrinkage_errors *model);

#endif
