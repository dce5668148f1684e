/* The default: the estimator that knows most. The rule is in estimate.h. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/estimate.h"

static const struct {
    const char *name;
    bool margin;
} order[] = {{"history", false}, {"replay", true}, {"gpumemnet", true}, {"declared", false}};

/* No margin from this confidence on; below, half a permille of the answer for each permille that is missing. Nor where
 * the median or less is asked for. */
#define SURE_PERMILLE   800
#define MEDIAN_PERMILLE 500
#define GUESS_PERMILLE  250 /* below this the user's word is better */

static int64_t with_margin(const struct estimate *estimate, int32_t quantile_permille)
{
    int32_t missing = SURE_PERMILLE - estimate->confidence_permille;

    if (missing <= 0 || quantile_permille <= MEDIAN_PERMILLE || estimate->bytes > INT64_MAX / 2000)
        return estimate->bytes;
    return estimate->bytes + estimate->bytes * missing / 2000;
}

/* The obstacle to an estimate from the model is worth more to the user than that nothing is declared. */
static int no_answer(const struct estimate_question *question, const struct error *why, struct error *err)
{
    if (question->layers || question->capture)
        return error_set(err, ENOTSUP, "%s", why->text);
    return error_set(err, ENOTSUP,
                     "nothing to estimate from: give the model's summary, a capture, or how much memory it needs");
}

static void clear(struct estimate *estimate)
{
    *estimate = (struct estimate){.smact_permille = -1, .smocc_permille = -1};
}

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    struct error why = {"no estimator for models is linked in"};

    for (size_t i = 0; i < array_size(order); i++) {
        const struct estimator *estimator = estimator_find(order[i].name);
        struct error inner;
        int rc;
        if (!estimator)
            continue;
        rc = estimator->answer(question, estimate, &inner);
        if (rc == 0 && order[i].margin && question->declared_bytes >= 0 &&
            estimate->confidence_permille < GUESS_PERMILLE) {
            clear(estimate);
            continue;
        }
        estimate->source = estimator->name;
        if (rc == 0 && order[i].margin && !estimate->lower_bound)
            estimate->bytes = with_margin(estimate, question->quantile_permille);
        if (rc != -ENOTSUP)
            return rc ? error_set(err, -rc, "%s", inner.text) : 0;
        if (order[i].margin)
            why = inner;
    }
    return no_answer(question, &why, err);
}

const struct estimator estimator_auto = {
    "auto", "history, else replay, else gpumemnet, else the declared request; with a margin where they know little",
    answer};
