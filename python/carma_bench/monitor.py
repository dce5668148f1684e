"""carma bench monitor: the cost of watching a GPU, by source (the thesis's Table 3.2 and Figures 3.2 to 3.4). Each run
has files of its own: the command's output, its beginning and its end, and what the watching tool wrote. With --kernel:
kernel.py. Times are node time."""

import glob
import io
import json
import os
import shlex
import shutil
import signal
import time
from types import SimpleNamespace

import kernel
import node
import show
from process import Child, Usage, look
from show import Failure

NO_GPU = 69  # EX_UNAVAILABLE of sysexits
LOADS = ("light", "heavy")
WATCHED = ("utilization", "gpm", "dcgm")  # by carma-monitor, as it names them
SOURCES = ("none", *WATCHED, "nsys", "pytorch")
LOOK_S, LATER_LOOK_S, LATER_S = 0.05, 0.25, 5  # between two looks at the host; and of a run that lasts
PROBE_FRAMES, PROBE_NS = 25, 2e8  # a source has shown all its values by then
START_S = 60  # a driver may have to wake its GPUs first
PROFILE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "torch_profile.py")
# Not from the working directory, where others may have put modules.
IMPORT_TORCH = "import sys; sys.path[:1] = filter(None, sys.path[:1]); import torch.profiler"
# Runs "$2" and notes in the folder "$1" its pid, its beginning and its end; the files' times are the note.
WRAPPER = 'echo $$ >"$1/session"; : >"$1/begin"; /bin/sh -c "$2"; status=$?; : >"$1/end"; exit $status'


def bad(text):
    return show.usage("bench monitor", text)


class Interrupted(Failure):
    def __init__(self):
        super().__init__("interrupted", 0)


# ---- carma-monitor ----


def start_monitor(bench, only, period_ns, folder):
    words = node.monitor_words(bench.options, period_ns, only)
    return Child(words, f"{folder}/frames", f"{folder}/errors", node.MONITOR_ENVIRONMENT)


def wait_for_frames(bench, child, folder, more_than=0):
    until = time.monotonic() + START_S
    while os.path.getsize(f"{folder}/frames") <= more_than:
        if child.ended():
            raise Failure(node.last_words(f"{folder}/errors"), NO_GPU)
        if time.monotonic() > until:
            raise Failure("carma-monitor shows nothing: the driver may hang")
        if bench.stop.number:
            raise Interrupted
        time.sleep(0.02)


def frames(folder):
    """Those that are there now: on a busy machine carma-monitor may write faster than they are read."""
    with open(f"{folder}/frames", "rb") as file:
        yield from node.readings(io.BytesIO(file.read()))


def is_wanted(bench, gpu):
    wanted = bench.options.get("gpu")
    whole = gpu.kind == "whole" and wanted == str(gpu.index)
    return gpu.uuid and gpu.kind != "partitioned" and (wanted in (None, gpu.uuid) or whole)


def probe(bench, source):
    """Why carma-monitor cannot watch by this source; None: it can. The first probe finds the GPU."""
    folder = node.own_folder(bench.folder, f"probe-{source}")
    child, limits, seen, size = start_monitor(bench, source, PROBE_NS, folder), "", False, 0
    try:
        for _ in range(PROBE_FRAMES):
            wait_for_frames(bench, child, folder, size)
            size = os.path.getsize(f"{folder}/frames")
            for reading in frames(folder):
                limits = reading.limits
                bench.gpu = bench.gpu or next((gpu for gpu in reading.gpus if is_wanted(bench, gpu)), None)
                gpu = next((gpu for gpu in reading.gpus if bench.gpu and gpu.uuid == bench.gpu.uuid), None)
                if gpu:
                    activity = gpu.metrics.get("sm_activity")
                    seen = seen or (activity and activity.source == source)
                    seen = seen or (source == "utilization" and gpu.utilization is not None)
            if seen:
                return None
    except Interrupted:
        raise
    except Failure as failure:
        return str(failure)
    finally:
        child.end()
    if not bench.gpu:
        wanted = bench.options.get("gpu", "that jobs can use")
        return f"no GPU is usable here: NVML shows no GPU {wanted}"
    return f"{'DCGM' if source == 'dcgm' else 'the GPU'} does not offer it{': ' if limits else ''}{limits}"


