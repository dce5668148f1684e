"""Writes a recorder's record as docs/formats/capture.md has it. Two recordings of a step at different batch sizes
give each size as base + slope * batch."""

from carma.recorder import ALLOC, CONV, FORWARD, FREE

LETTERS = {
    "parameter": "p",
    "gradient": "g",
    "optimizer": "o",
    "activation": "a",
    "temporary": "t",
    "input": "i",
    "buffer": "b",
    "workspace": "w",
}
COUNTS = ("layers", "convolutions", "linears", "norms", "dropouts", "activations", "attentions")
PADDING = 64  # bytes that a strided tensor's storage may end before the last row does: none of the allocator's sizes
LINE = 100  # characters of events in one line, about


class Trace:
    """A recording, reduced to the written data: no Python object of the model is held."""

    def __init__(self, recorder, batch):
        self.batch = batch
        self.flops = recorder.counts.flops
        self.elements = recorder.counts.activation_elements
        self.counts = [getattr(recorder.counts, name) for name in COUNTS]
        numbers = {}  # block -> tensor
        self.events = []  # (kind, step, phase, label, letter or tensor or convolution without its batch)
        self.sizes = []  # of each event: bytes, or the convolution's batch, or 0
        for event in recorder.events:
            place = (event.step, event.phase)
            if event.kind == CONV:
                fixed = tuple((key, value) for key, value in event.conv.items() if key != "batch")
                self._add((CONV, *place, event.label, fixed), event.conv["batch"])
            elif event.block.cancelled or event.block.bytes == 0:
                continue  # an empty tensor has no block
            elif event.kind == ALLOC:
                numbers[id(event.block)] = len(numbers)
                self._add((ALLOC, *place, event.block.label, LETTERS[_category(event.block)]), event.block.bytes)
            else:
                self._add((FREE, *place, "", numbers[id(event.block)]), 0)
        self.tensors = len(numbers)

    def _add(self, event, size):
        self.events.append(event)
        self.sizes.append(size)


def _category(block):
    """A tensor without an owner is an activation when the forward pass leaves it for the backward pass; else
    temporary."""
    if block.category is not None:
        return block.category
    if block.phase == FORWARD and block.kept:
        return "activation"
    return "temporary"


class Size:
    """base + slope * batch; slope None: known for the recorded batch size alone."""

    __slots__ = ("base", "slope")

    def __init__(self, base, slope):
        self.base, self.slope = base, slope

    def __str__(self):
        if not self.slope:
            return str(self.base)
        return f"{self.base}+{self.slope}x" if self.base else f"{self.slope}x"


def _size(batch, value, other_batch, other_value):
    """None: not linear, as far as two points and a base that is not negative can tell."""
    slope, rest = divmod(other_value - value, other_batch - batch)
    base = value - slope * batch
    if -PADDING <= base < 0:
        base = 0
    return None if rest or slope < 0 or base < 0 else Size(base, slope)


def _scaled(trace, other):
    """(sizes, flops) as base and slope, or None and the reason why not."""
    if other is None:
        return None, "one batch size was recorded"
    if trace.events != other.events:
        return None, f"the events differ between batch sizes {trace.batch} and {other.batch}"
    values = zip(trace.sizes + [trace.flops], other.sizes + [other.flops])
    sizes = [_size(trace.batch, value, other.batch, other_value) for value, other_value in values]
    if None in sizes:
        return None, f"a size is not linear between batch sizes {trace.batch} and {other.batch}"
    return sizes, ""


def text(trace, other, header):
    """The file's text, and why it does not scale ("": it does). header: torch, mapping, model, optimizer, precision,
    parameters (bytes); doubts and allocator (settings), where there are any."""
    sizes, reason = _scaled(trace, other)
    if sizes is None:
        sizes = [Size(value, 0) for value in trace.sizes + [trace.flops]]
    labels, convs, lines = {"": 0}, {}, []
    place, label, line = None, 0, []

    def end_line():
        if line:
            lines.append(" ".join(line))
            line.clear()

    for (kind, step, phase, name, what), size in zip(trace.events, sizes):
        if place != (step, phase):
            end_line()
            place = (step, phase)
            lines.append(f"step {step} {phase}")
        if kind != FREE and labels.setdefault(name, len(labels)) != label:
            label = labels[name]
            line.append(f"@{label}")
        if kind == ALLOC:
            line.append(f"{what}{size}")
        elif kind == FREE:
            line.append(f"-{what}")
        else:
            line.append(f"c{convs.setdefault(_conv_line(dict(what), size), len(convs))}")
        if sum(map(len, line)) + len(line) > LINE:
            end_line()
    end_line()
    head = [
        "carma-capture 1",
        f"torch {header['torch']}",
        f"mapping {header['mapping']}",
        f"model {header['model']}".rstrip(),
        f"batch {trace.batch}" + ("" if reason else " scales"),
        f"optimizer {header['optimizer']}",
        f"precision {header['precision']}",
        f"parameters {header['parameters']}",
        f"flops {sizes[-1]}",
        f"elements {trace.elements // trace.batch}",
        "counts " + " ".join(map(str, trace.counts)),
        *_doubts(header.get("doubts")),
        *_allocator(header.get("allocator")),
        f"labels {len(labels) - 1}",
        *list(labels)[1:],
        f"convs {len(convs)}",
        *convs,
        f"events {len(trace.events)} {trace.tensors}",
    ]
    return "\n".join(head + lines + ["end", ""]), reason


def _doubts(doubts):
    if not doubts:
        return []
    sentences = "; ".join(doubts).encode("ascii", "replace").decode()
    return [f"doubts {min(sum(doubts.values()), 600)} {sentences[:500]}"]


def _allocator(settings):
    text = ",".join(settings or ()).encode("ascii", "replace").decode()
    return [f"allocator {' '.join(text.split())[:1000]}"] if text.strip() else []


def _conv_line(conv, batch):
    dims = (",".join(map(str, conv[key])) for key in ("in", "out", "kernel", "stride", "padding", "dilation"))
    return " ".join([
        conv["pass"], str(conv["element_bytes"]), str(conv["transposed"]), str(batch), *map(str, conv["channels"]),
        str(conv["groups"]), *dims,
    ])  # fmt: skip
