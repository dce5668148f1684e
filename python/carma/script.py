"""Runs a training script as it is, with fake tensors, until its optimizer has made a number of steps."""

import concurrent.futures
import contextlib
import functools
import importlib
import io
import os
import pickle
import runpy
import sys
import threading
import traceback

import torch
from torch._subclasses.fake_tensor import FakeTensor

from carma import cuda, distributed, example, imports, missing, pretend, values, writer
from carma.divided import DividedRecorder
from carma.errors import CaptureError
from carma.follower import Enough, Follower, follow_optimizers
from carma.lengths import Lengths
from carma.recorder import Recorder

ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # settings; a script may make them before it uses the GPU

MORE_S = 20  # of the clock, for steps beside those that were asked for


def _load_in_this_process(stack, divided):
    """Data are loaded as always, by real operators, but without worker processes, which would inherit the fakes."""
    data = importlib.import_module("torch.utils.data.dataloader")
    init, loader_iter = data.DataLoader.__init__, data.DataLoader.__iter__
    next_batch = data._BaseDataLoaderIter.__next__

    @functools.wraps(init)  # Lightning makes loaders again, by its parameters
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
    if not divided:
        pretend.replace(stack, data.DataLoader, "__iter__", really(loader_iter))
        pretend.replace(stack, data._BaseDataLoaderIter, "__next__", really(next_batch))


def _compile_nothing(stack, recorder):
    """A compiled model is recorded as it is: its kernels are fused, and keep other tensors."""

    def doubt():
        recorder.doubt("torch.compile: recorded as the eager model, whose tensors differ", 100)

    def compiled(model=None, *args, **options):
        if model is None:
            return compiled
        if isinstance(model, torch.nn.Module):
            doubt()
            return model

        @functools.wraps(model)
        def call(*args, **kwargs):  # libraries compile more than they call
            doubt()
            return model(*args, **kwargs)

        return call

    if hasattr(torch, "compile"):
        pretend.replace(stack, torch, "compile", compiled)
        pretend.replace(stack, torch.nn.Module, "compile", lambda module, *args, **kwargs: compiled(module) and None)


def ended_after(seconds, end):
    """What a script does in steps beside those that it was asked for: it may take long, or wait for ever."""
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


class _Files:
    """In those steps, none that was there is removed, or written anew: an audit hook that raises prevents it."""

    def __init__(self):
        self.written, self.kept = set(), False
        sys.addaudithook(self._look)

    def _look(self, event, args):
        if self.kept and event in ("os.remove", "os.rename", "os.rmdir", "os.truncate", "shutil.rmtree"):
            raise Enough
        if event == "open" and isinstance(args[0], (str, bytes)) and args[2] & os.O_TRUNC:
            if self.kept and args[0] not in self.written and os.path.isfile(args[0]):
                raise Enough
            self.written.add(args[0])


class _NoValuesError(Exception):
    pass


class _Saved:
    """What a script saves without values becomes an empty file, and the object itself for the script that loads it. What
    has values is saved: another process may load it."""

    def __init__(self, stack):
        self.objects = {}
        self.load_original, self.save_original = torch.load, torch.save
        pretend.replace(stack, torch, "save", self.save)
        pretend.replace(stack, torch, "load", self.load)

    def save(self, value, file, *args, **kwargs):
        named = isinstance(file, (str, os.PathLike))
        buffer = io.BytesIO()
        try:
            with contextlib.ExitStack() as stack, pretend.really():
                pretend.replace(stack, FakeTensor, "__reduce_ex__", _cannot_be_saved)
                self.save_original(value, buffer, *args, **kwargs)
        except _NoValuesError:
            buffer = io.BytesIO()
            if named:
                self.objects[os.path.abspath(file)] = value
        else:
            self.objects.pop(os.path.abspath(file) if named else None, None)
        if named:
            with open(file, "wb") as out:
                out.write(buffer.getbuffer())
        else:
            file.write(buffer.getbuffer())

    def load(self, file, *args, **kwargs):
        if isinstance(file, (str, os.PathLike)) and os.path.abspath(file) in self.objects:
            return self.objects[os.path.abspath(file)]
        return self.load_original(file, *args, **kwargs)


def _cannot_be_saved(tensor, protocol):
    raise _NoValuesError


def _save_no_tensors(module, stack):
    def save_file(tensors, filename, *args, **kwargs):
        with open(filename, "wb"):
            pass

    pretend.replace(stack, module, "save_file", save_file)


def _launch_nothing(module, stack):
    """Kernels of Triton write into tensors that PyTorch has allocated: they take no memory of their own."""
    for name in ("JITFunction", "Autotuner"):
        if hasattr(getattr(module, name, None), "run"):
            pretend.replace(stack, getattr(module, name), "run", lambda *args, **kwargs: None)


