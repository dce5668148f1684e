"""Watches every operator below autograd and notes which storages come and go.

A storage is tracked by a weak reference of its C++ object. So it is freed with its last tensor, in the script, a module
or autograd's saved tensors alike. Views and in-place operators return a storage that is known already and
so allocate nothing. Expired storages are looked for before each operator. A storage that died since the one before
gives its block back before the next block is taken, as the caching allocator sees it.
"""

import contextlib
import os
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from carma import operators
from carma.errors import CaptureError
from carma.versions import storage_of, tensors_in

ALLOC, FREE, CONV = "alloc", "free", "conv"
SETUP, FORWARD, BACKWARD, OPTIMIZER = "setup", "forward", "backward", "optimizer"

OWN = frozenset(os.path.join(os.path.dirname(__file__), name) for name in ("recorder.py", "divided.py"))


class Block:
    """One piece of the allocator's memory, from its allocation to its free."""

    __slots__ = ("bytes", "category", "kept", "holders", "label", "phase", "passes", "cancelled", "valid")

    def __init__(self, size, label, phase, passes, category=None):
        self.bytes = size
        self.label = label
        self.phase = phase
        self.passes = passes  # backward passes before it
        self.kept = True  # until another one
        self.category = category  # None: decided when it is written
        self.holders = 1  # storages that live in it: 2 while a gradient is added to in place
        self.cancelled = False
        self.valid = True  # the values that its tensors are known to have


class Event:
    __slots__ = ("kind", "block", "conv", "label", "step", "phase")

    def __init__(self, kind, step, phase, label, block=None, conv=None):
        self.kind, self.step, self.phase, self.label, self.block, self.conv = kind, step, phase, label, block, conv


