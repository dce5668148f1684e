"""A quick build of a copy of the tree, for planting mutants in it, and its tests."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

from listed import Unusable

CONTAIN = pathlib.Path(__file__).resolve().parent.parent / "contain.py"
MOST_SECONDS, PATIENCE_SECONDS = 1800, 300  # that a test has, and waits in vain, without a fault
SKIPPED = 77


def copy_working_tree(tree, copy):
    """The files that git knows or would add."""
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=tree, check=True,
                           capture_output=True, text=True).stdout
    for name in filter(None, files.split("\0")):
        if (tree / name).is_file():  # not one that was deleted and is still in the index
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, copy / name)


def copy_commit(tree, commit, copy):
    copy.mkdir(parents=True)
    packed = subprocess.run(["git", "archive", commit], cwd=tree, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", copy], input=packed, check=True)


def meson(*args):
    program = "/usr/bin/meson" if os.access("/usr/bin/meson", os.X_OK) else "meson"
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unusable(f"meson {args[0]} fails:\n{done.stdout}{done.stderr}")
    return done.stdout


class Verdict:
    """Of a test without a fault, which one build finds out while the others that want it wait."""

    def __init__(self):
        self.lock, self.known, self.seconds = threading.Lock(), False, None


class Build:
    """The build of a copy that is there already. `like` is the build of an equal copy: its build tree is taken whole, since
    ninja looks at times and commands, and these are the same but for the folder's name. Its verdicts are shared: how long
    each test takes without a fault, or None where it fails or is skipped."""

    def __init__(self, copy, like=None):
        self.copy = copy
        self.dir = copy / "build-mutants"
        self.verdicts = like.verdicts if like else {}
        self.skipped = like.skipped if like else set()
        if like:
            self.take(like)
        else:
            self.set_up()

    def take(self, like):
        def here(text):
            return re.sub(re.escape(str(like.copy)) + r"\b", str(self.copy), text)

        shutil.copytree(like.dir, self.dir, symlinks=True, ignore=shutil.ignore_patterns("build.ninja"))
        self.tests = json.loads(here(json.dumps(like.tests)))
        # Written last: newer than all that it is made from, it is not made again.
        (self.dir / "build.ninja").write_text(here((like.dir / "build.ninja").read_text(encoding="utf-8")), encoding="utf-8")

    def set_up(self):
        meson("setup", "--buildtype=plain", "-Doptimization=0", str(self.dir), str(self.copy))
        targets = json.loads(self.introspect("--targets"))
        outputs = {target["id"]: target["filename"] for target in targets}
        self.tests = {}
        for test in json.loads(self.introspect("--tests")):
            test["outputs"] = [name for target in test["depends"] for name in outputs[target]]
            test["files"] = sorted(self.files_of(test, targets))
            self.tests[test["name"]] = test

    def introspect(self, what):
        return meson("introspect", what, str(self.dir))

    def files_of(self, test, targets):
        """A test's own files: its script and what that names of the tests, or the sources of its program."""
        names = [word for word in test["cmd"] if not word.startswith("-")]
        for target in targets:
            if test["cmd"][0] in target["filename"]:
                names += [name for group in target["target_sources"] for name in group.get("sources", [])]
        own = {os.path.relpath(name, self.copy) for name in names}
        own = {name for name in own if name.startswith(("tests/", "python/tests/"))}
        for name in [name for name in own if name.endswith(".sh")]:
            own.update(re.findall(r"\$SOURCE/(tests/[\w/.]+)", (self.copy / name).read_text(encoding="utf-8")))
        return own

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

    def status(self, name, seconds, patience):
        """A test's exit status. None: it runs for longer than `seconds`."""
        test = self.tests[name]
        env = {**os.environ, "FAIL_FAST": "yes", "PATIENCE_S": str(patience), **test["env"]}
        contained = [sys.executable, "-S", "-B", str(CONTAIN), *test["cmd"]]
        process = subprocess.Popen(contained, cwd=test["workdir"] or self.dir, env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            return None

    def passes(self, name, seconds, patience):
        """The same, of which a test that is skipped is one that passes."""
        status = self.status(name, seconds, patience)
        return None if status is None else status in (0, SKIPPED)

    def try_without_fault(self, name):
        for _ in range(2):
            start = time.monotonic()
            status = self.status(name, MOST_SECONDS, PATIENCE_SECONDS)
            if status == SKIPPED:
                self.skipped.add(name)
                return None
            if status == 0:
                return time.monotonic() - start
        return None

    def knows(self, name):
        """Whether the test's verdict without a fault is there."""
        return name in self.verdicts and self.verdicts[name].known

    def seconds_without_fault(self, name):
        """How long the test takes to pass, a failure before that not counted; None: it fails twice, or is skipped. The first
        build that asks runs it, for all."""
        verdict = self.verdicts.setdefault(name, Verdict())
        with verdict.lock:
            if not verdict.known:
                verdict.seconds, verdict.known = self.try_without_fault(name), True
            return verdict.seconds
