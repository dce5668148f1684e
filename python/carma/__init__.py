"""Jobs on GPUs that are shared by carma: carma.submit(), carma.job(), carma.jobs(), carma.gpus(). A job
tells how far it has come: carma.progress() (docs/python.md). Also a training step's GPU allocations, recorded without a
GPU: carma.capture(), and `python -m carma.capture SCRIPT` (docs/capture.md)."""

from __future__ import annotations

import importlib
from typing import Any, Dict

from carma.client import Gpu, Gpus, gpus, jobs, status, submit, submit_all
from carma.errors import (
    CaptureError,
    CarmaError,
    Conflict,
    Impossible,
    Invalid,
    JobFailed,
    NoAnswer,
    NoDaemon,
    NotAllowed,
    NotFound,
    NotStarted,
    Refused,
    Unavailable,
)
from carma.executor import Executor
from carma.function import Function, FunctionJob, job
from carma.handle import Array, Explanation, Job, Jobs
from carma.progress import progress
from carma.waiting import as_completed

__version__ = "0.2.0"

__all__ = [
    "Array", "CaptureError", "CarmaError", "Conflict", "Executor", "Explanation", "Function", "FunctionJob", "Gpu", "Gpus", "Impossible",
    "Invalid", "Job", "JobFailed", "Jobs", "NoAnswer", "NoDaemon", "NotAllowed", "NotFound", "NotStarted", "Refused",
    "Unavailable", "as_completed", "capture", "gpus", "job", "jobs", "progress", "status", "submit", "submit_all",
]  # fmt: skip


def capture(*args: Any, **kwargs: Any) -> Dict[str, Any]:
    # PyTorch is imported when it is needed, and not by submitting programs.
    recorded: Dict[str, Any] = importlib.import_module("carma.step").capture(*args, **kwargs)
    return recorded


capture.__doc__ = "Records two training steps of a model into a file: see carma.step.capture()."
