"""Runs a training script as it is, with fake tensors, until its optimizer has made a number of steps."""

import contextlib
import functools
import importlib
import os
import pickle
import runpy
import sys
import traceback
import types

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from carma import pretend, values, writer
from carma.errors import CaptureError
from carma.optimizers import any_norm_will_do, name_of_optimizer, states_of
from carma.recorder import FORWARD, OPTIMIZER, SETUP, Recorder
from carma.versions import tensors_in


class _Enough(BaseException):
    """The last step is done. No Exception: scripts catch those."""


class Follower:
    """Knows where the script is: set-up until the first module runs with gradients, then steps of its optimizers."""

    def __init__(self, recorder, steps):
        self.recorder, self.steps = recorder, steps
        self.batch = None
        self.model = ""
        self.optimizer = "none"
        self.precision = "fp32"
        self.parameters = {}  # id -> parameter, of the modules that ran

    def before_module(self, module, args, kwargs):
        recorder = self.recorder
        if self.batch is None and torch.is_grad_enabled() and module.training:
            self._begin(module, args, kwargs)
        if self.batch is not None and self.recorder.device == "cuda" and torch.is_autocast_enabled("cuda"):
            self.precision = "amp"
        if recorder.device == "cpu":
            for tensor in tensors_in(kwargs, tensors_in(args)):
                if isinstance(tensor, FakeTensor):  # a real one is when an operator takes it
                    recorder.adopt(tensor, "input")

    def _begin(self, module, args, kwargs):
        recorder = self.recorder
        inputs = [tensor for tensor in tensors_in(kwargs, tensors_in(args)) if tensor.dim() > 0]
        if not inputs:
            return
        self.batch, self.model = inputs[0].shape[0], type(module).__name__
        with recorder.during(SETUP):
            for path, child in module.named_modules():
                for tensor, kind in [(value, "parameter") for value in child._parameters.values()] + [
                    (value, "buffer") for value in child._buffers.values()
                ]:
                    if tensor is None:
                        continue
                    if recorder.device == "cpu":
                        recorder.adopt(tensor)
                    recorder.name(tensor, kind, path)
                    if kind == "parameter":
                        self.parameters[id(tensor)] = tensor
        if not any(recorder.block_of(value) for value in self.parameters.values()):
            raise CaptureError("the model is not on a GPU: its script has to move it there (model.to('cuda'))")
        if all(value.dtype in (torch.float16, torch.bfloat16) for value in self.parameters.values()):
            self.precision = "half"
        recorder.phase, recorder.step, recorder.counting = FORWARD, 1, True

    def before_backward(self):
        self.recorder.counting = False

    @contextlib.contextmanager
    def step(self, optimizer):
        recorder = self.recorder
        if self.batch is None:
            raise CaptureError("an optimizer makes a step before any module has run: nothing is known of the model")
        recorder.counting = False
        self.optimizer = name_of_optimizer(optimizer)
        parameters = [value for group in optimizer.param_groups for value in group["params"]]
        recorder.name_gradients([value.grad for value in parameters if value.grad is not None])
        with recorder.during(OPTIMIZER), any_norm_will_do(optimizer):
            yield
        for state in states_of(optimizer):
            recorder.name(state, "optimizer")
        if recorder.step >= self.steps:
            raise _Enough
        recorder.step += 1

    @property
    def parameter_bytes(self):
        return sum(value.numel() * value.element_size() for value in self.parameters.values())


def _follow_optimizers(stack, follower):
    base = torch.optim.Optimizer
    init = base.__init__

    @functools.wraps(init)
    def made(optimizer, *args, **kwargs):
        init(optimizer, *args, **kwargs)
        step = type(optimizer).step

        @functools.wraps(step)
        def followed(self, *args, **kwargs):
            with follower.step(self):
                return step(self, *args, **kwargs)

        optimizer.step = types.MethodType(followed, optimizer)

    pretend.replace(stack, base, "__init__", made)


