#include "estimate/estimate.h"

#include <errno.h>
#include <string.h>

const struct estimator *const estimators[] = {
    &estimator_auto,       &estimator_history,   &estimator_gpumemnet, &estimator_horus,
    &estimator_faketensor, &estimator_deepspeed, &estimator_declared,  NULL,
};

const struct estimator *estimator_find(const char *name)
{
    for (const struct estimator *const *e = estimators; *e; e++)
        if (strcmp((*e)->name, name) == 0)
            return *e;
    return NULL;
}

int estimate(const struct estimator *estimator, const struct estimate_question *question, struct estimate *result,
             struct error *err)
{
    struct estimate_question asked = *question;
    int rc;

    *result = (struct estimate){.smact_permille = -1, .smocc_permille = -1, .source = estimator->name};
    if (question->quantile_permille < 1 || question->quantile_permille > 999)
        return error_set(err, EINVAL, "quantile %d permille is out of range: 1 to 999", question->quantile_permille);
    /* how the job is trained is the job's, what cuBLAS takes for it the machine's */
    asked.training.cublas_workspace_bytes = question->profile->cublas_workspace_bytes;
    rc = estimator->answer(&asked, result, err);
    if (rc)
        return rc;
    result->exceeds_gpu = result->bytes > question->profile->memory_bytes;
    return 0;
}
