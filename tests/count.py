"""What the test logs of a meson tree say: counts, and the names of tests that did not pass.

A test that failed and then passed when it was run again (log `NAME-again`) is flaky. It fails nevertheless when
tests/flaky lists it."""

import json
import pathlib
import sys

KINDS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
COUNTED = ["passed", "failed", "skipped", "flaky"]
MOST_AGAIN = 40  # if more failed than that, it was not by chance
LIST = pathlib.Path(__file__).with_name("flaky")


def results(tree, log):
    """The kind of each test of the log, by its name; {} where the log is missing."""
    # Some versions of meson add the name of the test setup to that of the log.
    paths = [pathlib.Path(tree, "meson-logs", f"{log}{setup}.json") for setup in ("", "-contained")]
    tests = [json.loads(line) for path in paths if path.exists() for line in path.read_text(encoding="utf-8").splitlines()]
    return {test["name"].rpartition(" / ")[2]: KINDS.get(test["result"], "failed") for test in tests}


def failed(tree, log):
    """The names of the tests that are worth running again."""
    names = [name for name, kind in results(tree, log).items() if kind == "failed"]
    return names if len(names) <= MOST_AGAIN else []


def causes(text):
    """Why each test that is listed is flaky, by its name."""
    listed = [line.partition(": ") for line in text.splitlines() if line and not line.startswith("#")]
    for name, _, cause in listed:
        if not cause.strip():
            sys.exit(f"{LIST}: '{name}' has no cause: write NAME: CAUSE")
    return {name: cause for name, _, cause in listed}


def judge(name, first, again, listed):
    """The kind of a test that gave `first`, and `again` (None: was not run again); the line about it, or ''."""
    if again != "passed":
        kind = "failed" if again else first
        return kind, "" if kind == "passed" else f"{kind}: {name}"
    if name in listed:
        return "failed", f"failed: {name}, which is listed as flaky ({listed[name]}) and is flaky again: mend it"
    return "flaky", f"flaky: {name} failed, and passed when run again: list it in tests/flaky with its cause"


def of_tests(tree, log):
    """The counts by kind. Names each test that did not pass. A run that broke before its first test has failed."""
    listed = causes(LIST.read_text(encoding="utf-8"))
    first, again = results(tree, log), results(tree, f"{log}-again")
    counts = dict.fromkeys(COUNTED, 0)
    if not first:
        print(f"{tree}: no test has run")
        counts["failed"] = 1
    for name in first:
        kind, text = judge(name, first[name], again.get(name), listed)
        counts[kind] += 1
        if text:
            print(f"{text} ({log})")
    return counts
