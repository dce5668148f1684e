"""What differs between the releases of PyTorch that are supported: 1.13, and 2.x as far as it can pretend a GPU."""

import torch
from torch.utils._pytree import tree_flatten


def flatten(value):
    return tree_flatten(value)[0]


if hasattr(torch.Tensor, "untyped_storage"):

    def storage_of(tensor):
        return tensor.untyped_storage()

else:

    def storage_of(tensor):
        return tensor._storage()


def torch_version():
    """(major, minor)."""
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
