/* The user's declaration. */
#include <errno.h>

#include "estimate/estimate.h"

#define CONFIDENCE_PERMILLE 500 /* nobody has checked it */

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    if (question->declared_bytes < 0)
        return error_set(err, ENOTSUP, "no memory is declared: say how much with --gpu-memory");
    estimate->bytes = estimate->median_bytes = question->declared_bytes;
    estimate->confidence_permille = CONFIDENCE_PERMILLE;
    return 0;
}

const struct estimator estimator_declared = {"declared", "the job's own request", answer};
