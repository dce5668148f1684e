"""The fields of a job. script/job-fields writes this file from src/api/job_fields.def."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Tuple, TypedDict, Union

from carma import units

if TYPE_CHECKING:
    PathLike = Union[str, os.PathLike[str]]


class JobFields(TypedDict, total=False):
    """The options of `carma submit`, by the same names and in the same words (docs/formats/job.md)."""

    job_name: str
    chdir: PathLike
    output: PathLike
    error: PathLike
    conda: str
    container: str
    gpus: int
    gpu_memory: units.Size
    gpu_type: str
    exclude_gpu: str
    max_slowdown: float
    mps_threads: int
    mps_memory_limit: units.Size
    visible_devices: str
    cpus: int
    memory: units.Size
    share: str
    exclusive: bool
    account: str
    tag: str
    priority: int
    hold: bool
    dependency: str
    array: str
    begin: str
    deadline: str
    time: units.Time
    signal: Union[int, str]
    idle_limit: units.Time
    notify: str
    on_end: str
    requeue: bool
    no_progress: bool
    summary: PathLike
    capture: PathLike
    hf_config: PathLike
    sequence_length: int
    lengths: PathLike
    method: str
    no_capture: bool
    batch_size: int
    optimizer: str
    precision: str


# The option, the member that is sent, and the kind of its value.
FIELDS: Tuple[Tuple[str, str, str], ...] = (
    ("job_name", "name", "text"),
    ("chdir", "directory", "path"),
    ("output", "output", "path"),
    ("error", "error", "path"),
    ("conda", "conda_environment", "text"),
    ("container", "container", "text"),
    ("gpus", "gpus", "count"),
    ("gpu_memory", "gpu_memory_bytes", "size"),
    ("gpu_type", "gpu_type", "word"),
    ("exclude_gpu", "exclude_gpu", "word"),
    ("max_slowdown", "max_slowdown_permille", "factor"),
    ("mps_threads", "mps_threads_percent", "number"),
    ("mps_memory_limit", "mps_memory_limit_bytes", "size"),
    ("visible_devices", "visible_devices", "word"),
    ("cpus", "cpus", "number"),
    ("memory", "host_memory_bytes", "size"),
    ("share", "share", "word"),
    ("exclusive", "exclusive", "switch"),
    ("account", "account", "word"),
    ("tag", "tags", "word"),
    ("priority", "priority", "rank"),
    ("hold", "held", "switch"),
    ("dependency", "dependency", "word"),
    ("array", "array", "word"),
    ("begin", "begin", "word"),
    ("deadline", "deadline", "word"),
    ("time", "time_limit_ns", "time"),
    ("signal", "signal", "signal"),
    ("idle_limit", "idle_limit_ns", "time"),
    ("notify", "notify", "word"),
    ("on_end", "on_end", "text"),
    ("requeue", "requeue", "switch"),
    ("no_progress", "no_progress", "switch"),
    ("summary", "summary_name", "file"),
    ("capture", "capture_name", "file"),
    ("hf_config", "hf_config_name", "file"),
    ("sequence_length", "sequence_length", "number"),
    ("lengths", "lengths_name", "file"),
    ("method", "method", "word"),
    ("no_capture", "no_capture", "switch"),
    ("batch_size", "batch_size", "number"),
    ("optimizer", "optimizer", "word"),
    ("precision", "precision", "word"),
)
