"""Knows where a script is: set-up until the first module runs with gradients on the device, then steps of its
optimizers."""

import contextlib
import functools
import types

import torch
from torch._subclasses.fake_tensor import FakeTensor

from carma.errors import CaptureError
from carma.optimizers import any_norm_will_do, name_of_optimizer, states_of
from carma.recorder import FORWARD, OPTIMIZER, SETUP
from carma.versions import tensors_in

SEEN = 3  # steps that show which dimensions differ; the first one's batch comes among the set-up
MOST_MORE, EVENTS = 6, 20000  # steps that are recorded where they differ, while they have no more events in all
AHEAD = 2  # steps until a batch comes from a library that takes one in advance
HALF = (torch.float16, torch.bfloat16)


class Enough(BaseException):
    """The last step is done. No Exception: scripts catch those."""


class Follower:
    """finish(is_last): called when the last step is done, and before the steps that lead to a loader's largest batch."""

    def __init__(self, recorder, steps, finish, longest=None, lengths=None):
        self.recorder, self.steps, self.finish = recorder, steps, finish
        self.longest = longest
        self.lengths = lengths  # a Lengths; None: no loader is asked for its largest batch
        self.looked = False  # the loaders have been asked for larger batches
        if longest is not None:
            self.steps = max(steps, SEEN) + 1
        self.moved = [[]]  # shapes of the tensors that were copied to the device, of each step
        self.batch = None
        self.model = ""
        self.optimizer = "none"
        self.autocast = False
        self.parameters = {}  # id -> parameter, of the modules that ran
        self.optimizers = 0  # that were made
        self.made = {}  # id of an optimizer -> its steps
        self.inside = 0  # of a step
        self.passed_back = False  # a backward pass since the last step
        self.backwards = 0  # how many since the last step of any optimizer
        self.first = None  # module that ran
        self.shapes = []  # of its inputs, in each step

    # Modules

    def before_module(self, module, args, kwargs):
        recorder = self.recorder
        if torch.is_grad_enabled() and module.training:
            if self.optimizers == 0 and self.passed_back:
                self._step_without_optimizer()
            if self.batch is None:
                self._begin(module, args, kwargs)
        if self.batch is not None and recorder.device == "cuda" and torch.is_autocast_enabled():
            self.autocast = True
        if recorder.device == "cpu":
            for tensor in tensors_in(kwargs, tensors_in(args)):
                if isinstance(tensor, FakeTensor):  # a real one is when an operator takes it
                    recorder.adopt(tensor, "input")
        elif module is self.first and torch.is_grad_enabled():
            self._note_shapes(args, kwargs)

    def _note_shapes(self, args, kwargs):
        step = self.recorder.step
        if len(self.shapes) < step:
            inputs = tensors_in(kwargs, tensors_in(args))
            self.shapes.append([tuple(value.shape) for value in inputs])

    @property
    def steps_differ(self):
        return any(shapes != self.shapes[0] for shapes in self.shapes)

    def _begin(self, module, args, kwargs):
        recorder = self.recorder
        inputs = [tensor for tensor in tensors_in(kwargs, tensors_in(args)) if tensor.dim() > 0]
        if recorder.device == "cpu" and not inputs:
            return
        parameters = [value for value in module.parameters() if value.requires_grad]
        if recorder.device == "cuda" and not any(value.device.type == "cuda" for value in parameters):
            return
        self.batch = inputs[0].shape[0] if inputs else 1
        self.first, self.model = module, type(module).__name__
        with recorder.during(SETUP):
            for path, child in module.named_modules():
                for tensor, kind in [(value, "parameter") for value in child._parameters.values()] + [
                    (value, "buffer") for value in child._buffers.values()
                ]:
                    if tensor is None or (recorder.device == "cuda" and tensor.device.type != "cuda"):
                        continue
                    if recorder.device == "cpu":
                        recorder.adopt(tensor)
                    recorder.name(tensor, kind, path)
                    if kind == "parameter":
                        self.parameters[id(tensor)] = tensor
        if recorder.device == "cpu" and not any(recorder.block_of(value) for value in self.parameters.values()):
            raise CaptureError("the model is not on a GPU: its script has to move it there (model.to('cuda'))")
        self._count()

    def _count(self):
        recorder = self.recorder
        recorder.phase, recorder.step, recorder.counting = FORWARD, 1, True

    # Steps

    def before_backward(self):
        self.recorder.counting = False
        self.passed_back = True
        self.backwards += 1
        if self.batch is None and self.recorder.device == "cuda":
            self.batch, self.model = 1, "script"
            self._count()
            self.recorder.counting = False

    def _step_without_optimizer(self):
        self.passed_back = False
        self._step_is_done()

    def lengthened(self, tensor):
        """What is copied to the device in the last step: each dimension that differed between steps is as long as the
        user says. The rest is zeros."""
        self.moved[-1].append(tuple(tensor.shape))
        if self.longest is None or len(self.moved) < self.steps:
            return tensor
        index = len(self.moved[-1]) - 1
        seen = [shapes[index] for shapes in self.moved[1:-1] if index < len(shapes)]
        if {len(shape) for shape in seen} != {tensor.dim()}:
            return tensor
        shape = [self.longest if len({*sizes, size}) > 1 else size for size, *sizes in zip(tensor.shape, *seen)]
        if shape == list(tensor.shape):
            return tensor
        self.recorder.doubt(f"batches of length {self.longest} were made from shorter ones", 150)
        made = tensor.new_zeros(shape)
        part = tuple(slice(0, min(new, old)) for new, old in zip(shape, tensor.shape))
        made[part] = tensor[part]
        return made

    def _step_is_done(self):
        self.backwards = 0
        if self.recorder.stopped:
            raise Enough
        if self.recorder.step >= self.steps:
            self.recorder.reap()
            if self.lengths is not None and not self.looked:
                self.looked = True
                with self.recorder.paused():
                    larger = self.lengths.find(self.moved[-1])
                self.steps += self._more_steps() if larger else 0
            self.finish(self.recorder.step >= self.steps)
            if self.recorder.step >= self.steps:
                raise Enough
        if self.looked and self.recorder.step == self.steps - AHEAD:
            self.lengths.giving = True
        self.moved.append([])
        self.recorder.step += 1

    def _more_steps(self):
        """The longest one, and before it some more of the script's own: of each the allocator keeps other pieces."""
        events = len(self.recorder.events)
        step = self.recorder.step
        return AHEAD + max(0, min(MOST_MORE, (EVENTS - events) * step // events, self.lengths.left(step) - AHEAD))

    def _closed(self, arguments):
        """A closure runs the model inside of a step."""

        def close(function):
            @functools.wraps(function)
            def closure(*args, **kwargs):
                with self.recorder.during(FORWARD):
                    return function(*args, **kwargs)

            return closure

        return [close(value) if callable(value) else value for value in arguments]

    @contextlib.contextmanager
    def step(self, optimizer):
        recorder = self.recorder
        if self.batch is None:
            if recorder.device == "cpu":
                raise CaptureError("an optimizer makes a step before any module has run: nothing is known of the model")
            self._count()  # its closure runs the model
        recorder.counting = False
        made = self.made[id(optimizer)] = self.made.get(id(optimizer), 0) + 1
        if made > recorder.step:  # of several optimizers the first begins the next step
            self._step_is_done()
        self.optimizer = name_of_optimizer(optimizer)
        parameters = [value for group in optimizer.param_groups for value in group["params"]]
        for value in parameters:
            if id(value) not in self.parameters:
                self.parameters[id(value)] = value
                recorder.name(value, "parameter")
        recorder.name_gradients([value.grad for value in parameters if value.grad is not None])
        self.inside += 1
        try:
            with recorder.during(OPTIMIZER), any_norm_will_do(optimizer):
                yield
        finally:
            self.inside -= 1
        for state in states_of(optimizer):
            recorder.name(state, "optimizer")
        self.passed_back, self.backwards = False, 0
        if self.optimizers <= 1:
            self._step_is_done()

    # What was seen

    @property
    def precision(self):
        """By the types that matrix products and convolutions had."""
        work = self.recorder.counts.work
        half = sum(flops for dtype, flops in work.items() if dtype in HALF)
        if 2 * half <= sum(work.values()):
            return "fp32"
        kept = [value.dtype for value in self.parameters.values() if value.is_floating_point() and value.requires_grad]
        return "half" if all(dtype in HALF for dtype in kept) else "amp"

    @property
    def parameter_bytes(self):
        return sum(value.numel() * value.element_size() for value in self.parameters.values())


def follow_optimizers(stack, follower, put):
    base = torch.optim.Optimizer
    init = base.__init__

    @functools.wraps(init)
    def made(optimizer, *args, **kwargs):
        init(optimizer, *args, **kwargs)
        step = type(optimizer).step
        follower.optimizers += 1

        @functools.wraps(step)
        def followed(self, *args, **kwargs):
            if follower.inside:  # an optimizer around another one
                return step(self, *args, **kwargs)
            with follower.step(self):
                kwargs = dict(zip(kwargs, follower._closed(kwargs.values())))
                return step(self, *follower._closed(args), **kwargs)

        optimizer.step = types.MethodType(followed, optimizer)

    put(stack, base, "__init__", made)
