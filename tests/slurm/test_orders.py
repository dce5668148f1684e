"""Usage: test_orders.py CARMA SOURCE BUILD [--all | CASE...]: each of carma's orders to Slurm means one job, whatever that is part
of. A case is KIND-EVENT-SIBLINGS; without a word a fixed sample. The cases of an event go through it at the same time, in one
cluster. Of an array, `last` has the array's own number in Slurm. het1 is the component without the batch script."""

import pathlib
import sys
import time

from lab import NODES, PATIENCE_S, Lab, skip_where_impossible, until

POSITION = {"first": 0, "middle": 1, "last": 2}
KINDS, EVENTS, SIBLINGS = ["single", *POSITION, "het0", "het1"], ["oom", "refusal", "kill", "requeue", "slurmctld"], ["waiting", "running", "completed"]
# Beside a step of het1 the batch script runs, whatever else; and has its message of an OOM, so that the case is het0's. A step that
# begins after slurmctld was killed is Slurm's own to hold up: here it hangs without carma, too.
CASES = [f"{kind}-{event}-{siblings}" for event in EVENTS for kind in KINDS for siblings in SIBLINGS
         if (kind != "het1" or siblings == "running" and event != "oom") and (kind, event, siblings) != ("het0", "slurmctld", "waiting")]
SAMPLE = ["last-oom-waiting", "last-oom-running", "last-oom-completed", "het0-oom-running", "last-refusal-running", "het1-refusal-running",
          "last-kill-running", "middle-kill-waiting", "het0-kill-running", "last-requeue-running", "last-slurmctld-completed"]

# $1: the case's folder. $2: what this job is, TARGET or a sibling's name. It waits without a process of its own.
SCRIPT = """#!/bin/bash
case=$1 me=${2:-$SLURM_ARRAY_TASK_ID}
await() { until [ -e "$1" ]; do read -r -t 0.3 <> "$case/none"; done; }
say() { echo "$1" >> "$case/$me"; }
other() { [ "$me" != het0 ] || srun --overlap --het-group=1 "$case/../script" "$case" sibling; }
target() { [ "$me" != het0 ] || srun --overlap --het-group=1 "$case/../script" "$case" het1; }
siblings=${case##*-} event=${case%-*}; event=${event##*-}
say began
if [ "$me" = "$(cat "$case/target")" ]; then
    [ $siblings = completed ] && other
    [ $siblings = running ] && { other & }
    if [ $event = oom ] && [ "$(grep -c began "$case/$me")" = 1 ]; then
        await "$case/../oom.go"
        echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.80 GiB." >&2
        exit 1
    fi
    await "$case/../$event.end"
    [ $siblings = waiting ] && other
    wait
elif [ "$me" = het0 ]; then
    target
elif [ $siblings = running ]; then
    await "$case/../$event.end"
fi
say ended
"""


def snapshot(lab):
    """(state, restarts, GRES) of all jobs, by the names that Slurm's commands know."""
    text = lab.run(["squeue", "-h", "-t", "all", "-O", "JobArrayID:|,State:|,RestartCnt:|,tres-per-node:|"])
    return {name: (state, int(restarts), gres) for name, state, restarts, gres, _ in (line.split("|") for line in text.splitlines())}


def every(lab, cases, condition, what):
    """Waits until condition(case, snapshot) holds for all of them."""
    def holds():
        found = snapshot(lab)
        return all(condition(case, found) for case in cases)

    until(holds, what)


