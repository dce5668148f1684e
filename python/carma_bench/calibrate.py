"""carma calibrate: the memory that this machine adds to a job's tensors, as a machine profile (docs/formats/profile.md). It
is read on CUDA's first GPU, on which nothing else may run: with an empty context, and while a tiny step of PyTorch's waits
after each of its parts (python/carma/tiny_step.py)."""

import json
import os
import select
import subprocess
import time

import files
import node
import show
from figures import Watch
from kernel import NO_GPU, Driver
from show import Failure

KIB, MIB = 1024, 1024**2
PERIOD_NS = 5e7
CLEARING_S = 2  # a driver may take a moment to clear up after a process that has ended
STEP_S = 300  # importing PyTorch from a cold disk, and compiling kernels
LINE_MOST = 4096
# Python would look for modules in the working directory first, where others may have put some.
TINY_STEP = ("import sys; sys.path[:1] = filter(None, sys.path[:1]); from carma import tiny_step; "
             "sys.exit(tiny_step.main())")


class Step:
    """The tiny step in a process of its own, which keeps its memory until the next part is asked for."""

    def __enter__(self):
        path = filter(None, (f"{node.PREFIX}/share/carma/python", os.environ.get("PYTHONPATH")))
        try:
            self.process = subprocess.Popen(["python3", "-c", TINY_STEP], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            bufsize=0, env={**os.environ, "PYTHONPATH": ":".join(path)})
        except OSError as error:
            raise Failure(f"cannot start python3: {error.strerror}") from None
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def next(self):
        self.process.stdin.write(b"\n")

    def wait(self, part):
        """Until it has done that part; what it says of it."""
        line = b""
        while not line.endswith(b"\n") and len(line) < LINE_MOST:
            if not select.select([self.process.stdout], [], [], STEP_S)[0]:
                raise Failure("python3's tiny step did not finish its step within 5 minutes")
            more = self.process.stdout.read(LINE_MOST - len(line))
            if not more:
                raise Failure("python3's tiny step ended without a result: it needs PyTorch with CUDA")
            line += more
        try:
            report = json.loads(line)
            sizes = [int(report[name]) for name in ("reserved_bytes", "cublas_workspace_bytes")]
            if report["step"] == part and min(sizes) >= 0:
                return *sizes, str(report["torch"])
        except (ValueError, KeyError, TypeError):
            pass
        text = line.decode("utf-8", "replace").strip()
        raise Failure(f"python3's tiny step wrote '{text:.100}' instead of its {part} step")


class Memory:
    """The GPU's, as nvidia-smi shows it."""

    def __init__(self, watch, driver):
        self.watch, self.driver = watch, driver

    def gpu(self):
        self.watch.fresh()
        gpus = self.watch.latest.gpus
        found = [gpu for gpu in gpus if gpu.uuid == self.driver.uuid or (not self.driver.uuid and len(gpus) == 1)]
        if not found or found[0].used_bytes is None:
            raise Failure(f"NVML does not show the memory of {self.driver.name} {self.driver.uuid}")
        return found[0]

    def used_bytes(self):
        return self.gpu().used_bytes

    def idle_bytes(self):
        gpu, until = self.gpu(), time.monotonic() + CLEARING_S
        while gpu.processes and time.monotonic() < until:
            gpu = self.gpu()
        if gpu.processes:
            raise Failure(f"{gpu.name} (GPU {gpu.index}) is in use, {gpu.processes} of its processes hold memory: calibrate "
                          "when nothing runs there")
        return gpu.used_bytes


def of_size(count):
    unit, name = next((unit, name) for unit, name in ((MIB, "MiB"), (KIB, "KiB"), (1, "B")) if count % unit == 0)
    return f"{count // unit}{name}"


def measure(driver, memory):
    """The profile's lines, but for its name; and its context and cuDNN in bytes."""
    idle = memory.idle_bytes()
    free = driver.take_context()
    empty = memory.used_bytes() - idle
    driver.give_context()
    with Step() as step:
        reserved, workspace, torch = step.wait("linear")
        context = memory.used_bytes() - idle - reserved
        step.next()
        reserved, _, _ = step.wait("convolution")
        cudnn = max(0, memory.used_bytes() - idle - reserved - context)
    if context <= 0:
        raise Failure(f"the tiny step seems to take no memory on {driver.name}: did something else end meanwhile?")
    values = {"gpu": driver.name, "source": f"measured by carma calibrate with PyTorch {torch}", "context": of_size(context),
              "cudnn": of_size(cudnn), "cublas_workspace": of_size(workspace), "memory": of_size(free + empty),
              **driver.speeds()}
    notes = ["# Made by carma calibrate (docs/formats/profile.md).",
             f"# An empty CUDA context takes {show.of_bytes(empty)} of it."]
    return notes, [f"{name} = {value}" for name, value in values.items() if value], context, cudnn


def name_of(output):
    """Called after its file, in the characters that a profile may have: "box 1.profile" is the profile box_1."""
    base = os.fsencode(os.path.basename(output or "calibrated"))
    return "".join(chr(byte) if 0x20 < byte < 0x7F else "_" for byte in os.path.splitext(base)[0][:63])


def run(options):
    output, driver = options.get("output"), Driver()
    watch = Watch({}, PERIOD_NS)
    try:
        watch.__enter__()
    except Failure as failure:
        raise Failure(str(failure), NO_GPU) from None
    try:
        notes, lines, context, cudnn = measure(driver, Memory(watch, driver))
    finally:
        watch.__exit__()
    text = "\n".join([*notes, f"name = {name_of(output)}", *lines, ""])
    if not output:
        print(text, end="")
        return
    files.write(output, text.encode())
    print(f"{driver.name}: context {show.of_bytes(context)}, with cuDNN {show.of_bytes(cudnn)} more; written to "
          f"{show.safe(output)}")
