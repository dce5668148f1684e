#include "estimate/estimate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "estimate/combine.h"

const struct estimator *const estimators[] = {
    &estimator_auto,  &estimator_history,    &estimator_replay,   &estimator_gpumemnet,
    &estimator_horus, &estimator_faketensor, &estimator_declared, NULL,
};

const struct estimator *estimator_find(const char *name)
{
    for (const struct estimator *const *e = estimators; *e; e++)
        if (strcmp((*e)->name, name) == 0)
            return *e;
    return NULL;
}

/* SM activity follows from the model, for every estimator of memory. */
static void add_utilisation(const struct estimate_question *question, struct estimate *result)
{
    struct program program;

    if (question->capture) {
        estimate_utilisation(question, &question->capture->program, result);
        return;
    }
    if (program_lower(&program, question->layers, &question->training, NULL) == 0)
        estimate_utilisation(question, &program, result);
    program_release(&program);
}

/* By the time that they take, as measured: 18 us for a convolution, 51 us for attention, 0.2 us for an event. */
#define LAYER_EVENTS     (PROGRAM_MAX_EVENTS / LAYER_LIST_MAX)
#define ATTENTION_EVENTS (4 * LAYER_EVENTS)

int64_t estimate_layer_events(const struct layer_list *layers)
{
    int64_t events = 0;

    for (size_t i = 0; i < layers->count; i++)
        events += layers->items[i].kind == LAYER_ATTENTION ? ATTENTION_EVENTS : LAYER_EVENTS;
    return events;
}

int estimate_spend(int64_t *left, int64_t events, const char *name, struct error *err)
{
    int64_t had = *left;

    *left -= events;
    if (*left >= 0)
        return 0;
    return error_set(err, E2BIG,
                     "%s: a training step of about %" PRId64 " events is more to replay than is left, %" PRId64
                     ": give fewer models at once",
                     name, events, had > 0 ? had : 0);
}

void estimate_name_source(struct estimate *estimate, const char *name)
{
    snprintf(estimate->source, sizeof estimate->source, "%s", name);
}

int estimate(const struct estimator *estimator, const struct estimate_question *question, struct estimate *result,
             struct error *err)
{
    struct estimate_question asked = *question;
    int rc;

    *result = (struct estimate){.smact_permille = -1, .smocc_permille = -1};
    estimate_name_source(result, estimator->name);
    if (question->quantile_permille < 1 || question->quantile_permille > 999)
        return error_set(err, EINVAL, "quantile %d permille is out of range: 1 to 999", question->quantile_permille);
    /* the job decides how it is trained, the machine decides the memory of cuBLAS */
    asked.training.cublas_workspace_bytes = question->profile->cublas_workspace_bytes;
    rc = estimator->answer(&asked, result, err);
    if (rc)
        return rc;
    if (!result->error_permille)
        result->error_permille = combine_error_permille(estimator, question, result->confidence_permille);
    if (result->smact_permille < 0 && (question->capture || question->layers))
        add_utilisation(&asked, result);
    result->exceeds_gpu = result->bytes > question->profile->memory_bytes;
    return 0;
}
