#include "estimate/learned/correction.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "estimate/learned/trees.h"

#define FOLDS        5
#define PERMILLE_MID 500
#define OUTSIDE_HALF 2.0 /* this many features outside the training's range halve the weight of the trees */

/* Where a family has no table: ln of the factor at the 98th percentile is two of these, and in proportion below. */
#define SPREAD_WITHOUT_TABLE 0.1

static const char *const families[CORRECTION_FAMILY_COUNT] = {"mlp", "cnn", "transformer", "other"};

static bool has_buffers(const struct program *program)
{
    for (size_t i = 0; i < program->event_count; i++)
        if (program->events[i].op == PROGRAM_ALLOC && program->events[i].category == MEMORY_BUFFER)
            return true;
    return false;
}

enum correction_family correction_family_of(const struct program *program)
{
    if (program->conv_count)
        return CORRECTION_CNN;
    if (program->attentions || (program->norms && program->linears && !has_buffers(program)))
        return CORRECTION_TRANSFORMER;
    return program->linears ? CORRECTION_MLP : CORRECTION_OTHER;
}

static const char *part_of(char *text, size_t size, int32_t fold, const char *part)
{
    if (fold < 0)
        snprintf(text, size, "all/%s", part);
    else
        snprintf(text, size, "fold%d/%s", (int)fold % FOLDS, part);
    return text;
}

static double limited(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* "range": the least and the most of each feature in training. */
static uint32_t count_outside(struct model model, const struct features *features)
{
    struct model_array array = model_array(model, "range", MODEL_F32);
    const float *range = array.data;
    uint32_t outside = 0;

    for (size_t i = 0; i < FEATURE_COUNT && array.count == 2 * FEATURE_COUNT; i++)
        outside += features->values[i] < range[i] || features->values[i] > range[FEATURE_COUNT + i];
    return outside;
}

static size_t row_of(int32_t fold)
{
    return fold < 0 ? 0 : (size_t)(fold % FOLDS) + 1;
}

/* "offset/FAMILY": KiB, a number for all and one for each fold without its own rows. */
static int64_t offset_of(struct model model, enum correction_family family, int32_t fold)
{
    struct model_array array;
    char name[32];

    snprintf(name, sizeof name, "offset/%s", families[family]);
    array = model_array(model, name, MODEL_I32);
    return array.count == FOLDS + 1 ? ((const int32_t *)array.data)[row_of(fold)] * KIB : 0;
}

void correction_compute(struct correction *correction, const struct program *program, const struct features *features,
                        int32_t fold)
{
    struct model model = model_find("replay");
    /* the least and the most of ln_ratio and of ln spread; the mean of that */
    struct model_array bounds = model_array(model, "bounds", MODEL_F32);
    const float *bound = bounds.data;
    struct trees ratio, spread;
    double trust, ln_spread;
    char name[24];

    *correction = (struct correction){.family = correction_family_of(program)};
    correction->offset_bytes = offset_of(model, correction->family, fold);
    if (correction->family != CORRECTION_CNN || !trees_are_of(model, feature_names, FEATURE_COUNT) ||
        bounds.count != 5 || trees_find(&ratio, model, part_of(name, sizeof name, fold, "ratio")) ||
        trees_find(&spread, model, part_of(name, sizeof name, fold, "spread")))
        return;
    correction->trained = true;
    correction->outside = count_outside(model, features);
    trust = 1 / (1 + correction->outside / OUTSIDE_HALF);
    ln_spread = limited(trees_sum(&spread, features->values, FEATURE_COUNT), bound[2], bound[3]);
    correction->ln_ratio = trust * limited(trees_sum(&ratio, features->values, FEATURE_COUNT), bound[0], bound[1]);
    correction->spread = exp(bound[4] + trust * (ln_spread - bound[4]));
}

/* "quantile/FAMILY": a row for all, and one for each fold without its own rows. It has a column for each of
 * "quantile/levels": ln of the factor, in units of the spread where the family has one. */
double correction_quantile_factor(const struct correction *correction, int32_t quantile_permille, int32_t fold)
{
    struct model model = model_find("replay");
    struct model_array levels = model_array(model, "quantile/levels", MODEL_I32), table;
    const int32_t *level = levels.data;
    double unit = correction->trained ? correction->spread : 1, share;
    const float *row;
    char name[32];
    size_t right = 1;

    snprintf(name, sizeof name, "quantile/%s", families[correction->family]);
    table = model_array(model, name, MODEL_F32);
    if ((correction->family == CORRECTION_CNN && !correction->trained) || levels.count < 2 ||
        table.count != (FOLDS + 1) * levels.count)
        return exp(2 * SPREAD_WITHOUT_TABLE * (quantile_permille - PERMILLE_MID) / (980.0 - PERMILLE_MID));
    row = (const float *)table.data + row_of(fold) * levels.count;
    while (right < levels.count - 1 && level[right] < quantile_permille)
        right++;
    share = limited((double)(quantile_permille - level[right - 1]) / (level[right] - level[right - 1]), 0, 1);
    return exp(unit * (row[right - 1] + share * (double)(row[right] - row[right - 1])));
}
