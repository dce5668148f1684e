"""Usage: count.py RESULT... MESON_TREE...: adds up the RESULTs (passed, failed, skipped) and the test logs of the trees
       count.py --failed MESON_TREE: prints the names of the tests that failed

Names each test that did not pass, and prints `N passed, N failed, N skipped, N flaky`. Exits 1 when something failed,
or when a tree has run no tests at all. A run that broke before its first test must not look like a good one. A test
that failed and then passed when it was run again (log `again`) is flaky. It fails nevertheless when tests/flaky lists
it."""

import json
import pathlib
import sys

KINDS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
MOST_AGAIN = 10  # if more failed than that, it was not by chance
LIST = pathlib.Path(__file__).with_name("flaky")


def results(tree, log):
    """The kind of each test of the log, by its name; {} where the log is missing."""
    # Meson adds the name of the test setup to that of the log.
    paths = pathlib.Path(tree, "meson-logs").glob(f"{log}*.json")
    tests = [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return {test["name"].rpartition(" / ")[2]: KINDS.get(test["result"], "failed") for test in tests}


def failed(tree):
    names = [name for name, kind in results(tree, "testlog").items() if kind == "failed"]
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


def main(words):
    listed = causes(LIST.read_text(encoding="utf-8"))
    counts = {"passed": 0, "failed": 0, "skipped": 0, "flaky": 0}
    for word in words:
        if word in counts:
            counts[word] += 1
            continue
        first, again = results(word, "testlog"), results(word, "again")
        if not first:
            print(f"{word}: no test has run")
            counts["failed"] += 1
        for name in first:
            kind, text = judge(name, first[name], again.get(name), listed)
            counts[kind] += 1
            if text:
                print(f"{text} ({word})")
    print("{passed} passed, {failed} failed, {skipped} skipped, {flaky} flaky".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    if sys.argv[1] == "--failed":
        print(" ".join(failed(sys.argv[2])))
    else:
        sys.exit(main(sys.argv[1:]))