class Case:
    def __init__(self, lab, name):
        self.lab, self.name = lab, name
        self.kind, self.event, self.siblings = name.split("-")
        self.folder = lab.dir / "out" / name
        self.folder.mkdir()
        het = self.kind.startswith("het")
        self.log = self.kind if het or self.kind == "single" else str(POSITION[self.kind])
        (self.folder / "target").write_text(self.log)
        lab.run(["mkfifo", self.folder / "none"])
        one = ["--carma-mem=1G", "-n1", "-w", "n1"]
        if het:
            other = ["--carma-mem=1G", "-n1", "-w", "n2"]
            first, second = (one, other) if self.kind == "het0" else (other, one)
            self.whole = self.submit("het0", *first, ":", *second)
            self.target = f"{self.whole}+{self.kind[-1]}"
            self.others = {f"{self.whole}+{1 - int(self.kind[-1])}": "sibling" if self.kind == "het0" else "het0"}
        elif self.kind == "single":
            self.target = self.whole = self.submit("single", *one)
            self.others = {self.submit(f"s{number}", *one): f"s{number}" for number in range(2)}
        else:
            array = self.submit("", "--array=0-2" + ("%1" if self.siblings == "waiting" else ""), *one)
            for task in range(3): # each gets a record of its own, and the last one the array's
                lab.run(["scontrol", "update", f"JobId={array}_{task}", "TimeLimit=600"])
            self.target = self.whole = f"{array}_{self.log}"
            self.others = {f"{array}_{task}": str(task) for task in range(3) if str(task) != self.log}
        self.het = het

    def submit(self, label, *options):
        words = [word for option in options for word in ([":", "--hold"] if option == ":" else [option])]
        return self.lab.sbatch("--hold", "-J", self.name, "-o", f"{self.folder}/out", *words, self.folder.parent / "script", self.folder, label)

    def count(self, log, word):
        path = self.folder / log
        return path.read_text().split().count(word) if path.exists() else 0

    def release(self):
        if self.het:
            self.lab.run(["scontrol", "release", self.whole])
            return
        if self.siblings != "waiting":
            self.release_others()
        if self.siblings == "completed":
            every(self.lab, [self], Case.siblings_are_over, f"{self.name}: siblings")
        self.lab.run(["scontrol", "release", self.target])

    def others_began(self):
        return all(self.count(log, "began") for log in self.others.values())

    def is_ready(self, found):
        began = self.event == "refusal" or self.count(self.log, "began") == 1
        others = self.siblings != "running" or self.event == "refusal" and self.het or self.others_began()
        return began and others and (found[self.target][0] == "RUNNING" or self.event == "refusal")

    def siblings_are_over(self, found):
        return all(found[other][0] == "COMPLETED" for other in self.others)

    def went_back(self, found):
        return found[self.target][1] >= 1

    def release_others(self):
        """scontrol tries again when slurmctld is slow, and is told that they have run."""
        self.lab.run(["scontrol", "release", ",".join(self.others)], check=False)

    def finish(self):
        if not self.het and self.siblings == "waiting":
            self.release_others()

    def wanted(self):
        """By name: state, restarts, times begun and ended; None: any."""
        back = self.event in ("oom", "refusal", "requeue")
        restarts = None if self.event == "refusal" else int(back) # it may be refused again
        found = {self.target: (self.log, "CANCELLED", 0, 1, 0) if self.event == "kill" else
                 (self.log, "COMPLETED", restarts, 1 + (back and self.event != "refusal"), 1)}
        if self.het and self.event == "refusal": # or the other component may be, once this one has begun
            found[self.target] = (self.log, "COMPLETED", None, None, None)
        for other, log in self.others.items():
            if not self.het:
                found[other] = (log, "COMPLETED", 0, 1, 1)
            elif self.event == "kill": # the batch script's component takes the others along
                found[other] = (log, "CANCELLED", 0, None, int(self.siblings == "completed")) if self.kind == "het0" else (log, "COMPLETED", 0, 1, 1)
            elif back: # Slurm requeues the components together
                found[other] = (log, "COMPLETED", restarts, None, None)
            else:
                found[other] = (log, "COMPLETED", 0, 1, 1)
        return found

    def refusals(self, name):
        """Of the job's own starts, for which a busy machine was too slow: Slurm starts components together."""
        names = [self.target, *self.others] if self.het else [name]
        return sum(self.lab.log(f"agent-{node}").count(f" job {one} is queued again after 'refused'") for node in NODES for one in names)

    def check(self, found):
        wrong = []
        gres = found[next(iter(self.others))][2]
        for name, (log, state, back, began, ended) in self.wanted().items():
            restarts = None if back is None else back + self.refusals(name)
            *seen, is_gres = *found[name][:2], self.count(log, "began"), self.count(log, "ended"), found[name][2]
            raised = self.event == "oom" and name == self.target
            if any(one not in (None, is_one) for one, is_one in zip((state, restarts, began, ended), seen)) or (is_gres != gres) != raised:
                wrong.append(f"{self.name}: {name}: state, restarts, begun, ended: {seen}, not {[state, restarts, began, ended]}; {is_gres}, {gres}")
        return wrong


def title(process):
    try:
        return (process / "cmdline").read_text(errors="replace")
    except OSError: # it has ended
        return ""


def kill_stepds(lab, cases):
    left = {case.target for case in cases}

    def killed():
        for line in lab.run(["squeue", "-h", "-t", "R", "-O", "JobID:|,JobArrayID:|"]).splitlines():
            number, name, _ = line.split("|")
            for path in pathlib.Path("/proc").glob("[0-9]*") if name in left else ():
                if title(path).startswith(f"slurmstepd: [{number}.") and lab.owns(path):
                    lab.run(["kill", "-9", path.name], check=False)
                    left.discard(name)
        return not left

    until(killed, f"slurmstepds of {left}")


