"""Makes PyTorch train on a GPU that is not there, with fake tensors: their allocations are recorded, none is made.

Where fake tensors may request a CUDA device, the operators are CUDA's (mapping "cuda"). On 1.13 they are the CPU's, and
where CUDA's allocate otherwise they are replaced (mapping "cpu"). MAPPINGS names the replacements for each."""

import contextlib
import functools
import gc
import importlib
import types
from numbers import Integral

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils import _python_dispatch as python_dispatch
from torch.utils import _pytree as pytree

from carma import attention, compiler, device_0, recurrent
from carma.divided import INITIALISED
from carma.errors import CaptureError
from carma.versions import CURRENT, OLDEST, swap_contents, take_in_multi_tensor_forms, torch_version

_registered = False
_DATA = torch.Tensor.data  # which is replaced while a step is recorded


def _has_hooks():
    """Of an accelerator, for Python to make: from 2.10 on."""
    return hasattr(getattr(torch._C, "_acc", None), "register_python_privateuseone_hook")


def mapping():
    """ "cuda" or "cpu"; a CaptureError where this PyTorch can be neither."""
    if torch_version() == (1, 13):
        return "cpu"
    if torch_version() < torch_version(OLDEST):
        raise CaptureError(
            f"torch {torch.__version__} cannot be recorded: 1.13 and {OLDEST} to {CURRENT} can"
        )
    if not _has_hooks() and not device_0.is_possible():
        raise CaptureError(
            f"torch {torch.__version__} cannot be recorded as it was built without CUDA, or for another processor: from 2.10 on it can"
        )
    if torch.cuda.is_available():
        raise CaptureError(
            "a GPU is visible to this process, and a capture must not touch it: run it with CUDA_VISIBLE_DEVICES="
        )
    return "cuda"


def _register_absent_accelerator():
    """Autograd's engine synchronises the accelerator's streams. With an accelerator that has no context, no module and
    no device, there is nothing to synchronise."""
    global _registered  # noqa: PLW0603 torch's own registration is the process's
    if _registered:
        return

    class Hook(torch._C._acc.PrivateUse1Hooks):
        def is_available(self):
            return False

        def is_built(self):
            return False

        def has_primary_context(self, device_index):
            return False

    torch._C._ensureCUDADeviceGuardSet()
    module = types.ModuleType("carma_absent")
    module.is_available = lambda: False
    module.device_count = lambda: 0
    module._is_in_bad_fork = lambda: False
    module.manual_seed_all = lambda seed: None
    torch._C._rename_privateuse1_backend("carma_absent")
    torch._register_device_module("carma_absent", module)
    torch._C._acc.register_python_privateuseone_hook(Hook())
    _registered = True


# Operators that allocate differently on the CPU, or traced, than on CUDA


def _dropout(original):
    """CUDA's fused kernel gives the output and a mask of one byte per element; the CPU's makes a mask of the input's
    type and multiplies."""

    def dropout(source, p, train):
        if not train or p <= 0 or p >= 1 or source.numel() == 0:
            return original(source, p, train)
        return torch.native_dropout(source, p, True)[0]

    return dropout


def _refused(name):
    def refuse(original):
        def call(*args, **kwargs):
            raise CaptureError(
                f"{name} runs inside cuDNN on a GPU, with memory that only cuDNN knows: cannot be recorded"
            )

        return call

    return refuse


def _initialisation(original):
    """It draws until all values lie within the bounds: values that fakes do not have, and large tensors do not need."""

    def initialise(tensor, *args, **kwargs):
        if isinstance(tensor, FakeTensor) or tensor.numel() > INITIALISED:
            return tensor
        return original(tensor, *args, **kwargs)

    return initialise


