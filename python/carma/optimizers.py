"""The format's name of an optimizer, and the tensors that it keeps."""

import contextlib

import torch
from torch._subclasses.fake_tensor import FakeTensor

from carma.versions import tensors_in


def name_of_optimizer(optimizer):
    name = type(optimizer).__name__.lower()
    if name == "sgd" and any(group.get("momentum") for group in optimizer.param_groups):
        return "momentum"
    return name


def states_of(optimizer):
    """Those on the GPU: 0-dimensional counters lie on the host, unless they say otherwise."""
    return [
        tensor
        for state in optimizer.state.values()
        for tensor in tensors_in(state)
        if tensor.dim() > 0 or tensor.device.type == "cuda"
    ]


@contextlib.contextmanager
def any_norm_will_do(optimizer):
    """torch.optim.Adafactor scales each update by norms that it asks for as numbers. Their values do not change its
    memory. So while it steps, every tensor is 1."""
    if type(optimizer) is not getattr(torch.optim, "Adafactor", None):
        yield
        return
    missing = object()
    own = FakeTensor.__dict__.get("item", missing)
    FakeTensor.item = lambda tensor: 1.0
    try:
        yield
    finally:
        if own is missing:
            del FakeTensor.item
        else:
            FakeTensor.item = own