class Recorder(TorchDispatchMode):
    """device: with "cuda" a tensor counts where it lives on a CUDA device. With "cpu" every tensor counts that the
    model, its gradients or its optimizer touch, since on a GPU it would have to be there. 0-dimensional counters of
    optimizers stay on the host, as they do there."""

    def __init__(self, device, fake_mode):
        super().__init__()
        self.device = device
        self.fake_mode = fake_mode
        self.events = []
        self.phase = SETUP
        self.step = 0
        self.passes = 0
        self.labels = []  # of the modules that are running, innermost last
        self.live = {}  # C++ storage -> Block
        self.settled = {}  # the same, of tensors that live as long as the model: looked at only by settle()
        self.counts = operators.Counts()
        self.counting = False
        self.follower = None  # of a script
        self.watching = True
        self.engine = False  # inside autograd's engine, not yet at its first node
        self.allocated = self.most_allocated = 0
        self.stopped = False
        self.worst_cases = set()  # operators of which the result's size was guessed
        self.allocator = []  # what PyTorch's is told, as PYTORCH_ALLOC_CONF has it
        self.doubts = {}  # sentence -> permille of confidence that it takes
        self._addition = None  # (old storage, new storage, event): a sum of gradients that may have been made in place
        self._gemm_phases = set()

    # Life of storages

    def _key_is_known(self, key):
        return key in self.live or key in self.settled

    def block_of(self, tensor):
        key = storage_of(tensor)._cdata
        return self.live.get(key) or self.settled.get(key)

    def reap(self):
        """Frees the blocks of storages that have died."""
        self._settle_addition()
        expired = torch.UntypedStorage._expired
        dead = [key for key in self.live if expired(key)]
        for key in dead:
            self._release(key, self.live.pop(key))

    def name(self, tensor, category, label=None):
        """Gives a tensor its kind and its place, where neither was known when it was allocated."""
        block = self.block_of(tensor)
        if block is not None:
            block.category = category
            block.label = block.label if label is None else label

    def name_gradients(self, tensors):
        for tensor in tensors:
            block = self.live.get(storage_of(tensor)._cdata)
            if block is not None:
                block.category = "gradient"

    def settle(self, tensors, category):
        """These storages belong to the model or its optimizer and stay: not looked at any more."""
        for tensor in tensors:
            key = storage_of(tensor)._cdata
            block = self.live.pop(key, None)
            if block is not None:
                block.category = block.category or category
                self.settled[key] = block

    def _release(self, key, block):
        torch.UntypedStorage._free_weak_ref(key)
        block.holders -= 1
        if block.holders == 0:
            self._free(block)

    def doubt(self, sentence, permille):
        self.doubts[sentence] = permille

    def _free(self, block):
        self.allocated -= block.bytes
        block.kept = self.passes > block.passes
        self.events.append(Event(FREE, self.step, self.phase, block.label, block))

    def _alloc(self, size, category=None):
        block = Block(size, self.label, self.phase, self.passes, category)
        self.allocated += size
        self.most_allocated = max(self.most_allocated, self.allocated)
        self.events.append(Event(ALLOC, self.step, self.phase, block.label, block))
        return block

    def adopt(self, tensor, category=None):
        """Notes the storage of a tensor, once."""
        storage = storage_of(tensor)
        key = storage._cdata
        block = self.live.get(key) or self.settled.get(key)
        if block is not None:
            if storage.nbytes() != block.bytes:  # resized
                self._free(block)
                grown = self._alloc(storage.nbytes(), block.category)
                (self.live if key in self.live else self.settled)[key] = grown
            return None
        storage._weak_ref()
        block = self.live[key] = self._alloc(storage.nbytes(), category)
        return block

    def _settle_addition(self):
        """Autograd's engine adds in place to a gradient that nobody else holds. While a mode watches, it makes a new
        tensor instead and drops the old one. Where the old one has died, the new one has taken its block."""
        if self._addition is None:
            return
        old, new, event = self._addition
        self._addition = None
        if torch.UntypedStorage._expired(old) and new in self.live and old in self.live:
            event.block.cancelled = True
            block = self.live[old]
            block.holders += 1
            self.live[new] = block

    # Context

    @property
    def label(self):
        return self.labels[-1] if self.labels else ""

    @contextlib.contextmanager
    def during(self, phase):
        """Everything inside belongs to this phase."""
        self.reap()
        outer, self.phase = self.phase, phase
        self.passes += phase == BACKWARD
        try:
            yield
        finally:
            self.reap()
            self.phase = outer

    @contextlib.contextmanager
    def paused(self):
        """Tensors made inside are not on the GPU."""
        outer, self.watching = self.watching, False
        try:
            yield
        finally:
            self.watching = outer

    # Operators

    def _dispatch(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:
            return self._device(args[0])
        name = operators.name_of(func)
        if self.engine and torch._C._current_autograd_node() is not None:
            self.engine = False
        # torch.tensor() lifts the real tensor that it has just made: the fake mode keeps its value.
        inputs = tensors_in(kwargs, tensors_in(args))
        replaced = None if name.startswith("lift") else self._fake_inputs(inputs, args, kwargs)
        if replaced is not None:
            args, kwargs = replaced
            inputs = tensors_in(kwargs, tensors_in(args))
        if name == "_to_copy" and self._engine_asks() and operators.is_no_copy(args, kwargs):
            return torch.ops.aten.alias.default(args[0])
        self.reap()
        label = self._label_of(inputs)
        if label is not None:
            self.labels.append(label)
        try:
            out = operators.run(func, name, args, kwargs)
            if self.watching:
                self._observe(name, inputs, args, kwargs, tensors_in(out))
        finally:
            if label is not None:
                self.labels.pop()
        return out

    def _device(self, tensor):
        """The tensor's device to C++. Autograd's engine would ask for the streams of a GPU that is not
        there: to it alone they are the CPU's."""
        if tensor.fake_mode.in_kernel_invocation:
            return torch.device("meta")
        return torch.device("cpu") if self._engine_asks() else tensor.fake_device

    def _engine_asks(self):
        if self.device != "cuda" or not (
            self.engine or torch._C._current_graph_task_id() != -1 and not torch.is_grad_enabled()
        ):
            return False
        frame = sys._getframe(1)
        while frame.f_code.co_filename in OWN:
            frame = frame.f_back
        return frame.f_code.co_name == "_engine_run_backward"  # and not a hook, or a backward in Python

    def _fake_inputs(self, inputs, args, kwargs):
        """Real tensors among the arguments (a batch that was loaded) become fakes; None: there are none."""
        fakes = {}
        for tensor in inputs:
            if type(tensor) in (torch.Tensor, torch.nn.Parameter):
                if not hasattr(tensor, "carma_fake"):  # which lives as long as the tensor that it represents
                    tensor.carma_fake = self.fake_mode.from_tensor(tensor)
                fakes[id(tensor)] = tensor.carma_fake
        if not fakes:
            return None
        return torch.utils._pytree.tree_map(
            lambda value: fakes.get(id(value), value) if isinstance(value, torch.Tensor) else value, (args, kwargs)
        )

    def _label_of(self, inputs):
        """In the backward pass no module runs. The label is then that of the operator's last input from the forward
        pass, a parameter or a saved tensor. None: the running module's."""
        if self.phase != BACKWARD or torch.is_grad_enabled():
            return None
        for tensor in reversed(inputs):
            block = self.block_of(tensor)
            if block is not None and block.phase != BACKWARD and block.label:
                return block.label
        return ""

    def _resident(self, tensor, inputs):
        if self.device == "cuda":
            return tensor.device.type == "cuda"
        if self.phase == OPTIMIZER and tensor.dim() == 0:
            return False
        if inputs:
            return any(self._key_is_known(storage_of(value)._cdata) for value in inputs)
        return bool(self.labels) or self.phase in (BACKWARD, OPTIMIZER)

    def _observe(self, name, inputs, args, kwargs, outputs):
        if self.device == "cpu" and inputs and any(self._key_is_known(storage_of(v)._cdata) for v in inputs):
            for value in inputs:
                if value.dim() > 0 and not self._key_is_known(storage_of(value)._cdata):
                    self.adopt(value, "input")
        resident = [value for value in outputs if self._resident(value, inputs)]
        if not resident:
            return
        if self.counting and torch.is_grad_enabled() and self.phase == FORWARD:
            self.counts.operator(name, args, kwargs, outputs)
        if name in operators.GEMMS and self.phase in (FORWARD, BACKWARD) and self.phase not in self._gemm_phases:
            # One workspace for each thread that calls cuBLAS: the script's and the engine's. It stays.
            self._gemm_phases.add(self.phase)
            self._alloc(operators.CUBLAS_WORKSPACE_BYTES, "workspace")
        convs = operators.convolutions(name, args, kwargs, outputs)
        made = []
        for index, value in enumerate(resident):
            made.append(self.adopt(value))
            if index in convs:
                self.events.append(Event(CONV, self.step, self.phase, self.label, conv=convs[index]))
        if self._is_engine_addition(name, args):
            old, new = storage_of(args[0])._cdata, storage_of(resident[0])._cdata
            if made[0] is not None and old in self.live:
                self._addition = (old, new, self.events[-1])
            return
        self.taken_and_given_back(*operators.scratch(name, args, kwargs, outputs))

    def taken_and_given_back(self, *sizes):
        for block in [self._alloc(size, "temporary") for size in sizes]:
            self._free(block)

    def _is_engine_addition(self, name, args):
        return (
            name == "add"
            and self.phase == BACKWARD
            and not torch.is_grad_enabled()
            and len(args) == 2
            and all(isinstance(value, torch.Tensor) for value in args)
            and args[0].shape == args[1].shape
        )

    def finish(self):
        self.reap()
        for key in list(self.live) + list(self.settled):
            torch.UntypedStorage._free_weak_ref(key)
        self.live.clear()
        self.settled.clear()
        if not any(event.kind == ALLOC for event in self.events):
            raise CaptureError("nothing was allocated on a GPU: the step has to train a model on a CUDA device")


# Set afterwards: a class that has it when it is made gets it wrapped for torch.compile, which takes time at each operator.
Recorder.__torch_dispatch__ = Recorder._dispatch