# (purpose, mappings, modules and names that are replaced, replacement of the original).
MAPPINGS = (
    ("dropout", ("cpu",), ((torch._VF, "dropout"), (torch, "dropout")), _dropout),
    *((name, ("cpu",), ((torch._VF, name), (torch, name)), _refused(name))
      for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")),
    ("initialisation", ("cuda",), ((torch.nn.init, "_no_grad_trunc_normal_"), (torch.nn.init, "orthogonal_")),
     _initialisation),
    ("attention", ("cuda",), ((torch.nn.functional, "scaled_dot_product_attention"),
                              (torch._C._nn, "scaled_dot_product_attention")), attention.as_on_cuda),
)  # fmt: skip


def replace(stack, module, name, value):
    """Sets an attribute until the stack is left."""
    missing = object()
    old = module.__dict__.get(name, missing)
    setattr(module, name, value)
    stack.callback(lambda: delattr(module, name) if old is missing else setattr(module, name, old))


def _mapped(stack, device):
    for _, devices, places, replacement in MAPPINGS:
        if device not in devices:
            continue
        for module, name in places:
            replace(stack, module, name, replacement(getattr(module, name)))


class _Form:
    """Of a tensor, to make another one: the tensor itself would stay in memory."""

    def __init__(self, tensor):
        self.shape, self.dtype, self.device, self.learns = tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad

    def make(self):
        made = torch.empty(self.shape, dtype=self.dtype, device=self.device)
        if self.learns and torch.is_grad_enabled():  # no leaf: losses are scaled in place
            made.add_(torch.zeros((), dtype=self.dtype, device=self.device, requires_grad=True))
        return made


class _Repeated:
    """Forward passes that are like earlier ones and show nothing new: of a model that is evaluated before it trains, all
    but a few, and of the micro-steps of a step, all but two. Their results are made, so that hundreds of them do not
    use up the time of a capture; what a backward pass does with them ends there."""

    EVALUATIONS, MICRO_STEPS = 3, 2
    PLAIN = (_Form, bool, int, float, str, type(None))

    def __init__(self, follower):
        self.follower = follower
        self.seen = {}  # what is run with which shapes, with or without gradients -> [how often, the result's form]

    def _key(self, module, args, kwargs):
        first = next(module.parameters(), None)
        values = (*args, *kwargs.values())
        if first is None or first.device.type != "cuda" or any(getattr(value, "requires_grad", False) for value in values):
            return None
        return id(module), torch.is_grad_enabled(), *(repr(getattr(value, "shape", value)) for value in values)

    def _is_due(self, seen):
        if torch.is_grad_enabled():
            return self.follower.batch is not None and self.follower.backwards >= self.MICRO_STEPS
        return self.follower.batch is None and seen[0] >= self.EVALUATIONS

    def run(self, call, module, args, kwargs):
        key = self._key(module, args, kwargs)
        if key is None:
            return call(module, *args, **kwargs)
        seen = self.seen.get(key)
        if seen and self._is_due(seen):
            made = [leaf.make() if isinstance(leaf, _Form) else leaf for leaf in seen[1]]
            return pytree.tree_unflatten(made, seen[2])
        result = call(module, *args, **kwargs)
        leaves, form = pytree.tree_flatten(result)
        leaves = [_Form(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        if all(isinstance(leaf, self.PLAIN) for leaf in leaves):
            self.seen[key] = [seen[0] + 1 if seen else 1, leaves, form]
        return result


def _follow_modules(stack, recorder, names):
    """Labels: the path of the module that runs. names: module id -> path, filled from the outermost module."""
    original = torch.nn.Module.__call__
    repeated = None
    in_backward = getattr(torch._C, "_current_graph_task_id", lambda: -1)

    def call(module, *args, **kwargs):
        nonlocal repeated
        if recorder.follower is None or recorder.labels or in_backward() != -1:  # or a checkpoint runs again
            return followed(module, *args, **kwargs)
        repeated = repeated or _Repeated(recorder.follower)
        return repeated.run(followed, module, args, kwargs)

    def followed(module, *args, **kwargs):
        if recorder.follower is not None and not recorder.labels:
            recorder.follower.before_module(module, args, kwargs)
        if id(module) not in names and not recorder.labels:
            for name, child in module.named_modules():
                names.setdefault(id(child), name)
        recorder.labels.append(names.get(id(module), recorder.label))
        try:
            out = original(module, *args, **kwargs)
        finally:
            recorder.labels.pop()
        counts = recorder.counting and torch.is_grad_enabled() and recorder.phase == "forward"
        if counts and next(module.children(), None) is None:
            recorder.counts.layer([out] if isinstance(out, torch.Tensor) else [])
        return out

    replace(stack, torch.nn.Module, "__call__", call)


def _follow_engine(stack, recorder):
    """Tells the recorder when autograd's engine is entered."""

    def following(original):
        @functools.wraps(original)
        def run_backward(*args, **kwargs):
            outer, recorder.engine = recorder.engine, True
            try:
                return original(*args, **kwargs)
            finally:
                recorder.engine = outer

        return run_backward

    if hasattr(torch.autograd, "_engine_run_backward"):
        run_backward = following(torch.autograd._engine_run_backward)
        for module in (torch.autograd, torch.autograd.graph):
            replace(stack, module, "_engine_run_backward", run_backward)
    else:  # before 2.3 each place has the engine do it
        engine = torch.autograd.Variable._execution_engine
        stands_in = types.SimpleNamespace(
            run_backward=following(engine.run_backward),
            queue_callback=engine.queue_callback,
            is_checkpoint_valid=engine.is_checkpoint_valid,
        )
        replace(stack, torch.autograd.Variable, "_execution_engine", stands_in)


def _follow_backward(stack, recorder):
    """The backward pass, from where the first gradient is made."""
    for name in ("backward", "grad"):
        original = getattr(torch.autograd, name)

        def run(*args, original=original, **kwargs):
            if recorder.follower is not None:
                recorder.follower.before_backward()
            with recorder.during("backward"):
                return original(*args, **kwargs)

        replace(stack, torch.autograd, name, functools.wraps(original)(run))


def _as_if_cuda(stack):
    """Lets autocast and the optimizers' multi-tensor forms treat fake CUDA tensors as real ones, and a gradient scaler
    find no overflow."""
    replace(
        stack,
        getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler),
        "_maybe_opt_step",
        lambda scaler, optimizer, state, *args, **kwargs: optimizer.step(*args, **kwargs),
    )
    for module in (torch.cuda.amp.common, torch.cuda.amp.grad_scaler):  # the latter before 2.3
        if hasattr(module, "amp_definitely_not_available"):
            replace(stack, module, "amp_definitely_not_available", lambda: False)
    for name in ("init_gpu_context", "init_cuda_context"):  # would take a real one; the latter is of 2.3 and 2.4
        replace(stack, fake_tensor, name, lambda *device: None)
    replace(stack, torch.cuda, "_lazy_init", lambda: None)  # before 2.3 asked for each tensor, as is the device
    replace(stack, torch.cuda, "current_device", lambda: 0)
    take_in_multi_tensor_forms(FakeTensor, stack, replace)
    stack.enter_context(torch.autograd.set_multithreading_enabled(False))


def _collect_by_hand(stack):
    """When the collector breaks reference cycles depends on how many objects there are: it would free tensors at
    another place for another batch size. The recorder calls it between steps instead."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    gc.freeze()
    stack.callback(gc.unfreeze)
    if was_enabled:
        stack.callback(gc.enable)


def _refuse_cuda_of_1_13(stack):
    """There autocast switches itself off without CUDA, with no more than a warning."""
    autocast = importlib.import_module("torch.amp.autocast_mode").autocast
    init = autocast.__init__

    def made(self, *args, **kwargs):
        if kwargs.get("enabled", True) and False not in args:
            raise CaptureError(
                f"autocast cannot be recorded on torch {torch.__version__}: its CPU operators are not those that a GPU "
                f"runs then; use torch {CURRENT}"
            )
        init(self, *args, **kwargs)

    def lazy_init():
        raise CaptureError(
            f"torch {torch.__version__} cannot pretend a CUDA device: record a script that takes the CPU where "
            f"torch.cuda.is_available() says no, or use torch {CURRENT}"
        )

    replace(stack, autocast, "__init__", made)
    replace(stack, torch.cuda, "_lazy_init", lazy_init)


@contextlib.contextmanager
def really():
    """Within it new tensors are real, and nothing is watched."""
    if hasattr(python_dispatch, "_disable_current_modes"):
        with python_dispatch._disable_current_modes():
            yield
    else:
        with contextlib.ExitStack() as stack:
            while python_dispatch._get_current_dispatch_mode() is not None:
                stack.enter_context(python_dispatch._pop_mode_temporarily())
            yield


# Tensors of the host that move to the device


def become(tensor, other):
    """Gives a tensor that others hold the contents of another one, real or fake."""
    for name in ("__class__", "__dict__"):
        first, second = getattr(tensor, name), getattr(other, name)
        setattr(tensor, name, second)
        setattr(other, name, first)
    swap_contents(tensor, other)


def _swapped(parameter, other):
    if parameter is other:
        return
    if isinstance(parameter, FakeTensor) and isinstance(other, FakeTensor):
        other._is_param = True
    become(parameter, other)


def _detached(tensor):
    """Of the same kind: what a module moves becomes a parameter again."""
    made = FakeTensor.detach(tensor)
    made.__class__ = type(tensor)
    vars(made).update({name: value for name, value in vars(tensor).items() if name not in vars(made)})
    return made


@functools.lru_cache(maxsize=None)
def _fake_kind(kind):
    """Of a library's own parameters (in 4 bits, say): a kind of both."""
    return type(kind.__name__, (kind, FakeTensor), {"__module__": kind.__module__, "detach": _detached})


def _made_subclass(original):
    @functools.wraps(original)  # the compiler compares the signatures when it is imported
    def make(kind, data, *args, **kwargs):
        if not isinstance(data, FakeTensor) or kind in (torch.Tensor, torch.nn.Parameter) or issubclass(kind, FakeTensor):
            return original(kind, data, *args, **kwargs)
        made = data.detach().requires_grad_(bool(args and args[0]) or kwargs.get("require_grad", False))
        made._is_param = issubclass(kind, torch.nn.Parameter)
        made.__class__ = _fake_kind(kind)
        return made

    return make


def _as_subclass(original):
    """Boxes and images of torchvision are kinds of tensors: a fake one of them is a fake tensor."""

    def become_kind(tensor, kind):
        if isinstance(tensor, FakeTensor):
            return tensor
        with really():  # before 2.3 what a mode has seen cannot become another kind
            return original(tensor, kind)

    return become_kind


def _set_data(tensor, value):
    if isinstance(tensor, FakeTensor) is isinstance(value, FakeTensor):
        _DATA.__set__(tensor, value)
        if isinstance(value, FakeTensor):
            tensor.fake_device = value.fake_device
            tensor.carma_value = getattr(value, "carma_value", None)
        return
    is_parameter, gradient = isinstance(tensor, torch.nn.Parameter), tensor.requires_grad
    kind, own = type(tensor), dict(vars(tensor))
    value = value.detach()
    if is_parameter and isinstance(value, FakeTensor):
        value._is_param = True
    elif is_parameter:
        value = torch.nn.Parameter(value)
    become(tensor, value.requires_grad_(gradient))
    if isinstance(tensor, FakeTensor) and kind not in (torch.Tensor, torch.nn.Parameter):
        tensor.__class__ = _fake_kind(kind)
        vars(tensor).update(own)


def _deep_copy(tensor, memo):
    if id(tensor) in memo:
        return memo[id(tensor)]
    with torch.no_grad():
        made = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        if tensor.grad is not None:
            made.grad = tensor.grad.clone()
    if getattr(tensor, "_is_param", False):
        made._is_param = True
    memo[id(tensor)] = made
    return made


def index(place, device):
    """Of x[place]: lists and ranges of numbers become tensors on the device, as x itself would make them on a real one."""

    def made(part):
        if isinstance(part, (list, range)) and all(isinstance(number, Integral) for number in part):
            return torch.tensor(part, dtype=None if part else torch.long).to(device)
        return part

    return tuple(map(made, place)) if type(place) is tuple else made(place)


class _Made(TorchFunctionMode):
    """Tensors from Python's numbers come to a device without an operator that a recorder sees: they are made on the
    host, and copied."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:  # a number would be one of the absent accelerator's
            args = [torch.device("cuda", value) if isinstance(value, int) else value for value in args]
            kwargs = {key: torch.device("cuda", value) if key == "device" and isinstance(value, int) else value
                      for key, value in kwargs.items()}  # fmt: skip
        if func in INDEXED and isinstance(args[0], FakeTensor):
            args = (args[0], index(args[1], args[0].device), *args[2:])
        if func not in MAKERS:
            return func(*args, **kwargs)
        device = kwargs.get("device")
        if device is None and isinstance(args[0], torch.Tensor):
            device = args[0].device
        if device is None or torch.device(device).type != "cuda":
            return func(*args, **kwargs)
        kwargs = {**kwargs, "device": "cpu"}
        gradient = kwargs.pop("requires_grad", False)
        if func is torch.Tensor.new_tensor:
            kwargs.setdefault("dtype", args[0].dtype)
            func, args = torch.tensor, args[1:]
        if isinstance(args[0], torch.Tensor):
            made = args[0].detach() if func is torch.tensor else args[0]
            made = made.to(device, kwargs.get("dtype"), copy=func is torch.tensor or bool(kwargs.get("copy")))
        else:
            made = func(*args, **kwargs).to(device)
        return made.requires_grad_() if gradient else made


MAKERS = frozenset(getattr(torch, name) for name in ("tensor", "as_tensor", "asarray") if hasattr(torch, name)) | {
    torch.Tensor.new_tensor
}
INDEXED = frozenset([torch.Tensor.__getitem__, torch.Tensor.__setitem__])


def _let_tensors_move(stack):
    if hasattr(torch.utils, "swap_tensors"):
        was = torch.__future__.get_swap_module_params_on_conversion()
        torch.__future__.set_swap_module_params_on_conversion(True)
        stack.callback(torch.__future__.set_swap_module_params_on_conversion, was)
        replace(stack, torch.utils, "swap_tensors", _swapped)
    else:  # before 2.3 a module's parameters are given their data, where that may be
        replace(stack, torch, "_has_compatible_shallow_copy_type", lambda tensor, other: True)
    replace(stack, torch.Tensor, "data", property(_DATA.__get__, _set_data))
    replace(stack, FakeTensor, "__deepcopy__", _deep_copy)
    replace(stack, torch.Tensor, "as_subclass", _as_subclass(torch.Tensor.as_subclass))
    replace(stack, torch.Tensor, "_make_subclass", staticmethod(_made_subclass(torch.Tensor._make_subclass)))


@contextlib.contextmanager
def gpu(make_recorder, divided=False):
    """Within it tensors are fake and watched by make_recorder(mapping, fake_mode), which is given. divided: those of
    CUDA alone, where this PyTorch can pretend that device."""
    device = mapping()
    with contextlib.ExitStack() as stack:
        _collect_by_hand(stack)
        if device == "cuda" and torch_version() >= (2, 2):  # in 2.1 its settings alone cannot be imported
            compiler.put_off(stack)
        fake_mode = FakeTensorMode(allow_fallback_kernels=False)  # nothing is computed, not even small
        names = {}
        recorder = make_recorder(device, fake_mode)
        if device == "cuda":
            if _has_hooks():
                _register_absent_accelerator()
            else:
                device_0.pretend()
            _as_if_cuda(stack)
            _follow_engine(stack, recorder)
        else:
            _refuse_cuda_of_1_13(stack)
            # Its operators want a real handle, which a fake mode does not give: Optimizer.step would fail.
            replace(stack, torch.autograd.profiler, "record_function", lambda name: contextlib.nullcontext())
        _follow_backward(stack, recorder)
        _follow_modules(stack, recorder, names)
        _mapped(stack, device)
        if device == "cuda":
            for name in recurrent.GATES:
                for module in (torch._VF, torch):
                    replace(stack, module, name, recurrent.as_cudnn(name, getattr(module, name), recorder))
        if divided:
            _let_tensors_move(stack)
            stack.enter_context(_Made())
        else:
            stack.enter_context(fake_mode)
        stack.enter_context(recorder)
        yield recorder
