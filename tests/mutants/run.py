"""Usage: run.py [--tree DIR] [--jobs N] [--changed | --shard N/M | NAME...]: plants the mutants of tests/mutants/list one by one in copies
of the tree, N of them at once, and demands that a test fails for each.

A mutant that no test sees is a check that nobody would miss. It is
    caught    if one of its tests passes without it, and fails with it in two of at most three tries
    survived  if none does; a test that fails once and passes twice is flaky, and has caught nothing
    hung      if a test does not end, and the list does not say `hangs: yes`
    unusable  if it cannot be planted, or does not compile, or its tests fail without it
    skipped   if its tests are: they lack something on this machine.
All but the first and the last fail the run. --changed takes the mutants that the change must answer for (listed.py). If these are
more than 150, it takes the first ones by a hash of their names, and lists the others. One that hangs or is unusable is
tried on the commit where the change begins: if it is not caught there either, it is named and does not fail the run.
--shard takes the mutants of one part, by the same hash. Nothing here depends on the time but the end of a test that
hangs."""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import queue
import sys
import tempfile
import textwrap
import time

import listed
from builds import Build, copy_commit, copy_working_tree
from listed import Unusable

MOST_AT_LANDING = 150
PATIENCE = 20, 1  # seconds that a test waits in vain at least, and how often its own duration
HANGING = 30, 4  # the same for its end, where the list says that it may hang
NOT_HANGING = 300, 20  # and where it does not
GROUP_SECONDS = 30  # that mutants of one file take together, before others may take their rest
RESULTS = ["caught", "survived", "hung", "unusable", "skipped"]


def at_least(bound, seconds):
    return max(bound[0], bound[1] * seconds)


def try_test(build, name, may_hang):
    """caught, passed, flaky or hung."""
    seconds = build.seconds_without_fault(name)
    limit, patience = at_least(HANGING if may_hang else NOT_HANGING, seconds), round(at_least(PATIENCE, seconds))
    passes = failures = 0
    while passes < 2 and failures < 2:
        passed = build.passes(name, limit, patience)
        if passed is None:
            return "caught" if may_hang else "hung"
        passes, failures = passes + passed, failures + (not passed)
    return "caught" if failures == 2 else "flaky" if failures else "passed"


def try_tests(build, mutant, usable):
    """The verdict of the tests that pass without the mutant, and which test gave it."""
    results = {}
    for name in usable:
        results[name] = try_test(build, name, mutant.get("hangs", False))
        if results[name] == "caught":
            return "caught", f"by {name}"
    detail = ", ".join(f"{name} {result}" for name, result in results.items())
    return ("hung" if "hung" in results.values() else "survived"), detail


def judge(build, mutant):
    """Plants the mutant; returns the result, in a word, and more."""
    path = build.copy / mutant["file"]
    try:
        text = path.read_text(encoding="utf-8")
        changed = listed.plant(mutant, text)
        build.make([name for name in mutant["tests"] if not build.knows(name)])
    except (OSError, Unusable) as reason:
        return "unusable", str(reason)
    usable = [name for name in mutant["tests"] if build.seconds_without_fault(name) is not None]
    failing = [name for name in mutant["tests"] if name not in build.skipped]
    if not usable and failing:
        return "unusable", "without any fault, " + ", ".join(failing) + " fails"
    if not usable:
        return "skipped", "as is " + ", ".join(mutant["tests"])
    path.write_text(changed, encoding="utf-8")
    try:
        build.make(usable)
        return try_tests(build, mutant, usable)
    except Unusable as reason:
        return "unusable", str(reason)
    finally:
        path.write_text(text, encoding="utf-8")


def report(mutant, result, start, detail):
    print(f"{mutant['name']:<44} {result:<9} {time.monotonic() - start:5.1f} s  {detail}", flush=True)


def work(build, waiting):
    """Takes mutants, a file's after one another, until none is left; returns [(mutant, result)]."""
    judged = []
    with contextlib.suppress(queue.Empty):
        while True:
            for mutant in waiting.get_nowait():
                start = time.monotonic()
                result, detail = judge(build, mutant)
                judged.append((mutant, result))
                report(mutant, result, start, detail)
    return judged


def expected_seconds(build, mutant):
    """What a mutant is likely to take: a wait in vain, where its test hangs, else a tenth of what meson gives the test."""
    most = max((build.tests[name]["timeout"] for name in mutant["tests"] if name in build.tests), default=0)
    return HANGING[0] if mutant.get("hangs") else 1 + most / 10


def in_groups(build, mutants):
    """The mutants by file, so that a build has little to compile between them, and not too long at once, so that all
    builds end together: what takes longest begins first."""
    groups = []
    for mutant in sorted(mutants, key=lambda mutant: (mutant["file"], -expected_seconds(build, mutant))):
        seconds = expected_seconds(build, mutant)
        if groups and groups[-1][1][0]["file"] == mutant["file"] and groups[-1][0] + seconds <= GROUP_SECONDS:
            groups[-1] = groups[-1][0] + seconds, [*groups[-1][1], mutant]
        else:
            groups.append((seconds, [mutant]))
    return [group for _, group in sorted(groups, key=lambda group: -group[0])]


