"""The recorder of a script, which pretends nothing but CUDA. An operator runs on fake tensors where one of its
arguments, or its result, lives on a CUDA device. Else it runs as it is. Data copied from there to the host is real
again."""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map_only

from carma import operators, values
from carma.errors import CaptureError
from carma.recorder import Recorder
from carma.versions import tensors_in

# Real initial values of larger tensors are left out: zeros that the kernel has not given memory for are as good.
INITIALISED = 1 << 21  # elements
INITIALISERS = frozenset(["normal_", "uniform_", "exponential_", "random_", "log_normal_", "cauchy_", "erfinv_", "zero_",
                          "fill_"])  # fmt: skip


ABSENT = "carma_absent"  # the device of a plain number as well: see pretend


def _is_cuda(device):
    return device is not None and torch.device(device).type == "cuda"


def _of_the_device(kwargs):
    device = kwargs.get("device")
    if device is not None and torch.device(device).type == ABSENT:
        return {**kwargs, "device": torch.device("cuda", torch.device(device).index or 0)}
    return kwargs


def _foreign(types):
    """Tensors of a kind that takes operators apart itself (DTensor): they come back as plain ones."""
    for kind in types:
        if not issubclass(kind, FakeTensor) and "__torch_dispatch__" in vars(kind):
            return kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl
    return False


# Those with which formulas of gradients begin.
FACTORIES = frozenset(["zeros", "empty", "ones", "full", "new_zeros", "new_empty", "new_ones", "new_full", "empty_strided",
                       "new_empty_strided", "scalar_tensor", "arange"])  # fmt: skip


