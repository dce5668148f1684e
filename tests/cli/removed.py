"""Usage: removed.py DIRECTORY CARMA CARMAD MPS_CONTROL: removes each path that carma has made (docs/launching.md, "What
others remove") while one job runs and another waits. The path is there again, or carma says what to do. The
first job goes on to its own end, through a restart of carmad as well; a new one starts, and so does the one that waited."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import types

T, CARMA, CARMAD, CONTROL = (pathlib.Path(word) for word in sys.argv[1:5])
WORK, STATE, SOCKET, LOG = T / "work", T / "state", T / "run" / "socket", T / "daemon.log"
SCRIPTS = pathlib.Path(f"{SOCKET}.scripts")
PATIENCE_S = int(os.environ.get("PATIENCE_S", "300"))
NVML = T / "prefix/lib/carma/vnode/libnvidia-ml.so.1"
SCRIPT = """#!/bin/sh
echo begun
until [ -e "$GO" ]; do sleep 0.05; done
echo 7/9 >"$CARMA_PROGRESS_FILE"
echo ended
exit 7
"""
failures = []
now = types.SimpleNamespace(row="")  # of the table


def fail(text):
    failures.append(f"{now.row}: {text}")
    if os.environ.get("FAIL_FAST"):
        sys.exit(failures[0])


def until(what, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def carma(*words, **more):
    return subprocess.run([CARMA, *map(str, words)], capture_output=True, text=True, check=False, cwd=WORK,
                          timeout=10 * PATIENCE_S, env={**os.environ, "CARMA_SOCKET": str(SOCKET), **more})  # fmt: skip


def job(number):
    return json.loads(carma("show", "--json", number).stdout or "{}")


def submit(output, *options, go="/"):
    said = carma("submit", "--parsable", "--gpu-memory=1G", "-o", output, *options, "job.sh", GO=str(go))
    if said.returncode:
        fail(f"a submission: {said.stderr}")
    return said.stdout.strip() or "0"


def expect_end(number, whose, message=None):
    """The job ends as its script says; or, with a message, is not begun."""
    until(lambda: job(number).get("state") in ("FAILED", "COMPLETED", "LOST", "CANCELLED", None))
    it = job(number)
    good = it.get("exit_status") == 7 if message is None else re.search(message, it.get("message") or "")
    if it.get("state") != "FAILED" or not good:
        fail(f"{whose}: {it.get('state')}, status {it.get('exit_status')}, {it.get('message')}")


class Daemon:
    def __init__(self, *settings):
        self.words = [CARMAD, "--state", STATE, "--socket", SOCKET]
        for setting in (f"nvml_library={NVML}", f"mps_control={CONTROL}", "grace=500ms", "settle=0s", *settings):
            self.words += ["--set", setting]
        self.start()

    def start(self):
        with open(LOG, "ab") as log:
            self.process = subprocess.Popen(self.words, stderr=log)
        if not until(lambda: '"observed_ns": ' in carma("gpus", "--json").stdout or self.process.poll()) or self.process.poll():
            sys.exit(f"{now.row}: carmad does not start: {LOG.read_text().splitlines()[-1]}")

    def restart(self):
        self.stop()
        self.start()

    def stop(self):
        self.process.terminate()
        if self.process.wait(10 * PATIENCE_S):
            fail(f"carmad ended with {self.process.returncode}")


# ---- The table: where it is, of the job with this number, and what comes of it ----


def run(number):
    return STATE / "runs" / f"{number}-1-1"


def group(number):
    """Where the kernel has none for it: a path that is not there."""
    name = re.search(r"^cgroup (.*)$", (run(number) / "status").read_text(), re.M)
    mount = re.search(r"^\S+ \S+ \S+ / (\S+) .* - cgroup2 ", pathlib.Path("/proc/self/mountinfo").read_text(), re.M)
    return pathlib.Path(mount[1] + name[1]) if mount and name and name[1] else T / "no group"


def domain(_):
    return next(iter(SOCKET.parent.glob("mps/uid-*")), SOCKET.parent / "mps")


HEALS_ALONE = {  # the path is there again; much else goes with it
    "the socket": lambda _: SOCKET,
    "the socket's directory": lambda _: SOCKET.parent,
    "all scripts": lambda _: SCRIPTS,
    "the state": lambda _: STATE,
    "all runs": lambda _: STATE / "runs",
    "the log of the store": lambda _: STATE / "store.db-wal",
    "its index": lambda _: STATE / "store.db-shm",
    "the store": lambda _: STATE / "store.db",
}
HEALS = {
    "a script's directory": lambda number: SCRIPTS / f"{number}-1-1",
    "a script": lambda number: SCRIPTS / f"{number}-1-1" / "job.sh",
    "a progress file": lambda number: SCRIPTS / f"{number}-1-1.progress",
    "a run": run,
    "a status": lambda number: run(number) / "status",
    "a shepherd's log": lambda number: run(number) / "shepherd.log",
    "no-mps": lambda number: run(number) / "no-mps",
    "the notices' socket": lambda _: STATE / "notify",
    "the lock": lambda _: STATE / "lock",
    "the mark": lambda _: STATE / "store.mark",
}
LEAVES = {  # it is made by the next launch, or was this one's alone
    "the next run": lambda _: STATE / "runs" / "next",
    "checkpoints": lambda number: WORK / f"carma-{number}.ckpt",
    "the next status": lambda _: STATE / "runs" / "next" / "status.first",
    "a control group": group,
}
MPS = {
    "MPS": lambda _: SOCKET.parent / "mps",
    "a domain": domain,
    "its pipes": lambda number: domain(number) / "pipe",
}


def remove(path):
    if path.is_dir() and (path / "cgroup.procs").exists():
        while path.exists():
            for pid in (path / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):  # a script's processes come and go
                    (path.parent / "cgroup.procs").write_text(pid)
            with contextlib.suppress(OSError):
                path.rmdir()
    elif path.is_dir():  # at once: what is made again beneath it would keep it
        away = path.rename(f"{path}.away")
        shutil.rmtree(away, ignore_errors=True)
    else:
        path.unlink()


def begin(row):
    """The row's job that runs, and the one that waits; the files' name, too."""
    now.row, name = row, row.replace(" ", "-").replace("'", "")
    runs, waits = submit(f"{name}.out", go=WORK / f"{name}.go"), submit(f"{name}.waits", "--hold")
    if not until(lambda: job(runs).get("state") == "RUNNING"):
        fail(f"a job does not run: {job(runs).get('reason')}")
    return name, runs, waits


def walk(daemon, rows, heals, at_once=1):
    """So many rows at a time; a new job and a restart for all of these."""
    names = list(rows)
    for first in range(0, len(names), at_once):
        begun = {row: begin(row) for row in names[first : first + at_once]}
        for now.row, (_, runs, _) in begun.items():
            path = rows[now.row](runs)
            if not until(path.exists, 5):
                print(f"{now.row}: {path} is not there: not removed")
                continue
            with contextlib.suppress(FileNotFoundError): # it may heal too soon
                remove(path)
            if heals and not until(path.exists): # in seconds, on a machine that is not busy
                fail(f"{path} is not made again")
        expect_end(submit("new.out"), "a new job")
        daemon.restart()
        for now.row, (name, runs, waits) in begun.items():
            (WORK / f"{name}.go").touch()
            expect_end(runs, "the job that ran")
            said = carma("logs", runs)
            if said.stdout.split() != ["begun", "ended"]:
                fail(f"its output: {said.stdout!r} {said.stderr!r}")
            carma("release", waits)
            expect_end(waits, "the job that waited")


def restart_before_it_is_made_again(daemon):
    """A shepherd that has been held up until now: carmad waits for it."""
    name, runs, _ = begin("a run of a slow shepherd")
    shepherd = int(re.search(r"^shepherd (\d+)", (run(runs) / "status").read_text(), re.M)[1])
    os.kill(shepherd, signal.SIGSTOP)
    remove(run(runs))
    daemon.restart()
    time.sleep(1)  # two looks of carmad's at its runs
    os.kill(shepherd, signal.SIGCONT)
    (WORK / f"{name}.go").touch()
    expect_end(runs, "the job that ran")


def walk_users_own():
    """What a user has removed is named to him."""
    now.row = "the user's own"
    for kind, options, message in (
        ("directory", ("-D", WORK / "gone"), "gone': No such file or directory"),
        ("output's directory", ("-o", WORK / "gone" / "out"), "gone/out': No such file or directory"),
    ):
        (WORK / "gone").mkdir()
        (WORK / "gone" / "job.sh").write_text(SCRIPT)
        waits = submit("/dev/null", "--hold", *options)
        shutil.rmtree(WORK / "gone")
        carma("release", waits)
        expect_end(waits, f"a job without its {kind}", message)
    runs = submit("gone.out", go=WORK / "gone.go")
    until((WORK / "gone.out").exists)
    until(lambda: job(runs).get("state") == "RUNNING")  # its shepherd makes the file before
    (WORK / "gone.out").unlink()
    said = carma("logs", runs)
    if said.returncode != 1 or "gone.out" not in said.stderr:
        fail(f"logs of an output that is gone: {said}")
    (WORK / "gone.go").touch()
    expect_end(runs, "a job without its output")


def second_daemon(daemon):
    """Without the lock's name, too, one carmad alone has the state."""
    now.row = "a second carmad"
    (STATE / "lock").unlink()
    words = [T / "other" if word == SOCKET else word for word in daemon.words]
    said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if said.returncode == 0 or "another carmad uses this state" not in said.stderr:
        fail(f"{said}")


def replace_store(daemon):
    """A database that somebody puts in the place of the open one is his: carmad stores nothing beside it."""
    now.row = "another store"
    shutil.copy(STATE / "store.db", T / "copy")
    os.rename(T / "copy", STATE / "store.db")
    said = carma("submit", "--", "true")
    if said.returncode != 1 or "is another file than the one that carmad uses: stop carmad" not in said.stderr:
        fail(f"a submission: {said}")
    if not until(lambda: "is another file than" in LOG.read_text()):
        fail("the log does not say it")
    daemon.stop()


def main():
    (WORK / "job.sh").write_text(SCRIPT)
    daemon = Daemon("share=time-slice")
    walk(daemon, HEALS_ALONE, True)
    walk(daemon, HEALS, True, 3)
    walk(daemon, LEAVES, False, 2)
    restart_before_it_is_made_again(daemon)
    walk_users_own()
    second_daemon(daemon)
    daemon.stop()
    daemon = Daemon("share=mps")
    walk(daemon, MPS, True)
    replace_store(daemon)
    print("\n".join(failures), file=sys.stderr)
    return bool(failures)


sys.exit(main())
