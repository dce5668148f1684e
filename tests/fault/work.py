"""Clients that submit, and remember the daemon's answers."""

import csv
import itertools
import random
import subprocess
import threading
import time
from dataclasses import dataclass

MOST_UNFINISHED = 24
PAUSE_S = 0.03
ELEMENTS = 4  # of an array
ATTACHED_S = 30  # for which `carma run` may outlive its job


@dataclass
class Submission:
    name: str  # of an array's job with its index behind it
    status: int  # which its command ends with; -1: that of its training, which recovers from a lack of memory
    endless: bool  # ends by being cancelled
    id: int = 0  # 0: not acknowledged; an array's jobs have the array's
    after: "Submission" = None  # it may begin when that one has ended,
    only_ok: bool = False  # and only if that one is COMPLETED
    attached: subprocess.Popen = None  # the `carma run` that submitted it
    refused: bool = False  # the daemon said that it could not store it


def trace_rows(source):
    with open(source / "data" / "traces" / "thesis_90.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return itertools.cycle([row["workload"] for row in rows])


class Clients:
    """Threads, each of which submits one job after another by the program carma, and cancels those that do not end."""

    def __init__(self, node, source, seed, count=2, trains=True, most=MOST_UNFINISHED):
        self.node = node
        self.random = random.Random(seed)
        self.rows = trace_rows(source)
        self.trains = trains
        self.most = most
        self.lock = threading.Lock()
        self.all = []
        self.cancelled = set()
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.go, daemon=True) for _ in range(count)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def next_jobs(self):
        """The submissions, and the arguments of carma submit, or run. About half are of the trace, shortened. The others end
        soon, with any status, leave processes behind, or have to be cancelled; some are an array, depend on another, or
        have a `carma run` attached to them."""
        with self.lock:
            name = f"f{len(self.all) + 1}"
            kind = self.random.random()
            status = self.random.choice([0, 0, 0, 1, 7, 63])
            ms = self.random.randrange(0, 300)
            seconds = self.random.randrange(30, 600)
            row = next(self.rows)
            endless = kind >= 0.95
            requeue = ["--requeue"] if self.random.random() < 0.5 else []
            stray = ["--stray"] if self.random.random() < 0.3 else []
            others = [job for job in self.all[-8:] if job.id and "." not in job.name and not job.endless]
            train = self.trains and kind < 0.5
            job = Submission(name, -1 if train else status, endless)
            jobs = [job]
            if 0.5 <= kind < 0.58:
                jobs = [Submission(f"{name}.{index}", status, endless) for index in range(ELEMENTS)]
            elif 0.58 <= kind < 0.7 and others:
                job.after, job.only_ok = others[0], kind < 0.64
            self.all += jobs
        witness = [self.node.build / "tests" / "fault" / "witness", self.node.books / name, status]
        if train:
            command = [*witness, 0, *stray, "--", self.node.prefix / "bin" / "carma-train", "--workload", row, "--gpus", 1,
                       "--seconds", seconds]
        elif endless:
            command = [*witness, 1000000]
        else:
            command = [*witness, ms, *stray]
        verb = "run" if 0.7 <= kind < 0.8 else "submit"
        more = {"run": [], "submit": ["--parsable", "--output", self.node.top / f"{name}.out", *requeue]}[verb]
        more += [] if train else ["--gpu-memory", "1G"]
        more += ["--array", f"0-{ELEMENTS - 1}"] if len(jobs) > 1 else []
        more += ["--dependency", f"{'afterok' if job.only_ok else 'afterany'}:{job.after.id}"] if job.after else []
        return jobs, [verb, "--job-name", name, *more, "--", *command]

    def submit(self):
        jobs, arguments = self.next_jobs()
        if arguments[0] == "run":
            jobs[0].attached = self.node.begin("carma", *arguments)
            return
        done = self.node.run("carma", *arguments)
        for job in jobs:
            if done.returncode == 0:
                job.id = int(done.stdout)
            job.refused = "cannot store" in done.stderr

    def cancel(self):
        """One that has not been: it may run, wait, or be about to."""
        with self.lock:
            wanted = [job.id for job in self.all if job.endless and job.id and job.id not in self.cancelled]
        if wanted and self.node.run("carma", "cancel", wanted[0]).returncode == 0:
            self.cancelled.add(wanted[0])

    def go(self):
        while not self.stopping.is_set():
            status = self.node.get("/v1/status")
            if status and status["unfinished"] < self.most:
                self.submit()
            elif status:
                self.cancel()
            self.stopping.wait(PAUSE_S)

    def finish(self, seconds):
        """Whether all jobs have ended in time: those without an end are cancelled."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            queue = self.node.get("/v1/jobs")
            if queue is not None and not queue["jobs"]:
                return self.finish_attached()
            endless = {job.name for job in self.all if job.endless}
            for job in queue["jobs"] if queue else []:
                if job["name"] in endless and job["state"] != "STOPPING":
                    self.node.run("carma", "cancel", job["id"])
            time.sleep(0.1)
        return False

    def finish_attached(self):
        """Whether each `carma run` ends soon once its job has ended."""
        for job in self.all:
            if job.attached:
                try:
                    job.refused = "cannot store" in job.attached.communicate(timeout=ATTACHED_S)[1]
                except subprocess.TimeoutExpired:
                    return False
        return True

    def acknowledged(self):
        return [job for job in self.all if job.id]
