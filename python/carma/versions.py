"""Differences between the releases of PyTorch that are supported: 1.13, and 2.x from where a GPU can be pretended."""

import torch

OLDEST, CURRENT = "2.4", "2.15"  # that were tried; those between may do


def tensors_in(value, found=None):
    """The tensors among an operator's arguments or results, in order."""
    found = [] if found is None else found
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            tensors_in(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            tensors_in(item, found)
    return found


if hasattr(torch.Tensor, "untyped_storage"):

    def storage_of(tensor):
        return getattr(tensor, "_local_tensor", tensor).untyped_storage()  # of a DTensor: this process's part

else:

    def storage_of(tensor):
        return tensor._storage()


def torch_version(text=torch.__version__):
    """(major, minor)."""
    return tuple(int(part) for part in text.split("+")[0].split(".")[:2])
