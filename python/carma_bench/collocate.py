"""carma bench collocate: commands that train, alone and together on one GPU, time-sliced, under MPS and on existing
MIG instances: their time per epoch, and the GPU meanwhile (the thesis's chapter 4). Times are node time.

run() makes the plan: each command alone, then in each mode and degree, then the mixes. Of each Run it starts the Jobs
at once, waits for all, judges them, and has the Watch (figures.py) take the means."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from types import SimpleNamespace

import figures
import node
import show
from mps import CannotStart, Mps
from show import Failure

MODES = ("time-slice", "mps", "mig")
MOST_JOBS = 48  # at once: the limit of one MPS server
LINE_MOST = 4096
LOOK_S, SHOW_S = 0.01, 0.1
KILL_AFTER_S = 5  # after SIGTERM
DRAIN_S = 2  # for output of a job that has ended, while its children hold the pipe open
CLEAR_S, CLEAR_BYTES = 10, 64 << 20  # for a driver to free the last run's memory
_CLASSES = {"alpha": "A-Za-z", "alnum": "A-Za-z0-9", "digit": "0-9", "lower": "a-z", "upper": "A-Z",
            "xdigit": "A-Fa-f0-9", "space": r"\s", "blank": r" \t", "punct": r"!-/:-@\[-`{-~"}


def bad(text):
    return show.usage("bench collocate", text)


# ---- The plan ----


class Run:
    def __init__(self, mode, label, names, alone=False):
        self.mode, self.label, self.names, self.alone = mode, label, names, alone
        self.how = "alone" if alone else mode
        self.result, self.reason, self.jobs, self.total_s, self.figures = "ok", None, [], 0, None

    def fail(self, result, reason):
        if self.result == "ok":  # the first one says why; the others are stopped for it
            self.result, self.reason = result, reason


def read_commands(path):
    commands = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    for number, line in enumerate(map(str.lstrip, lines), 1):
        if not line or line[0] == "#":
            continue
        name, colon, text = line.partition(":")
        where = f"{path}:{number}"
        if not colon or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            raise Failure(f"{where}: '{line:.40}' is not NAME: COMMAND (a name has letters, digits, '_', '-', '.')")
        if name in commands:
            raise Failure(f"{where}: there are two commands '{name}'")
        if not text.strip():
            raise Failure(f"{where}: '{name}' has no command")
        commands[name] = ["/bin/sh", "-c", text.lstrip(" \t")]
    if not commands:
        raise Failure(f"{path}: no command in it: write lines NAME: COMMAND")
    return commands


def degrees_of(text):
    found = set()
    for item in text.split(","):
        match = re.fullmatch("([0-9]{1,3})(?:-([0-9]{1,3}))?", item)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= low <= high <= MOST_JOBS:
            raise bad(f"--degrees: '{text:.40}' is not a list of numbers from 1 to {MOST_JOBS} such as 1,2,4 or 1-7")
        found.update(range(low, high + 1))
    return sorted(found)


def modes_of(text):
    wanted = ["time-slice" if item == "streams" else item for item in text.split(",")]  # 0.1's word
    for item in wanted:
        if item not in MODES:
            raise bad(f"--mode: there is no mode '{item:.40}': name some of {', '.join(MODES)}")
    return [mode for mode in MODES if mode in wanted]


def plan_of(commands, modes, degrees, mixes):
    runs = []
    for name in commands:
        runs.append(Run("time-slice", f"{name} x 1", [name], alone=True))
        runs += [Run(mode, f"{name} x {degree}", [name] * degree) for mode in modes for degree in degrees
                 if (mode, degree) != ("time-slice", 1)]
    for mix in mixes:
        names = mix.split("+")
        for name in names:
            if name not in commands:
                raise Failure(f"--mix {mix:.80}: there is no command '{name}'")
        if len(names) > MOST_JOBS:
            raise Failure(f"--mix {mix:.80}: more than {MOST_JOBS} jobs at once")
        runs += [Run(mode, mix, names) for mode in modes]
    return runs


# ---- The GPU ----


def choose_gpu(bench, wanted):
    """The GPU, and MIG instances, the largest first: its own, or, where it is whole, those of another of its kind."""
    gpus = bench.watch.latest.gpus
    cards = [gpu for gpu in gpus if gpu.kind != "instance" and gpu.uuid]
    chosen = next((gpu for gpu in cards if wanted in (None, str(gpu.index), gpu.uuid)), None)
    if not chosen:
        raise Failure(f"--gpu {wanted:.48}: there is no such GPU: nvidia-smi -L lists them" if wanted
                      else "there is no GPU here")
    bench.gpu, bench.partitioned = chosen.uuid, chosen.kind == "partitioned"
    parents = [gpu for gpu in cards if gpu.kind == "partitioned"
               and (gpu is chosen if bench.partitioned else gpu.name == chosen.name)]
    bench.parent = parents[0].uuid if parents else None
    own = [gpu for gpu in gpus if gpu.kind == "instance" and gpu.parent == bench.parent]
    bench.instances = [gpu.uuid for gpu in sorted(own, key=lambda gpu: -(gpu.total_bytes or 0))]
    if chosen.processes:
        show.tell(f"{chosen.processes} processes are on GPU {chosen.index} already: the figures will be theirs, too")


# ---- One run ----


class Job:
    """A process, the leader of a session of its own. A thread reads the lines of its output as they come."""

    def __init__(self, words, log, visible, pipe, pattern):
        self.pattern, self.marks, self.last_line, self.ended_ns = pattern, [], "", None
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": visible, "CUDA_MPS_PIPE_DIRECTORY": pipe,
                       "PYTHONUNBUFFERED": "1"}  # else Python holds back the lines that tell of an epoch's end
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666)
        try:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0,
                                            stderr=subprocess.STDOUT, env=environment, start_new_session=True)
        except OSError as error:
            os.close(self.log)
            raise Failure(f"cannot start {words[0]}: {error.strerror}") from None
        self.begun_ns = node.now_ns()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        """Lines end with a line feed or, as progress bars do, with a carriage return."""
        line = b""
        with self.process.stdout, open(self.log, "wb", buffering=0) as log:
            while piece := self.process.stdout.read(65536):
                at_ns = node.now_ns()
                log.write(piece)
                *lines, line = re.split(b"[\r\n]", line + piece)
                line = line[:LINE_MOST]
                for each in lines:
                    self._take(each, at_ns)
        if line:
            self._take(line, node.now_ns())

    def _take(self, line, at_ns):
        text = line[:LINE_MOST].decode("utf-8", "replace")
        self.last_line = text.strip()[:119] or self.last_line
        if self.pattern and self.pattern.search(text):
            self.marks.append(at_ns)

    def signal(self, number):
        if self.ended_ns is None:
            os.killpg(self.process.pid, number)

    def has_ended(self):
        """Its children go with it: until it is waited for, its number is that of their group."""
        if self.ended_ns is None and os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            at_ns = node.now_ns()
            self.signal(signal.SIGKILL)
            self.ended_ns, self.drained_by = at_ns, time.monotonic() + DRAIN_S
            self.process.wait()
        return self.ended_ns is not None

    def drain(self):
        self.reader.join(max(0, self.drained_by - time.monotonic()))

    def failure(self):
        code = self.process.returncode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        return f"{how}: {self.last_line}" if self.last_line else how

    def epochs(self, bench, first_end_ns):
        """How many, and the mean time of those after the first, a warm-up: of those that ended while all jobs ran, if
        there are such."""
        if not bench.pattern:
            return bench.epochs, (self.ended_ns - self.begun_ns) / 1e9 / bench.epochs
        marks = [mark for mark in self.marks if mark <= first_end_ns]
        marks = marks if len(marks) >= 2 else self.marks
        if len(marks) < 2:
            return len(marks), (marks[0] - self.begun_ns) / 1e9 if marks else None
        return len(marks), (marks[-1] - marks[0]) / 1e9 / (len(marks) - 1)


def wait_for_all(bench, run, jobs, begun_ns):
    """Whether they took too long. One that fails, the time limit or a signal to us stops all."""
    over_time, stopped, killed, shown = False, None, False, 0
    while sum(not job.has_ended() for job in jobs):
        now, elapsed_s = time.monotonic(), (node.now_ns() - begun_ns) / 1e9
        if stopped is None:
            over_time = bool(bench.limit_s) and elapsed_s > bench.limit_s
            if over_time or bench.stop.number or any(job.ended_ns and job.process.returncode for job in jobs):
                stopped = now
                for job in jobs:
                    job.signal(signal.SIGTERM)
        elif not killed and now - stopped > KILL_AFTER_S:
            killed = True
            for job in jobs:
                job.signal(signal.SIGKILL)
        if now - shown > SHOW_S:
            shown = now
            show.progress(f"{bench.runs.index(run) + 1}/{len(bench.runs)}  {run.label}, {run.how}  "
                          f"{show.of_seconds(elapsed_s)}{bench.watch.shown(bench.gpu)}")
        time.sleep(LOOK_S)
    for job in jobs:
        job.drain()
    return over_time


def judge(bench, run, jobs, over_time):
    first_end_ns = min(job.ended_ns for job in jobs)
    failed = min((job for job in jobs if job.process.returncode), key=lambda job: job.ended_ns, default=None)

    def fail(job, what):
        at = jobs.index(job)
        run.fail("failed", f"{run.names[at]} (job {at + 1} of {len(run.names)}) {what}")

    if over_time:
        run.fail("failed", f"not done within the time limit of {show.of_seconds(bench.limit_s)}")
    elif failed:
        fail(failed, failed.failure())
    for job, name, instance in zip(jobs, run.names, run.instances or [None] * len(jobs)):
        epochs, epoch_s = job.epochs(bench, first_end_ns)
        if epochs == 0:
            fail(job, "printed no line that matches --epoch-pattern")
        run.jobs.append(SimpleNamespace(command=name, instance=instance, seconds=(job.ended_ns - job.begun_ns) / 1e9,
                                        epochs=epochs, epoch_s=epoch_s))


def possible(bench, run):
    """On a GPU in MIG mode the baselines, too, run on an instance: the largest."""
    run.instances = None
    if run.mode == "mig" or (run.alone and bench.partitioned):
        run.instances = bench.instances[: len(run.names)]
        if not bench.instances:
            run.fail("skipped", "there are no MIG instances")
        elif len(run.names) > len(bench.instances):
            run.fail("skipped", f"{len(run.names)} jobs, and only {len(bench.instances)} MIG instances")
    elif bench.partitioned:
        run.fail("skipped", "the GPU is in MIG mode")
    elif run.mode == "mps" and not bench.mps_program:
        run.fail("skipped", "no nvidia-cuda-mps-control on the PATH: --mps-control names one")
    return run.result == "ok"


def run_jobs(bench, run, pipe):
    watch, gpu = bench.watch, bench.parent if run.instances else bench.gpu
    folder = node.own_folder(bench.folder, f"{run.how}-{run.label}".replace(" ", "-"))
    before_bytes = watch.begin(gpu, run.instances or [])
    begun_ns, jobs = node.now_ns(), []
    try:
        for at, name in enumerate(run.names):
            visible = run.instances[at] if run.instances else bench.gpu
            jobs.append(Job(bench.commands[name], f"{folder}/job-{at + 1}.log", visible, pipe, bench.pattern))
        over_time = wait_for_all(bench, run, jobs, begun_ns)
    except BaseException:
        for job in jobs:
            job.signal(signal.SIGKILL)
        raise
    judge(bench, run, jobs, over_time)
    end_ns = max(job.ended_ns for job in jobs)
    # All train: each has its first epoch behind it and its last one not yet. Without marks, it is the whole run.
    marked = [job.marks for job in jobs if len(job.marks) > 1]
    span = (max([begun_ns] + [marks[0] for marks in marked]), min([end_ns] + [marks[-1] for marks in marked]))
    run.total_s = (end_ns - begun_ns) / 1e9
    run.figures = watch.end(begun_ns, end_ns, span)
    until = time.monotonic() + CLEAR_S
    while watch.fresh() and before_bytes is not None and time.monotonic() < until and not bench.stop.number:
        now = watch.find(gpu)
        if not now or now.used_bytes is None or now.used_bytes <= before_bytes + CLEAR_BYTES:
            break


def run_one(bench, run):
    if not possible(bench, run):
        return
    if run.mode == "mps":
        try:
            with Mps(bench.mps_program, bench.gpu, bench.stop) as pipe:
                run_jobs(bench, run, pipe)
        except CannotStart as error:
            run.fail("skipped", str(error))
    else:  # an empty folder: else CUDA would take a machine's own MPS daemon without a word
        run_jobs(bench, run, node.own_folder(bench.folder, "no-mps"))
    if bench.stop.number:
        raise Failure("interrupted", 0)


# ---- The command ----


def pattern_of(text):
    """Python's regular expression; with POSIX's classes, [[:digit:]]."""
    for name, members in _CLASSES.items():
        text = text.replace(f"[:{name}:]", members)
    return re.compile(text)


def mps_program_of(options):
    wanted = options.get("mps-control")
    if wanted and not os.path.exists(wanted):
        raise Failure(f"--mps-control {wanted}: {os.strerror(2)}")
    return os.path.realpath(wanted) if wanted else shutil.which("nvidia-cuda-mps-control")


def setup(options, words):
    """Everything that can be wrong before the first run."""
    epochs = options.get("epochs", "1")
    modes = modes_of(options.get("mode", ",".join(MODES)))
    degrees = degrees_of(options.get("degrees", "1-4")) if "degrees" in options or not options["mix"] else []
    limit_s = int(options["time-limit"]) / 1e9 if "time-limit" in options else None
    if not options.get("commands") and not words:
        raise bad("what is to be run? put a command behind '--', or name a file of --commands")
    if options.get("commands") and words:
        raise bad("a command, or a file of --commands, not both")
    if options["mix"] and not options.get("commands"):
        raise bad("--mix names commands of a file of --commands")
    if "epochs" in options and "epoch-pattern" in options:
        raise bad("--epochs, or --epoch-pattern, not both")
    if not 1 <= int(epochs) <= 1000000:
        raise bad(f"--epochs: {epochs} is out of range: 1 to 1000000")
    if limit_s == 0:
        raise bad("--time-limit: it is a time above 0, such as 90s or 10m")
    try:
        pattern = pattern_of(options["epoch-pattern"]) if "epoch-pattern" in options else None
    except re.error as error:
        text = options["epoch-pattern"]
        raise Failure(f"--epoch-pattern '{text:.80}' is not a regular expression: {error}") from None
    commands = read_commands(options["commands"]) if "commands" in options else {os.path.basename(words[0]): words}
    return SimpleNamespace(epochs=int(epochs), pattern=pattern, limit_s=limit_s, commands=commands,
                           runs=plan_of(commands, modes, degrees, options["mix"]))


def run(options, words, stop, made):
    bench = setup(options, words)
    bench.stop, bench.mps_program = stop, mps_program_of(options)
    bench.folder = node.output_folder(options.get("output"), made, "collocate")
    with figures.Watch(options) as bench.watch:
        choose_gpu(bench, options.get("gpu"))
        for each in bench.runs:
            run_one(bench, each)
        show.clear()
        report = figures.report(bench)
    figures.deliver(bench, report, options.get("json"))
    node.write_json(options.get("output"), "collocate.json", report)
    failed = sum(each.result == "failed" for each in bench.runs)
    if failed:
        raise Failure(f"{failed} of {len(bench.runs)} runs failed: their output is in {bench.folder}", keep=True)
    return 0, False
