/* The trained correction of the replay (data/models/replay.md): how much more or less than the replay's main rule says,
 * and how sure that is. */
#ifndef CARMA_ESTIMATE_CORRECTION_H
#define CARMA_ESTIMATE_CORRECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "estimate/learned/features.h"

/* The kind of runs that calibrated the quantiles. */
enum correction_family {
    CORRECTION_MLP,
    CORRECTION_CNN,
    CORRECTION_TRANSFORMER,
    CORRECTION_OTHER,
    CORRECTION_FAMILY_COUNT
};

struct correction {
    enum correction_family family;
    bool trained; /* false: no table, or one of other features; ln_ratio is 0 */
    /* ln(need / base_bytes of the features), and the scale of ln(need / estimate), within the table's bounds. The more
     * features lie outside the training data, the less the trees count: they fade to 0 and the mean scale. */
    double ln_ratio, spread;
    int64_t offset_bytes; /* the need of runs of the family without trees beyond the replay's figure: the kernels that
                             are loaded for it */
    uint32_t outside;     /* features beyond the training's range */
};

/* With convolutions: CNN. With attention, or linear layers and normalisations without running statistics: transformer.
 */
enum correction_family correction_family_of(const struct program *program);

/* fold: -1, or that of the rows which the trees must not have seen. */
void correction_compute(struct correction *correction, const struct program *program, const struct features *features,
                        int32_t fold);

/* Factor on the median that makes it enough with this probability. */
double correction_quantile_factor(const struct correction *correction, int32_t quantile_permille, int32_t fold);

#endif
