"""carma.capture(): the training loop of a model, recorded without allocating it."""

import contextlib
import gc
import os

import torch

from carma import pretend, writer
from carma.errors import CaptureError
from carma.optimizers import any_norm_will_do, name_of_optimizer, states_of
from carma.recorder import BACKWARD, FORWARD, OPTIMIZER, SETUP, Recorder
from carma.versions import CURRENT, grad_scaler

STEPS = 2  # the first creates gradients and optimizer states, the second finds them there
OPTIMIZERS = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.01),
    "momentum": lambda params: torch.optim.SGD(params, lr=0.01, momentum=0.9),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adafactor": lambda params: torch.optim.Adafactor(params),  # noqa: PLW0108 - PyTorch 1.13 has none
}
PRECISIONS = ("fp32", "amp", "half")


def capture(model, example_inputs, loss, optimizer, path, *, targets=None, batch_size=None, other_batch_size=None,
            precision="fp32", accumulate=1, name=None):  # fmt: skip
    """Records two training steps of a model into the file `path` (docs/formats/capture.md); allocates nothing of it and
    needs no GPU. Returns a dict: batch_size, scales, reason (why it does not scale), events, parameters (bytes).

    model: a Module, left as it was, or a function without arguments that makes one, which is then never allocated.
    example_inputs: a tensor, or a tuple or dict of tensors: the model's arguments, in shape and type. Their first
        dimension is the batch, where it is as long as the first tensor's.
    loss: a function of the model's output, or of the output and `targets` where these are given. Targets are tensors
        whose first dimension is the batch. Or "cross_entropy", with class indices made for the output's shape.
    optimizer: "sgd", "momentum", "adam", "adamw", "adafactor", None, or a function of the model's parameters.
    batch_size: to record with; the inputs' own when not given. other_batch_size: the step is recorded with this one as
        well, so that the capture holds for every batch size. When not given, it is half as much again. 0: do not.
    precision: "fp32", "amp" (autocast to float16 with a gradient scaler) or "half" (the whole model in float16).
    accumulate: backward passes for each step of the optimizer.
    """
    if precision not in PRECISIONS:
        raise CaptureError(f"precision {precision!r}: one of {', '.join(PRECISIONS)}")
    if precision != "fp32" and pretend.mapping() == "cpu":
        raise CaptureError(
            f"precision {precision!r} cannot be recorded on torch {torch.__version__}: its CPU operators are not "
            f"those that a GPU runs then; use torch {CURRENT}"
        )
    if isinstance(optimizer, str) and optimizer not in OPTIMIZERS:
        raise CaptureError(
            f"optimizer {optimizer!r}: one of {', '.join(OPTIMIZERS)}, None, or a function of parameters"
        )
    if optimizer == "adafactor" and not hasattr(torch.optim, "Adafactor"):
        raise CaptureError(f"optimizer 'adafactor': torch {torch.__version__} has none; use torch {CURRENT}")
    if accumulate < 1:
        raise CaptureError(f"accumulate {accumulate}: at least 1")
    inputs, targets = _shapes(example_inputs), None if targets is None else _shapes(targets)
    found = _batch_of(inputs)
    batch = batch_size or found
    if other_batch_size is None:
        other_batch_size = batch + max(1, batch // 2)
    if batch < 1 or other_batch_size < 0:
        raise CaptureError(f"batch size {batch if batch < 1 else other_batch_size}: at least 1")
    plan = _Plan(model, inputs, targets, found, loss, optimizer, precision, accumulate)
    trace = plan.record(batch)
    other = plan.record(other_batch_size) if other_batch_size and other_batch_size != batch else None
    text, reason = writer.text(trace, other, {
        "torch": torch.__version__.split("+")[0],
        "mapping": plan.mapping,
        "model": name if name is not None else plan.name,
        "optimizer": optimizer if isinstance(optimizer, str) else plan.optimizer_name,
        "precision": precision,
        "parameters": plan.parameter_bytes,
    })  # fmt: skip
    write(path, text)
    return {
        "batch_size": batch,
        "scales": not reason,
        "reason": reason,
        "events": len(trace.events),
        "parameters": plan.parameter_bytes,
    }


def write(path, text):
    """The whole file or none of it."""
    part = f"{path}.part"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)  # of a process that was killed; mode "x" takes no other's, and follows no link
    with open(part, "x", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, path)


class _Shape:
    """A tensor's shape and type."""

    def __init__(self, tensor):
        self.shape, self.dtype, self.requires_grad = tuple(tensor.shape), tensor.dtype, tensor.requires_grad

    def make(self, found, batch, device):
        shape = self.shape
        if shape and shape[0] == found:
            shape = (batch, *shape[1:])
        return torch.empty(shape, dtype=self.dtype, device=device, requires_grad=self.requires_grad)


def _map(value, function, kind):
    if isinstance(value, kind):
        return function(value)
    if isinstance(value, dict):
        return {key: _map(item, function, kind) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_map(item, function, kind) for item in value)
    return value


def _shapes(value):
    return _map(value, _Shape, torch.Tensor)


def _batch_of(inputs):
    found = []
    _map(inputs, found.append, _Shape)
    if not found or not found[0].shape:
        raise CaptureError("example_inputs: the first tensor has no dimension to be the batch")
    return found[0].shape[0]


