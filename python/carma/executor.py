"""carma.Executor: jobs as the futures of the standard library, so that what takes a concurrent.futures.Executor (Dask, asyncio)
runs on GPUs that are shared. A thread asks for all jobs together and ends their futures."""

from __future__ import annotations

import concurrent.futures
import functools
import importlib
import pickle
import threading
import types
from typing import Any, Callable, Dict, List, Optional, TypeVar, cast

from carma import waiting
from carma.errors import CarmaError, JobFailed
from carma.function import Function, FunctionJob
from carma.submission import Options, check_names

R = TypeVar("R")

MOST_AT_ONCE = 1000  # for those who ask how many an executor takes; a further one waits in carma's queue, too


def call(pickled: bytes) -> Any:
    """What a job does for a function that only cloudpickle could send."""
    function, args, kwargs = pickle.loads(pickled)
    return function(*args, **kwargs)


class JobFuture(concurrent.futures.Future):  # type: ignore[type-arg]
    """A future with the job whose end it waits for."""

    def __init__(self, job: FunctionJob[Any]) -> None:
        super().__init__()
        self.job = job

    def cancel(self) -> bool:
        """Cancels a job that waits; False where it runs or has ended."""
        if not super().cancel():
            return False
        try:
            self.job.cancel()
        except CarmaError:
            pass  # it has ended meanwhile
        return True


class Executor(concurrent.futures.Executor):
    """submit(function, *args) makes a job of the call, with the options of carma.submit(), as gpus=1, gpu_memory="4G".
    A function is sent as by @carma.job; others, as a lambda or what a library made up, where
    cloudpickle is installed. `with` it waits for all jobs."""

    def __init__(self, **options: Any) -> None:
        check_names(options)
        self._options = cast(Options, options)
        self._max_workers = MOST_AT_ONCE  # Dask reads it
        self._changed = threading.Condition()
        self._pending: List[JobFuture] = []
        self._closed = False
        self._thread: Optional[threading.Thread] = None

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[R]:
        if self._closed:
            raise RuntimeError("cannot submit after shutdown()")
        future = JobFuture(self._job(fn, args, kwargs))
        with self._changed:
            self._pending.append(future)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="carma.Executor", daemon=True)
                self._thread.start()
            self._changed.notify()
        return future

    def _job(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> FunctionJob[Any]:
        function = getattr(fn, "__carma_function__", fn)
        try:
            cloudpickle = importlib.import_module("cloudpickle")
        except ImportError:
            return Function(function, self._options, None).submit(*args, **kwargs)
        name = getattr(function, "__name__", type(function).__name__)
        options: Dict[str, Any] = {"job_name": name, **self._options}
        return Function(cast(types.FunctionType, call), cast(Options, options), None).submit(
            cloudpickle.dumps((function, args, kwargs))
        )

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._changed:
            self._closed = True
            pending = list(self._pending)
            self._changed.notify()
        for future in pending if cancel_futures else []:
            future.cancel()
        if wait and self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        pause = waiting.FIRST_PAUSE_S
        while True:
            with self._changed:
                self._pending = [future for future in self._pending if not future.done()]
                while not self._pending:
                    if self._closed:
                        return
                    self._changed.wait()
                pending = list(self._pending)
            try:
                found = waiting.states(future.job.id for future in pending)
            except CarmaError as error:
                for future in pending:
                    _end(future, functools.partial(_fail, error))
                continue
            ended = [future for future in pending if waiting.has_ended(future.job, found)]
            for future in ended:
                _end(future, future.job.result)
            for future in pending:
                if found.get(future.job.id) in ("RUNNING", "PLACED") and not future.running() and not future.done():
                    future.set_running_or_notify_cancel()
            pause = waiting.FIRST_PAUSE_S if ended else min(pause * 1.25, waiting.LAST_PAUSE_S)
            with self._changed:
                if not self._closed or self._pending:
                    self._changed.wait(pause)


def _fail(error: CarmaError) -> Any:
    raise error


def _end(future: JobFuture, result: Callable[[], Any]) -> None:
    """Unless it was cancelled here."""
    if not future.running() and not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(result())
    except JobFailed as failure:
        cancelled = future.job.state == "CANCELLED"
        future.set_exception(concurrent.futures.CancelledError(str(failure)) if cancelled else failure)
    except Exception as error:
        future.set_exception(error)
