"""Boosted trees as flat arrays (src/estimate/learned/trees.h says which), and their sum as carma computes it."""

import numpy

LEAF = 0xFFFF


def float32_at_most(number):
    """The largest float32 that is not above: features are float32, so the comparison stays the same."""
    rounded = numpy.float32(number)
    if float(rounded) > number:
        rounded = numpy.nextafter(rounded, numpy.float32(-numpy.inf))
    return rounded


def _append(node, nodes, scale):
    """Adds the node's subtree; the left child directly follows its parent."""
    if "leaf_value" in node:
        nodes.append([LEAF, numpy.float32(node["leaf_value"] * scale), 0])
        return
    if node["decision_type"] != "<=":
        raise ValueError(f"carma does not evaluate a decision '{node['decision_type']}'")
    here = len(nodes)
    nodes.append([node["split_feature"], float32_at_most(node["threshold"]), 0])
    _append(node["left_child"], nodes, scale)
    distance = len(nodes) - here
    if distance >= LEAF:
        raise ValueError("a tree has too many nodes for carma's tables")
    nodes[here][2] = distance
    _append(node["right_child"], nodes, scale)


def arrays(prefix, models):
    """The mean of LightGBM models as arrays PREFIX/roots, ...; models: fitted LGBMRegressor."""
    roots, nodes = [], []
    for model in models:
        for tree in model.booster_.dump_model()["tree_info"]:
            roots.append(len(nodes))
            _append(tree["tree_structure"], nodes, 1 / len(models))
    return {
        f"{prefix}/roots": numpy.array(roots, numpy.int32),
        f"{prefix}/feature": numpy.array([node[0] for node in nodes], numpy.uint16),
        f"{prefix}/value": numpy.array([node[1] for node in nodes], numpy.float32),
        f"{prefix}/right": numpy.array([node[2] for node in nodes], numpy.uint16),
        f"{prefix}/start": numpy.zeros(1, numpy.float32),
    }


def total(table, prefix, features):
    """The sum for each row of features (float32), from the arrays alone."""
    roots, feature, value, right = (table[f"{prefix}/{name}"] for name in ("roots", "feature", "value", "right"))
    sums = numpy.full(len(features), float(table[f"{prefix}/start"][0]))
    rows = numpy.arange(len(features))
    for root in roots:
        node = numpy.full(len(features), root)
        while True:
            inner = feature[node] != LEAF
            if not inner.any():
                break
            asked = numpy.where(inner, feature[node], 0)
            left = features[rows, asked] <= value[node]
            node = numpy.where(inner, numpy.where(left, node + 1, node + right[node].astype(numpy.int64)), node)
        sums += value[node].astype(float)
    return sums