def broken_before(tree, base, folder, suspects):
    """Those of the mutants that hang or are unusable at the base, too."""
    before = listed.at_base(tree, base)
    known = [mutant for mutant in suspects if before.get(mutant["name"]) == mutant]
    if not known:
        return []
    print(f"on {base[:8]}, where the change begins:")
    copy_commit(tree, base, folder / "base")
    build = Build(folder / "base")
    broken = []
    for mutant in known:
        start = time.monotonic()
        result, detail = judge(build, mutant)
        report(mutant, result, start, detail)
        if result in ("hung", "unusable"):
            broken.append(mutant)
    return broken


def first_of(mutants):
    """The mutants of a landing; lists those that are left to `script/test --all`."""
    ordered = sorted(mutants, key=listed.number_of)
    left = ordered[MOST_AT_LANDING:]
    if left:
        print(f"{len(left)} of {len(ordered)} mutants of this change are owed to script/test --all:")
        print(textwrap.fill(" ".join(sorted(mutant["name"] for mutant in left)), 118, initial_indent="  ",
                            subsequent_indent="  ", break_on_hyphens=False))
    return ordered[:MOST_AT_LANDING]


def select(options, mutants, build, base):
    if options.name:
        unknown = set(options.name) - {mutant["name"] for mutant in mutants}
        if unknown:
            raise Unusable(f"there is no mutant '{min(unknown)}'")
        return [mutant for mutant in mutants if mutant["name"] in options.name]
    if options.shard:
        return listed.shard(mutants, *options.shard)
    if base:
        files = {name: test["files"] for name, test in build.tests.items()}
        return first_of(listed.touched(mutants, options.tree, base, files))
    return mutants


def prepare(first, mutants, jobs, tree, folder):
    """Compiles what the tests of the mutants need, and makes a build for each worker, which takes from the first what that
    has compiled; returns the builds."""
    names = {name for mutant in mutants for name in mutant["tests"] if name in first.tests}
    with contextlib.suppress(Unusable):  # each mutant will tell
        first.make(sorted(names))
    builds = [first]
    while len(builds) < min(jobs, len(mutants)):
        copy = folder / str(len(builds))
        copy_working_tree(tree, copy)
        builds.append(Build(copy, first))
    return builds


def run(options, folder):
    tree = options.tree
    mutants = listed.read_list((tree / "tests" / "mutants" / "list").read_text(encoding="utf-8"))
    base = listed.base_of(tree) if options.changed else None
    copy_working_tree(tree, folder / "0")
    first = Build(folder / "0")
    chosen = select(options, mutants, first, base)
    if base:
        print(f"{len(chosen)} mutants for the change since {base[:8]}", flush=True)
    waiting = queue.SimpleQueue()
    judged = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        builds = prepare(first, chosen, options.jobs, tree, folder)
        for group in in_groups(first, chosen):
            waiting.put(group)
        workers = [pool.submit(work, build, waiting) for build in builds]
        for worker in workers:
            judged += worker.result()
    wrong = [mutant for mutant, result in judged if result not in ("caught", "skipped")]
    if base:
        suspects = [mutant for mutant, result in judged if result in ("hung", "unusable")]
        broken = broken_before(tree, base, folder, suspects)
        wrong = [mutant for mutant in wrong if mutant not in broken]
        for mutant in broken:
            print(f"{mutant['name']} was broken before this change: mend it, or take it off the list")
    results = [result for _, result in judged]
    print(f"{len(judged)} mutants: " + ", ".join(f"{results.count(result)} {result}" for result in RESULTS))
    return 1 if wrong or not (judged or base) else 0


def part_of(text):
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"'{text}' is not like 1/8")
    return int(part), int(parts)


def main(args):
    parser = argparse.ArgumentParser(description="Plants faults and demands that tests fail.")
    parser.add_argument("--tree", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--jobs", type=int, default=6 * len(os.sched_getaffinity(0)),
                        help="mutants at once; their tests wait more than they compute")
    parser.add_argument("--changed", action="store_true", help="those that the change must answer for")
    parser.add_argument("--shard", type=part_of, metavar="N/M", help="those of part N of M")
    parser.add_argument("name", nargs="*", help="only these mutants")
    options = parser.parse_args(args)
    try:
        with tempfile.TemporaryDirectory(prefix="carma-mutants.") as folder:
            os.chmod(folder, 0o755)  # other users' jobs run programs of it
            return run(options, pathlib.Path(folder))
    except Unusable as reason:
        print(f"tests/mutants: {reason}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
