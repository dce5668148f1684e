/* The default: the combined answer of the estimators. The rules are in estimate.h and combine.h. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/combine.h"

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

/* Does not change *answer where there is none, or where the user's word is better. */
static int ask(const struct estimator *estimator, const struct estimate_question *question, struct estimate *answer,
               struct error *err)
{
    struct estimate said = {.smact_permille = -1, .smocc_permille = -1};
    int rc;

    estimate_name_source(&said, estimator->name);
    rc = estimator->answer(question, &said, err);
    if (rc)
        return rc;
    if (estimator != &estimator_history) {
        if (question->declared_bytes >= 0 && said.confidence_permille < GUESS_PERMILLE)
            return error_set(err, ENOTSUP, "%s: less sure than what is declared", estimator->name);
        if (!said.lower_bound)
            said.bytes = with_margin(&said, question->quantile_permille);
    }
    said.error_permille = combine_error_permille(estimator, question, said.confidence_permille);
    *answer = said;
    return 0;
}

static int64_t most_observed(const struct estimate_history *history)
{
    int64_t most = 0;

    for (size_t i = 0; i < history->count; i++)
        most = history->peak_bytes[i] > most ? history->peak_bytes[i] : most;
    return most;
}

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    struct estimate_question of_summary = *question;
    const struct {
        const struct estimator *estimator;
        const struct estimate_question *question; /* NULL: not asked */
    } asked[] = {
        {&estimator_history, question},
        {&estimator_replay, question},
        {&estimator_replay, question->capture && question->layers ? &of_summary : NULL}, /* beside the capture */
        {&estimator_gpumemnet, question},
    };
    struct estimate answers[array_size(asked)];
    struct error why = {{0}};
    size_t count = 0;

    of_summary.capture = NULL;
    of_summary.transformer = NULL;
    for (size_t i = 0; i < array_size(asked); i++) {
        int rc;
        if (!asked[i].question || (count && !combine_may_count(asked[i].estimator, asked[i].question, answers, count)))
            continue;
        rc = ask(asked[i].estimator, asked[i].question, &answers[count], &why);
        if (rc == 0)
            count++;
        else if (rc != -ENOTSUP && count == 0)
            return error_set(err, -rc, "%s", why.text);
    }
    if (count) {
        combine(answers, count, question->quantile_permille, estimate, NULL);
        if (question->quantile_permille > MEDIAN_PERMILLE && estimate->bytes < most_observed(&question->history))
            estimate->bytes = most_observed(&question->history);
        return 0;
    }
    if (question->declared_bytes < 0)
        return no_answer(question, &why, err);
    estimate_name_source(estimate, estimator_declared.name);
    return estimator_declared.answer(question, estimate, err);
}

const struct estimator estimator_auto = {
    "auto", "history, replay and gpumemnet by their errors, else the declared request; more where they know little",
    answer};
