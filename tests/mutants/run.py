"""Usage: run.py [--tree DIR] [--jobs N] [--minutes N] [NAME...]: plants the faults of tests/mutants/list one by one in copies of the
tree, N of them at once (default: as many as there are processors), and demands that a test fails for each.

A fault that no test sees is a check that nobody would miss: the run fails then. It also fails for a fault that cannot
be planted (its old text is not there exactly once, or the changed tree does not compile). So it does for tests that
fail without any fault. A test that does not end, within thrice the time that it takes without a fault or a minute, has
not found the fault. That counts only for a fault of which the list says `hangs: yes`. The tree is the files that git
knows or would add. With --minutes no fault is begun after that time. The tree's commit then draws which come first, so
that one run after the other sees them all."""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time

KEYS = ["file", "old", "new", "tests"]
CONTAIN = pathlib.Path(__file__).resolve().parent.parent / "contain.py"
PATIENCE_SECONDS = 20  # for which tests/cli/lib.sh waits in vain, and
LEAST_SECONDS = 60  # that a test is given, and
SLOWNESS = 3  # times its duration without a fault
MOST_SECONDS = 600  # without a fault
SKIPPED = 77
RESULTS = ["caught", "survived", "hung", "unusable"]


class Unusable(Exception):
    """A fault, or the tree, that cannot be judged."""


def read_list(path):
    """Blocks of `name:`, `file:`, `old:`, `new:`, `tests:` lines, and perhaps `hangs: yes`, separated by empty lines;
    # starts a comment line."""
    mutants = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        value = value.strip()
        if key == "name":
            mutants.append({"name": value})
        elif mutants and (key, value) == ("hangs", "yes"):
            mutants[-1]["hangs"] = True
        elif not colon or not mutants or key not in KEYS or key in mutants[-1]:
            raise Unusable(f"{path}:{number}: unexpected line '{line}'")
        else:
            mutants[-1][key] = value
    for mutant in mutants:
        missing = [key for key in KEYS if key not in mutant]
        if missing:
            raise Unusable(f"{path}: {mutant['name']}: no {missing[0]}")
        mutant["tests"] = mutant["tests"].split()
    names = [mutant["name"] for mutant in mutants]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise Unusable(f"{path}: {min(twice)} is there twice")
    return mutants


def plant(mutant, text):
    """The text of the fault's file with the fault in it."""
    count = text.count(mutant["old"])
    if count != 1:
        raise Unusable(f"its old text is in {mutant['file']} {count} times")
    if mutant["new"] == mutant["old"]:
        raise Unusable("its new text is its old text")
    return text.replace(mutant["old"], mutant["new"])


def copy_tree(tree, copy):
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=tree, check=True,
                           capture_output=True, text=True).stdout
    for name in filter(None, files.split("\0")):
        if (tree / name).is_file():  # not one that was deleted and is still in the index
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, copy / name)


def meson(*args):
    program = "/usr/bin/meson" if os.access("/usr/bin/meson", os.X_OK) else "meson"
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unusable(f"meson {args[0]} fails:\n{done.stdout}{done.stderr}")
    return done.stdout


