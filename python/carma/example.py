"""A user's example batch stands in for the data: every data loader gives it. Datasets that cannot be made have as many
samples as a training needs."""

import functools

import torch
from torch.utils import data

from carma import pretend
from carma.errors import CaptureError
from carma.versions import tensors_in

SAMPLES = 100000  # of a dataset that is not here


def load(path):
    """A file of torch.save() as it was, or the arrays of a .npz: a dict of them, or a tuple where they have no names."""
    try:
        if not str(path).endswith(".npz"):
            example = torch.load(path, map_location="cpu", weights_only=False)
        else:
            import numpy

            with numpy.load(path) as file:
                example = {name: torch.from_numpy(file[name]) for name in file.files}
            if all(name == f"arr_{index}" for index, name in enumerate(example)):
                example = tuple(example.values())
    except Exception as error:
        raise CaptureError(f"--example-batch {path}: {(str(error).splitlines() or [''])[0]}") from error
    if not any(tensor.dim() for tensor in tensors_in(example)):
        raise CaptureError(f"--example-batch {path}: no tensor in it whose first dimension is the batch")
    return example


def _of_size(value, own, size):
    """Each tensor's first dimension, where it is the batch, is cut or repeated."""
    if isinstance(value, torch.Tensor):
        if value.dim() == 0 or value.shape[0] != own or own == size:
            return value.clone()
        return value[torch.arange(size) % own]
    if isinstance(value, dict):
        made = {key: _of_size(item, own, size) for key, item in value.items()}
        return made if type(value) is dict else type(value)(made)
    if isinstance(value, (tuple, list)):
        made = [_of_size(item, own, size) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def _absent(kind, recorder):
    """A kind of dataset that says so where its files are missing."""
    made, length = kind.__dict__.get("__init__"), kind.__dict__.get("__len__")

    def init(self, *args, **kwargs):
        try:
            made(self, *args, **kwargs)
        except (OSError, RuntimeError, ValueError, KeyError, AttributeError):
            self.carma_absent = True
            recorder.doubt(f"the data of {type(self).__name__} is not here: the example batch stands in", 0)

    if made is not None:
        kind.__init__ = functools.wraps(made)(init)
    if length is not None:
        kind.__len__ = lambda self: SAMPLES if getattr(self, "carma_absent", False) else length(self)


def replace(stack, put, recorder, example):
    """put(stack, owner, name, value) sets an attribute until the stack is left."""
    own = next(tensor.shape[0] for tensor in tensors_in(example) if tensor.dim())

    def next_batch(iterator):
        samples = next(iterator._sampler_iter)
        with pretend.really():
            return _of_size(example, own, len(samples) if isinstance(samples, (list, tuple)) else own)

    put(stack, data.dataloader._BaseDataLoaderIter, "__next__", next_batch)
    put(stack, data.Dataset, "__init_subclass__", classmethod(lambda kind, **_: _absent(kind, recorder)))
