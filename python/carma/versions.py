"""Differences between the releases of PyTorch that are supported: 1.13, and 2.x from where a GPU can be pretended."""

import ctypes
import importlib

import torch

OLDEST, CURRENT = "2.1", "2.15"  # that were tried; those between may do


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


def grad_scaler():
    """Of CUDA's."""
    return torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()


# Where a tensor's object has its TensorImpl: behind the object's head and a word that says whether it owns it. The
# TensorImpl knows the object in one of its first words (c10/core/TensorImpl.h).
_IMPL_AT, _IMPL_WORDS = 3, 16


def _words(address, count):
    return (ctypes.c_void_p * count).from_address(address)


def swap_contents(one, other):
    """Each object becomes the other tensor. PyTorch has a function for it from 2.3 on."""
    if hasattr(torch._C, "_swap_tensor_impl"):
        torch._C._swap_tensor_impl(one, other)
        return
    objects = [_words(id(tensor), _IMPL_AT + 1) for tensor in (one, other)]
    knows = []
    for tensor, words in zip((one, other), objects):
        impl = _words(tensor._cdata, _IMPL_WORDS)
        at = next((i for i in range(_IMPL_WORDS) if impl[i] == id(tensor)), None)
        if words[_IMPL_AT] != tensor._cdata or at is None:
            raise RuntimeError(f"a tensor of torch {torch.__version__} is not as carma knows it")
        knows.append((impl, at))
    for (impl, at), tensor in zip(knows, (other, one)):
        impl[at] = id(tensor)
    objects[0][_IMPL_AT], objects[1][_IMPL_AT] = objects[1][_IMPL_AT], objects[0][_IMPL_AT]


def _multi_tensor_form(name):
    """Shapes and kinds of what the operator of that name makes: nothing where it writes in place."""
    if name.split(".")[0].endswith("_"):
        return lambda tensors, *args, **kwargs: None
    if name.startswith("aten::_foreach_norm"):
        return lambda tensors, *args, **kwargs: [tensor.new_empty(()) for tensor in tensors]
    return lambda tensors, *args, **kwargs: [torch.empty_like(tensor) for tensor in tensors]


def take_in_multi_tensor_forms(kind, stack, replace):
    """Optimizers and the clipping of gradients have these for some kinds of tensors: now for this one, too. Up to 2.3
    PyTorch lacks the shapes of some of them."""
    for name in ("torch.optim.optimizer", "torch.utils._foreach_utils"):  # torch.optim hides its own
        types = getattr(importlib.import_module(name), "_foreach_supported_types", None)
        if types is not None:
            types.append(kind)
            stack.callback(types.remove, kind)
    if torch_version() > (2, 3):
        return
    replace(stack, torch.nn.utils.clip_grad, "_has_foreach_support", lambda tensors, device: True)
    forms = torch.library.Library("aten", "IMPL", "Meta")
    stack.callback(lambda kept: None, forms)  # it ends with its last reference
    for name in torch._C._dispatch_get_all_op_names():
        known = any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in ("Meta", "CompositeExplicitAutograd"))
        if name.startswith("aten::_foreach_") and "out" not in name.partition(".")[2] and not known:
            forms.impl(name[len("aten::") :], _multi_tensor_form(name))
