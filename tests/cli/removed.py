"""Usage: removed.py DIRECTORY CARMA CARMAD MPS_CONTROL: removes each path that carma has made (docs/launching.md, "What
others remove") while a job runs and another waits. carma makes it again within 10 s, or its log says what to do. The job
that runs goes on to its own end, also through a restart; a new one starts."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

T, CARMA, CARMAD, CONTROL = pathlib.Path(sys.argv[1]), *sys.argv[2:5]
STATE, SOCKET = T / "state", T / "run" / "socket"
LOG = T / "daemon.log"
PATIENCE_S = int(os.environ.get("PATIENCE_S", "300"))
HEAL_S = 10
failures = []
row = ""


def fail(text):
    failures.append(f"{row}: {text}")
    print(f"FAILED: {row}: {text}", file=sys.stderr, flush=True)


def carma(*words, check=True, **more):
    said = subprocess.run([CARMA, *map(str, words)], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                          env={**os.environ, "CARMA_SOCKET": str(SOCKET), **more}, cwd=T / "work")  # fmt: skip
    if check and said.returncode:
        fail(f"carma {' '.join(map(str, words))}: {said.returncode}: {said.stderr}")
    return said


def until(what, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    return None


def job(number):
    return json.loads(carma("show", "--json", number, check=False).stdout or "{}")


class Daemon:
    def __init__(self, *settings):
        self.settings = settings
        self.start()

    def start(self):
        words = [CARMAD, "--state", STATE, "--socket", SOCKET, "--set", f"nvml_library={T}/prefix/lib/carma/vnode/"
                 "libnvidia-ml.so.1", "--set", "grace=500ms", "--set", "settle=0s", "--set", f"mps_control={CONTROL}"]  # fmt: skip
        for setting in self.settings:
            words += ["--set", setting]
        with open(LOG, "ab") as log:
            self.process = subprocess.Popen(list(map(str, words)), stderr=log)
        if not until(lambda: '"observed_ns": ' in carma("gpus", "--json", check=False).stdout or self.process.poll()):
            fail("carmad does not answer")
        if self.process.poll():
            fail(f"carmad does not start: {LOG.read_text().splitlines()[-1]}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(PATIENCE_S):
            fail(f"carmad ended with {self.process.returncode}")

SCRIPT = """#!/bin/sh
echo begun
until [ -e "$GO" ]; do sleep 0.05; done
echo 7/9 >"$CARMA_PROGRESS_FILE"
echo ended
exit 7
"""

def submit(output, *options, go="/"):
    said = carma("submit", "--parsable", "--gpu-memory", "1G", "-o", output, *options, "job.sh", GO=str(go))
    return int(said.stdout or 0)


def begin(name):
    number = submit(f"{name}.out", go=T / "work" / f"{name}.go")
    if not until(lambda: job(number).get("state") == "RUNNING"):
        fail(f"job {number} does not run: {job(number)}")
    return number


def end(number, name):
    (T / "work" / f"{name}.go").touch()
    carma("wait", number, check=False)
    now = job(number)
    if (now.get("state"), now.get("exit_status")) != ("FAILED", 7):
        fail(f"the job that ran is {now.get('state')}, status {now.get('exit_status')}: {now.get('message')}")
    said = carma("logs", number, check=False)
    if said.stdout.split() != ["begun", "ended"]:
        fail(f"its output: {said.stdout!r} {said.stderr!r}")


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def run_of(number):
    return STATE / "runs" / f"{number}-1-1"

def script_of(number):
    return pathlib.Path(f"{SOCKET}.scripts") / f"{number}-1-1"

ROWS = {
    "the socket": lambda number: SOCKET,
    "the socket's directory": lambda number: SOCKET.parent,
    "scripts": lambda number: pathlib.Path(f"{SOCKET}.scripts"),
    "a script's directory": script_of,
    "a script": lambda number: script_of(number) / "job.sh",
    "a progress file": lambda number: pathlib.Path(f"{script_of(number)}.progress"),
    "the run directories": lambda number: STATE / "runs",
    "a run directory": run_of,
    "a status": lambda number: run_of(number) / "status",
    "a shepherd.log": lambda number: run_of(number) / "shepherd.log",
    "no-mps": lambda number: run_of(number) / "no-mps",
    "the next run": lambda number: STATE / "runs" / "next",
    "the next status": lambda number: STATE / "runs" / "next" / "status.first",
    "notify": lambda number: STATE / "notify",
    "lock": lambda number: STATE / "lock",
    "mark": lambda number: STATE / "store.mark",
    "wal": lambda number: STATE / "store.db-wal",
    "shm": lambda number: STATE / "store.db-shm",
    "store": lambda number: STATE / "store.db",
    "checkpoints": lambda number: T / "work" / f"carma-{number}.ckpt",
    "state": lambda number: STATE,
}

def main():
    global row
    (T / "work").mkdir()
    (T / "work" / "job.sh").write_text(SCRIPT)
    daemon = Daemon("share=time-slice")
    for row, path_of in ROWS.items():
        if len(sys.argv) > 5 and row not in sys.argv[5:]:
            continue
        name = row.replace(" ", "-").replace("'", "")
        number = begin(name)
        waits = submit(f"{name}.waits", "--hold")
        path = path_of(number)
        if not until(path.exists, 3):
            fail(f"{path} is not there")
            continue
        before = LOG.stat().st_size
        remove(path)
        start = time.monotonic()
        if not until(path.exists, HEAL_S):
            fail(f"{path} is not made again; log: {LOG.read_text()[before:]}")
        else:
            print(f"{row}: healed in {time.monotonic() - start:.1f}: {LOG.read_text()[before:]}", flush=True)
        new = submit(f"{name}.new")
        carma("wait", new, check=False)
        if (job(new).get("state"), job(new).get("exit_status")) != ("FAILED", 7):
            fail(f"a new job: {job(new).get('state')} {job(new).get('message')}")
        daemon.stop()
        daemon.start()
        end(number, name)
        carma("release", waits)
        until(lambda: job(waits).get("ended_unix_s") or job(waits).get("state") == "FAILED")
        if (job(waits).get("state"), job(waits).get("exit_status")) != ("FAILED", 7):
            fail(f"the job that waited: {job(waits).get('state')} {job(waits).get('message')}")
    daemon.stop()
    return bool(failures)


sys.exit(main())
