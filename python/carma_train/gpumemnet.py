"""Trains GPUMemNet's classifiers (thesis 5.4.4) with clean folds.

    python3 -m carma_train.gpumemnet --data DIR --out FILE

Of every family and kind six models are trained from scratch: one for each fold, on the other four folds, and one on all
rows. A tenth of a model's rows is held back to stop early and is not trained on. DIR has mlp.csv, cnn.csv and
transformer.csv; families are trained side by side with --family into files of their own, which --join puts together.
"""

import argparse
import dataclasses
import pathlib
import sys

import numpy
import torch
from torch import nn

from carma_train import blob
from carma_train import gpumemnet_data as data
from carma_train import gpumemnet_nets as nets
from carma_train.gpumemnet_models import ALL, KINDS

SMOOTHING = 0.02  # of labels; readers of the probabilities take it off again
RECIPES = {  # epochs, rows of a batch, highest learning rate, weight decay
    "ensemble": (60, 64, 0.01, 1e-3),
    "encoder": (40, 32, 0.004, 1e-2),
}


def batches_of(lengths, size, random):
    """Indices in a random order, rows of like length together."""
    order = random.permutation(len(lengths))
    order = order[numpy.argsort(lengths[order] + 20 * random.random(len(order)), kind="stable")]
    parts = [order[at:at + size] for at in range(0, len(order), size)]
    random.shuffle(parts)
    return parts


