/* Sums over a list of layers. */
#ifndef CARMA_TESTS_LAYER_SUMS_H
#define CARMA_TESTS_LAYER_SUMS_H

#include "estimate/layers.h"

/* Of those that are no containers. */
static inline size_t count_kind(const struct layer_list *list, enum layer_kind kind)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        count += list->items[i].kind == kind && !list->items[i].container;
    return count;
}

static inline int64_t sum_parameters(const struct layer_list *list)
{
    int64_t sum = 0;

    for (size_t i = 0; i < list->count; i++)
        sum += list->items[i].parameters;
    return sum;
}

#endif