class _Plan:
    def __init__(self, model, inputs, targets, found, loss, optimizer, precision, accumulate):
        self.model, self.inputs, self.targets, self.found = model, inputs, targets, found
        self.loss, self.optimizer, self.precision, self.accumulate = loss, optimizer, precision, accumulate
        self.name = self.mapping = self.optimizer_name = ""
        self.batch = self.result = self.last_loss = None  # a script's variables hold them meanwhile
        self.parameter_bytes = 0

    def record(self, batch):
        with pretend.gpu(Recorder) as recorder:
            self.mapping = recorder.device
            device = recorder.device
            with recorder.paused():
                model = self.model if isinstance(self.model, torch.nn.Module) else self._make_model()
            if not isinstance(model, torch.nn.Module):
                raise CaptureError(f"model: a Module or a function that makes one, not {type(model).__name__}")
            self.name = type(model).__name__
            with _on_gpu(recorder, model, device, self.precision):
                self._train(recorder, model, batch, device)
                recorder.finish()
                self.batch = self.result = self.last_loss = None
            return writer.Trace(recorder, batch)

    def _train(self, recorder, model, batch, device):
        parameters = list(model.parameters())
        self.parameter_bytes = sum(value.numel() * value.element_size() for value in parameters)
        trained = [value for value in parameters if value.requires_grad]
        if not trained:
            raise CaptureError("no parameter of the model is trained")
        optimizer = self._make_optimizer(trained)
        self.optimizer_name = "none" if optimizer is None else name_of_optimizer(optimizer)
        scaler = grad_scaler() if self.precision == "amp" else None
        model.train()
        for step in range(1, STEPS + 1):
            gc.collect()
            recorder.step = step
            with recorder.during(FORWARD):
                if optimizer is not None:
                    optimizer.zero_grad()
                else:
                    model.zero_grad()
            for micro in range(self.accumulate):
                recorder.counting = step == 1 and micro == 0
                self._pass(recorder, model, batch, device, scaler)
                recorder.counting = False
                recorder.name_gradients([value.grad for value in parameters if value.grad is not None])
            with recorder.during(OPTIMIZER), any_norm_will_do(optimizer):
                if scaler is not None:
                    scaler.step(optimizer)
                    scaler.update()
                elif optimizer is not None:
                    optimizer.step()
            if optimizer is not None:
                recorder.settle(states_of(optimizer), "optimizer")

    def _make_model(self):
        try:
            return self.model()
        except (CaptureError, RuntimeError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise CaptureError(
                f"the function that makes the model fails with tensors that have no values ({reason[:200]}): "
                "give the model itself"
            ) from error

    def _make_optimizer(self, trained):
        if self.optimizer is None:
            return None
        return (OPTIMIZERS[self.optimizer] if isinstance(self.optimizer, str) else self.optimizer)(trained)

    def _pass(self, recorder, model, batch, device, scaler):
        with recorder.during(FORWARD):
            self.batch = None  # `source = source.to(device)`: set to the host's before it is the GPU's
            inputs = _map(self.inputs, lambda shape: self._make(shape, batch, device, recorder), _Shape)
            targets = _map(self.targets, lambda shape: self._make(shape, batch, device, recorder), _Shape)
            self.batch = inputs, targets
            autocast = torch.autocast("cuda", torch.float16) if scaler is not None else contextlib.nullcontext()
            with autocast:
                if isinstance(inputs, dict):
                    self.result = model(**inputs)
                elif isinstance(inputs, tuple):
                    self.result = model(*inputs)
                else:
                    self.result = model(inputs)
                loss = self._loss(self.result, targets, device, recorder)
            if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
                raise CaptureError("loss: its result is not a single number")
            self.last_loss = loss
            if scaler is not None:
                loss = scaler.scale(loss)
        with recorder.during(BACKWARD):
            loss.backward()

    def _make(self, shape, batch, device, recorder):
        value = shape.make(self.found, batch, device)
        if self.precision == "half" and value.is_floating_point():
            with recorder.paused():
                value = value.detach().half().requires_grad_(value.requires_grad)
        _input(recorder, value)
        return value

    def _loss(self, output, targets, device, recorder):
        if self.loss != "cross_entropy":
            return self.loss(output) if self.targets is None else self.loss(output, targets)
        if isinstance(output, (tuple, list)):
            output = output[0]
        if targets is None:
            targets = torch.empty((output.shape[0], *output.shape[2:]), dtype=torch.long, device=device)
            _input(recorder, targets)
        return torch.nn.functional.cross_entropy(output, targets)


def _input(recorder, tensor):
    recorder.adopt(tensor)
    recorder.name(tensor, "input")


@contextlib.contextmanager
def _on_gpu(recorder, model, device, precision):
    """The model's parameters and buffers are fakes on the GPU; put back as they were at the end."""
    fakes, owners = {}, []

    def fake(value, kind):
        if id(value) not in fakes:
            dtype = torch.float16 if precision == "half" and value.is_floating_point() else value.dtype
            with recorder.paused():
                made = torch.empty_strided(tuple(value.shape), value.stride(), dtype=dtype, device=device)
                if kind == "parameter":
                    made = torch.nn.Parameter(made, requires_grad=value.requires_grad)
            fakes[id(value)] = (made, value)
            with recorder.during(SETUP):
                recorder.adopt(made, kind)
            recorder.settle([made], kind)
        return fakes[id(value)][0]

    for path, module in model.named_modules():
        recorder.labels.append(path)
        for table, kind in ((module._parameters, "parameter"), (module._buffers, "buffer")):
            for name, value in table.items():
                if value is not None:
                    owners.append((table, name, value))
                    table[name] = fake(value, kind)
        recorder.labels.pop()
    training = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for table, name, value in owners:
            table[name] = value
        for module, mode in training:
            module.training = mode