class Build:
    """One quick build of a copy of the tree, and the tests in it."""

    def __init__(self, tree, copy):
        copy_tree(tree, copy)
        self.copy = copy
        self.dir = copy / "build-mutants"
        self.seconds = {}  # that tests take without a fault
        meson("setup", "--buildtype=plain", "-Doptimization=0", str(self.dir), str(copy))
        outputs = {target["id"]: target["filename"] for target in json.loads(self.introspect("--targets"))}
        self.tests = {}
        for test in json.loads(self.introspect("--tests")):
            test["outputs"] = [name for target in test["depends"] for name in outputs[target]]
            self.tests[test["name"]] = test

    def introspect(self, what):
        return meson("introspect", what, str(self.dir))

    def make(self, names):
        """Builds the programs that the tests need."""
        unknown = [name for name in names if name not in self.tests]
        if unknown:
            raise Unusable(f"there is no test '{unknown[0]}'")
        outputs = {os.path.relpath(output, self.dir) for name in names for output in self.tests[name]["outputs"]}
        if not outputs:
            return
        done = subprocess.run(["ninja", "-C", self.dir, *sorted(outputs)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unusable(f"the tree does not compile:\n{done.stdout}{done.stderr}")

    def status(self, name, seconds):
        """A test's exit status, or None where it has not ended after this many seconds."""
        test = self.tests[name]
        env = {**os.environ, "PATIENCE_S": str(PATIENCE_SECONDS), **test["env"]}
        contained = [sys.executable, "-S", "-B", str(CONTAIN), *test["cmd"]]
        process = subprocess.Popen(contained, cwd=test["workdir"] or self.dir, env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            return None

    def passes(self, name):
        return self.status(name, MOST_SECONDS) in (0, SKIPPED)

    def measure(self, names):
        """The tests must pass, once, without a fault."""
        new = [name for name in names if name not in self.seconds]
        self.make(new)
        for name in new:
            start = time.monotonic()
            if not self.passes(name):
                start = time.monotonic()
                if not self.passes(name): # once may have been the company of the others on a busy machine
                    raise Unusable(f"without any fault, {name} fails")
            self.seconds[name] = time.monotonic() - start

    def try_tests(self, names, may_hang):
        """The tests' verdict on the mutant, and which of them."""
        hanging = None
        # Twice, since a test that tells a fault by the time it costs may miss it once on a busy machine.
        for name in 2 * names:
            if name == hanging:
                continue
            status = self.status(name, max(LEAST_SECONDS, SLOWNESS * self.seconds[name]))
            if status not in (0, SKIPPED, None) or (status is None and may_hang):
                return "caught", f"by {name}"
            if status is None:
                hanging = name
        if hanging:
            return "hung", f"in {hanging}, and there is no 'hangs: yes'"
        return "survived", "no test of " + " ".join(names)

    def judge(self, mutant):
        """Plants the fault; returns the result, in a word, and more."""
        path = self.copy / mutant["file"]
        try:
            text = path.read_text(encoding="utf-8")
            changed = plant(mutant, text)
            self.measure(mutant["tests"])
        except (OSError, Unusable) as reason:
            return "unusable", str(reason)
        path.write_text(changed, encoding="utf-8")
        try:
            self.make(mutant["tests"])
            return self.try_tests(mutant["tests"], mutant.get("hangs", False))
        except Unusable as reason:
            return "unusable", str(reason)
        finally:
            path.write_text(text, encoding="utf-8")


def in_files(mutants):
    """The faults by file, so that a build has little to compile between them; most first."""
    files = {}
    for mutant in mutants:
        files.setdefault(mutant["file"], []).append(mutant)
    return sorted(files.values(), key=len, reverse=True)


def drawn(files, tree):
    """The same in an order that is the commit's own."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree, capture_output=True, text=True, check=False).stdout
    files = sorted(files, key=lambda mutants: mutants[0]["file"])
    random.Random(commit).shuffle(files)
    return files


def work(tree, copy, waiting, end):
    """Takes faults until none is left, or no time; returns the result of each, in a word."""
    build = Build(tree, copy)
    results = []
    with contextlib.suppress(queue.Empty):
        while True:
            for mutant in waiting.get_nowait():
                start = time.monotonic()
                if start >= end:
                    return results
                result, detail = build.judge(mutant)
                results.append(result)
                print(f"{mutant['name']:<34} {result:<9} {time.monotonic() - start:5.1f} s  {detail}", flush=True)
    return results


def run(tree, jobs, chosen, minutes):
    mutants = read_list(tree / "tests" / "mutants" / "list")
    if chosen:
        unknown = set(chosen) - {mutant["name"] for mutant in mutants}
        if unknown:
            raise Unusable(f"there is no fault '{min(unknown)}'")
        mutants = [mutant for mutant in mutants if mutant["name"] in chosen]
    waiting = queue.SimpleQueue()
    files = in_files(mutants)
    for faults in files if minutes is None else drawn(files, tree):
        waiting.put(faults)
    results = []
    end = float("inf") if minutes is None else time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="carma-mutants.") as folder, \
            concurrent.futures.ThreadPoolExecutor() as pool:
        os.chmod(folder, 0o755)  # other users' jobs run programs of it
        workers = [pool.submit(work, tree, pathlib.Path(folder) / str(number), waiting, end)
                   for number in range(min(jobs, waiting.qsize()))]
        for worker in workers:
            results += worker.result()
    left = len(mutants) - len(results)
    print(f"{len(mutants)} mutants: " + ", ".join(f"{results.count(result)} {result}" for result in RESULTS) +
          (f", {left} not tried in {minutes:g} minutes" if left else ""))
    return 0 if results and results.count("caught") == len(results) else 1


def main(args):
    parser = argparse.ArgumentParser(description="Plants faults and demands that tests fail.")
    parser.add_argument("--tree", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="faults at once")
    parser.add_argument("--minutes", type=float, help="begin no fault after so long")
    parser.add_argument("name", nargs="*", help="only these faults")
    options = parser.parse_args(args)
    try:
        return run(options.tree, options.jobs, options.name, options.minutes)
    except Unusable as reason:
        print(f"tests/mutants: {reason}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