def fire(lab, event, cases):
    if event == "oom":
        (lab.dir / "out/oom.go").touch()
    elif event == "kill":
        kill_stepds(lab, cases)
        every(lab, cases, lambda case, found: found[case.target][0] == "CANCELLED", "kill: the agent's scancel")
    elif event == "requeue":
        for case in cases:
            lab.run(["scontrol", "requeue", case.whole])
        for case in cases: # Slurm's own wait is two minutes
            names = [case.target, *(case.others if case.het else [])]
            every(lab, [case], lambda _case, found, names=names: all(found[name][0] == "PENDING" for name in names), f"{case.name}: requeued")
            for name in names:
                lab.run(["scontrol", "update", f"JobId={name}", "StartTime=now+2"])
    elif event == "slurmctld":
        changed = time.time() # it saves its state some seconds later
        lab.run(["scontrol", "update", f"JobId={cases[0].target}", "Comment=kept"])
        until(lambda: (lab.dir / "state/job_state").stat().st_mtime > changed, "Slurm's saved state")
        lab.kill("slurmctld")
        lab.start_slurmctld()
        until(lambda: lab.run(["squeue", "-h"], check=False), "slurmctld")
    if event in ("oom", "refusal", "requeue"):
        every(lab, cases, Case.went_back, f"{event}: back in the queue")
    if event == "refusal":
        lab.start_carmad("n1")
        lab.until_carmad("n1")


def dependents(lab, cases):
    """(case, one that waits for a failure of its target, one that waits for its success)."""
    return [(case, *(lab.sbatch("-d", f"{kind}:{case.target}", wrap="true") for kind in ("afternotok", "afterok")))
            for case in cases if case.event == "oom" and not case.het]


def run_event(lab, event, cases):
    cases = [Case(lab, name) for name in cases]
    waiting = dependents(lab, cases)
    if event == "refusal": # siblings that run, or have, had their GPUs before
        early = [case for case in cases if not case.het and case.siblings != "waiting"]
        for case in early:
            case.release_others()
        every(lab, early, lambda case, found: case.siblings_are_over(found) if case.siblings == "completed" else case.others_began(), "siblings")
        lab.kill("carmad-n1")
    for case in cases:
        case.release()
    every(lab, cases, Case.is_ready, f"{event}: all begun")
    fire(lab, event, cases)
    (lab.dir / f"out/{event}.end").touch()
    for case in cases:
        case.finish()

    changed = {}

    def over():
        found, now = snapshot(lab), time.monotonic()
        for case in cases: # backfill starts it, which looks only after some change, and not while there are more
            if case.het and found[case.target][0] == "PENDING" and now > changed.get(case, 0) + 5:
                changed[case] = now
                lab.run(["scontrol", "update", f"JobId={case.whole}", "TimeLimit=600"], check=False)
        return all(found[name][0] in ("COMPLETED", "CANCELLED", "FAILED") for case in cases for name in [case.target, *case.others]) and found

    try:
        found = until(over, f"{event}: the end of all", 5 * PATIENCE_S)
    except AssertionError:
        print(lab.run(["squeue"]), *(f"{path}: {path.read_text()}" for path in (lab.dir / "out").glob("*/*") if path.is_file()))
        raise
    wrong = [line for case in cases for line in case.check(found)]
    for case, failure, success in waiting:
        until(lambda success=success: snapshot(lab)[success][0] == "COMPLETED", f"{case.name}: a job that waits for its success")
        if snapshot(lab)[failure][0] != "PENDING":
            wrong.append(f"{case.name}: the job that waits for its failure was started")
        lab.run(["scancel", failure])
    return wrong


def main():
    skip_where_impossible()
    names = CASES if sys.argv[4:] == ["--all"] else sys.argv[4:] or SAMPLE
    wrong = []
    with Lab(*sys.argv[1:4], wait_s=2, job_sm=20) as lab:
        script = lab.dir / "out/script"
        script.write_text(SCRIPT)
        script.chmod(0o755)
        for event in EVENTS:
            cases = [name for name in names if name.split("-")[1] == event]
            began = time.monotonic()
            if cases:
                wrong += run_event(lab, event, cases)
                until(lambda: lab.node_states() == {"idle"}, "idle nodes: " + lab.run(["sinfo", "-R"]))
                print(f"{event}: {len(cases)} cases, {time.monotonic() - began:.1f} s", flush=True)
        assert not wrong, "\n" + "\n".join(wrong)


sys.exit(main())
