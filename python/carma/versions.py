"""Differences between the releases of PyTorch that are supported: 1.13, and 2.x from where a GPU can be pretended."""

import importlib

import torch

OLDEST, CURRENT = "2.3", "2.15"  # that were tried; those between may do


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


def autocast_dtype():
    """Of CUDA's operators; None where autocast is off."""
    if not torch.is_autocast_enabled():
        return None
    return torch.get_autocast_dtype("cuda") if hasattr(torch, "get_autocast_dtype") else torch.get_autocast_gpu_dtype()


# Of the multi-tensor forms that optimizers use, those of which 2.3 does not know the shapes: they write in place.
_UNKNOWN_TO_2_3 = ("_foreach_addcdiv_.ScalarList", "_foreach_addcmul_.ScalarList")


def take_in_multi_tensor_forms(kind, stack, replace):
    """Optimizers and the clipping of gradients have these for some kinds of tensors: now for this one, too."""
    for name in ("torch.optim.optimizer", "torch.utils._foreach_utils"):  # torch.optim hides its own
        types = getattr(importlib.import_module(name), "_foreach_supported_types", None)
        if types is not None:
            types.append(kind)
            stack.callback(types.remove, kind)
    if torch_version() == (2, 3):
        replace(stack, torch.nn.utils.clip_grad, "_has_foreach_support", lambda tensors, device: True)
        forms = torch.library.Library("aten", "IMPL", "Meta")
        stack.callback(forms._destroy)
        for name in _UNKNOWN_TO_2_3:
            forms.impl(name, lambda *args: None)
