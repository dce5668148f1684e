/* Horus's formula (Yeung et al., IEEE TPDS 33(1), 2022; thesis section 5.3.1): M = (B*A + P) + B*G + d.
 *
 * The definitions of A, G and d are not printed. The `horus_mb` column published with the thesis's real models is
 * reproduced with 4 bytes an element. There G = P (a sample's gradients as many as the parameters) and d = 800 MiB. A
 * is the outputs of convolutions, linear layers, normalisations and activations, neither of pooling and dropout nor of
 * containers. So it is met within 0.1% for 20 of the 21 CNNs with known layers. The other is met within 2%
 * (EfficientNet-B0 on CIFAR-100; its BatchNormAct2d is two layers in one). The thesis's remark is reproduced as well:
 * for large batches it is far too much. */
#include <errno.h>
#include <stdio.h>

#include "base/units.h"
#include "estimate/counts.h"

#define ELEMENT_BYTES    4.0
#define INITIAL_OVERHEAD (800 * MIB)

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    struct layer_counts counts;
    double batch = (double)question->training.batch_size;
    int rc;

    if (!question->layers)
        return error_set(err, ENOTSUP, "horus needs the model's summary: give --summary");
    if ((rc = layer_counts_of(question, &counts, err)))
        return rc;
    if (counts.shapeless)
        snprintf(estimate->warning, sizeof estimate->warning, "horus: %zu layers without a shape count for nothing",
                 counts.shapeless);
    return estimate_from_formula(
        "horus",
        ELEMENT_BYTES * (batch * counts.horus_activations + counts.parameters + batch * counts.parameters) +
            (double)INITIAL_OVERHEAD,
        estimate, err);
}

const struct estimator estimator_horus = {
    "horus", "the formula of Horus: batch times activations and gradients (Yeung et al., 2022)", answer};