def _submit(executor, function, *args, **kwargs):
    """At once: other threads would not see what is pretended."""
    future = concurrent.futures.Future()
    try:
        future.set_result(function(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    return future


def _pretend_machine(stack, recorder):
    pretend.replace(stack, concurrent.futures.ThreadPoolExecutor, "submit", _submit)
    cuda.replace(stack, pretend.replace, recorder)
    of_several = distributed.replace(stack, pretend.replace, recorder)
    values.replace_lists(stack, pretend.replace)
    _Saved(stack)
    imports.change(stack, {
        **of_several,
        **missing.changes(stack, pretend.replace, recorder),
        "safetensors.torch": lambda module: _save_no_tensors(module, stack),
        "triton.runtime.jit": lambda module: _launch_nothing(module, stack),
        "triton.runtime.autotuner": lambda module: _launch_nothing(module, stack),
    })  # fmt: skip


def watch(stack, steps, hand_over, longest=None, batch=None):
    """From here on, until the stack is left, training in this process is recorded. Returns the recorder.
    hand_over(trace, header, is_last) is called when the last step is done, and before one that is as long as the data
    loader's longest batch. batch: all data loaders give this."""
    divided = pretend.mapping() == "cuda"
    recorder = stack.enter_context(pretend.gpu(DividedRecorder if divided else Recorder, divided))

    def finish(is_last):
        header = {
            "torch": torch.__version__.split("+")[0],
            "mapping": recorder.device,
            "model": follower.model,
            "optimizer": follower.optimizer,
            "precision": follower.precision,
            "parameters": follower.parameter_bytes,
            "doubts": _doubts(recorder, follower, is_last),
            "allocator": [*filter(None, map(os.environ.get, ALLOCATOR)), *recorder.allocator],
        }
        if is_last:
            recorder.stopped = True
            recorder.finish()
        hand_over(writer.Trace(recorder, follower.batch or 1), header, is_last)
        files.kept = not is_last

    files = _Files()
    lengths = Lengths() if divided and longest is None and batch is None else None
    follower = Follower(recorder, steps, finish, longest, lengths)
    recorder.follower = follower
    follow_optimizers(stack, follower, pretend.replace)
    _load_in_this_process(stack, divided)
    if lengths is not None:
        lengths.watch(stack, pretend.replace)
    if batch is not None:
        example.replace(stack, pretend.replace, recorder, batch)
    _compile_nothing(stack, recorder)
    if divided:
        _pretend_machine(stack, recorder)
    else:
        values.replace(stack, pretend.replace)
    return recorder


def _watched(path, arguments, steps, hand_over, longest, batch):
    """Runs the script in this process."""
    with contextlib.ExitStack() as stack:
        recorder = watch(stack, steps, hand_over, longest, batch)
        pretend.replace(stack, sys, "argv", [path, *arguments])
        pretend.replace(stack, sys, "path", [os.path.dirname(os.path.abspath(path)), *sys.path])
        try:
            runpy.run_path(path, run_name="__main__")
        except Enough:
            return
        except SystemExit as error:
            if not recorder.stopped:
                raise _too_few(path, recorder, steps, f" (it ended with exit status {error.code or 0})") from None
        if not recorder.stopped:
            raise _too_few(path, recorder, steps, "")


def _doubts(recorder, follower, is_last):
    doubts = dict(recorder.doubts)
    if recorder.worst_cases:
        names = ", ".join(sorted(recorder.worst_cases))
        doubts[f"sizes that depend on values are the largest that they can be ({names})"] = 150
    if is_last and follower.lengths is not None and follower.lengths.is_sure:
        doubts[f"batches differ in size: the largest of {follower.lengths.count} counts, and later ones may be larger"] = 100
    elif follower.steps_differ:
        doubts["steps differ in shape: the longest of those recorded counts, and later ones may be longer"] = 200
    return doubts


def _too_few(path, recorder, steps, why):
    made = max(recorder.step - 1, 0)
    return CaptureError(
        f"{path}: its optimizers made {made} steps, not {steps}{why}: let it train longer, or ask for fewer"
    )


def one_line(path, error):
    known = error
    while known is not None:  # libraries wrap errors in theirs
        if isinstance(known, CaptureError):
            return str(known)
        known = known.__cause__ or known.__context__
    place = path
    for frame in traceback.extract_tb(error.__traceback__):
        if os.path.abspath(frame.filename) == os.path.abspath(path):
            place = f"{path}:{frame.lineno}"
    first = (str(error).splitlines() or [""])[0]
    return f"{place}: {type(error).__name__}: {first[:300]}"


def record(path, arguments, steps, longest=None, batch=None):
    """In a process of its own, so that nothing of one run is left for the next."""
    source, sink = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(source)
        answered = False

        def answer(*words):
            nonlocal answered
            if not answered and words[0] == "done":
                ended_after(MORE_S, lambda: os._exit(0))
            answered = True
            with os.fdopen(os.dup(sink), "wb") as file:
                pickle.dump(words, file)

        try:
            _watched(path, arguments, steps, lambda trace, header, is_last: answer("done", trace, header), longest, batch)
        except BaseException as error:
            if not answered:  # what fails after the last step does not matter
                if os.environ.get("CARMA_CAPTURE_TRACEBACK"):
                    traceback.print_exc()
                answer("failed", one_line(path, error))
        sys.stdout.flush()
        os._exit(0)
    os.close(sink)
    answer = None
    with os.fdopen(source, "rb") as file, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:  # the last one counts: a process may end in a longer step than the script's own
            answer = pickle.load(file)
    _, status = os.waitpid(child, 0)
    if answer is None:
        raise CaptureError(f"{path}: its process ended without a word (status {status})")
    kind, *rest = answer
    if kind == "failed":
        raise CaptureError(rest[0])
    return rest