def find_gpu(bench):
    """Every NVIDIA GPU has NVML's utilisation: without it there is no GPU."""
    why = probe(bench, "utilization")
    if why:
        raise Failure(why, NO_GPU)


# ---- The profilers ----


def after_python(command):
    """Its interpreter, and the words after that, in a command such as "python3 train.py"; None: not such a command."""
    python, _, rest = command.partition(" ")
    return (python, rest) if os.path.basename(python).startswith("python") and rest else None


def pytorch_is_missing(bench, command):
    found = after_python(command)
    if not found or (found[1][0] == "-" and not found[1].startswith("-m ")):
        return "the load is not a Python script (python3 SCRIPT, python3 -m MODULE)"
    output = f"{bench.folder}/probe-pytorch"
    child = Child(["/bin/sh", "-c", f"{found[0]} -c '{IMPORT_TORCH}'"], output)
    while not child.ended():
        time.sleep(LOOK_S)
    return node.last_words(output) if child.status else None


def missing(bench, source, command):
    if source in WATCHED:
        return probe(bench, source)
    if source == "pytorch":
        return pytorch_is_missing(bench, command)
    return None if source == "none" or shutil.which("nsys") else "there is no nsys on the PATH"


# ---- A run ----


def start_job(bench, source, folder, command):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": bench.gpu.uuid}
    if source == "pytorch":
        python, rest = after_python(command)
        command = f"{python} {shlex.quote(PROFILE)} {shlex.quote(f'{folder}/trace.json')} {rest}"
    words = ["/bin/sh", "-c", WRAPPER, "carma-bench", folder, command]
    if source == "nsys":
        words = ["nsys", "profile", "--force-overwrite=true", "-o", f"{folder}/report", "setsid", "--wait", *words]
    return Child(words, f"{folder}/output", environment=environment)


def session_of(folder):
    try:
        with open(f"{folder}/session", encoding="ascii") as file:
            return int(file.read() or 0)
    except OSError:
        return 0


def job_seconds(folder):
    """From the job's beginning to its end, by its files; None: it has not begun, or not ended."""
    try:
        begin, end = (os.stat(f"{folder}/{name}").st_mtime_ns for name in ("begin", "end"))
    except OSError:
        return None
    return (end - begin) / 1e9 * node.SCALE


def wait_for_job(bench, source, folder, job, tool, usages):
    """Until the job, and the profiler around it, has ended. Samples of the host; when both began and the job ended."""
    begun_ns, ended_ns, samples, looked = node.now_ns(), None, [], 0
    own, others = usages[0], usages[1:]
    ended = False
    while not ended:
        time.sleep(LOOK_S)
        ended = job.ended()
        if source == "nsys" and not own.session:
            own.session = session_of(folder)
        at_s, now = (node.now_ns() - begun_ns) / 1e9, time.monotonic()
        if ended or at_s < LATER_S * node.SCALE or now - looked > LATER_LOOK_S:
            looked = now
            look(usages)
            samples.append([at_s, own.cpu_s, sum(u.cpu_s for u in others), own.memory_bytes,
                            sum(u.memory_bytes for u in others)])
        if ended_ns is None and job_seconds(folder) is not None:
            ended_ns = node.now_ns()
        if bench.stop.number:
            raise Interrupted
        if tool and tool.ended():
            raise Failure(f"carma-monitor ended during a run: {node.last_words(f'{folder}/errors')}")
    return begun_ns, ended_ns or node.now_ns(), samples


def means(bench, source, folder, begun_ns, ended_ns):
    """As the source has them. An interval that ended just after the beginning was mostly before it."""
    found = {}
    for reading in frames(folder) if source in WATCHED else ():
        for gpu in reading.gpus:
            for name, metric in gpu.metrics.items() if gpu.uuid == bench.gpu.uuid else ():
                if metric.source == source and begun_ns + bench.period_ns <= metric.at_ns <= ended_ns:
                    found.setdefault(name, []).append(metric.value)
    return {name: sum(found[name]) / len(found[name]) if name in found else None for name in node.METRICS}


