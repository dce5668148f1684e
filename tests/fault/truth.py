"""Compares carma's answers with the notes of clients and jobs."""

import fcntl
import signal
import time
from dataclasses import dataclass

LEDGER = ["CANCELLED", "COMPLETED", "FAILED", "GPU_OOM", "LOST"]
KILLED = 128 + 9
NOT_ASKED = 125  # of `carma run`, where the daemon did not answer
READING_SECONDS = 20


@dataclass
class Launch:
    restart: int
    at: float  # when it started
    status: int = None  # None: it was killed


def read_book(path):
    """([Launch], [errors], the time of the last line) of a job's own book."""
    launches, wrong, pids, at = [], [], {}, 0
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for line in text.splitlines():
        what, pid, ticks, at, value = line.split()
        if what == "twice":
            wrong.append(f"ran while an earlier launch still did: {text!r}")
        elif what == "start":
            launches.append(Launch(int(value), float(at)))
            pids[pid, ticks] = launches[-1]
        else:
            pids[pid, ticks].status = int(value)
    restarts = [launch.restart for launch in launches]
    if len(restarts) != len(set(restarts)):
        wrong.append(f"one launch ran twice: {text!r}")
    return launches, wrong, float(at)


def book_is_free(path):
    if not path.exists():
        return True
    with open(path, encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False


def name_of(job):
    return f"{job['name']}.{job['array']['index']}" if job["array"] else job["name"]


def check_turn(node, submission, launches, state, by_name):
    """The faults of one that waits for another's end."""
    other = by_name[submission.after.name]["state"]
    good = not submission.only_ok or other == "COMPLETED"
    if launches and launches[0].at < read_book(node.books / submission.after.name)[2]:
        return [f"ran before {submission.after.name} had ended"]
    if launches and not good:
        return [f"ran, and {submission.after.name} is {other}"]
    return [f"is {state}, and {submission.after.name} is {other}"] if (state == "REFUSED") == good else []


def check_job(node, submission, job, by_name, may_be_lost):
    """The faults of one acknowledged job."""
    launches, wrong, _ = read_book(node.books / submission.name)
    last = launches[-1].status if launches else None
    state = job["state"]
    if submission.after:
        wrong += check_turn(node, submission, launches, state, by_name)
    told = max(job["exit_status"] or 0, state != "COMPLETED")  # of a job that was killed, the witness tells nothing
    run = submission.attached
    if run and run.pid not in node.killed and run.returncode not in (told, NOT_ASKED):
        wrong.append(f"is {state} with {job['exit_status']}, and carma run ended with {run.returncode}")
    if state == "REFUSED" and submission.after:
        return wrong
    if state not in LEDGER:
        wrong.append(f"is {state}")
    if state == "LOST":
        if not may_be_lost:
            wrong.append("is LOST, and nobody killed its shepherd")
    elif state == "FAILED" and str(job["message"]).startswith("given up"):
        wrong.append("is FAILED because its shepherd died: that is LOST")
    elif state == "FAILED" and may_be_lost and last is None and job["exit_status"] in (None, -1):
        pass  # it could not be started
    elif state == "FAILED" and may_be_lost and job["exit_status"] == KILLED:
        pass  # its process is chosen as a shepherd before it executes the job, and the kill may come as late as its end
    elif state == "CANCELLED":
        if submission.id and not submission.endless: # a client that was refused is withdrawn that way
            wrong.append("is CANCELLED, and nobody asked for that")
    elif last is None or last != job["exit_status"] or (state == "COMPLETED") != (last == 0):
        wrong.append(f"is {state} with {job['exit_status']}, and ended with {last}: {job['message']}")
    elif submission.status >= 0 and last != submission.status:
        wrong.append(f"ended with {last} instead of {submission.status}")
    if len(launches) > job["attempts"]:
        wrong.append(f"ran {len(launches)} times in {job['attempts']} launches")
    return wrong


def check_refused(node, clients):
    refused = [job for job in clients.all if job.refused]
    wrong = [f"{job.name} ran, and its submitter was told that it could not be stored"
             for job in refused if (node.books / job.name).exists()]
    return wrong if refused else ["no submission was refused"]


def check_processes(node):
    """Only the daemon and its helpers may be left, and no lock of a job."""
    expected = {"carmad", "carma-monitor", "carma-shepherd", "nvidia-cuda-mps"}
    wrong = [f"process {pid} ({name}) is left" for pid, name in node.processes().items() if name not in expected]
    for name in ("carmad", "carma-monitor"):
        count = len(node.pids_of(name))
        if count != 1:
            wrong.append(f"{count} processes {name}")
    if len(node.pids_of("carma-shepherd")) > 2:  # itself, and the process of the next job
        wrong.append("more than one carma-shepherd waits for a job")
    wrong += [f"{path.name}: its launch still runs" for path in node.books.iterdir() if not book_is_free(path)]
    return wrong


def check_end(node):
    """It ends when it is asked to, and then nothing at all is left."""
    status = node.kill(signal.SIGTERM)
    wrong = [] if status == 0 else [f"carmad ended with status {status}"]
    end = time.monotonic() + READING_SECONDS
    while (left := node.processes()) and time.monotonic() < end:
        time.sleep(0.05)
    return wrong + [f"process {pid} ({name}) outlives the daemon" for pid, name in left.items()]


def check_gpus(node):
    """The monitor may have been lost or hung until just now: its readings are waited for."""
    end = time.monotonic() + READING_SECONDS
    while (busy := [gpu for gpu in node.get("/v1/gpus")["gpus"]
                    if gpu["jobs"] or gpu["processes"] or gpu["unmanaged_bytes"]]) and time.monotonic() < end:
        time.sleep(0.1)
    return [f"GPU {gpu['index']} is not free: {gpu}" for gpu in busy]


def check_runs(node, jobs, may_be_lost):
    """Every launch has a last status, but those that were lost: its job is LOST, was being cancelled, or ran again."""
    by_id = {job["id"]: job for job in jobs}
    wrong = []
    for folder in (node.state / "runs").iterdir():
        if folder.name == "next":  # of the shepherd that waits for the next job
            continue
        job, launch, _ = map(int, folder.name.split("-"))
        lost = may_be_lost and (by_id[job]["state"] in ("LOST", "CANCELLED") or launch < by_id[job]["attempts"])
        path = folder / "status"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if not lost and "\nphase ended\n" not in text and "\nphase failed\n" not in text:
            wrong.append(f"{folder.name}: no last status: {text!r}")
    return wrong


def check_store(node):
    wrong = []
    for arguments in (["admin", "verify", "--state", node.state], ["simulate", "--replay", node.state]):
        done = node.run("carma", *arguments)
        if done.returncode != 0:
            wrong.append(f"carma {arguments[0]} {arguments[1]}: {done.stderr.strip()} {done.stdout.strip()[-300:]}")
    return wrong


def check(node, clients, jobs, may_be_lost):
    """All that is wrong, in lines; the daemon runs, has nothing more to do, and is stopped at last."""
    by_id, by_name = {job["id"]: job for job in jobs}, {name_of(job): job for job in jobs}
    names = [name_of(job) for job in jobs]
    wrong = [f"{name} is there {names.count(name)} times" for name in set(names) if names.count(name) > 1]
    if len(by_id) != len(jobs):
        wrong.append("one number was given to two jobs")
    known = {submission.name: submission for submission in clients.all}
    for submission in clients.acknowledged():
        job = by_name.get(submission.name)
        if not job or (job["array"] or job)["id"] != submission.id:
            wrong.append(f"{submission.name} was acknowledged as job {submission.id}, and is {job}")
    for job in jobs: # the unacknowledged ones as well
        wrong += [f"job {job['id']} ({name_of(job)}) {what}"
                  for what in check_job(node, known[name_of(job)], job, by_name, may_be_lost)]
    for submission in clients.all:
        if submission.name not in names and (node.books / submission.name).exists():
            wrong.append(f"{submission.name} ran, and there is no such job")
    return wrong + check_processes(node) + check_gpus(node) + check_runs(node, jobs, may_be_lost) + check_store(node) + check_end(node)
