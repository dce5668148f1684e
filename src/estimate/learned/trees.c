#include "base/digest.h"
#include "estimate/learned/trees.h"

#include <errno.h>
#include <stdio.h>

static struct model_array find(struct model model, const char *prefix, const char *name, enum model_type type)
{
    char full[48];

    if ((size_t)snprintf(full, sizeof full, "%s/%s", prefix, name) >= sizeof full)
        return (struct model_array){0};
    return model_array(model, full, type);
}

int trees_find(struct trees *trees, struct model model, const char *prefix)
{
    struct model_array roots = find(model, prefix, "roots", MODEL_I32),
                       feature = find(model, prefix, "feature", MODEL_U16);
    struct model_array value = find(model, prefix, "value", MODEL_F32), right = find(model, prefix, "right", MODEL_U16);
    struct model_array start = find(model, prefix, "start", MODEL_F32);

    if (!roots.data)
        return -ENOENT;
    if (!feature.data || !value.data || !right.data || !start.data || feature.count != value.count ||
        feature.count != right.count || start.count != 1)
        return -EINVAL;
    *trees = (struct trees){
        roots.data, feature.data, right.data, value.data, roots.count, feature.count, *(const float *)start.data};
    return 0;
}

bool trees_are_of(struct model model, const char *const names[], size_t count)
{
    struct model_array array = model_array(model, "features", MODEL_U64);
    uint64_t hash = DIGEST_EMPTY;

    if (array.count != 1)
        return false;
    for (size_t i = 0; i < count; i++)
        hash = digest_add(digest_add(hash, names[i], strlen(names[i])), ",", 1);
    return *(const uint64_t *)array.data == hash;
}

/* Every step leads to a later node, so there are no more steps than nodes. */
static double leaf_of(const struct trees *trees, int32_t root, const float *features, size_t count)
{
    size_t node = root < 0 ? trees->node_count : (size_t)root;

    while (node < trees->node_count) {
        uint16_t feature = trees->feature[node];
        if (feature == TREES_LEAF)
            return trees->value[node];
        if (feature >= count)
            return 0;
        if (features[feature] <= trees->value[node])
            node++;
        else if (trees->right[node])
            node += trees->right[node];
        else
            return 0;
    }
    return 0;
}

double trees_sum(const struct trees *trees, const float *features, size_t count)
{
    double sum = trees->start;

    for (size_t i = 0; i < trees->tree_count; i++)
        sum += leaf_of(trees, trees->roots[i], features, count);
    return sum;
}
