"""Usage: script/test [--quick | --all [--part N/8]]

Without an option: the landing check, which a change must pass before it is merged. --quick: what helps while one works,
in four minutes. --all: everything, in eight parts of which --part runs one; the mutants are divided among the parts by
their names. Each piece below says what it runs, and how long that takes on two idle cores. The end lists what each took
here. The last line has the counts; the exit status is 1 when something failed.

Nothing is drawn and nothing is cut off by a clock: the same commit is judged the same on a busy machine, only later. A
test that fails runs once more, with the machine to itself. One that passes then is flaky (count.py)."""

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import time
from typing import Callable, NamedTuple

import count

ROOT = pathlib.Path(__file__).resolve().parent.parent
MESON = "/usr/bin/meson" if os.access("/usr/bin/meson", os.X_OK) else "meson"
PARTS = 8
SKIPPED = 77
PROCESSES = 6 * len(os.sched_getaffinity(0))  # tests wait more than they compute
SANITIZERS = {
    # A sanitizer's exit must not pass for the exit status 1 that a test expects of a program.
    "ASAN_OPTIONS": "detect_leaks=1:halt_on_error=1:abort_on_error=1:exitcode=99",
    "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1:exitcode=99",
    # GCC 12's library does not know pthread_mutex_clocklock, and takes its unlock for a mistake.
    "TSAN_OPTIONS": "halt_on_error=1:report_mutex_bugs=0:exitcode=99",
}
# More optimisation, or more than the lines of a back-trace, would more than double the time of the build.
SANITIZED = ["--buildtype=custom", "-Doptimization=g", "-Ddebug=false", "-Dc_args=-g1", "-Db_sanitize=address,undefined"]
THREADED = [
    "client", "daemon-groups", "gpu-monitor", "gpu-mps-domain-v2", "gpu-mps-faults-v2", "gpu-mps-start-v2", "gpu-mps-users-v2",
    "http", "http-stream", "store-commit", "store-energy", "store-history", "store-open", "store-requests", "store-snapshots",
    "system-admin", "system-events", "system-gpus", "system-history", "system-job_mapping", "system-metrics",
    "system-restart", "system-submit_estimate", "system-top", "system-whatif", "system-whole",
]


def call(*command):
    """One of the kinds that count.py counts."""
    sys.stdout.flush()
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    return {0: "passed", SKIPPED: "skipped"}.get(status, "failed")


def python(script, *args):
    return call(sys.executable, "-B", ROOT / "tests" / script, *args)


def meson_test(tree, log, *args):
    call(MESON, "test", "-C", tree, "--print-errorlogs", "--timeout-multiplier", "20", "--logbase", log, *args)


def tests(tree, log, *selection):
    """Runs tests of a tree, and again those that failed; their counts."""
    for path in (tree / "meson-logs").glob(f"{log}*.json"):
        path.unlink()
    meson_test(tree, log, "--num-processes", str(PROCESSES), *selection)
    failed = count.failed(tree, log)
    if failed:
        meson_test(tree, f"{log}-again", "--num-processes", "1", *failed)
    return count.of_tests(tree, log)


def built(name, *options):
    """A build tree that is configured; meson compiles in it what the tests need."""
    tree = ROOT / "build-test" / name / "meson"
    if not (tree / "build.ninja").exists():
        call(MESON, "setup", *options, tree)
    return tree


def installed(name):
    """The optimised build as users have it, in its prefix."""
    folder = ROOT / "build-test" / name
    return folder / "meson" if call("script/build", folder) == "passed" else None


def with_release(script):
    return {call(script, ROOT / "build-test" / "release") if installed("release") else "failed": 1}


def lint():
    return {call("script/lint"): 1}


def suites(*names):
    return [word for name in names for word in ("--suite", name)]


def sanitized(*selection):
    return tests(built("sanitize", *SANITIZED), "sanitize", *selection)


def optimised(log, *selection):
    tree = installed("release")
    return tests(tree, log, *selection) if tree else {"failed": 1}


def threads():
    return tests(built("threads", "--buildtype=debugoptimized", "-Db_sanitize=thread"), "threads", *THREADED)


class Piece(NamedTuple):
    name: str
    minutes: float  # measured on two idle cores
    what: str
    run: Callable
    part: int = 0