def measure(bench, source, name, command):
    folder = node.own_folder(bench.folder, name)
    tool = job = None
    try:
        if source in WATCHED:
            tool = start_monitor(bench, source, bench.period_ns, folder)
            wait_for_frames(bench, tool, folder)
        job = start_job(bench, source, folder, command)
        beside = job if source == "nsys" else tool
        usages = [Usage(None if source == "nsys" else job.pid), Usage(beside and beside.pid),
                  Usage(name="nv-hostengine" if source == "dcgm" else None)]
        begun_ns, ended_ns, samples = wait_for_job(bench, source, folder, job, tool, usages)
    finally:
        session = job and session_of(folder)
        if session not in (None, 0, job and job.pid) and not job.ended():  # under a profiler it is another one
            try:
                os.killpg(session, signal.SIGTERM)
            except ProcessLookupError:
                pass
        for child in (job, tool):
            if child:
                child.end()
    epoch_s = job_seconds(folder)
    if epoch_s is None or job.status:
        how = "signal" if job.status < 0 else "status"
        raise Failure(f"it ended with {how} {abs(job.status)}: see {folder}/output", keep=True)
    last_s = samples[-1][0]
    tool_cpu_s = (tool.cpu_s if tool else usages[1].cpu_s) + usages[2].cpu_s
    job_cpu_s = usages[0].cpu_s if source == "nsys" else job.cpu_s
    logs = {"nsys": "report*", "pytorch": "trace.json*", "none": ""}.get(source, "frames*")
    return SimpleNamespace(
        epoch_s=epoch_s, after_s=max(0, last_s - epoch_s), samples=samples,
        job_cpu=job_cpu_s / (epoch_s / node.SCALE or 1), tool_cpu=tool_cpu_s / (last_s / node.SCALE or 1),
        job_memory_bytes=usages[0].peak_bytes, tool_memory_bytes=usages[1].peak_bytes + usages[2].peak_bytes,
        logged_bytes=sum(map(os.path.getsize, glob.glob(f"{glob.escape(folder)}/{logs}"))) if logs else 0,
        **means(bench, source, folder, begun_ns, ended_ns))


def measure_all(bench):
    """Each repeat begins with another source, so that changes with time (temperature, caches) fall on all alike."""
    bench.why = {(load, source): missing(bench, source, bench.commands[load]) for source in SOURCES for load in LOADS}
    bench.runs = {cell: [] for cell, why in bench.why.items() if not why}
    for repeat in range(bench.repeats):
        for load in LOADS:
            for i in range(len(SOURCES)):
                source = SOURCES[(i + repeat) % len(SOURCES)]
                if (load, source) not in bench.runs:
                    continue
                show.progress(f"repeat {repeat + 1} of {bench.repeats}: {load} load, {source}")
                try:
                    run = measure(bench, source, f"{load}-{source}-{repeat + 1}", bench.commands[load])
                except Failure as failure:
                    failure.args = (f"the {load} load beside {source}: {failure}",)
                    raise
                bench.runs[load, source].append(run)
    show.clear()


# ---- The report ----


