#include "estimate/shrinkage.h"

/* Permille of an observation. */
#define FAMILY_K 1000
#define MODEL_K  500

int32_t shrinkage_mean(const struct shrinkage_errors *errors)
{
    return errors->count > 0 ? (int32_t)(errors->sum_permille / errors->count) : 0;
}

/* sum / (count + k) */
static int64_t shrunk(int64_t sum, int64_t count, int64_t k)
{
    return sum * 1000 / (count * 1000 + k);
}

int32_t shrinkage_apply(int32_t estimate_permille, const struct shrinkage_errors *others,
                        const struct shrinkage_errors *model)
{
    int64_t family = shrunk(others->sum_permille, others->count, FAMILY_K);
    int64_t own = shrunk(model->sum_permille - model->count * family, model->count, MODEL_K);
    int64_t permille = (estimate_permille < 0 ? SHRINKAGE_PRIOR_PERMILLE : estimate_permille) + family + own;

    if (others->count + model->count == 0)
        return estimate_permille;
    return permille < SHRINKAGE_LEAST_PERMILLE  ? SHRINKAGE_LEAST_PERMILLE
           : permille > SHRINKAGE_MOST_PERMILLE ? SHRINKAGE_MOST_PERMILLE
                                                : (int32_t)permille;
}
