/* The default: whichever of the others knows most. The rule is in estimate.h. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/estimate.h"

static const struct {
    const char *name;
    bool margin;
} order[] = {{"history", false}, {"replay", true}, {"gpumemnet", true}, {"declared", false}};

/* No margin from this confidence on; below, half a permille of the answer for each permille that is missing. */
#define SURE_PERMILLE 900

static int64_t with_margin(const struct estimate *estimate)
{
    int32_t missing = SURE_PERMILLE - estimate->confidence_permille;

    if (missing <= 0 || estimate->bytes > INT64_MAX / 2000)
        return estimate->bytes;
    return estimate->bytes + estimate->bytes * missing / 2000;
}

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    for (size_t i = 0; i < array_size(order); i++) {
        const struct estimator *estimator = estimator_find(order[i].name);
        int rc;
        if (!estimator)
            continue;
        estimate->source = estimator->name;
        rc = estimator->answer(question, estimate, err);
        if (rc == 0 && order[i].margin)
            estimate->bytes = with_margin(estimate);
        if (rc != -ENOTSUP)
            return rc;
    }
    return error_set(err, ENOTSUP,
                     "nothing to estimate from: give the model's summary, a capture, or how much memory it needs");
}

const struct estimator estimator_auto = {
    "auto", "the best there is: history, else replay, else gpumemnet, else what is declared", answer};
