"""@carma.job: a Python function that runs as a job. The job's input is written into a folder, .carma/NAME-XXXXXXXX in
the job's directory, from which `python -m carma.run` starts it with the same interpreter."""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import pickle
import re
import stat
import subprocess
import sys
import tempfile
import types
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    List,
    Optional,
    Tuple,
    TypeVar,
    Union,
    cast,
    overload,
)

from carma import client, gather, submission
from carma.errors import CaptureError, Invalid, JobFailed
from carma.handle import ENDED, Job
from carma.submission import Options

if TYPE_CHECKING:
    from typing_extensions import Unpack

R = TypeVar("R")

# By its path: `-m` would look for modules in the working directory first, where others may have put some.
PROGRAM = str(pathlib.Path(__file__).resolve().with_name("run.py"))
FOLDER = ".carma"
CALL = "call.json"
ARGUMENTS = "arguments.pickle"
MAIN = "main.py"
RESULT = "result.pickle"
CAPTURE = "model.capture"
LOADED_MAIN = "__carma_main__"  # the job's name for its function's script or notebook


class FunctionJob(Job, Generic[R]):
    """A job that runs a function. `folder` is where its arguments and its result lie."""

    def __init__(self, job_id: int, folder: Union[str, os.PathLike[str]]) -> None:
        super().__init__(job_id)
        self.folder = pathlib.Path(folder)

    def result(self, timeout: Optional[float] = None) -> R:
        """Waits, and returns the function's result. JobFailed where it did not end well."""
        status = self.wait(timeout)
        info = self.info
        kind, value = self._left()
        if info["state"] != "COMPLETED":
            # Files of a run that was retried do not explain the last run's end.
            why = value if kind == "raised" and info["state"] == "FAILED" else info.get("message") or info.get("last_end")
            raise JobFailed(f"job {self.id} {ENDED[info['state']]}: {why or f'exit status {status}'} (see: its logs())")
        if kind != "value":
            raise JobFailed(f"job {self.id}: {value}")
        return cast(R, value)

    def _awaited(self) -> Any:
        return self.result()

    def _left(self) -> Tuple[str, Any]:
        try:
            with open(self.folder / RESULT, "rb") as file:
                if os.fstat(file.fileno()).st_uid not in (os.geteuid(), 0):
                    return "nothing", f"{self.folder / RESULT}: belongs to another user: it is not read"
                kind, value = _ResultReader(file).load()
        except OSError as error:
            return "nothing", f"{self.folder / RESULT}: {error.strerror}"
        return kind, value


class _ResultReader(pickle.Unpickler):
    """Classes of the script or the notebook are this process's own."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class("__main__" if module == LOADED_MAIN else module, name)


class Function(Generic[R]):
    """A function that can be called as before, and submitted. Made by @carma.job."""

    def __init__(self, function: Callable[..., R], options: Options, capture: Optional[Callable[..., Any]]) -> None:
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"@carma.job is for functions, not for {type(function).__name__}: write one with def")
        submission.check_names(options)
        self.__carma_function__ = function
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self.__wrapped__ = function
        self._options = options
        self._capture = capture

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """Runs it here and now."""
        return cast(R, self.__carma_function__(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<carma.job {self.__module__}.{self.__name__}>"

    def options(self, **options: Unpack[Options]) -> Function[R]:
        """The same function with other options."""
        merged = cast(Options, {**self._options, **options})
        return Function(cast("Callable[..., R]", self.__carma_function__), merged, self._capture)

    def submit(self, *args: Any, **kwargs: Any) -> FunctionJob[R]:
        """Submits a job that calls it with these arguments. Its prints are in the job's output, its return value is the
        job's result()."""
        return self._submit_all([(args, kwargs)])[0]

    def map(self, *iterables: Iterable[Any]) -> List[FunctionJob[R]]:
        """A job for each tuple of arguments, as the built-in map() makes them: all are accepted, or none is."""
        return self._submit_all([(args, {}) for args in zip(*iterables)])

    def _submit_all(self, calls: List[Tuple[Any, Dict[str, Any]]]) -> List[FunctionJob[R]]:
        made = [self._written(args, kwargs) for args, kwargs in calls]
        jobs = client.submit_specifications([specification for specification, _ in made])
        return [FunctionJob(submitted.id, folder) for submitted, (_, folder) in zip(jobs, made)]

    def _written(self, args: Any, kwargs: Dict[str, Any]) -> Tuple[submission.Specification, pathlib.Path]:
        """A job's specification, and the folder that it calls the function from."""
        inspect.signature(self.__carma_function__).bind(*args, **kwargs)  # a wrong argument is a TypeError here and now
        given: Dict[str, Any] = {name: value for name, value in self._options.items() if value is not None}
        directory = submission.directory(given.get("chdir", "."))
        folder = _make_folder(directory, self.__name__)
        _write_call(folder, self.__carma_function__, self._capture, args, kwargs)
        given.setdefault("job_name", self.__name__)
        given["environment"] = _environment(given.get("environment", os.environ))
        if self._capture is not None:
            _record(folder, directory, given["environment"])
            given["capture"] = folder / CAPTURE
        command = [sys.executable, "-u", PROGRAM, str(folder)]
        return submission.specification(command, cast(Options, given)), folder


@overload
def job(function: Callable[..., R]) -> Function[R]: ...