class DividedRecorder(Recorder):
    _last_was_fake = False

    def _dispatch(self, func, types, args=(), kwargs=None):
        kwargs = _of_the_device(kwargs or {})
        if func is torch.ops.prim.device.default:
            return self._device(args[0])
        if _foreign(types):
            return NotImplemented
        name = operators.name_of(func)
        if self.engine and torch._C._current_autograd_node() is not None:
            self.engine = False
        inputs = tensors_in(kwargs, tensors_in(args))
        fake = any(isinstance(value, FakeTensor) for value in inputs)
        if name in FACTORIES and (fake or (not inputs and self._last_was_fake)) and self._engine_asks():
            kwargs = {**kwargs, "device": torch.device("cuda", 0)}  # the engine believes in the CPU: see _device()
        if inputs:
            self._last_was_fake = fake
        if not fake and not _is_cuda(kwargs.get("device")):
            return self._on_host(func, name, args, kwargs)
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        if name == "_to_copy" and self._engine_asks() and operators.is_no_copy(args, kwargs):
            return torch.ops.aten.alias.default(args[0])
        if name == "_local_scalar_dense":
            return values.number_of(args[0]).item()
        if name in ("_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"):
            return False  # cuDNN's takes only some lengths
        if name == "equal":
            return all(values.value_of(v) is not None for v in args) and torch.equal(*map(values.value_of, args))
        if name == "copy_" and not isinstance(args[0], FakeTensor):
            return args[0].copy_(values.on_host(args[1]))
        if name == "_to_copy" and not fake and type(args[0]) is torch.Tensor and self.follower is not None:
            inputs = [self.follower.lengthened(args[0])]
            args = (*inputs, *args[1:])
        if name in ("is_pinned", "_pin_memory"):
            return False if name == "is_pinned" else args[0]
        self.reap()
        label = self._label_of(inputs)
        if label is not None:
            self.labels.append(label)
        try:
            return self._on_device(func, name, types, args, kwargs, inputs)
        finally:
            if label is not None:
                self.labels.pop()

    # On the host

    def _on_host(self, func, name, args, kwargs):
        if name in INITIALISERS and args[0].numel() > INITIALISED:
            return args[0]
        if name == "_pin_memory":
            return args[0]
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        return func(*args, **kwargs)

    def fake(self, tensor, device=None):
        """A fake of a real tensor, there or on the device."""
        with torch._C._DisableTorchDispatch():
            meta = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        made = FakeTensor(self.fake_mode, meta, tensor.device if device is None else device)
        if values.is_small(tensor) and tensor.device.type == "cpu":
            made.carma_value = tensor.detach()
        return made

    # On the device

    def _on_device(self, func, name, types, args, kwargs, inputs):
        if any(type(value) is not FakeTensor for value in inputs):
            fakes = {id(value): self.fake(value) for value in inputs if not isinstance(value, FakeTensor)}
            args, kwargs = tree_map_only(torch.Tensor, lambda value: fakes.get(id(value), value), (args, kwargs))
            inputs = tensors_in(kwargs, tensors_in(args))
        if name in MASKED:
            args = self._without_masks(name, args)
            inputs = tensors_in(kwargs, tensors_in(args))
        special = [(value, type(value)) for value in inputs if type(value) is not FakeTensor]
        for value, _ in special:  # parameters of a kind of their own: to operators they are plain
            value.__class__ = FakeTensor
        try:
            out = None if name in operators.OPTIMIZERS else self.fake_mode.dispatch(func, types, args, kwargs)
        except Exception as error:
            out = self._sized_by_values(func, name, args, kwargs, error)
        finally:
            for value, kind in special:
                value.__class__ = kind
        outputs = tensors_in(out)
        self._follow_values(func, name, args, kwargs, inputs, out, outputs)
        outputs = [value for value in outputs if isinstance(value, FakeTensor)]
        if any(value.fake_device.type == "cpu" for value in outputs):
            return tree_map_only(FakeTensor, self._real, out)
        if self.watching and not self.stopped:
            self._observe(name, inputs, args, kwargs, outputs)
        return out

    def _real(self, tensor):
        return values.on_host(tensor) if tensor.fake_device.type == "cpu" else tensor

    # Values

    def value_of(self, tensor):
        value = values.value_of(tensor)
        if value is None:
            return None
        block = self.block_of(tensor)
        return value if block is None or block.valid else None

    def _follow_values(self, func, name, args, kwargs, inputs, out, outputs):
        known = None
        if all(values.is_small(value) for value in inputs) and all(values.is_small(value) for value in outputs):
            known = self._compute(func, name, args, kwargs, inputs, outputs)
        if known is not None:
            for value, found in zip(outputs, known):
                if isinstance(value, FakeTensor):
                    value.carma_value = found
            return
        for value in outputs:
            if value.dtype.is_floating_point and value.numel() > 1:
                continue
            if not any(value is source for source in inputs):
                value.carma_made_by = name
        if func._schema.is_mutable:
            self._forget_written(func, args, kwargs)

    def _compute(self, func, name, args, kwargs, inputs, outputs):
        """The operator on the known values of its inputs, a single unknown number standing for itself."""
        shadows, unknown = {}, False
        for value in inputs:
            found = self.value_of(value)
            if found is None:
                if value.numel() != 1:
                    return None
                unknown = True
                found = values.number_of(value).clone()
            shadows[id(value)] = found
        if unknown and (func._schema.is_mutable or name in ("any", "all")):
            return None
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": torch.device("cpu")}
        args, kwargs = tree_map_only(torch.Tensor, lambda value: shadows[id(value)], (args, kwargs))
        try:
            known = tensors_in(func(*args, **kwargs))
        except Exception:
            return None  # a kernel that the CPU does not have
        if [value.shape for value in known] != [value.shape for value in outputs]:
            return None
        if name == "_to_copy":
            known = [value.clone() if any(value is other for other in shadows.values()) else value for value in known]
        return known

    def _forget_written(self, func, args, kwargs):
        for index, argument in enumerate(func._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            for tensor in tensors_in(value):
                block = self.block_of(tensor)
                if block is not None:
                    block.valid = False

    # Sizes by values

    def _without_masks(self, name, args):
        """Boolean masks as indices become indices, as CUDA's kernels do it."""
        source, indices, *rest = args
        made, dimension = [], 0
        for index in indices:
            if index is None or index.dtype not in (torch.bool, torch.uint8):
                made.append(index)
                dimension += 1
                continue
            value = self.value_of(index)
            if value is not None:
                rows = len(value.nonzero())
            else:
                rows = index.numel()
                if rest and isinstance(rest[0], torch.Tensor) and rest[0].dim() > 0 and rest[0].shape[0] > 1:
                    rows = rest[0].shape[0]
                elif not rest:
                    self.worst_cases.add(name)
            columns = list(value.nonzero().unbind(1)) if value is not None else [None] * index.dim()
            for column in columns:
                with torch._C._DisableTorchDispatch():
                    meta = torch.empty(rows, dtype=torch.int64, device="meta")
                made.append(FakeTensor(self.fake_mode, meta, source.fake_device))
                if column is not None:
                    made[-1].carma_value = column.contiguous()
                    continue
            dimension += index.dim()
            if self.watching and not self.stopped:
                self.taken_and_given_back(rows * 8 * index.dim())
        return (source, made, *rest)

    def _sized_by_values(self, func, name, args, kwargs, error):
        """The result's size depends on values: on known ones as it is, on others the largest that it can be."""
        if name in SHAPES:
            with self.fake_mode:
                return SHAPES[name](*args, **kwargs)
        if name == "_pack_padded_sequence":  # before 2.4 an error of its own
            return self._packed(*args)
        if type(error).__name__ not in ("DynamicOutputShapeException", "DataDependentOutputException"):
            raise error
        inputs = tensors_in(kwargs, tensors_in(args))
        shadows = {id(value): self.value_of(value) for value in inputs}
        if None not in shadows.values():
            found = func(*tree_map_only(torch.Tensor, lambda v: shadows[id(v)], args),
                         **tree_map_only(torch.Tensor, lambda v: shadows[id(v)], kwargs))  # fmt: skip
            return tree_map_only(torch.Tensor, lambda v: self.fake(v, inputs[0].fake_device), found)
        rule = LARGEST.get(name)
        if rule is None:
            raise CaptureError(
                f"{name}: its result depends on the values of tensors, which a capture does not have: "
                "record a model whose sizes do not depend on its data"
            ) from None
        self.worst_cases.add(name)
        return tree_map_only(torch.Tensor, lambda v: self.fake(v, inputs[0].fake_device),
                             rule(*args, **kwargs))  # fmt: skip

    def _packed(self, source, lengths, batch_first):
        count, batch_sizes = torch._pack_padded_sequence(torch.empty(*source.shape[:2], 1), values.on_host(lengths),
                                                         batch_first)  # fmt: skip
        return self.fake(_meta(len(count), *source.shape[2:], dtype=source.dtype), source.fake_device), batch_sizes


DividedRecorder.__torch_dispatch__ = DividedRecorder._dispatch

MASKED = frozenset(["index", "index_put", "index_put_", "_unsafe_index", "_index_put_impl_"])


def _meta(*shape, dtype=torch.int64):
    with torch._C._DisableTorchDispatch():
        return torch.empty(shape, dtype=dtype, device="meta")


def _unique(source, *rest, **_):
    count = source.numel() if source.dtype.is_floating_point else 1  # classes: the stand-in's
    return _meta(count, dtype=source.dtype), _meta(*source.shape), _meta(count)


def _ctc_loss(probabilities, targets, input_lengths, target_lengths, *rest):
    longest = targets.shape[-1] if targets.dim() > 1 else max(target_lengths)
    batch = probabilities.shape[1]
    return probabilities.new_empty(batch), probabilities.new_empty(batch, probabilities.shape[0], 2 * longest + 1)


# Operators of which fake tensors do not know the result's shape.
SHAPES = {
    "_ctc_loss": _ctc_loss,
    "_ctc_loss_backward": lambda grad, probabilities, *rest: torch.empty_like(probabilities),
    "batch_norm_stats": lambda source, eps: (source.new_empty(source.shape[1], dtype=torch.float32),) * 1
    + (source.new_empty(source.shape[1], dtype=torch.float32),),
    "batch_norm_elemt": lambda source, *rest: torch.empty_like(source),
    "batch_norm_gather_stats_with_counts": lambda source, mean, *rest: (
        mean.new_empty(mean.shape[1:]), mean.new_empty(mean.shape[1:])  # of no GPU at all, where counts seem to be 0
    ),
    "batch_norm_backward_reduce": lambda grad, source, mean, *rest: tuple(torch.empty_like(mean) for _ in range(4)),
    "batch_norm_backward_elemt": lambda grad, source, *rest: torch.empty_like(source),
}  # fmt: skip

# The largest result of operators that select: everything is selected.
LARGEST = {
    "nonzero": lambda source: _meta(source.numel(), source.dim()),
    "masked_select": lambda source, mask: _meta(max(source.numel(), mask.numel()), dtype=source.dtype),
    "_unique2": _unique,
    "unique_consecutive": _unique,
    "unique_dim": lambda source, dim, *rest, **_: (
        _meta(*source.shape, dtype=source.dtype), _meta(source.shape[dim]), _meta(source.shape[dim])
    ),
    "nms": lambda boxes, *rest: _meta(boxes.shape[0]),
    "bincount": lambda source, weights=None, minlength=0: _meta(max(minlength, 1)),
    "repeat_interleave": lambda repeats, output_size=None: _meta(output_size or repeats.numel()),
}  # fmt: skip
