/* The estimator: a class's upper edge at the quantile asked for, its centre as the best guess. The classes hold memory
 * measured on an A100 40 GB with PyTorch, fp32 and Adam, its CUDA context included. Another machine's profile changes
 * nothing, as in the thesis. */
#include "estimate/learned/gpumemnet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "estimate/estimate.h"

static bool is_open_ended(const struct gpumemnet_classes *classes, uint32_t index)
{
    return classes->out_of_memory_last && index + 1 == classes->count;
}

int64_t gpumemnet_class_upper_bytes(const struct gpumemnet_classes *classes, uint32_t index)
{
    return (classes->first + index + (is_open_ended(classes, index) ? 0 : 1)) * classes->width_bytes;
}

int64_t gpumemnet_class_centre_bytes(const struct gpumemnet_classes *classes, uint32_t index)
{
    return (classes->first + index) * classes->width_bytes +
           (is_open_ended(classes, index) ? 0 : classes->width_bytes / 2);
}

/* The lowest class that is enough with the probability asked for, but never below the most probable one. */
static uint32_t class_at(const struct gpumemnet_classes *classes, int32_t quantile_permille)
{
    double sum = 0;

    for (uint32_t c = 0; c < classes->count; c++) {
        sum += (double)classes->probabilities[c];
        if (sum * 1000 >= quantile_permille && c >= classes->best)
            return c;
    }
    return classes->count - 1;
}

/* The lowest class that is enough with the rest of the probability, but never above the most probable one. */
static uint32_t class_below(const struct gpumemnet_classes *classes, int32_t quantile_permille)
{
    double sum = 0;

    for (uint32_t c = 0; c < classes->best; c++) {
        sum += (double)classes->probabilities[c];
        if (sum * 1000 >= 1000 - quantile_permille)
            return c;
    }
    return classes->best;
}

/* Reasons that weaken the classifier's own probability: each halves it; the first is told. */
static void doubt(struct estimate *estimate, const char *warning)
{
    estimate->confidence_permille /= 2;
    if (!estimate->warning[0])
        snprintf(estimate->warning, sizeof estimate->warning, "%s", warning);
}

static void doubt_input(const struct estimate_question *question, const struct gpumemnet_input *input,
                        const struct gpumemnet_classes *classes, struct estimate *estimate)
{
    const struct training *training = &question->training;
    char text[sizeof estimate->warning];

    if (is_open_ended(classes, classes->best))
        doubt(estimate, "gpumemnet: likely more than the 40 GB of the GPU it was trained on; by how much is not known");
    if (input->unmanaged) {
        snprintf(text, sizeof text, "gpumemnet: %" PRIu32 " layers of kinds that its training data do not have",
                 input->unmanaged);
        doubt(estimate, text);
    }
    if (classes->outside)
        doubt(estimate, "gpumemnet: larger or smaller than any network it was trained on");
    if ((training->optimizer != OPTIMIZER_ADAM && training->optimizer != OPTIMIZER_ADAMW) ||
        training->precision == PRECISION_AMP)
        doubt(estimate, "gpumemnet: trained on Adam and fp32 only; the answer is for these");
}

/* The encoder says the same of all transformers with layers that it has not learned: anything up to more than a GPU. */
static bool is_a_guess(const struct gpumemnet_input *input, const struct gpumemnet_classes *classes, uint32_t enough)
{
    return input->family == GPUMEMNET_TRANSFORMER && input->unmanaged && enough > classes->best &&
           is_open_ended(classes, enough);
}

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    CLEANUP(gpumemnet_input_release) struct gpumemnet_input input = {0};
    struct gpumemnet_classes classes;
    uint32_t enough;
    int rc;

    if (!question->layers)
        return error_set(err, ENOTSUP, "gpumemnet needs the model's summary: give --summary");
    rc = gpumemnet_input_read(&input, question->layers, question->training.batch_size, err);
    if (rc)
        return rc;
    rc = gpumemnet_classify(&input, gpumemnet_answering_kind(input.family), question->fold, &classes, err);
    if (rc)
        return rc;
    enough = class_at(&classes, question->quantile_permille);
    if (is_a_guess(&input, &classes, enough))
        return error_set(err, ENOTSUP,
                         "gpumemnet has learned no transformer with such layers: its figure would be a guess");
    estimate->median_bytes = gpumemnet_class_centre_bytes(&classes, classes.best);
    estimate->bytes = gpumemnet_class_upper_bytes(&classes, enough);
    /* not a class's lower edge, which is 0 for the first */
    estimate->low_bytes = gpumemnet_class_centre_bytes(&classes, class_below(&classes, question->quantile_permille));
    estimate->confidence_permille = (int32_t)(1000.0 * (double)classes.probabilities[classes.best]);
    doubt_input(question, &input, &classes, estimate);
    return 0;
}

const struct estimator estimator_gpumemnet = {
    "gpumemnet", "classes of memory by small neural networks (thesis 5.4.4): MLPs, CNNs and transformers, Adam, fp32",
    answer};