@overload
def job(
    *, capture: Union[None, str, os.PathLike[str], Callable[..., Any]] = None, **options: Any
) -> Callable[[Callable[..., R]], Function[R]]: ...


def job(function: Optional[Callable[..., R]] = None, *, capture: Any = None, **options: Any) -> Any:
    """Makes a function one that can be submitted: `@carma.job` or `@carma.job(gpus=1, ...)` with the options of
    carma.submit().

    capture: as there a file; or a function that is called with the same arguments and returns the arguments of
        carma.capture() as a dict: model, example_inputs, loss, optimizer, ... The training step is then recorded, without a
        GPU, when the job is submitted, and the job's memory is estimated from that."""
    make = capture if callable(capture) else None
    if capture is not None and make is None:
        options["capture"] = capture

    def decorate(decorated: Callable[..., R]) -> Function[R]:
        return Function(decorated, cast(Options, options), make)

    return decorate if function is None else decorate(function)


# ---- The job's folder ----


def _make_folder(directory: str, name: str) -> pathlib.Path:
    parent = pathlib.Path(directory, FOLDER)
    try:
        parent.mkdir(mode=0o700, exist_ok=True)
        _check_own(parent)
        return pathlib.Path(tempfile.mkdtemp(prefix=re.sub("[^A-Za-z0-9_]", "_", name)[:40] + "-", dir=parent))
    except OSError as error:
        raise Invalid(f"{error.filename}: {error.strerror}: a job's function is written there; choose another chdir") from None


def _check_own(parent: pathlib.Path) -> None:
    """Any user that may write there could have the job run anything."""
    found = os.lstat(parent)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise Invalid(
            f"{parent}: is not a directory that only this user can write: remove it, or choose another chdir"
        )


def _module_of_main() -> Optional[str]:
    """As of `python -m NAME`."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return getattr(spec, "name", None)


def _is_of_script(function: types.FunctionType) -> bool:
    script = getattr(sys.modules["__main__"], "__file__", None)
    try:
        return script is not None and os.path.samefile(script, function.__code__.co_filename)
    except OSError:
        return False


def _check_found(function: types.FunctionType, module: Optional[types.ModuleType]) -> None:
    found: Any = module
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    if getattr(found, "__carma_function__", found) is not function:
        raise Invalid(
            f"{function.__module__}.{function.__qualname__} is not the value of its name there: a job can only find a "
            f"function at the top of its module"
        )


def _write_call(
    folder: pathlib.Path, function: types.FunctionType, capture: Optional[Callable[..., Any]], args: Any, kwargs: Any
) -> None:
    capture = getattr(capture, "__carma_function__", capture)
    call: Dict[str, Any] = {
        "function": function.__qualname__,
        "module": function.__module__,
        "file": None,
        "capture": None if capture is None else [capture.__module__, capture.__qualname__],
        "path": [os.path.abspath(entry) for entry in sys.path],
    }
    try:
        arguments, others = gather.pickled((args, kwargs))
    except Exception as error:
        raise Invalid(f"{function.__name__}.submit(): the arguments cannot be pickled: {error}") from None
    if capture is not None and capture.__module__ == "__main__":
        others.append(capture)
    if function.__module__ == "__main__":
        if _module_of_main() is not None or _is_of_script(function):
            _check_found(function, sys.modules["__main__"])
            call["module"] = _module_of_main() or "__main__"
        if call["module"] == "__main__":
            call["file"] = _write_main(folder, function, others)
    else:
        _check_found(function, sys.modules.get(function.__module__))
        if others:
            raise Invalid(
                f"{function.__name__}.submit(): {others[0].__qualname__} is of the script, and the function of the module "
                f"{function.__module__}, which is all that the job loads: put both into modules"
            )
    (folder / ARGUMENTS).write_bytes(arguments)
    (folder / CALL).write_text(json.dumps(call), encoding="utf-8")


def _write_main(folder: pathlib.Path, function: types.FunctionType, others: List[Any]) -> str:
    """The job loads it in place of __main__; this file's module name there."""
    if _is_of_script(function):
        script = os.path.abspath(function.__code__.co_filename)
        (folder / MAIN).write_bytes(pathlib.Path(script).read_bytes())
        return script
    text, values = gather.gather(function, others, job)
    (folder / gather.VALUES).write_bytes(values)
    (folder / MAIN).write_text(text, encoding="utf-8")
    return str(folder / MAIN)


def _environment(variables: Any) -> Dict[str, str]:
    """With carma's own package to be found, wherever this process has it from."""
    own = str(pathlib.Path(__file__).resolve().parent.parent)
    path = variables.get("PYTHONPATH", "")
    if own in path.split(os.pathsep):
        return dict(variables)
    return {**variables, "PYTHONPATH": path + os.pathsep + own if path else own}


def _record(folder: pathlib.Path, directory: str, environment: Dict[str, str]) -> None:
    """In a process of its own, which sees no GPU and has nothing of this one's in its way."""
    done = subprocess.run(
        [sys.executable, PROGRAM, "--capture", str(folder)], cwd=directory, stdin=subprocess.DEVNULL,
        env={**environment, "CUDA_VISIBLE_DEVICES": ""}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        errors="replace", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"the process that recorded ended with status {done.returncode}"]
        raise CaptureError(lines[-1].replace("carma.run: ", "", 1))
