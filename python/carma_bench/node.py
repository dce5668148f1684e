"""The node: its time (src/base/nodetime.h), carma's place, the readings that carma-monitor writes (src/gpu/frame.h), and
folders for results."""

import json
import os
import pathlib
import stat
import struct
import tempfile
import time
from types import SimpleNamespace

from show import Failure

PREFIX = os.environ.get("CARMA_PREFIX") or str(pathlib.Path(__file__).resolve().parents[3])
SIMULATED = bool(os.environ.get("CARMA_VNODE"))
SCALE = float(os.environ.get("CARMA_TIME_SCALE") or 1)
_OFFSET_NS = int(os.environ.get("CARMA_NODE_OFFSET") or time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME))
# carma-monitor's times are then ours.
MONITOR_ENVIRONMENT = {**os.environ, "CARMA_NODE_OFFSET": str(_OFFSET_NS)}

METRICS = ("sm_activity", "sm_occupancy", "dram_activity", "tensor_activity", "pcie_tx", "pcie_rx", "graphics_activity")
TRAFFIC = ("pcie_tx", "pcie_rx")  # bytes a second; the others are shares of 0 to 1
_SOURCES = ("none", "gpm", "dcgm", "utilization")
_KINDS = ("whole", "partitioned", "instance")
_HAS_MEMORY, _HAS_UTILIZATION, _HAS_POWER, _HAS_ENERGY = 1, 4, 8, 16

_MAGIC, _VERSION = 0x55504743, 6
_HEADER, _NODE = struct.Struct("=4I"), struct.Struct("=q2I160s")
_GPU = struct.Struct("=48s48s96s5I2i2Hi5I6q8H" + "IIqq" * len(METRICS) + 8 * "qiI")
_PROCESS = struct.Struct("=iIq")
_MOST_LISTED = 128


def now_ns():
    since_boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return since_boot_ns + _OFFSET_NS if SCALE == 1 else int(since_boot_ns * SCALE)


def monitor_words(options, period_ns, only=None):
    words = [f"{PREFIX}/lib/carma/carma-monitor", "--period-ms", str(max(1, int(period_ns / 1e6)))]
    for name, value in (("--only", only), ("--library", options.get("nvml")), ("--dcgm", options.get("dcgm"))):
        words += [name, value] if value else []
    return words


def _text(field):
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")


def _gpu(payload, at):
    fields = _GPU.unpack_from(payload, at)
    uuid, parent, name, index, _, _, kind, valid, error, _, _, _, utilization, processes = fields[:14]
    total, _, used, power, energy = fields[19:24]
    metrics = {}
    for m, metric in enumerate(METRICS):
        source, _, value, at_ns = fields[32 + 4 * m : 36 + 4 * m]
        if source:
            share = value if metric in TRAFFIC else value / 1000
            metrics[metric] = SimpleNamespace(value=share, source=_SOURCES[source], at_ns=at_ns)
    at += _GPU.size
    listed = [_PROCESS.unpack_from(payload, at + p * _PROCESS.size) for p in range(min(processes, _MOST_LISTED))]
    return at + len(listed) * _PROCESS.size, SimpleNamespace(
        uuid=_text(uuid), parent=_text(parent), name=_text(name), index=index, kind=_KINDS[kind], error=error,
        processes=processes, mps=any(mps == 1 for _, mps, _ in listed), metrics=metrics,
        total_bytes=total if valid & _HAS_MEMORY else None, used_bytes=used if valid & _HAS_MEMORY else None,
        power_w=power / 1e3 if valid & _HAS_POWER else None, energy_j=energy / 1e3 if valid & _HAS_ENERGY else None,
        utilization=utilization / 1000 if valid & _HAS_UTILIZATION else None)


def readings(stream):
    """Each look at the node's GPUs in a stream of frames, up to one that is not all there."""
    while len(header := stream.read(_HEADER.size)) == _HEADER.size:
        magic, version, size, length = _HEADER.unpack(header)
        if (magic, version, size) != (_MAGIC, _VERSION, _GPU.size):
            raise Failure("carma-monitor is of another release: install all of carma from one build")
        payload = stream.read(length)
        if len(payload) < length:
            return
        at_ns, count, _, limits = _NODE.unpack_from(payload)
        at, gpus = _NODE.size, []
        for _ in range(count):
            at, gpu = _gpu(payload, at)
            gpus.append(gpu)
        yield SimpleNamespace(at_ns=at_ns, limits=_text(limits), gpus=gpus)


def last_words(path):
    """The last line of a program's output."""
    with open(path, "rb") as output:
        lines = output.read()[-4096:].decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it says nothing")


# ---- Files ----


def output_folder(wanted, made, kind):
    """The one that is wanted, or a new one of ours, which is noted in `made`."""
    try:
        if wanted:
            os.makedirs(wanted, mode=0o755, exist_ok=True)
            return wanted
        made.append(tempfile.mkdtemp(prefix=f"carma-{kind}-"))
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from None
    return made[-1]


def own_folder(parent, name):
    """In it, nobody else can have put a link where a file is to be written (docs/threat-model.md)."""
    path = f"{parent}/{name}"
    try:
        os.makedirs(path, mode=0o755, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise Failure(f"{path}: others can write there: name another folder with --output")
    return path


def write_json(folder, name, report):
    if not folder:
        return
    try:
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
            json.dump(report, file, indent=2)
        os.chmod(file.name, 0o644)
        os.replace(file.name, f"{folder}/{name}")
    except OSError as error:
        raise Failure(f"cannot write {folder}/{name}: {error.strerror}") from None