def _load_in_this_process(stack):
    """Data are loaded as always, by real operators, but without worker processes, which would inherit the fakes."""
    data = importlib.import_module("torch.utils.data.dataloader")
    init, loader_iter = data.DataLoader.__init__, data.DataLoader.__iter__
    next_batch = data._BaseDataLoaderIter.__next__

    def made(loader, *args, **kwargs):
        init(loader, *args, **kwargs)
        for name, value in (("num_workers", 0), ("pin_memory", False), ("timeout", 0), ("prefetch_factor", None),
                            ("persistent_workers", False)):  # fmt: skip
            loader.__dict__[name] = value

    def really(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with pretend.really():
                return function(*args, **kwargs)

        return call

    pretend.replace(stack, data.DataLoader, "__init__", made)
    pretend.replace(stack, data.DataLoader, "__iter__", really(loader_iter))
    pretend.replace(stack, data._BaseDataLoaderIter, "__next__", really(next_batch))


def _let_modules_move(stack, fake_mode):
    """module.to() swaps a fake parameter with its copy, which fails where the fake mode remembers either."""
    memo = fake_mode.fake_tensor_converter.meta_converter.tensor_memo
    swap = torch.utils.swap_tensors

    def swap_tensors(first, second):
        known = [key for key, value in memo.items() if value is first or value is second]
        for key in known:
            del memo[key]
        swap(first, second)

    pretend.replace(stack, torch.utils, "swap_tensors", swap_tensors)


def _refuse(what, instead):
    def call(*args, **kwargs):
        raise CaptureError(f"{what} cannot be recorded: {instead}")

    return call


def _claim_gpu(stack):
    """One GPU, as far as scripts ask. Calls that would start CUDA do nothing."""
    properties = types.SimpleNamespace(
        name="carma",
        major=8,
        minor=0,
        total_memory=80 << 30,
        multi_processor_count=108,
        max_threads_per_multi_processor=2048,
    )
    answers = {
        "is_available": True, "device_count": 1, "current_device": 0, "is_initialized": True, "_lazy_init": None,
        "set_device": None, "synchronize": None, "empty_cache": None, "reset_peak_memory_stats": None,
        "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0,
        "manual_seed": None, "manual_seed_all": None, "get_device_name": "carma", "get_device_capability": (8, 0),
        "get_device_properties": properties, "is_bf16_supported": True, "mem_get_info": (80 << 30, 80 << 30),
    }  # fmt: skip
    for name, answer in answers.items():
        pretend.replace(stack, torch.cuda, name, lambda *args, answer=answer, **kwargs: answer)
    pretend.replace(stack, torch.cuda, "CUDAGraph", _refuse("a CUDA graph", "train without it"))
    pretend.replace(stack, FakeTensorMode, "avoid_device_init", property(lambda mode: True))


def _watched(path, arguments, steps):
    """Runs the script in this process; (trace, header)."""
    with contextlib.ExitStack() as stack:
        recorder = stack.enter_context(pretend.gpu(Recorder))
        follower = Follower(recorder, steps)
        recorder.follower = follower
        values.replace(stack, pretend.replace)
        _follow_optimizers(stack, follower)
        _load_in_this_process(stack)
        if hasattr(torch, "compile"):
            pretend.replace(stack, torch, "compile", _refuse("torch.compile", "train without it"))
        if recorder.device == "cuda":
            _claim_gpu(stack)
            _let_modules_move(stack, recorder.fake_mode)
        pretend.replace(stack, sys, "argv", [path, *arguments])
        pretend.replace(stack, sys, "path", [os.path.dirname(os.path.abspath(path)), *sys.path])
        try:
            runpy.run_path(path, run_name="__main__")
        except _Enough:
            pass
        except SystemExit as error:
            raise _too_few(path, recorder, steps, f" (it ended with exit status {error.code or 0})") from None
        else:
            raise _too_few(path, recorder, steps, "")
        header = {
            "torch": torch.__version__.split("+")[0],
            "mapping": recorder.device,
            "model": follower.model,
            "optimizer": follower.optimizer,
            "precision": follower.precision,
            "parameters": follower.parameter_bytes,
        }
        recorder.finish()
        return writer.Trace(recorder, follower.batch), header


def _too_few(path, recorder, steps, why):
    made = max(recorder.step - 1, 0)
    return CaptureError(
        f"{path}: its optimizers made {made} steps, not {steps}{why}: let it train longer, or ask for fewer"
    )


def _one_line(path, error):
    if isinstance(error, CaptureError):
        return str(error)
    place = path
    for frame in traceback.extract_tb(error.__traceback__):
        if os.path.abspath(frame.filename) == os.path.abspath(path):
            place = f"{path}:{frame.lineno}"
    first = (str(error).splitlines() or [""])[0]
    return f"{place}: {type(error).__name__}: {first[:300]}"


def record(path, arguments, steps):
    """In a process of its own, so that nothing of one run is left for the next."""
    source, sink = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(source)
        try:
            answer = ("done", *_watched(path, arguments, steps))
        except BaseException as error:
            answer = ("failed", _one_line(path, error))
        sys.stdout.flush()
        with os.fdopen(sink, "wb") as file:
            pickle.dump(answer, file)
        os._exit(0)
    os.close(sink)
    with os.fdopen(source, "rb") as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    if not text:
        raise CaptureError(f"{path}: its process ended without a word (status {status})")
    kind, *rest = pickle.loads(text)
    if kind == "failed":
        raise CaptureError(rest[0])
    return rest
