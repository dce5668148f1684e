/* Boosted regression trees from a trained table (model.h): the sum of one leaf of each tree. Of the arrays PREFIX/NAME:
 *   roots    i32 [trees]  each tree's first node
 *   feature  u16 [nodes]  which feature the node asks for; TREES_LEAF: it is a leaf
 *   value    f32 [nodes]  the threshold, or the leaf's value
 *   right    u16 [nodes]  where to go if feature > threshold, counted from the node; otherwise the next node
 *   start    f32 [1]      the sum's start
 *
 * Features are floats and thresholds were rounded down to floats (python/carma_train/trees.py), so that both languages
 * take the same path. */
#ifndef CARMA_ESTIMATE_TREES_H
#define CARMA_ESTIMATE_TREES_H

#include <stdbool.h>

#include "estimate/learned/model.h"

#define TREES_LEAF UINT16_MAX

struct trees {
    const int32_t *roots;
    const uint16_t *feature, *right;
    const float *value;
    size_t tree_count, node_count;
    float start;
};

/* -ENOENT: no such trees in the table; -EINVAL: its arrays do not fit together. *trees borrows the table's memory. */
int trees_find(struct trees *trees, struct model model, const char *prefix);

/* Whether the table's trees were trained on features of these names in this order. Its array "features" (u64 [1]) is
 * the FNV-1a of the names, each with a comma after it. */
bool trees_are_of(struct model model, const char *const names[], size_t count);

/* It ends for all arrays, and reads only them and `features`. A node that leads out of them, or asks for a feature
 * beyond count, adds nothing. */
double trees_sum(const struct trees *trees, const float *features, size_t count);

#endif
