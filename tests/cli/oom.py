"""Usage: oom.py CARMA TRAIN SOURCE {mps|time-slice} [sample]

Jobs that run out of GPU memory, in each way of saying so, with each end and each kind of figure. Prints a table of how
they ended and how often they ran, and fails where that is not as the rules say (docs/launching.md). Each needs 74 GiB
of a GPU that has 79. The first run of each has less: by its fence, or under turns by other processes on the GPUs. (By
turns a job of which nothing is known has too little room beside these, and waits until they have gone.)
"""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

carma, train, source, share = sys.argv[1:5]
sample = "sample" in sys.argv[5:]

PROGRAM = f'{train} --memory "$(cat $NEED)" --sm-activity 0.2 --seconds 20'
# What becomes of the message: {} is the program; its status goes to the file $STATUS.
MESSAGES = {
    "end": "{}; echo $? >$STATUS",
    "middle": "{}; echo $? >$STATUS; echo saving; echo finished",
    "swallowed": "{} >/dev/null 2>&1; echo $? >$STATUS; echo 'it did not work out' >&2",
    "tee": "({}; echo $? >$STATUS) 2>&1 | cat | tee $STATUS.log >/dev/null",
    "redirected": "{} >$STATUS.log 2>&1; echo $? >$STATUS",
    "/dev/null": "{}; echo $? >$STATUS",
    "none": "{} >/dev/null 2>&1; echo $? >$STATUS",
}
ENDS = {"0": "exit 0", "1": "exit 1", "killed": "kill -KILL $$"}
FIGURES = ["declared", "learned", "estimated", "guessed"]
SAID = ["end", "middle", "tee", "redirected"]


def is_right(cell: tuple[str, str, str], state: str, again: bool) -> bool:
    message, end, figure = cell
    if figure == "guessed" and state == "COMPLETED":
        return True  # it may have had a GPU for itself at once, or what others have taught
    if message in SAID:
        return again and state == "COMPLETED"
    if share == "mps" and end == "1":  # the fence tells; its next run may have none, and fill a GPU without a word
        return again
    return not again and state == ("COMPLETED" if end == "0" else "FAILED")


def call(*arguments: str, **more: object) -> str:
    return subprocess.run([carma, *arguments], check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def show(job: str) -> dict:
    return json.loads(call("show", "--json", job))


def has_ended_once(job: str) -> bool:
    return show(job)["exit_cause"] is not None


def submit(cell: tuple[str, str, str]) -> str:
    message, end, figure = cell
    name = "-".join((share, *cell)).replace("/", "")  # another workload than the other way to share has
    environment = os.environ | {"NEED": f"{name}.need", "STATUS": f"{name}.status"}
    command = MESSAGES[message].format(PROGRAM) + f'; [ "$(cat $STATUS)" = 0 ] && exit 0; {ENDS[end]}; : {name}'
    options = ["--parsable", "--no-capture", "-J", name]
    if message == "/dev/null":
        options += ["-o", "/dev/null"]
    if figure == "declared":
        options += ["--gpu-memory", "6G"]
    if figure == "estimated":
        options += ["--summary", f"{source}/data/summaries/resnet50-224.txt", "--batch-size", "32"]
    return call("submit", *options, "--", "sh", "-c", command, env=environment).strip()


def need(cell: tuple[str, str, str], size: str) -> None:
    Path("-".join((share, *cell)).replace("/", "") + ".need").write_text(size)


def wait(jobs: list[str]) -> None:
    subprocess.run([carma, "wait", *jobs], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def fill() -> list[subprocess.Popen]:
    """On each GPU a process that is not carma's, until all have it."""
    others = [
        subprocess.Popen(
            [train, "--memory", "20G", "--sm-activity", "0.01", "--seconds", "1000000"],
            env=os.environ | {"CUDA_VISIBLE_DEVICES": str(gpu)},
            stdout=subprocess.DEVNULL,
        )
        for gpu in range(8)
    ]
    while any(gpu["used_bytes"] < 20 << 30 for gpu in json.loads(call("gpus", "--json"))["gpus"]):
        time.sleep(0.1)
    return others


# Those of which nothing is known come last: without a fence they may fill the GPUs of others.
cells = sorted(product(MESSAGES, ENDS, FIGURES), key=lambda cell: cell[2] == "guessed")
if sample:  # each message once, by an end and a figure
    shift = 0 if share == "mps" else 1
    cells = [
        (message, list(ENDS)[(number + 2 - shift) % 3], FIGURES[(number + shift) % 4])
        for number, message in enumerate(MESSAGES)
    ]
for cell in cells:
    need(cell, "2G")
wait([submit(cell) for cell in cells if cell[2] == "learned"])
for cell in cells:
    need(cell, "74G")
jobs = {}
for first in range(0, len(cells), 24):  # not so many that they crowd one another: each meets its own limit
    batch = cells[first : first + 24]
    others = fill() if share == "time-slice" else []
    jobs |= {cell: submit(cell) for cell in batch}
    if others:  # until each has ended once
        while not all(has_ended_once(jobs[cell]) for cell in batch if cell[2] != "guessed"):
            time.sleep(0.2)
        for other in others:
            other.send_signal(signal.SIGTERM)
            other.wait()
    wait([jobs[cell] for cell in batch])
failures = 0
print(f"{share:20}" + "".join(f"{figure:>24}" for figure in FIGURES))
for message, end in product(MESSAGES, ENDS):
    row = ""
    for figure in FIGURES:
        job = jobs.get((message, end, figure))
        if not job:
            row += f"{'':>24}"
            continue
        shown = show(job)
        good = is_right((message, end, figure), shown["state"], shown["attempts"] > 1)
        failures += not good
        row += f"{shown['state'] + ' after ' + str(shown['attempts']) + ('' if good else ' (!)'):>24}"
    if row.strip():
        print(f"{message + ' ' + end:<20}{row}"[:200])
sys.exit(failures > 0)