def mean(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def source_report(bench, load, source):
    runs, none = bench.runs.get((load, source)), bench.runs[load, "none"]
    if not runs:
        return {"source": source, "present": False, "why": bench.why[load, source]}

    def of(name):
        return mean([getattr(run, name) for run in runs])

    return {"source": source, "present": True, "epoch_s": of("epoch_s"), "epochs_s": [run.epoch_s for run in runs],
            "ratio": mean([run.epoch_s / base.epoch_s if base.epoch_s else 0 for run, base in zip(runs, none)]),
            **{name: of(name) for name in ("after_s", "job_cpu", "tool_cpu", "job_memory_bytes", "tool_memory_bytes",
                                           "logged_bytes")},
            "samples": runs[0].samples, **{name: of(name) for name in node.METRICS}}


def report(bench):
    return {"gpu": bench.gpu.uuid, "gpu_name": bench.gpu.name, "simulated": node.SIMULATED, "time_scale": node.SCALE,
            "repeats": bench.repeats, "period_s": bench.period_ns / 1e9,
            "loads": [{"load": load, "command": bench.commands[load],
                       "sources": [source_report(bench, load, source) for source in SOURCES]} for load in LOADS]}


COLUMNS = [("LOAD", False, 0, 0), ("SOURCE", False, 0, 0), ("EPOCH", True, 0, 0), ("VS NONE", True, 0, 0),
           ("TOOL CPU", True, 0, 0), ("TOOL MEM", True, 0, 0), ("LOGGED", True, 0, 0), ("JOB CPU", True, 0, 4),
           ("JOB MEM", True, 0, 5), ("SM", True, 0, 1), ("OCCUPANCY", True, 0, 2), ("DRAM", True, 0, 3)]


def row(load, s):
    if not s["present"]:
        return [load, s["source"], "not present"] + [None] * 9
    beside = s["source"] != "none"
    return [load, s["source"], f"{s['epoch_s']:.2f} s", f"{s['ratio']:.3f}",
            kernel.percent(s["tool_cpu"] if beside else None),
            show.of_bytes(s["tool_memory_bytes"]) if s["tool_memory_bytes"] else None,
            show.of_bytes(s["logged_bytes"]) if beside else None, kernel.percent(s["job_cpu"]),
            show.of_bytes(s["job_memory_bytes"]),
            *(kernel.percent(s[name]) for name in ("sm_activity", "sm_occupancy", "dram_activity"))]


def print_table(bench, result):
    simulated = "; a virtual node: simulated" if node.SIMULATED else ""
    print(f"{result['gpu_name']} {result['gpu']}, mean of {bench.repeats}{simulated}")
    for load in LOADS:
        print(f"{load}: {bench.commands[load]}")
    print()
    show.table(COLUMNS, [row(load["load"], source) for load in result["loads"] for source in load["sources"]])
    for (load, source), why in bench.why.items():  # the others ask nothing of the command
        if why and (load == "light" or source == "pytorch"):
            print(show.safe(f"{source}{f' {load}' if source == 'pytorch' else ''}: {why}"))


# ---- The command ----


def default_command(load):
    """On a virtual node a program that behaves like training, else a kernel of our own."""
    if node.SIMULATED:
        size = "--memory 1G --sm-activity 0.1 --seconds 10" if load == "light" else \
            "--memory 16G --sm-activity 0.9 --seconds 30"
        return f"{shlex.quote(f'{node.PREFIX}/bin/carma-train')} {size}"
    return f"{shlex.quote(f'{node.PREFIX}/bin/carma')} bench monitor --load {load}"


def check(options):
    of_loads = "light" in options or "heavy" in options
    if options.get("load", "light") not in LOADS:
        raise bad(f"--load '{options['load']:.40}' is not light or heavy")
    if "kernel" in options and (of_loads or "repeat" in options):
        raise bad("--kernel runs a kernel of its own: without --light, --heavy and --repeat")
    if "point" in options and "kernel" not in options:
        raise bad("--point goes with --kernel")
    if "load" in options and ("kernel" in options or of_loads):
        raise bad("--load goes alone")
    if not 1 <= int(options.get("repeat", 1)) <= 100:
        raise bad(f"--repeat: {options['repeat']} is out of range: 1 to 100")
    for name in ("period", "point"):  # as often as GPM and DCGM measure at most
        if not 1e8 <= int(options.get(name, 1e9)) <= 3600e9:
            raise bad(f"--{name} is out of range: from 100ms to 1h")


def run(options, _, stop, made):
    check(options)
    if "load" in options:
        kernel.run_load(options["load"] == "heavy", stop)
        return 0, False
    bench = SimpleNamespace(options=options, stop=stop, gpu=None, repeats=int(options.get("repeat", 3)),
                            period_ns=int(options.get("period", 1e9)), point_ns=int(options.get("point", 3e9)),
                            folder=node.output_folder(options.get("output"), made, "bench"))
    find_gpu(bench)
    if "kernel" in options:
        result = kernel.measure(bench, lambda *words: start_monitor(bench, None, *words), wait_for_frames, frames)
    else:
        bench.commands = {load: options.get(load) or default_command(load) for load in LOADS}
        measure_all(bench)
        result = report(bench)
    node.write_json(options.get("output"), "monitor.json", result)
    if "json" in options:
        print(json.dumps(result, indent=2))
    elif "kernel" in options:
        kernel.print_table(result)
    else:
        print_table(bench, result)
    return 0, False
