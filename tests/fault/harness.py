"""Usage: harness.py --source DIR --build DIR [--kills N] [--faults N] [--seed N] [--keep] [KIND...]: carma on a virtual node, with faults
injected while clients submit and jobs run, and then the question whether anything was lost, ran twice or is told wrongly.

Prints a line per kind; its exit status is 1 when something is wrong. docs/fault-injection.md says more."""

import argparse
import pathlib
import random
import signal
import sys
import time

import faults
import truth
from node import Node
from work import Clients

# Kinds after which a job may be lost, or not have been started: its shepherd died, or could not be.
LOSES_JOBS = {"shepherd", "reboot", "processes", "files", "memory", "mps"}
KILLS_NOBODY = {"full", "busy"}  # the daemon goes on, and withdraws the jobs that it has refused
KINDS = ["daemon", "points", "shepherd", "monitor", "reboot", "store", "full", "busy", "processes", "files", "memory", "mps", "clock"]
SETTINGS = ["policy=magm", "memory_view=monitor"]
MPS = ["share=mps", "mps_control={prefix}/lib/carma/vnode/nvidia-cuda-mps-control"]
COST = {"points": len(faults.DAEMON_POINTS) * 2, "full": 4, "busy": 10}  # of one turn, in faults that take as long
FINISH_SECONDS = 90
MOST_LINES = 20


def times(kind, options):
    if kind == "daemon":
        return options.kills
    return max(1, options.faults // COST.get(kind, 1))


def play(kind, options):
    """Returns (injected, acknowledged, completed, [errors])."""
    if kind == "clock": # the wall clock is the node's time where that is not scaled; jobs that train would take hours
        node = Node(options.source, options.build, SETTINGS, scale=1)
        clients = Clients(node, options.source, options.seed, trains=False, most=4)
    else:
        node = Node(options.source, options.build, SETTINGS + (MPS if kind == "mps" else []))
        clients = Clients(node, options.source, options.seed)
    scene = faults.Scene(node, clients, random.Random(options.seed))
    try:
        node.start()
        if not node.await_ready():
            return 0, 0, 0, [f"carmad does not start: {node.log.read_text(encoding='utf-8')}"]
        clients.start()
        injected = getattr(faults, kind)(scene, times(kind, options))
        clients.stop()
        if not node.alive():
            node.start()
        wrong, completed = scene.wrong, 0
        if not node.await_ready():
            wrong.append("carmad does not come up again")
        elif not clients.finish(FINISH_SECONDS):
            wrong.append(f"not all jobs ended: {node.get('/v1/jobs')}")
        else:
            jobs = node.get("/v1/jobs?state=all")["jobs"]
            completed = sum(job["state"] == "COMPLETED" for job in jobs)
            wrong += truth.check(node, clients, jobs, kind in LOSES_JOBS)
            if kind in KILLS_NOBODY:
                wrong += truth.check_refused(node, clients)
        if injected == 0 or completed == 0:
            wrong.append("too little happened to tell")
        if wrong:
            print(node.log.read_text(encoding="utf-8")[-8000:], file=sys.stderr)
        return injected, len(clients.acknowledged()), completed, wrong
    finally:
        clients.stopping.set()
        if options.keep:
            node.kill_all()
            print(node.top, file=sys.stderr)
        else:
            node.remove()


def main(arguments):
    parser = argparse.ArgumentParser(description="Injects faults into carma on a virtual node.")
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--kills", type=int, default=25, help="of carmad, at random times")
    parser.add_argument("--faults", type=int, default=10, help="of every other kind, or about this number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the node's directory, to look at")
    parser.add_argument("kind", nargs="*", metavar="KIND", help=" ".join(KINDS))
    options = parser.parse_args(arguments)
    unknown = set(options.kind) - set(KINDS)
    if unknown:
        parser.error(f"there is no kind '{min(unknown)}': they are {' '.join(KINDS)}")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # and nothing is left
    options.build, options.source = options.build.resolve(), options.source.resolve()
    failed = False
    print(f"{'fault':<10} {'injected':>8} {'acknowledged':>12} {'completed':>9} {'violations':>10} {'seconds':>7}")
    for kind in options.kind or KINDS:
        start = time.monotonic()
        injected, acknowledged, completed, wrong = play(kind, options)
        print(f"{kind:<10} {injected:>8} {acknowledged:>12} {completed:>9} {len(wrong):>10} "
              f"{time.monotonic() - start:>7.0f}", flush=True)
        for line in wrong[:MOST_LINES]:
            print(f"  {line}", flush=True)
        failed |= bool(wrong)
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