def train(net, batch, classes, rows, held, recipe, random):
    """Trains `net` on `rows` and leaves it as it was when the loss on `held` was lowest."""
    epochs, size, rate, decay = recipe
    classes = torch.from_numpy(classes)
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * -(-len(rows) // size))
    lengths, best, kept = batch.lengths.numpy(), numpy.inf, None
    for _ in range(epochs):
        net.train()
        for chosen in batches_of(lengths[rows], size, random):
            part = rows[chosen]
            loss = nn.functional.cross_entropy(net(batch.pick(part)), classes[part], label_smoothing=SMOOTHING)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        logits = torch.from_numpy(nets.logits_of(net, batch, held))
        loss = nn.functional.cross_entropy(logits, classes[held]).item()
        if loss < best:
            best, kept = loss, {name: value.clone() for name, value in net.state_dict().items()}
    net.load_state_dict(kept)


class Member(nn.Module):
    """A member of an ensemble, trained by itself on its own logits."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, batch):
        return self.net(batch.features)


def train_kind(kind, family, rows, fold, names):
    """The trained net and its scale."""
    random = numpy.random.default_rng([fold, KINDS.index(kind), list(data.FAMILIES).index(family.name)])
    mine = random.permutation(numpy.flatnonzero(rows.folds != fold))
    held, mine = mine[:len(mine) // 10], mine[len(mine) // 10:]
    columns = [data.FEATURES.index(name) for name in names]
    scale = nets.Scale.fitted(rows.features[mine][:, columns], [rows.tuples[row] for row in mine])
    batch = nets.Batch.of(family, kind, scale, rows.features, rows.tuples)
    torch.manual_seed(int(random.integers(1 << 31)))
    net = nets.build(kind, family)
    for part in [Member(member) for member in net.members] if kind == "ensemble" else [net]:
        epochs, *rest = RECIPES[kind]
        train(part, batch, rows.classes, mine, held, (epochs * family.passes, *rest), random)
    return net, scale


def train_family(family, rows):
    """name -> array, as they are stored."""
    prefix = family.name
    arrays = {
        f"{prefix}/classes": numpy.array([family.first, family.count, family.width_mib, family.oom], dtype=numpy.int32),
        f"{prefix}/ensemble/members": numpy.array(nets.MEMBERS, dtype=numpy.int32),
        f"{prefix}/encoder/shape": numpy.array([nets.WIDTH, nets.HEADS, nets.FORWARD, nets.LAYERS, nets.HEAD],
                                               dtype=numpy.int32),
        f"rows/{prefix}": numpy.sort(rows.keys),
    }
    for kind in KINDS:
        names = getattr(family, kind)
        columns = [data.FEATURES.index(name) for name in names]
        scales, weights, hits = [], [], 0
        for fold in range(data.FOLDS + 1):
            net, scale = train_kind(kind, family, rows, fold, names)
            scales.append(scale.array)
            weights.append(nets.pack(net))
            if fold == ALL:
                break
            tested = numpy.flatnonzero(rows.folds == fold)
            batch = nets.Batch.of(family, kind, scale, rows.features, rows.tuples)
            logits = nets.logits_of(nets.unpack(net, weights[-1]), batch, tested)
            right = int((logits.argmax(1) == rows.classes[tested]).sum())
            hits += right
            print(f"{prefix} {kind} fold {fold}: {right / len(tested):.4f} of {len(tested)}", flush=True)
        print(f"{prefix} {kind}: {hits / len(rows):.4f} of {len(rows)}", flush=True)
        arrays[f"{prefix}/{kind}/features"] = numpy.array(columns, dtype=numpy.int32)
        arrays[f"{prefix}/{kind}/range"] = numpy.stack(
            [rows.features[:, columns].min(0), rows.features[:, columns].max(0)]).astype(numpy.float32)
        arrays[f"{prefix}/{kind}/scale"] = numpy.stack(scales)
        arrays[f"{prefix}/{kind}/weights"] = numpy.stack(weights)
    return arrays


def leave_out_shapes(family, rows):
    """How the kinds do on a shape of network that they were not trained on."""
    shapes = sorted(set(rows.shapes))
    rows = dataclasses.replace(rows, folds=numpy.array([shapes.index(shape) for shape in rows.shapes]))
    for kind in KINDS:
        hits, names = 0, getattr(family, kind)
        for number, shape in enumerate(shapes):
            net, scale = train_kind(kind, family, rows, number, names)
            tested = numpy.flatnonzero(rows.folds == number)
            net = nets.unpack(net, nets.pack(net))
            logits = nets.logits_of(net, nets.Batch.of(family, kind, scale, rows.features, rows.tuples), tested)
            right = int((logits.argmax(1) == rows.classes[tested]).sum())
            hits += right
            print(f"{family.name} {kind} without {shape}: {right / len(tested):.4f} of {len(tested)}", flush=True)
        print(f"{family.name} {kind}, one shape left out: {hits / len(rows):.4f} of {len(rows)}", flush=True)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, help="directory with mlp.csv, cnn.csv and transformer.csv")
    parser.add_argument("--family", choices=tuple(data.FAMILIES), help="train this one only")
    parser.add_argument("--join", type=pathlib.Path, nargs="+", help="files of families trained before")
    parser.add_argument("--leave-out-shapes", action="store_true",
                        help="only print how the kinds do on shapes of network that they were not trained on")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args(arguments)
    if (options.data is None) == (options.join is None):
        parser.error("give --data DIR to train, or --join FILE... to put trained families together")
    if (options.out is None) != options.leave_out_shapes:
        parser.error("give --out FILE, or --leave-out-shapes")
    arrays = {"activations": data.angles(), "smoothing": numpy.array([SMOOTHING], dtype=numpy.float32)}
    for path in options.join or []:
        arrays.update(blob.read(path))
    if options.data:
        torch.set_num_threads(1)  # sums in one order: the same weights every time
        for name, family in data.FAMILIES.items():
            if options.family in (None, name):
                rows = data.read(options.data / f"{name}.csv", family)
                if options.leave_out_shapes:
                    leave_out_shapes(family, rows)
                else:
                    arrays.update(train_family(family, rows))
    for name, family in data.FAMILIES.items():
        if f"{name}/classes" in arrays:
            arrays[f"{name}/kind"] = numpy.array([KINDS.index(family.answers)], dtype=numpy.int32)
    if options.out:
        blob.write(options.out, arrays)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
