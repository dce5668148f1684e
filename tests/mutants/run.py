"""Usage: run.py [--tree DIR] [NAME...]: plants the faults of tests/mutants/list one by one in a copy of the tree, and
demands that a test fails for each.

A fault that no test sees is a check that nobody would miss: the run fails then, as it does for a fault that cannot be
planted (its old text is not there exactly once, or the changed tree does not compile) and for tests that fail without
any fault. The tree is the files that git knows or would add."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

KEYS = ["file", "old", "new", "tests"]
TEST_SECONDS = 30  # a test that hangs has seen the fault
SKIPPED = 77


class Unusable(Exception):
    """A fault, or the tree, that cannot be judged."""


def read_list(path):
    """Blocks of `name:`, `file:`, `old:`, `new:`, `tests:` lines, separated by empty lines; # starts a comment line."""
    mutants = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        value = value.strip()
        if key == "name":
            mutants.append({"name": value})
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
    """One quick build of the copy, and the tests in it."""

    def __init__(self, copy):
        self.dir = copy / "build-mutants"
        meson("setup", "--buildtype=plain", "-Doptimization=0", str(self.dir), str(copy))
        outputs = {target["id"]: target["filename"] for target in json.loads(self.introspect("--targets"))}
        self.tests = {}
        for test in json.loads(self.introspect("--tests")):
            test["outputs"] = [name for target in test["depends"] for name in outputs[target]]
            self.tests[test["name"]] = test

    def introspect(self, what):
        return meson("introspect", what, str(self.dir))

    def make(self, names):
        """Builds what the tests need; returns the compiler's output where that fails."""
        outputs = {os.path.relpath(output, self.dir) for name in names for output in self.tests[name]["outputs"]}
        if not outputs:
            return None
        done = subprocess.run(["ninja", "-C", self.dir, *sorted(outputs)], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr if done.returncode else None

    def fails(self, name):
        test = self.tests[name]
        # A session of its own, and no pipe: a test that fails half-way may leave children that hold on to either.
        process = subprocess.Popen(test["cmd"], cwd=test["workdir"] or self.dir, env={**os.environ, **test["env"]},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            status = process.wait(TEST_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return status not in (0, SKIPPED)


def judge(mutant, copy, build):
    """Plants the fault; returns the name of a test that fails, or None."""
    path = copy / mutant["file"]
    text = path.read_text(encoding="utf-8")
    count = text.count(mutant["old"])
    if count != 1:
        raise Unusable(f"its old text is in {mutant['file']} {count} times")
    path.write_text(text.replace(mutant["old"], mutant["new"]), encoding="utf-8")
    try:
        output = build.make(mutant["tests"])
        if output:
            raise Unusable(f"the changed tree does not compile:\n{output}")
        # Twice, since a test that tells a fault by the time it costs may miss it once on a busy machine.
        return next((name for name in 2 * mutant["tests"] if build.fails(name)), None)
    finally:
        path.write_text(text, encoding="utf-8")


def check_without_faults(mutants, build):
    wanted = sorted({name for mutant in mutants for name in mutant["tests"]})
    unknown = [name for name in wanted if name not in build.tests]
    if unknown:
        raise Unusable(f"there is no test '{unknown[0]}'")
    output = build.make(wanted)
    if output:
        raise Unusable(f"the tree does not compile:\n{output}")
    failing = [name for name in wanted if build.fails(name)]
    if failing:
        raise Unusable(f"without any fault, {', '.join(failing)} fails")


def run(tree, chosen):
    mutants = read_list(tree / "tests" / "mutants" / "list")
    if chosen:
        unknown = set(chosen) - {mutant["name"] for mutant in mutants}
        if unknown:
            raise Unusable(f"there is no fault '{min(unknown)}'")
        mutants = [mutant for mutant in mutants if mutant["name"] in chosen]
    counts = {"caught": 0, "survived": 0, "unusable": 0}
    with tempfile.TemporaryDirectory(prefix="carma-mutants.") as folder:
        copy = pathlib.Path(folder)
        copy_tree(tree, copy)
        build = Build(copy)
        check_without_faults(mutants, build)
        for mutant in mutants:
            start = time.monotonic()
            try:
                test = judge(mutant, copy, build)
                result, detail = ("caught", f"by {test}") if test else ("survived", "no test of " + " ".join(mutant["tests"]))
            except Unusable as reason:
                result, detail = "unusable", str(reason)
            counts[result] += 1
            print(f"{mutant['name']:<34} {result:<9} {time.monotonic() - start:4.1f} s  {detail}", flush=True)
    print(f"{len(mutants)} planted faults: " + ", ".join(f"{count} {result}" for result, count in counts.items()))
    return 0 if mutants and counts["caught"] == len(mutants) else 1


def main(args):
    parser = argparse.ArgumentParser(description="Plants faults and demands that tests fail.")
    parser.add_argument("--tree", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("name", nargs="*", help="only these faults")
    options = parser.parse_args(args)
    try:
        return run(options.tree, options.name)
    except Unusable as reason:
        print(f"tests/mutants: {reason}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
