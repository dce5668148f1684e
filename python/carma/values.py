"""The answer to a script that asks a fake tensor for its value."""

import traceback

import torch
from torch._subclasses.fake_tensor import FakeTensor

from carma.errors import CaptureError


def _where():
    """FILE:LINE of the script's own code that asked."""
    for frame in reversed(traceback.extract_stack()):
        if "/carma/" not in frame.filename and "/torch/" not in frame.filename:
            return f"{frame.filename}:{frame.lineno}"
    return "the script"


class Unknown(float):
    """A number that may be added up, divided and printed, but not decided by."""

    def __new__(cls, *_):
        return super().__new__(cls, "nan")

    def _decided(self, *_):
        raise CaptureError(
            f"{_where()}: decides by the value of a tensor, which a capture does not have: "
            "record a script whose training step does not depend on it"
        )

    def _unknown(self, *_):
        return Unknown()

    __bool__ = __int__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __hash__ = _decided
    __round__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = _unknown


def _item(tensor):
    constant = getattr(tensor, "constant", None)
    return Unknown() if constant is None else constant.item()


def _tolist(tensor):
    if tensor.dim() == 0:
        return tensor.item()
    return [_tolist(row) for row in tensor.unbind()]


def _format(tensor, how):
    return format(_item(tensor), how) if tensor.dim() == 0 else object.__format__(tensor, how)


def _refuse_bool(tensor):
    constant = getattr(tensor, "constant", None)
    return Unknown().__bool__() if constant is None else bool(constant)


# Methods of fake tensors while a script runs.
METHODS = {
    "item": _item,
    "tolist": _tolist,
    "__float__": lambda tensor: float(_item(tensor)),
    "__int__": lambda tensor: int(_item(tensor)),
    "__index__": lambda tensor: int(_item(tensor)),
    "__bool__": _refuse_bool,
    "__format__": _format,
}


def replace(stack, put):
    """put(stack, owner, name, value) sets an attribute until the stack is left."""
    for name, method in METHODS.items():
        put(stack, FakeTensor, name, method)
    put(stack, torch, "is_nonzero", _refuse_bool)