LANDING = [
    Piece("lint", 1, "format, clang-tidy, ruff, shellcheck, links of documents", lint),
    Piece("sanitize", 3, "modules, parsers and one test of each door with address and undefined-behaviour sanitizers",
          lambda: sanitized(*suites("unit", "property", "golden", "fuzz", "sanitized"), "--no-suite", "daily")),
    Piece("release", 5, "the other programs in the optimised build, Slurm, Python, documents, one kind of failure",
          lambda: optimised("landing", *suites("cli", "python", "layers", "smoke"),
                            "--no-suite", "daily", "--no-suite", "sanitized")),
    Piece("mutants", 5, "mutants of the files and tests that the change touches",
          lambda: {python("mutants/run.py", "--changed"): 1}),
]
QUICK = [
    Piece("lint", 1, "of the files that differ from the branch `main`", lambda: {call("script/lint", "--changed"): 1}),
    Piece("quick", 3, "the suites unit, property, golden and layers with sanitizers",
          lambda: tests(built("quick", "--buildtype=debug", SANITIZED[-1]), "quick",
                        *suites("unit", "property", "golden", "layers"), "--no-suite", "daily")),
]
WHOLE = [
    Piece("lint", 1, LANDING[0].what, lint, 1),
    Piece("sanitize", 12, "all tests with address and undefined-behaviour sanitizers",
          lambda: sanitized("--no-suite", "release", "--no-suite", "fault"), 1),
    Piece("release", 9, "the tests of the optimised build", lambda: optimised("release", *suites("release")), 2),
    Piece("threads", 4, "code with threads, and the whole system, with the thread sanitizer", threads, 3),
    Piece("faults", 16, "kills and injected failures at full counts", lambda: {call("script/fault"): 1}, 4),
    Piece("worlds", 4, "properties and parsers in the optimised build, at full counts",
          lambda: optimised("worlds", *suites("property", "fuzz")), 5),
    Piece("corpus", 35, "training scripts recorded by the current PyTorch, and compared with runs on the CPU",
          lambda: {call("script/corpus", "--all"): 1}, 6),
    Piece("slurm", 20, "the tests of Slurm with the newest one that Debian has",
          lambda: {call("script/slurm-newest", ROOT / "build-test" / "slurm"): 1}, 7),
    Piece("soak", 5, "10,000 jobs of eight clients", lambda: with_release("script/soak"), 8),
]


def shard(part):
    return Piece("mutants", 12, f"mutants of part {part}/{PARTS}",
                 lambda: {python("mutants/run.py", "--shard", f"{part}/{PARTS}"): 1}, part)


def whole(part):
    """All pieces, or those of a part, each part's mutants behind them."""
    parts = [part] if part else range(1, PARTS + 1)
    return [piece for number in parts for piece in [*(p for p in WHOLE if p.part == number), shard(number)]]


def title(piece):
    return f"{piece.part}/{PARTS} {piece.name}" if piece.part else piece.name


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(pieces):
    total = sum(piece.minutes for piece in pieces)
    print(f"{len(pieces)} pieces, about {total:.0f} minutes on two idle cores:")
    for piece in pieces:
        print(f"  {title(piece):<14} {piece.minutes:3.0f} min  {piece.what}")
    counts, rows = dict.fromkeys(count.COUNTED, 0), []
    for piece in pieces:
        print(f"\n== {title(piece)}: {piece.what}", flush=True)
        start, cpu = time.monotonic(), cpu_seconds()
        result = piece.run()
        for kind, number in result.items():
            counts[kind] += number
        verdict = next((kind for kind in ("failed", "passed") if result.get(kind)), "skipped")
        rows.append((title(piece), verdict, time.monotonic() - start, cpu_seconds() - cpu))
    spent = sum(row[2] for row in rows)
    print(f"\n{'piece':<14} {'result':<8} {'seconds':>8} {'share':>6} {'CPU s':>7}")
    for name, verdict, seconds, cpu in rows:
        print(f"{name:<14} {verdict:<8} {seconds:8.0f} {seconds / spent:6.0%} {cpu:7.0f}")
    print(f"{'all':<14} {'':<8} {spent:8.0f} {'':6} {sum(row[3] for row in rows):7.0f}")
    print("{passed} passed, {failed} failed, {skipped} skipped, {flaky} flaky".format(**counts))
    return 1 if counts["failed"] else 0


def part_of(text):
    part, _, parts = text.partition("/")
    if not part.isdigit() or parts != str(PARTS) or not 1 <= int(part) <= PARTS:
        raise argparse.ArgumentTypeError(f"'{text}' is not one of 1/{PARTS} to {PARTS}/{PARTS}")
    return int(part)


def main(args):
    parser = argparse.ArgumentParser(prog="script/test", usage=__doc__.partition("\n")[0].removeprefix("Usage: "))
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--quick", action="store_true")
    chosen.add_argument("--all", action="store_true")
    parser.add_argument("--part", type=part_of)
    options = parser.parse_args(args)
    if options.part and not options.all:
        parser.error(f"--part is one of --all: write --all --part {options.part}/{PARTS}")
    if not options.quick and call("script/packages", "test") != "passed":
        return 1
    os.environ.update(SANITIZERS)
    return run(QUICK if options.quick else whole(options.part) if options.all else LANDING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
