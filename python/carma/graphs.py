"""Sets of graphs that PyTorch Geometric would download: their published sizes stand in (data/NOTICE)."""

import torch

# One graph each: nodes, edges in both directions, features of a node, classes.
_NODES = {
    "Planetoid": {"cora": (2708, 10556, 1433, 7), "citeseer": (3327, 9104, 3703, 6), "pubmed": (19717, 88648, 500, 3)},
    "CitationFull": {"cora": (19793, 126842, 8710, 70), "citeseer": (4230, 10674, 602, 6), "dblp": (17716, 105734, 1639, 4),
                     "pubmed": (19717, 88648, 500, 3)},
    "Amazon": {"computers": (13752, 491722, 767, 10), "photo": (7650, 238162, 745, 8)},
    "Coauthor": {"cs": (18333, 163788, 6805, 15), "physics": (34493, 495924, 8415, 5)},
    "WikiCS": {"": (11701, 431726, 300, 10)},
    "Flickr": {"": (89250, 899756, 500, 7)},
}  # fmt: skip
# Many graphs: how many, and of each in the mean: nodes, edges in both directions, features of a node, classes.
_MANY = {
    "TUDataset": {
        "mutag": (188, 18, 40, 7, 2), "proteins": (1113, 39, 146, 3, 2), "enzymes": (600, 33, 124, 3, 6),
        "nci1": (4110, 30, 65, 37, 2), "dd": (1178, 284, 1431, 89, 2), "imdb-binary": (1000, 20, 193, 0, 2),
        "imdb-multi": (1500, 13, 132, 0, 3), "collab": (5000, 74, 4914, 0, 3), "reddit-binary": (2000, 430, 996, 0, 2),
    },
    "GNNBenchmarkDataset": {"mnist": (55000, 71, 1393, 1, 10), "cifar10": (45000, 118, 1888, 3, 10)},
    "QM9": {"": (130831, 18, 37, 11, 0)},
    "ZINC": {"": (220011, 23, 50, 1, 0)},
}  # fmt: skip
_MOST = 2048  # graphs that are made: a set's other ones repeat them
_TARGETS = {"QM9": (1, 19), "ZINC": (1,)}  # shapes of what is predicted, where that is no class
_WHOLE = {"ZINC"}  # features are numbers of kinds


def _edges(nodes, edges):
    """Each node's neighbours are those that follow it."""
    number = torch.arange(edges)
    begin = number % nodes
    return torch.stack([begin, (begin + number // nodes + 1) % nodes])


def _one(data, kind, nodes, edges, features, classes):
    parts = torch.arange(nodes) % 10
    return data(
        x=torch.zeros(nodes, features), edge_index=_edges(nodes, edges), y=torch.arange(nodes) % classes,
        train_mask=parts < 6, val_mask=(parts >= 6) & (parts < 8), test_mask=parts >= 8,
    )  # fmt: skip


def _some(data, kind, count, nodes, edges, features, classes):
    made = []
    for index in range(min(count, _MOST)):
        scale = (0.5, 1, 1.5)[index % 3]
        size = max(2, round(nodes * scale))
        given = {"num_nodes": size}
        if features:
            given = {"x": torch.zeros(size, features, dtype=torch.long if kind in _WHOLE else torch.float)}
        target = torch.zeros(_TARGETS[kind]) if kind in _TARGETS else torch.tensor([index % classes])
        made.append(data(edge_index=_edges(size, max(1, round(edges * scale))), y=target, **given))
    return made * (count // len(made)) if count > _MOST else made


def _absent(kind, rows, put, stack, recorder):
    original = kind.__init__

    def made(self, root=None, name="", *args, **kwargs):
        try:
            original(self, root, *([name] if name != "" or "" not in rows else []), *args, **kwargs)
            return
        except Exception:
            row = rows.get(str(name).lower()) or rows.get("")
            if row is None:
                raise
        from torch_geometric.data import Data

        self.name, self.root, self.log, self.force_reload = name, root, False, False
        self.transform, self.pre_transform = kwargs.get("transform"), kwargs.get("pre_transform")
        self.pre_filter = self._indices = self._data_list = None
        graphs = [_one(Data, kind.__name__, *row)] if len(row) == 4 else _some(Data, kind.__name__, *row)
        if self.pre_transform is not None:
            graphs = [self.pre_transform(graph) for graph in graphs]
        self.data, self.slices = self.collate(graphs)
        recorder.doubt(f"{kind.__name__} {name} is not here: graphs of its published sizes stand in".replace("  ", " "), 100)

    put(stack, kind, "__init__", made)


def changes(stack, put, recorder):
    """{module: change}"""

    def change(module):
        for name, rows in {**_NODES, **_MANY}.items():
            if hasattr(module, name):
                _absent(getattr(module, name), rows, put, stack, recorder)

    return {"torch_geometric.datasets": change}
