"""Values of tensors that are not there. Small tensors keep theirs: each operator on them also runs on the CPU. So
lengths, masks, labels and the losses of small models are right. For the others there are stand-ins: see STAND_INS below
and docs/capture.md."""

import torch
from torch._subclasses.fake_tensor import FakeTensor

FLOATS = 1 << 14  # elements of a tensor that keeps its values
INTEGERS = 1 << 20

# A number that a script asks for, and nobody knows. It is 1 of a floating-point tensor (a loss, a norm) and of a sum or
# count of integers. Else it is 0 or False: the first class, the first token, not yet.
COUNTING = ("sum", "count_nonzero", "all")


def stand_in(dtype, name=""):
    return dtype.is_floating_point or dtype.is_complex or name in COUNTING


def is_small(tensor):
    return tensor.numel() <= (FLOATS if tensor.dtype.is_floating_point or tensor.dtype.is_complex else INTEGERS)


def value_of(tensor):
    """What is known of a fake tensor's values: a tensor of the CPU, or None."""
    return getattr(tensor, "carma_value", None)


def number_of(tensor):
    """Of a tensor with one element: known, or a stand-in. An all() is True and an any() is False, so that checks of
    the data pass."""
    value = value_of(tensor)
    if value is None:
        value = torch.full((), stand_in(tensor.dtype, getattr(tensor, "carma_made_by", "")), dtype=tensor.dtype)
    return value.reshape(tensor.shape)


def on_host(tensor):
    """A fake tensor's copy in the host's memory, from no known values: ones or zeros."""
    value = value_of(tensor)
    if value is not None:
        return value.clone()
    made_by = getattr(tensor, "carma_made_by", "")
    return torch.full(tensor.shape, stand_in(tensor.dtype, made_by), dtype=tensor.dtype)


# For releases that have no other way: methods of fake tensors while a script runs.


def _item(tensor):
    constant = getattr(tensor, "constant", None)
    if constant is not None:
        return constant.item()
    return torch.tensor(stand_in(tensor.dtype)).to(tensor.dtype).item()


def _tolist(tensor):
    if tensor.dim() == 0:
        return tensor.item()
    return [_tolist(row) for row in tensor.unbind()]


def _format(tensor, how):
    return format(tensor.item(), how) if tensor.dim() == 0 else object.__format__(tensor, how)


METHODS = {
    "item": _item,
    "tolist": _tolist,
    "__float__": lambda tensor: float(_item(tensor)),
    "__int__": lambda tensor: int(_item(tensor)),
    "__index__": lambda tensor: int(_item(tensor)),
    "__bool__": lambda tensor: bool(_item(tensor)),
    "__format__": _format,
}


def replace(stack, put):
    """put(stack, owner, name, value) sets an attribute until the stack is left."""
    for name, method in METHODS.items():
        put(stack, FakeTensor, name, method)
    put(stack, torch, "is_nonzero", lambda tensor: bool(_item(tensor)))


def replace_lists(stack, put):
    """Operators are asked for single values; this function replaces the others."""

    def tolist(tensor):
        return on_host(tensor).tolist()

    put(stack, FakeTensor, "tolist", tolist)
    put(stack, FakeTensor, "__format__", _format)
